//! NATS by our own codec, on one blocking socket: the cost of nodes that did nothing.

use std::net::SocketAddr;
use std::time::Instant;

use crosstie_nats::{Decoded, Limits, Operation, decode, encode};
use serde::{Deserialize, Serialize};

use crate::load::{Answer, Exchange, Stream, Traffic, within_time};
use crate::process::{PATIENCE, WorkerError};
use crate::subject::Endpoint;

/// The order for a caller or a publisher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NatsOrder {
    pub(crate) address: SocketAddr,
    /// Prefix of the subjects, so that no round receives another's messages.
    pub(crate) subject: String,
    pub(crate) payload_bytes: usize,
}

const LIMITS: Limits = Limits {
    line_bytes_max: 64 * 1024,
    message_bytes_max: 16 << 20,
};
const INPUT_BYTES: usize = 64 * 1024;
const NUMBER_BYTES: usize = 8;

impl NatsOrder {
    fn asked(&self) -> String {
        format!("{}.asked", self.subject)
    }

    fn told(&self) -> String {
        format!("{}.told", self.subject)
    }
}

struct Wire {
    stream: Stream,
    input: Vec<u8>,
    length: usize,
    output: Vec<u8>,
    traffic: Traffic,
}

impl Wire {
    fn connect(address: SocketAddr) -> Result<Self, WorkerError> {
        let endpoint = Endpoint::Tcp(address);
        let stream = Stream::connect(&endpoint);
        let stream = stream.map_err(|e| WorkerError::Connect(endpoint.to_string(), e))?;
        stream.limit_waiting(Some(PATIENCE))?;
        let mut wire = Self {
            stream,
            input: vec![0; INPUT_BYTES],
            length: 0,
            output: Vec::new(),
            traffic: Traffic::default(),
        };
        let options =
            r#"{"verbose":false,"pedantic":false,"echo":false,"headers":true,"protocol":1}"#;
        encode::connect(options, &mut wire.output);
        Ok(wire)
    }

