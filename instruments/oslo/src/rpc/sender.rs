//! A connection that messages are published on, each confirmed by the broker.

use std::time::Duration;

use crosstie_amqp::Method;
use crosstie_amqp::method::{BasicPublish, ConfirmSelect};

use crate::connection::{Connection, ConnectionError, ConnectionOptions};
use crate::rpc::CHANNEL;
use crate::url::TransportUrl;

/// Publishes with confirms. The exchange is declared by its user, before the first message.
pub(super) struct Sender {
    connection: Connection,
    /// Messages published, and how many of them the broker has answered for.
    published: u64,
    confirmed: u64,
    refused: u64,
    returned: u64,
}

/// What became of the messages since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// The broker took no responsibility for so many.
    pub(super) refused: u64,
    /// So many had no queue to go to.
    pub(super) returned: u64,
}

impl Sender {
    pub(super) fn open(
        url: &TransportUrl,
        options: &ConnectionOptions,
    ) -> Result<Self, ConnectionError> {
        let mut connection = Connection::open(url, options)?;
        connection.open_channel(CHANNEL)?;
        Ok(Self {
            connection,
            published: 0,
            confirmed: 0,
            refused: 0,
            returned: 0,
        })
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(super) fn close(self) -> Result<(), ConnectionError> {
        self.connection.close()
    }

    /// Sends a message on its way at once.
    pub(super) fn publish(
        &mut self,
        method: &BasicPublish<'_>,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), ConnectionError> {
        if self.published == 0 {
            self.connection.call(CHANNEL, &ConfirmSelect::default())?;
        }
        self.published += 1;
        self.connection.publish(CHANNEL, method, properties, body);
        self.connection.flush()
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed == self.published
    }

    /// Messages that the broker has not answered for.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.published - self.confirmed
    }

    /// Looks at what the broker has said, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), ConnectionError> {
        while !self.is_confirmed() && self.take_one(Duration::ZERO)? {}
        Ok(())
    }

    /// Waits until every message is confirmed; false when that took longer.
    pub(super) fn await_confirmed(&mut self, timeout: Duration) -> Result<bool, ConnectionError> {
        while !self.is_confirmed() {
            if !self.take_one(timeout)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What became of the messages since this was asked last.
    pub(super) fn take_fate(&mut self) -> Fate {
        Fate {
            refused: std::mem::take(&mut self.refused),
            returned: std::mem::take(&mut self.returned),
        }
    }

    fn take_one(&mut self, timeout: Duration) -> Result<bool, ConnectionError> {
        let Some(event) = self.connection.next_event(Some(timeout))? else {
            return Ok(false);
        };
        let (tag, multiple, is_refused) = match event.method {
            Method::BasicAck(ack) => (ack.delivery_tag, ack.multiple, false),
            Method::BasicNack(nack) => (nack.delivery_tag, nack.multiple, true),
            Method::BasicReturn(_) => {
                self.returned += 1;
                return Ok(true);
            }
            _ => return Ok(true),
        };
        // Only few are under way at a time, and those that are not of several come one by one.
        let answered = match (multiple, tag) {
            (true, 0) => self.published - self.confirmed,
            (true, tag) => tag.saturating_sub(self.confirmed),
            (false, _) => 1,
        };
        self.confirmed = (self.confirmed + answered).min(self.published);
        if is_refused {
            self.refused += answered;
        }
        Ok(true)
    }
}
