//! One of the two brokers: its connection, and a channel that is opened anew for each queue.

use std::time::Duration;

use crosstie_amqp::Method;
use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions, TransportUrl};

/// The only channel.
pub(crate) const CHANNEL: u16 = 1;

const NOT_FOUND: u16 = 404;

pub(crate) struct Side {
    pub(crate) connection: Connection,
    has_channel: bool,
}

/// What a broker says of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Messages that no consumer has.
    pub(crate) messages: u64,
    pub(crate) consumers: u32,
}

impl Side {
    pub(crate) fn open(url: &TransportUrl, name: &str) -> Result<Self, ConnectionError> {
        let options = ConnectionOptions {
            name: name.to_owned(),
            // The other broker may keep this one waiting.
            heartbeat_s: 60,
            reply_timeout: Duration::from_secs(60),
            ..ConnectionOptions::default()
        };
        Ok(Self {
            connection: Connection::open(url, &options)?,
            has_channel: false,
        })
    }

    /// Opens a channel whose numbers begin at 1.
    pub(crate) fn renew(&mut self) -> Result<(), ConnectionError> {
        if self.has_channel {
            self.connection.close_channel(CHANNEL)?;
            self.has_channel = false;
        }
        // Events of the former channel.
        while self.connection.next_event(Some(Duration::ZERO))?.is_some() {}
        self.connection.open_channel(CHANNEL)?;
        self.has_channel = true;
        Ok(())
    }

    /// `None`: there is no such queue.
    pub(crate) fn depth(&mut self, queue: &str) -> Result<Option<Depth>, ConnectionError> {
        if !self.has_channel {
            self.renew()?;
        }
        let declare = QueueDeclare {
            queue,
            passive: true,
            ..QueueDeclare::default()
        };
        match self.connection.call(CHANNEL, &declare) {
            Ok(Method::QueueDeclareOk(ok)) => Ok(Some(Depth {
                messages: ok.message_count.into(),
                consumers: ok.consumer_count,
            })),
            Ok(found) => Err(ConnectionError::Unexpected {
                found: found.name(),
                expected: "queue.declare-ok",
            }),
            Err(ConnectionError::ChannelClosed {
                code: NOT_FOUND, ..
            }) => {
                self.has_channel = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