    /// Subscribes, and waits until the server knows.
    fn subscribe(&mut self, subject: &str) -> Result<(), WorkerError> {
        encode::subscribe(subject, 1, &mut self.output);
        encode::ping(&mut self.output);
        self.flush()?;
        let mut is_known = false;
        while !is_known {
            let received = self.receive(|operation, _| {
                is_known |= matches!(operation, Operation::Pong);
                Ok(())
            })?;
            if received.is_none() {
                return Err(WorkerError::Closed("answering SUB"));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        Ok(written?)
    }

    /// Reads once, and passes complete messages on; the next flush writes what `handle` appends. `None` at the end of
    /// the stream.
    fn receive(
        &mut self,
        mut handle: impl FnMut(&Operation<'_>, &mut Vec<u8>) -> Result<(), WorkerError>,
    ) -> Result<Option<Instant>, WorkerError> {
        if self.length == self.input.len() {
            self.input.resize(2 * self.length, 0);
        }
        let read = self.stream.read(&mut self.input[self.length..]);
        let read = match read {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(WorkerError::TimedOut);
            }
            Err(e) => return Err(e.into()),
        };
        let at = Instant::now();
        self.length += read;
        self.traffic.reads += 1;
        let mut consumed = 0;
        loop {
            let decoded = decode(&self.input[consumed..self.length], &LIMITS);
            let decoded = decoded.map_err(|e| WorkerError::Handshake(e.to_string()))?;
            let Decoded::Operation {
                operation,
                consumed: more,
            } = decoded
            else {
                break;
            };
            match operation {
                Operation::Ping => encode::pong(&mut self.output),
                Operation::Error(why) => return Err(WorkerError::Refused(why.to_owned())),
                Operation::Message(_) => self.traffic.messages += 1,
                _ => {}
            }
            handle(&operation, &mut self.output)?;
            consumed += more;
        }
        self.input.copy_within(consumed..self.length, 0);
        self.length -= consumed;
        Ok(Some(at))
    }
}

/// Answers requests, until the end of the stream.
pub(crate) struct NatsCallee {
    wire: Wire,
    told: String,
}

impl NatsCallee {
    pub(crate) fn subscribe(order: &NatsOrder) -> Result<Self, WorkerError> {
        let mut wire = Wire::connect(order.address)?;
        wire.subscribe(&order.asked())?;
        wire.stream.limit_waiting(None)?;
        Ok(Self {
            wire,
            told: order.told(),
        })
    }

    /// A closure that ends it from another thread.
    pub(crate) fn leaver(&self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        let stream = self.wire.stream.try_clone()?;
        Ok(move || stream.shut_down())
    }

    pub(crate) fn serve(mut self) -> Result<Traffic, WorkerError> {
        let told = self.told;
        loop {
            let received = self.wire.receive(|operation, out| {
                if let Operation::Message(message) = operation {
                    encode::publish(&told, message.payload, out);
                }
                Ok(())
            })?;
            if received.is_none() {
                return Ok(self.wire.traffic);
            }
            self.wire.flush()?;
        }
    }
}

/// Sends numbered messages on one connection, and receives the result of each on the same or another one.
pub(crate) struct NatsExchange {
    out: Wire,
    /// The connection that receives them, if that is another one.
    heard: Option<Wire>,
    subject: String,
    payload: Vec<u8>,
    sent: u64,
    answered: u64,
}

impl NatsExchange {
    /// Sends requests, and receives the answers on the same connection.
    pub(crate) fn caller(order: &NatsOrder) -> Result<Self, WorkerError> {
        let mut out = Wire::connect(order.address)?;
        out.subscribe(&order.told())?;
        Ok(Self::new(out, None, order.asked(), order))
    }

    /// Publishes, and receives on another connection.
    pub(crate) fn publisher(order: &NatsOrder) -> Result<Self, WorkerError> {
        let mut heard = Wire::connect(order.address)?;
        heard.subscribe(&order.told())?;
        let out = Wire::connect(order.address)?;
        Ok(Self::new(out, Some(heard), order.told(), order))
    }

    fn new(out: Wire, heard: Option<Wire>, subject: String, order: &NatsOrder) -> Self {
        Self {
            out,
            heard,
            subject,
            payload: vec![b'x'; order.payload_bytes.max(NUMBER_BYTES)],
            sent: 0,
            answered: 0,
        }
    }
}

impl Exchange for NatsExchange {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.sent += 1;
        self.payload[..NUMBER_BYTES].copy_from_slice(&self.sent.to_be_bytes());
        encode::publish(&self.subject, &self.payload, &mut self.out.output);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.out.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let (answered, bytes) = (&mut self.answered, self.payload.len());
        let wire = self.heard.as_mut().unwrap_or(&mut self.out);
        let received = wire.receive(|operation, _| {
            if let Operation::Message(message) = operation {
                *answered += 1;
                let is_right = message.payload.len() == bytes
                    && message.payload[..NUMBER_BYTES] == answered.to_be_bytes();
                answers.push(Answer::checked(is_right));
            }
            Ok(())
        });
        within_time(received)
    }

    fn traffic(&self) -> Traffic {
        self.heard.as_ref().unwrap_or(&self.out).traffic
    }
}

/// Subscribes to one subject after the other, and waits until the server knows each.
pub(crate) struct NatsWishes {
    wire: Wire,
    subject: String,
    wanted: u64,
    known: u64,
}

impl NatsWishes {
    pub(crate) fn connect(order: &NatsOrder) -> Result<Self, WorkerError> {
        Ok(Self {
            wire: Wire::connect(order.address)?,
            subject: order.subject.clone(),
            wanted: 0,
            known: 0,
        })
    }
}

impl Exchange for NatsWishes {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.wanted += 1;
        let subject = format!("{}.n{}", self.subject, self.wanted);
        encode::subscribe(&subject, self.wanted, &mut self.wire.output);
        encode::ping(&mut self.wire.output);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.wire.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let known = &mut self.known;
        let received = self.wire.receive(|operation, output| {
            if let Operation::Pong = operation {
                *known += 1;
                encode::unsubscribe(*known, output);
                answers.push(Answer::Right);
            }
            Ok(())
        });
        within_time(received)
    }

    fn traffic(&self) -> Traffic {
        self.wire.traffic
    }
}
