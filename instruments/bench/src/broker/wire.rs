//! A blocking connection to a broker with one channel, for drivers: pushed bytes leave in one write, and one read takes
//! whatever is there. It never answers a heartbeat because it negotiates none; otherwise it behaves on the wire like
//! any client.

use std::time::Duration;

use crosstie_amqp::frame::{self, Decoded, OVERHEAD_BYTES};
use crosstie_amqp::method::{
    Arguments, BasicConsume, BasicPublish, ChannelClose, ChannelOpen, ConfirmSelect,
    ConnectionClose, ConnectionOpen, ConnectionStartOk, ConnectionTune, ConnectionTuneOk,
    ExchangeDeclare, QueueBind, QueueDeclare, QueuePurge,
};
use crosstie_amqp::{BasicProperties, FrameKind, Method, PROTOCOL_HEADER, Table, TableBuf, Value};

use super::{Broker, Queue};
use crate::load::{Stream, Traffic};
use crate::process::{PATIENCE, WorkerError};

/// The only channel of a connection.
const CHANNEL: u16 = 1;
const INPUT_BYTES: usize = 64 * 1024;
const FRAME_BYTES_MAX: u32 = 131_072;

/// A broker's messages after the set-up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    Delivery {
        tag: u64,
        body: &'a [u8],
    },
    /// Everything up to `tag`, if several are meant.
    Ack {
        tag: u64,
        multiple: bool,
    },
    Nack {
        tag: u64,
        multiple: bool,
    },
    /// A message without a consumer.
    Return,
}

pub(crate) struct Wire {
    stream: Stream,
    input: Vec<u8>,
    /// The part of the input that is not handled yet.
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    /// The body of a message of several frames.
    assembled: Vec<u8>,
    frame_bytes_max: u32,
    traffic: Traffic,
    /// The broker's name for itself, and its version.
    server: String,
}

impl Wire {
    /// Connects, logs in, opens the vhost and a channel.
    pub(crate) fn open(broker: &Broker, name: &str) -> Result<Self, WorkerError> {
        Self::open_patiently(broker, name, PATIENCE)
    }

