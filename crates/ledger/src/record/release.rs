//! The release of a vhost: the last entry of its owner names the next one.

use std::sync::Arc;

use crosstie_queues::QueueId;

use crate::broken::Broken;
use crate::reader::{Reader, put};

/// The release of a vhost. Only claims may follow it: its owner writes no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The node that may claim it; empty: any node that has read the log.
    pub to: Arc<str>,
    /// The position in each queue from which on messages were never delivered ([`crosstie_queues::Record::Rested`]).
    /// `None` if the owner did not end in order, or is of an earlier version.
    pub rested: Option<Vec<(QueueId, i64)>>,
}

/// Terminates the list of queues, which may be empty.
const RESTED: u8 = 1;

impl Release {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.to.as_bytes(), &mut out);
        // Earlier versions ignore everything behind the name.
        for (queue, fresh_from) in self.rested.iter().flatten() {
            out.extend_from_slice(&queue.0.to_be_bytes());
            out.extend_from_slice(&fresh_from.to_be_bytes());
        }
        out.extend(self.rested.iter().map(|_| RESTED));
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let mut reader = Reader(body);
        let to = reader.shared_text()?;
        let mut rested = None;
        if !reader.is_empty() {
            let mut queues = Vec::new();
            while reader.0.len() > 1 {
                queues.push((QueueId(reader.long()?), reader.long()?.cast_signed()));
            }
            match reader.octet()? {
                RESTED => rested = Some(queues),
                _ => return Err(Broken::Body),
            }
        }
        Ok(Self { to, rested })
    }
}
