//! A queue that drivers declare.

use crosstie_amqp::{TableBuf, Value};

/// A declared queue, with the properties that drivers need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_durable: bool,
    pub(crate) expires_ms: Option<i32>,
    /// 0: without priorities.
    pub(crate) priority_max: u8,
    /// Each node of a cluster has a copy.
    pub(crate) is_quorum: bool,
}

impl Queue<'_> {
    pub(super) fn arguments(&self) -> TableBuf {
        let mut arguments = TableBuf::new();
        if let Some(expires_ms) = self.expires_ms {
            arguments = arguments.with("x-expires", Value::I32(expires_ms));
        }
        if self.priority_max > 0 {
            let max = Value::I32(self.priority_max.into());
            arguments = arguments.with("x-max-priority", max);
        }
        if self.is_quorum {
            arguments = arguments.with("x-queue-type", Value::LongString(b"quorum"));
        }
        arguments
    }
}
