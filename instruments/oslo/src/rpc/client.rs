//! A caller: calls and casts, one after the other.

use std::time::{Duration, Instant};
use std::{fmt, mem};

use crosstie_amqp::Method;
use crosstie_amqp::method::{BasicAck, BasicConsume, BasicPublish, QueueDeclare};
use crosstie_joints::{EnvelopeError, RemoteFailure, RequestText, read_reply};
use serde_json::Value;

use super::sender::Sender;
use super::{CHANNEL, Target, expiring, properties};
use crate::identifier::Identifiers;
use crosstie_amqp_client::TransportUrl;
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions};

/// The options of calls and casts.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Time limit for a call's reply. A request that is still in its queue by then expires.
    pub timeout: Duration,
}

/// The reason why a call has no result, or a cast was not accepted.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    Connection(ConnectionError),
    /// No reply arrived in time.
    Timeout {
        msg_id: String,
        waited: Duration,
        blocked: Option<String>,
    },
    /// The server's exception.
    Failure(Box<RemoteFailure>),
    /// The broker did not confirm the message.
    Refused,
    /// A malformed reply.
    Reply(EnvelopeError),
    /// The system has no random bytes.
    Chance(getrandom::Error),
}

/// A caller. It sends on one connection, and opens another one for replies at its first call.
pub struct RpcClient {
    url: TransportUrl,
    options: ConnectionOptions,
    timeout: Duration,
    expiration: Vec<u8>,
    properties: Vec<u8>,
    target: Target,
    exchange: String,
    routing_key: String,
    sender: Sender,
    replies: Option<Replies>,
    identifiers: Identifiers,
    body: Vec<u8>,
}

/// The receiving side of replies.
struct Replies {
    connection: Connection,
    queue: String,
}

impl RpcClient {
    /// Connects, and declares the exchange for messages to `target`.
    pub fn open(
        url: &TransportUrl,
        target: Target,
        options: ConnectionOptions,
        send: &SendOptions,
    ) -> Result<Self, CallError> {
        let mut sender = Sender::open(url, &options)?;
        let (exchange, routing_key) = target.route();
        let declare = target.exchange_declare(&exchange);
        sender.connection().call(CHANNEL, &declare)?;
        let expiration = send.timeout.as_millis().to_string();
        Ok(Self {
            url: url.clone(),
            options,
            timeout: send.timeout,
            expiration: properties(Some(&expiration)),
            properties: properties(None),
            target,
            exchange,
            routing_key,
            sender,
            replies: None,
            identifiers: Identifiers::new().map_err(CallError::Chance)?,
            body: Vec::new(),
        })
    }

    /// Creates the queue for replies, which the first call would create otherwise.
    pub fn prepare(&mut self) -> Result<(), CallError> {
        if self.replies.is_none() {
            let queue = format!("reply_{}", self.identifiers.draw());
            self.replies = Some(Replies::open(&self.url, &self.options, queue)?);
        }
        Ok(())
    }

    /// Calls, and waits for the result.
    pub fn call(&mut self, request: &RequestText) -> Result<Value, CallError> {
        self.prepare()?;
        let msg_id = self.identifiers.draw();
        let unique_id = self.identifiers.draw();
        let mut body = mem::take(&mut self.body);
        body.clear();
        let queue = self.replies.as_ref().map_or("", |replies| &replies.queue);
        request.write_call(&msg_id, queue, &unique_id, &mut body);
        let until = Instant::now() + self.timeout;
        let sent = self.send(&body, true);
        self.body = body;
        sent?;
        let reply = match &mut self.replies {
            Some(replies) => replies.await_reply(&msg_id, until, &mut self.sender)?,
            None => None,
        };
        match reply {
            Some(outcome) => outcome.map_err(CallError::Failure),
            None => Err(CallError::Timeout {
                msg_id,
                waited: self.timeout,
                blocked: self.sender.connection().blocked().map(str::to_owned),
            }),
        }
    }

    /// Sends without a reply; waits for the broker's confirm.
    pub fn cast(&mut self, request: &RequestText) -> Result<(), CallError> {
        let unique_id = self.identifiers.draw();
        let mut body = mem::take(&mut self.body);
        body.clear();
        request.write_cast(&unique_id, &mut body);
        let sent = self.send(&body, false);
        self.body = body;
        sent
    }

