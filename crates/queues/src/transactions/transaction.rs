//! The methods that a transactional channel holds until its commit: publications, and acknowledgements.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use crate::channels::Delivery;
use crate::status::Uncommitted;
use crate::{MessageContent, QueueKey, Time};

/// A channel's transaction, from `tx.select` or the last commit or rollback on.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    publications: Vec<Publication>,
    acknowledgements: Vec<Acknowledgements>,
    /// Number of deliveries in these.
    acknowledged: usize,
    /// The oldest of them: its queue, and its delivery time.
    held: Option<(QueueKey, Time)>,
    publication_bytes: usize,
    /// Whether its commit waits for a store.
    pub(crate) is_committing: bool,
}

/// A message that is published at the commit.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) content: Arc<MessageContent>,
    /// The headers for routing, if receivers must not see all of them (`BCC`).
    pub(crate) full_headers: Option<Box<TableBuf>>,
    pub(crate) mandatory: bool,
}

/// Deliveries with the same answer, one after another.
#[derive(Debug)]
pub(crate) struct Acknowledgements {
    pub(crate) verdict: Verdict,
    pub(crate) deliveries: Vec<(u64, Delivery)>,
}

/// A client's answer to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// `basic.ack`
    Done,
    /// `basic.reject` or `basic.nack`
    Refused,
    /// The same with `requeue`, or `basic.recover`.
    GivenBack,
    /// Unanswered: its channel is gone.
    Left,
}

/// The contents taken out of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) publications: Vec<Publication>,
    pub(crate) acknowledgements: Vec<Acknowledgements>,
    /// Bytes of the publications.
    pub(crate) bytes: usize,
}

impl Transaction {
    pub(super) fn uncommitted(&self) -> Uncommitted {
        Uncommitted {
            messages: self.publications.len(),
            acknowledgements: self.acknowledged,
        }
    }

    pub(crate) fn publish(&mut self, publication: Publication) {
        self.publication_bytes += publication.memory_bytes();
        self.publications.push(publication);
    }

    pub(crate) fn acknowledge(&mut self, verdict: Verdict, tag: u64, delivery: Delivery) {
        let held = (delivery.queue, delivery.delivered_at);
        self.held = Some(
            self.held
                .filter(|oldest| oldest.1 <= held.1)
                .unwrap_or(held),
        );
        self.acknowledged += 1;
        match self.acknowledgements.last_mut() {
            Some(last) if last.verdict == verdict => last.deliveries.push((tag, delivery)),
            _ => self.acknowledgements.push(Acknowledgements {
                verdict,
                deliveries: vec![(tag, delivery)],
            }),
        }
    }

    /// Takes the contents; the transaction is empty then.
    pub(crate) fn take(&mut self) -> Contents {
        let taken = std::mem::take(self);
        Contents {
            publications: taken.publications,
            acknowledgements: taken.acknowledgements,
            bytes: taken.publication_bytes,
        }
    }

    pub(crate) fn publications(&self) -> &[Publication] {
        &self.publications
    }

    /// Publications, and deliveries that were acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.publications.len() + self.acknowledged
    }

    /// Number of deliveries that were acknowledged, which count as unacknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// The oldest delivery that it acknowledges: its queue, and its delivery time.
    pub(crate) fn held(&self) -> Option<(QueueKey, Time)> {
        self.held
    }

    #[cfg(test)]
    pub(crate) fn publication_bytes(&self) -> usize {
        self.publication_bytes
    }

    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        let groups = self.acknowledgements.iter();
        groups.flat_map(|group| {
            group
                .deliveries
                .iter()
                .map(|(tag, delivery)| (*tag, delivery))
        })
    }
}

impl Publication {
    /// Its bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let headers = self.full_headers.as_ref();
        let header_bytes = headers.map_or(0, |headers| headers.as_table().bytes().len());
        size_of::<Self>() + self.content.memory_bytes() + header_bytes
    }
}

impl Verdict {
    /// Whether the message returns to its queue.
    pub(crate) fn is_return(self) -> bool {
        matches!(self, Self::GivenBack | Self::Left)
    }

    pub(crate) fn turned_down(requeue: bool) -> Self {
        match requeue {
            true => Self::GivenBack,
            false => Self::Refused,
        }
    }
}