    /// The same for a broker that may stall for so long.
    pub(crate) fn open_patiently(
        broker: &Broker,
        name: &str,
        patience: Duration,
    ) -> Result<Self, WorkerError> {
        let stream = Stream::connect(&broker.endpoint)
            .map_err(|error| WorkerError::Connect(broker.endpoint.to_string(), error))?;
        stream.limit_waiting(Some(patience))?;
        let mut wire = Self {
            stream,
            input: vec![0; INPUT_BYTES],
            unread: 0..0,
            output: Vec::with_capacity(INPUT_BYTES),
            assembled: Vec::new(),
            frame_bytes_max: FRAME_BYTES_MAX,
            traffic: Traffic::default(),
            server: String::new(),
        };
        wire.output.extend_from_slice(&PROTOCOL_HEADER);
        wire.flush()?;
        wire.server = wire.await_method("connection.start", |method| match method {
            Method::ConnectionStart(start) => server_of(&start.server_properties),
            _ => String::new(),
        })?;
        let capabilities = TableBuf::new()
            .with("authentication_failure_close", Value::Bool(true))
            .with("connection.blocked", Value::Bool(true))
            .with("consumer_cancel_notify", Value::Bool(true));
        let properties = TableBuf::new()
            .with("product", Value::LongString(b"crosstie bench"))
            .with("capabilities", Value::Table(capabilities.as_table()))
            .with("connection_name", Value::LongString(name.as_bytes()));
        let response = format!("\0{}\0{}", broker.user, broker.password);
        let start_ok = ConnectionStartOk {
            client_properties: properties.as_table(),
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        frame::write_method(0, &start_ok, &mut wire.output);
        wire.flush()?;
        let tune = wire.await_method("connection.tune", |method| match method {
            Method::ConnectionTune(tune) => tune,
            _ => ConnectionTune::default(),
        })?;
        let agreed = match tune.frame_max {
            0 => FRAME_BYTES_MAX,
            offered => offered.min(FRAME_BYTES_MAX),
        };
        let tune_ok = ConnectionTuneOk {
            channel_max: tune.channel_max,
            frame_max: agreed,
            heartbeat: 0,
        };
        frame::write_method(0, &tune_ok, &mut wire.output);
        wire.frame_bytes_max = agreed;
        let open = ConnectionOpen {
            virtual_host: &broker.vhost,
            capabilities: "",
            insist: false,
        };
        frame::write_method(0, &open, &mut wire.output);
        wire.flush()?;
        wire.await_method("connection.open-ok", |_| ())?;
        wire.ask(&ChannelOpen { out_of_band: "" }, "channel.open-ok")?;
        Ok(wire)
    }

    pub(crate) fn declare_exchange(&mut self, name: &str, kind: &str) -> Result<(), WorkerError> {
        let declare = ExchangeDeclare {
            exchange: name,
            kind,
            ..ExchangeDeclare::default()
        };
        self.ask(&declare, "exchange.declare-ok")
    }

    pub(crate) fn declare_queue(&mut self, queue: Queue<'_>) -> Result<(), WorkerError> {
        let arguments = queue.arguments();
        let declare = QueueDeclare {
            queue: queue.name,
            durable: queue.is_durable,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        };
        self.ask(&declare, "queue.declare-ok")
    }

    /// With the queue's name as the routing key, as in oslo.messaging.
    pub(crate) fn bind_queue(&mut self, queue: &str, exchange: &str) -> Result<(), WorkerError> {
        let bind = QueueBind::of(queue).to(exchange, queue);
        self.ask(&bind, "queue.bind-ok")
    }

    pub(crate) fn consume(
        &mut self,
        queue: &str,
        tag: &str,
        no_ack: bool,
    ) -> Result<(), WorkerError> {
        let consume = BasicConsume {
            queue,
            consumer_tag: tag,
            no_ack,
            ..BasicConsume::default()
        };
        self.ask(&consume, "basic.consume-ok")
    }

    pub(crate) fn select_confirms(&mut self) -> Result<(), WorkerError> {
        self.ask(&ConfirmSelect { no_wait: false }, "confirm.select-ok")
    }

    /// Removes the messages of a queue; returns their number.
    pub(crate) fn purge(&mut self, queue: &str) -> Result<u64, WorkerError> {
        self.push(&QueuePurge {
            queue,
            no_wait: false,
        });
        self.flush()?;
        self.await_method("queue.purge-ok", |method| match method {
            Method::QueuePurgeOk(purged) => purged.message_count.into(),
            _ => 0,
        })
    }

    pub(crate) fn ask(
        &mut self,
        method: &impl Arguments,
        answer: &'static str,
    ) -> Result<(), WorkerError> {
        self.push(method);
        self.flush()?;
        self.await_method(answer, |_| ())
    }

    /// Appends a method to the next flush.
    pub(crate) fn push(&mut self, method: &impl Arguments) {
        frame::write_method(CHANNEL, method, &mut self.output);
    }

    pub(crate) fn push_message(
        &mut self,
        publish: &BasicPublish<'_>,
        properties: &[u8],
        body: &[u8],
    ) {
        frame::write_method(CHANNEL, publish, &mut self.output);
        let longest = self.frame_bytes_max;
        frame::write_content(CHANNEL, properties, body, longest, &mut self.output);
    }

    /// The bytes of the next flush.
    pub(crate) fn pushed_bytes(&self) -> usize {
        self.output.len()
    }

    /// Sends the pushed bytes, in one write.
    pub(crate) fn flush(&mut self) -> Result<(), WorkerError> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.stream.write_all(&self.output).map_err(late)?;
        self.output.clear();
        Ok(())
    }

    /// Passes everything received to `handle`; reads once if nothing is there. Returns the number of events.
    pub(crate) fn receive(
        &mut self,
        mut handle: impl FnMut(Event<'_>) -> Result<(), WorkerError>,
    ) -> Result<usize, WorkerError> {
        let mut handled = 0;
        loop {
            let input = &self.input[self.unread.clone()];
            let found = next(input, self.frame_bytes_max, &mut self.assembled)?;
            let Some((found, consumed)) = found else {
                if handled > 0 {
                    self.traffic.messages += handled as u64;
                    return Ok(handled);
                }
                self.read()?;
                continue;
            };
            match found {
                Found::Event(event) => {
                    handle(event)?;
                    handled += 1;
                }
                Found::Nothing => {}
                Found::Other(method) => {
                    return Err(unexpected("a delivery or a confirm", &method));
                }
            }
            self.unread.start += consumed;
        }
    }

    /// Sets how long a read may wait.
    pub(crate) fn limit_waiting(&self, longest: Duration) -> Result<(), WorkerError> {
        Ok(self.stream.limit_waiting(Some(longest))?)
    }

    /// Its name and version.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    pub(crate) fn close(mut self) -> Result<(), WorkerError> {
        let close = ConnectionClose {
            reply_code: 0,
            ..ConnectionClose::default()
        };
        frame::write_method(0, &close, &mut self.output);
        self.flush()?;
        self.await_method("connection.close-ok", |_| ())
    }

