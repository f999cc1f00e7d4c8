//! Memory of a connection's channels that belongs to no queue yet: incomplete messages and open transactions.

use std::mem;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::BasicPublish;
use crosstie_queues::{ChannelKey, Fault};
use crosstie_transport::now_s;

use super::broker::Broker;
use super::channels::{Channel, Channels};
use super::incomplete::Incomplete;
use super::turn::Turn;

impl Channels {
    /// Notes the end of a turn, with the bytes in open transactions if the turn could change them. Returns whether the
    /// figures of incomplete messages must be updated.
    pub(super) fn note_incomplete(&mut self, uncommitted_bytes: Option<usize>) -> bool {
        self.uncommitted_bytes = uncommitted_bytes.unwrap_or(self.uncommitted_bytes);
        let bytes = (self.assembling_bytes, self.uncommitted_bytes);
        mem::replace(&mut self.noted_bytes, bytes) != bytes || self.assembling_bytes > 0
    }

    /// Bytes of messages that are incomplete or wait for a commit.
    pub(super) fn incomplete_bytes(&self) -> usize {
        self.assembling_bytes + self.uncommitted_bytes
    }

    /// Time of the last sufficient progress of the slowest incomplete message.
    pub(super) fn unfinished_since_s(&self) -> Option<u32> {
        if self.assembling_bytes == 0 {
            return None;
        }
        let assemblies = self
            .channels
            .iter()
            .filter_map(|(_, channel)| match channel {
                Channel::Open { assembly, .. } => assembly.as_ref(),
                Channel::Closing | Channel::Closed { .. } => None,
            });
        assemblies.map(|assembly| assembly.since_s()).min()
    }

    /// Restarts the timeouts: while the broker paused reading, the client could not send.
    pub(super) fn forgive(&mut self) {
        for (_, channel) in &mut self.channels {
            if let Channel::Open {
                assembly: Some(assembly),
                ..
            } = channel
            {
                assembly.forgive(now_s());
            }
        }
    }
}

/// Checks that a transaction has room for another message.
pub(super) fn may_publish(
    key: ChannelKey,
    held_bytes: usize,
    broker: &Broker,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    let incomplete = &broker.shared.incomplete;
    if incomplete.is_share_spent(held_bytes) {
        let (vhost, ..) = turn.enter();
        if vhost.is_transactional(key) {
            return Err(share_spent(incomplete));
        }
    }
    Ok(())
}

#[cold]
pub(super) fn share_spent(incomplete: &Incomplete) -> Fault {
    let text = format!(
        "the connection has {} bytes of incomplete messages and open transactions, which is as much \
         as one may have",
        incomplete.connection_bytes_max()
    );
    Fault::of::<BasicPublish<'_>>(ReplyCode::ContentTooLarge, text)
}
