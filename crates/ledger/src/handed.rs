//! Who is to own a vhost next, as its last owner says.

use std::sync::Arc;

use crosstie_queues::QueueId;

use crate::broken::Broken;
use crate::reader::{Reader, put};

/// Who is to own a vhost next. What comes behind it is somebody's claim, and nothing else: its owner writes no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// The node; empty: any node that has read the log along.
    pub to: Arc<str>,
    /// The place in each queue from which on messages were never delivered
    /// ([`crosstie_queues::Record::Rested`]). `None` if the owner did not end in good order, or is of an
    /// earlier version.
    pub rested: Option<Vec<(QueueId, i64)>>,
}

/// Ends the queues, of which there may be none.
const RESTED: u8 = 1;

impl Handed {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.to.as_bytes(), &mut out);
        // Earlier versions do not look behind the name.
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