    /// Waits for a method; skips everything else that is not content.
    fn await_method<T>(
        &mut self,
        expected: &'static str,
        take: impl FnOnce(Method<'_>) -> T,
    ) -> Result<T, WorkerError> {
        loop {
            let input = &self.input[self.unread.clone()];
            let Some((found, consumed)) = next(input, self.frame_bytes_max, &mut self.assembled)?
            else {
                self.read()?;
                continue;
            };
            self.unread.start += consumed;
            match found {
                Found::Other(method) if method.name() == expected => return Ok(take(method)),
                // Of a queue that was deleted while it was consumed.
                Found::Other(Method::BasicCancel(_)) => {}
                Found::Other(method) => return Err(unexpected(expected, &method)),
                // Deliveries may arrive before the answer to a last request.
                Found::Event(_) | Found::Nothing => {}
            }
        }
    }

    fn read(&mut self) -> Result<(), WorkerError> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.input.len() {
            if self.unread.start == 0 {
                self.input.resize(2 * self.input.len(), 0);
            } else {
                self.input.copy_within(self.unread.clone(), 0);
                self.unread = 0..self.unread.len();
            }
        }
        let room = &mut self.input[self.unread.end..];
        match self.stream.read(room).map_err(late)? {
            0 => Err(WorkerError::Closed("going on")),
            length => {
                self.unread.end += length;
                self.traffic.reads += 1;
                Ok(())
            }
        }
    }
}