    /// Closes both connections in order.
    pub fn close(self) -> Result<(), CallError> {
        if let Some(replies) = self.replies {
            replies.connection.close()?;
        }
        Ok(self.sender.close()?)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Publishes, and waits for the confirm.
    fn send(&mut self, body: &[u8], is_call: bool) -> Result<(), CallError> {
        let method = BasicPublish::to(&self.exchange, &self.routing_key);
        let properties = match is_call {
            true => &self.expiration,
            false => &self.properties,
        };
        self.sender.publish(&method, properties, body)?;
        if !self.sender.await_confirmed(self.options.reply_timeout)? {
            return Err(CallError::Connection(ConnectionError::Timeout {
                waited: self.options.reply_timeout,
                awaited: "confirm",
                blocked: self.sender.connection().blocked().map(str::to_owned),
            }));
        }
        match self.sender.take_fate().refused {
            0 => Ok(()),
            _ => Err(CallError::Refused),
        }
    }
}

impl Replies {
    fn open(
        url: &TransportUrl,
        options: &ConnectionOptions,
        queue: String,
    ) -> Result<Self, ConnectionError> {
        let mut connection = Connection::open(url, options)?;
        connection.open_channel(CHANNEL)?;
        let arguments = expiring();
        let declare = QueueDeclare {
            queue: &queue,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        };
        connection.call(CHANNEL, &declare)?;
        let consume = BasicConsume {
            queue: &queue,
            consumer_tag: "1",
            ..BasicConsume::default()
        };
        connection.call(CHANNEL, &consume)?;
        Ok(Self { connection, queue })
    }

    /// The reply to `msg_id`; `None` if it does not arrive until then. Late replies to earlier calls are acknowledged
    /// and dropped.
    fn await_reply(
        &mut self,
        msg_id: &str,
        until: Instant,
        sender: &mut Sender,
    ) -> Result<Option<Result<Value, Box<RemoteFailure>>>, CallError> {
        // The other connection is silent meanwhile.
        let tick = self.connection.keep_alive_interval();
        let mut ahead = Value::Null;
        let mut left = until.saturating_duration_since(Instant::now());
        // To the millisecond, so that the socket's timeout is the same for most calls.
        left = Duration::from_millis(left.as_millis() as u64 + 1).max(Duration::from_millis(1));
        loop {
            let wait = tick.map_or(left, |tick| tick.min(left));
            let Some(event) = self.connection.next_event(Some(wait))? else {
                left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                sender.connection().keep_alive()?;
                continue;
            };
            let (Method::BasicDeliver(deliver), Some(content)) = (&event.method, &event.content)
            else {
                continue;
            };
            let delivery_tag = deliver.delivery_tag;
            let reply = read_reply(&content.body);
            let ack = BasicAck::one(delivery_tag);
            self.connection.send(CHANNEL, &ack);
            self.connection.flush()?;
            let reply = reply.map_err(CallError::Reply)?;
            if reply.msg_id.as_deref() == Some(msg_id) {
                match reply.outcome {
                    // A reply that is not the last one is a progress message or, from old servers, the result ahead of
                    // an empty last one.
                    Ok(result) if !reply.is_ending => ahead = result,
                    Ok(Value::Null) => return Ok(Some(Ok(ahead))),
                    outcome => return Ok(Some(outcome)),
                }
            }
            // Many events may arrive before the awaited one, and the other connection is still silent.
            left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            sender.connection().keep_alive()?;
        }
    }
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Timeout {
                msg_id,
                waited,
                blocked,
            } => {
                let waited = waited.as_secs_f64();
                write!(
                    f,
                    "timed out after {waited} s waiting for a reply to message ID {msg_id}"
                )?;
                match blocked {
                    Some(reason) => write!(f, "; the broker accepts no messages: {reason}"),
                    None => Ok(()),
                }
            }
            Self::Failure(failure) => failure.fmt(f),
            Self::Refused => f.write_str("the broker refused the message (basic.nack)"),
            Self::Reply(error) => write!(f, "a reply that cannot be read: {error}"),
            Self::Chance(error) => write!(f, "the system gives no random number: {error}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<ConnectionError> for CallError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}
