//! A planned handover: the owner writes its last entry, and another node takes over at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::Stream;
use crosstie_ledger::Release;

use super::beat::HANDED_MAX;
use super::driver::{Driver, Saying};
use super::orders::{Move, Moved, Order, Reply};

/// A handover that no node has confirmed yet.
pub(super) struct Handing {
    /// The chosen successor.
    to: String,
    is_named: bool,
    /// The epoch of the term that ended with the handover.
    epoch: u64,
    asked: Instant,
    within: Duration,
    pub(super) reply: Reply<Moved>,
}

/// Timeout for records in flight; after a longer silence other nodes would suspect the owner.
const FLUSH_MAX: Duration = Duration::from_secs(2);

impl Driver {
    /// Obeys an operator's order as owner. Returns the reason if the term is over.
    pub(super) async fn obey_as_owner(&mut self, stream: &Stream, order: Order) -> Option<String> {
        match order {
            Order::Move(order) => self.move_away(stream, order).await,
            Order::Recover(order) => {
                let why = "this node owns it: its log is whole, and in use".to_owned();
                order.reply.answer(Err(why));
                None
            }
        }
    }

    async fn move_away(&mut self, stream: &Stream, order: Move) -> Option<String> {
        let asked = Instant::now();
        let Move { to, within, reply } = order;
        let own = self.task.node.as_str();
        let is_own = |to: &str| to == own || own.split('/').next() == Some(to);
        if to.as_deref().is_some_and(is_own) {
            reply.answer(Err(format!("node {own} owns it already")));
            return None;
        }
        let found = self.others.standing_by(to.as_deref());
        let found = match found.map(|beat| beat.node.clone()) {
            Ok(found) => found,
            Err(why) => {
                reply.answer(Err(why));
                return None;
            }
        };
        let within = within.min(HANDED_MAX);
        if let Err(why) = self.write_last(stream, &found).await {
            reply.answer(Err(why.to_owned()));
            let is_over = self
                .term
                .as_ref()
                .is_some_and(|term| term.journal.is_sealed());
            return is_over.then(|| why.to_owned());
        }
        self.beat(stream, Saying::Leaving(Some((found.clone(), within))));
        let epoch = self.ledger.status().epoch;
        let why = format!("it is handed to node {found}");
        self.handing = Some(Handing {
            to: found,
            is_named: to.is_some(),
            epoch,
            asked,
            within,
            reply,
        });
        Some(why)
    }

    /// Writes all submitted records, and the term's last entry. While the log accepts nothing the node remains the
    /// owner; once a record could be lost it does not.
    async fn write_last(&mut self, stream: &Stream, to: &str) -> Result<(), &'static str> {
        let stalled = "its log acknowledges nothing: it stays here";
        self.hold(true);
        let flushed = tokio::time::timeout(FLUSH_MAX, self.flush(stream)).await;
        if flushed.is_err() || !self.ledger.is_settled() {
            self.hold(false);
            return Err(stalled);
        }
        let Some(term) = &mut self.term else {
            return Err("this node no longer owns it");
        };
        let journal = Arc::clone(&term.journal);
        let why = format!("it is handed to node {to}");
        let rested = self.task.holder.rest(&why);
        journal.seal();
        let lost = "its log has not acknowledged the handover entry: any ready node takes over";
        self.beat(stream, Saying::Owning);
        let flushed = tokio::time::timeout(FLUSH_MAX, self.flush(stream)).await;
        let handed = Release {
            to: to.into(),
            rested: Some(rested),
        };
        let now = self.now();
        if flushed.is_err() || !self.ledger.release(now, &handed) {
            return Err(lost);
        }
        self.beat(stream, Saying::Owning);
        let flushed = tokio::time::timeout(FLUSH_MAX, self.flush(stream)).await;
        let is_handed = self.term.as_ref().is_some_and(|term| term.is_handed);
        match flushed.is_ok() && is_handed {
            true => Ok(()),
            false => Err(lost),
        }
    }

    /// Stops the vhost in order because the node stops, and writes all pending records. Any node may own it next.
    pub(super) async fn write_rest(&mut self, stream: &Stream) {
        let rested = self.task.holder.rest("the node is being stopped");
        if let Some(term) = &self.term {
            term.journal.seal();
        }
        self.flush(stream).await;
        let handed = Release {
            to: "".into(),
            rested: Some(rested),
        };
        let now = self.now();
        if self.ledger.release(now, &handed) {
            self.flush(stream).await;
        }
    }

    fn hold(&mut self, is_held: bool) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.is_held = is_held;
        match is_held {
            true => self.task.holder.hold(),
            false => self.task.holder.go_on(),
        }
    }

    /// Reports that another node has taken over, or resumes ownership after the deadline.
    pub(super) fn judge_handing(&mut self) {
        let Some(handing) = &self.handing else {
            return;
        };
        let (asked, is_over) = (handing.asked, handing.asked.elapsed() >= handing.within);
        let taker = self.others.owner();
        let taker = taker.filter(|owner| owner.epoch > handing.epoch);
        let taker = taker.map(|owner| owner.node.clone());
        // The log may name the new owner before its first heartbeat.
        let status = self.ledger.status();
        let logged = status.owner.filter(|_| status.epoch > handing.epoch);
        let taker = taker.or_else(|| logged.map(|owner| owner.node.to_string()));
        if taker.is_none() && !is_over {
            return;
        }
        let Some(Handing {
            to,
            is_named,
            within,
            reply,
            ..
        }) = self.handing.take()
        else {
            return;
        };
        let s = within.as_secs_f64();
        reply.answer(match taker {
            Some(taker) if taker != to && is_named => Err(format!(
                "node {to} has not taken it: node {taker} has it now"
            )),
            Some(taker) => Ok(Moved {
                from: self.task.node.clone(),
                to: taker,
                taken: asked.elapsed(),
            }),
            None => {
                self.others.take_back();
                Err(format!(
                    "node {to} has not taken it within {s} s: this node takes it back"
                ))
            }
        });
    }
}