/// A broker's name for itself, and its version.
fn server_of(properties: &Table<'_>) -> String {
    let text = |name| properties.find(name).and_then(Value::as_str);
    match text("platform") {
        // Its product names the broker that it imitates.
        Some(platform) if platform.starts_with("Crosstie ") => platform.to_owned(),
        _ => {
            let words = [text("product"), text("version")].into_iter().flatten();
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// The front of an input.
enum Found<'a> {
    Event(Event<'a>),
    /// A method outside a driver's loop.
    Other(Method<'a>),
    /// A heartbeat, or a notice about the broker's memory.
    Nothing,
}

/// The next complete item in `input` and its length; a message counts once all of it is there.
fn next<'a>(
    input: &'a [u8],
    frame_bytes_max: u32,
    assembled: &'a mut Vec<u8>,
) -> Result<Option<(Found<'a>, usize)>, WorkerError> {
    let Some((frame, mut consumed)) = next_frame(input, frame_bytes_max)? else {
        return Ok(None);
    };
    if frame.kind != FrameKind::Method {
        return Ok(Some((Found::Nothing, consumed)));
    }
    let method = Method::decode(frame.payload)?;
    let event = match method {
        Method::BasicDeliver(_) | Method::BasicReturn(_) => {
            let header = next_frame(&input[consumed..], frame_bytes_max)?;
            let Some((header, header_bytes)) = header else {
                return Ok(None);
            };
            consumed += header_bytes;
            let length = header.payload.get(4..12).and_then(|l| l.try_into().ok());
            let length = match (header.kind, length.map(u64::from_be_bytes)) {
                (FrameKind::Header, Some(length)) => length as usize,
                _ => return Err(WorkerError::handshake("a message without a content header")),
            };
            let Some((body, body_bytes)) =
                body(&input[consumed..], length, frame_bytes_max, assembled)?
            else {
                return Ok(None);
            };
            consumed += body_bytes;
            match method {
                Method::BasicDeliver(deliver) => Event::Delivery {
                    tag: deliver.delivery_tag,
                    body,
                },
                _ => Event::Return,
            }
        }
        Method::BasicAck(ack) => Event::Ack {
            tag: ack.delivery_tag,
            multiple: ack.multiple,
        },
        Method::BasicNack(nack) => Event::Nack {
            tag: nack.delivery_tag,
            multiple: nack.multiple,
        },
        Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_) => {
            return Ok(Some((Found::Nothing, consumed)));
        }
        Method::ConnectionClose(ConnectionClose {
            reply_code,
            reply_text,
            ..
        })
        | Method::ChannelClose(ChannelClose {
            reply_code,
            reply_text,
            ..
        }) => {
            return Err(WorkerError::Dismissed(format!("{reply_code} {reply_text}")));
        }
        other => return Ok(Some((Found::Other(other), consumed))),
    };
    Ok(Some((Found::Event(event), consumed)))
}

/// A message's body: in place if it has one frame, else assembled.
fn body<'a>(
    input: &'a [u8],
    length: usize,
    frame_bytes_max: u32,
    assembled: &'a mut Vec<u8>,
) -> Result<Option<(&'a [u8], usize)>, WorkerError> {
    if length == 0 {
        return Ok(Some((&[], 0)));
    }
    let Some((first, mut consumed)) = next_frame(input, frame_bytes_max)? else {
        return Ok(None);
    };
    if first.payload.len() == length {
        return Ok(Some((first.payload, consumed)));
    }
    // Not before all is there: a growing input is examined again and again.
    if input.len() < length + 2 * OVERHEAD_BYTES {
        return Ok(None);
    }
    assembled.clear();
    assembled.extend_from_slice(first.payload);
    while assembled.len() < length {
        let Some((part, part_bytes)) = next_frame(&input[consumed..], frame_bytes_max)? else {
            return Ok(None);
        };
        assembled.extend_from_slice(part.payload);
        consumed += part_bytes;
    }
    Ok(Some((assembled, consumed)))
}

fn next_frame(
    input: &[u8],
    frame_bytes_max: u32,
) -> Result<Option<(crosstie_amqp::Frame<'_>, usize)>, WorkerError> {
    match frame::decode(input, frame_bytes_max)? {
        Decoded::Frame { frame, consumed } => Ok(Some((frame, consumed))),
        Decoded::Incomplete { .. } => Ok(None),
    }
}

fn unexpected(expected: &'static str, method: &Method<'_>) -> WorkerError {
    WorkerError::Unexpected {
        expected,
        came: method.name(),
    }
}

/// Distinguishes a broker that stalls from one that is gone.
fn late(error: std::io::Error) -> WorkerError {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => WorkerError::TimedOut,
        _ => error.into(),
    }
}

/// The bytes of a message's properties.
pub(crate) fn properties(properties: &BasicProperties<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    properties.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::method::BasicDeliver;

    use super::*;

    fn delivery(body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let deliver = BasicDeliver {
            consumer_tag: "1",
            delivery_tag: 7,
            redelivered: false,
            exchange: "e",
            routing_key: "k",
        };
        frame::write_method(1, &deliver, &mut bytes);
        frame::write_content(1, &[0, 0], body, 4096, &mut bytes);
        bytes
    }

    #[test]
    fn a_message_counts_when_all_of_it_is_there() {
        #[track_caller]
        fn check(length: usize) {
            let expected: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let bytes = delivery(&expected);
            let mut assembled = Vec::new();
            for end in 0..bytes.len() {
                let found = next(&bytes[..end], 4096, &mut assembled).unwrap();
                assert!(found.is_none(), "{end} of {}", bytes.len());
            }
            let (found, consumed) = next(&bytes, 4096, &mut assembled).unwrap().unwrap();
            assert_eq!(consumed, bytes.len());
            match found {
                Found::Event(Event::Delivery { tag: 7, body }) => assert_eq!(body, expected),
                _ => panic!("no delivery"),
            }
        }
        [0, 1, 4088, 4089, 20_000].into_iter().for_each(check);
    }

    #[test]
    fn a_broker_that_takes_leave_is_quoted() {
        let close = ChannelClose {
            reply_code: 404,
            reply_text: "NOT_FOUND - no queue 'x' in vhost '/'",
            ..ChannelClose::default()
        };
        let mut bytes = Vec::new();
        frame::write_method(1, &close, &mut bytes);
        let mut assembled = Vec::new();
        let error = next(&bytes, 4096, &mut assembled).err().unwrap();
        let expected = "said goodbye: 404 NOT_FOUND - no queue 'x' in vhost '/'";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}
