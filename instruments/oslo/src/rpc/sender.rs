//! A connection for publishing messages, each confirmed by the broker.

use std::time::Duration;

use crosstie_amqp::Method;
use crosstie_amqp::method::{BasicPublish, ConfirmSelect};

use crate::rpc::CHANNEL;
use crosstie_amqp_client::TransportUrl;
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions};

/// Publishes with confirms. Its user declares the exchange before the first message.
pub(super) struct Sender {
    connection: Connection,
    /// Messages published, and the number that the broker has answered.
    published: u64,
    confirmed: u64,
    refused: u64,
    returned: u64,
}

/// The outcome of the messages since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Number that the broker refused.
    pub(super) refused: u64,
    /// Number without a queue.
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

    /// Publishes a message at once.
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

    /// Messages without the broker's answer.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.published - self.confirmed
    }

    /// Handles the broker's answers, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), ConnectionError> {
        while !self.is_confirmed() && self.take_one(Duration::ZERO)? {}
        Ok(())
    }

    /// Waits until every message is confirmed; false if that took longer.
    pub(super) fn await_confirmed(&mut self, timeout: Duration) -> Result<bool, ConnectionError> {
        while !self.is_confirmed() {
            if !self.take_one(timeout)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The outcome of the messages since the last call.
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
        // Few messages are in flight at a time, so single confirms are the common case.
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
