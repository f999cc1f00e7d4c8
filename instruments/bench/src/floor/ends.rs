//! The ends of the floor: a caller and a callee that exchange a call's bytes without messages.

use std::io;
use std::time::Instant;

use crosstie_wamp::framing::{FrameError, Framing};
use crosstie_wamp::{
    CallOptions, InvocationDetails, Message, Payload, RegistrationId, RequestId, ResultDetails,
    YieldOptions, codec,
};
use serde::{Deserialize, Serialize};

use super::relay::Introduction;
use crate::load::{Answer, Exchange, Stream, Traffic};
use crate::process::WorkerError;
use crate::subject::{Case, Endpoint, Transport};
use crate::wamp::argument::Arguments;
use crate::wamp::pipe::CLIENT_MASK;

/// Bytes on the wire of each hop of one call, framing included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lengths {
    pub call: usize,
    pub invocation: usize,
    #[serde(rename = "yield")]
    pub yielded: usize,
    pub result: usize,
}

impl Lengths {
    /// Measures them by encoding a call as it is after some thousands.
    pub(crate) fn of(
        case: &Case,
        procedure: &str,
        payload_bytes: usize,
    ) -> Result<Self, WorkerError> {
        let mut arguments = Arguments::new(case.serializer, payload_bytes)?;
        let payload = Payload::new(case.serializer, arguments.numbered(1), &[]);
        let request = RequestId(10_000);
        let (client, server) = framings(case.transport);
        let length = |framing: Framing, message: Message<'_>| {
            let mut out = Vec::new();
            framing
                .frame(case.serializer, payload.len(), &mut out, |out| {
                    codec::encode(&message, case.serializer, out)
                })
                .map_err(|error: FrameError<_>| WorkerError::Encode(error.to_string()))?;
            Ok::<usize, WorkerError>(out.len())
        };
        Ok(Self {
            call: length(
                client,
                Message::Call {
                    request,
                    options: CallOptions::default(),
                    procedure: procedure.into(),
                    payload,
                },
            )?,
            invocation: length(
                server,
                Message::Invocation {
                    request,
                    registration: RegistrationId(1),
                    details: InvocationDetails::default(),
                    payload,
                },
            )?,
            yielded: length(
                client,
                Message::Yield {
                    request,
                    options: YieldOptions::default(),
                    payload,
                },
            )?,
            result: length(
                server,
                Message::Result {
                    request,
                    details: ResultDetails::default(),
                    payload,
                },
            )?,
        })
    }

    pub(crate) fn longest(&self) -> usize {
        self.call
            .max(self.invocation)
            .max(self.yielded)
            .max(self.result)
    }
}

/// The framing of messages by a client and a server on `transport`.
fn framings(transport: Transport) -> (Framing, Framing) {
    let websocket = |batched| {
        (
            Framing::WebSocketClient {
                batched,
                mask: CLIENT_MASK,
            },
            Framing::WebSocketServer { batched },
        )
    };
    match transport {
        Transport::RawSocket => (Framing::RawSocket, Framing::RawSocket),
        websocket_kind => websocket(websocket_kind.is_batched()),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FloorOrder {
    pub endpoint: Endpoint,
    pub pair: u32,
    pub lengths: Lengths,
}

impl FloorOrder {
    /// Connects to the relay and introduces this end.
    pub(crate) fn connect(&self, caller: bool) -> io::Result<Stream> {
        let stream = Stream::connect(&self.endpoint)?;
        stream.write_all(
            &Introduction {
                pair: self.pair,
                caller,
            }
            .bytes(),
        )?;
        Ok(stream)
    }
}

const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) struct FloorCaller {
    stream: Stream,
    lengths: Lengths,
    output: Vec<u8>,
    to_write: usize,
    input: Vec<u8>,
    partial: usize,
    /// Numbers the calls. The number travels in the first bytes of each and returns in the answer's. The relay
    /// preserves it only if one message is in flight at a time.
    number: u64,
    in_flight: usize,
    /// Whether this held from the beginning.
    one_at_a_time: bool,
    traffic: Traffic,
}

const NUMBER_BYTES: usize = 8;

impl FloorCaller {
    pub(crate) fn new(stream: Stream, lengths: Lengths) -> Self {
        Self {
            stream,
            lengths,
            output: vec![0; lengths.call],
            to_write: 0,
            input: vec![0; BUFFER_BYTES.max(lengths.result)],
            partial: 0,
            number: 0,
            in_flight: 0,
            one_at_a_time: true,
            traffic: Traffic::default(),
        }
    }

    fn answer(&self, received: usize) -> Answer {
        let Lengths {
            call,
            invocation,
            yielded,
            result,
        } = self.lengths;
        let carried = call.min(invocation).min(yielded).min(result) >= NUMBER_BYTES
            && self.one_at_a_time
            && received == result;
        match !carried || self.input[..NUMBER_BYTES] == self.number.to_be_bytes() {
            true => Answer::Right,
            false => Answer::Wrong,
        }
    }
}

impl Exchange for FloorCaller {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.number += 1;
        self.in_flight += 1;
        self.one_at_a_time &= self.in_flight == 1;
        let begin = self.to_write;
        self.to_write += self.lengths.call;
        if self.output.len() < self.to_write {
            self.output.resize(self.to_write, 0);
        }
        if let Some(head) = self.output.get_mut(begin..begin + NUMBER_BYTES) {
            head.copy_from_slice(&self.number.to_be_bytes());
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        let length = std::mem::take(&mut self.to_write);
        Ok(self.stream.write_all(&self.output[..length])?)
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        loop {
            let length = match self.stream.read(&mut self.input[self.partial..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                outcome => outcome?,
            };
            let now = Instant::now();
            if length == 0 {
                return Ok(None);
            }
            self.traffic.reads += 1;
            let received = self.partial + length;
            let whole = received / self.lengths.result;
            self.partial = received % self.lengths.result;
            if whole == 0 {
                continue;
            }
            self.traffic.messages += whole as u64;
            let answer = self.answer(received);
            self.in_flight = self.in_flight.saturating_sub(whole);
            answers.extend((0..whole).map(|_| answer));
            return Ok(Some(now));
        }
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}

/// The floor's callee: answers until the relay closes.
pub(crate) fn callee(stream: &Stream, lengths: Lengths) -> Result<Traffic, WorkerError> {
    let mut buffer = vec![0; BUFFER_BYTES.max(lengths.invocation).max(lengths.yielded)];
    let mut partial = 0;
    let mut traffic = Traffic::default();
    loop {
        // Behind the received part of a message, whose first bytes return its number.
        let length = match stream.read(&mut buffer[partial..]) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            outcome => outcome?,
        };
        if length == 0 {
            return Ok(traffic);
        }
        traffic.reads += 1;
        let received = partial + length;
        partial = received % lengths.invocation;
        let whole = received / lengths.invocation;
        traffic.messages += whole as u64;
        let mut bytes = whole * lengths.yielded;
        while bytes > 0 {
            let part = bytes.min(buffer.len());
            match stream.write_all(&buffer[..part]) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(traffic),
                outcome => outcome?,
            }
            bytes -= part;
        }
    }
}

/// The results of a good relay on an otherwise idle machine of one kind. A floor that is much slower there indicates
/// another load, or a faulty relay.
pub(crate) mod reference {
    use crate::machine::Placement;
    use crate::subject::{Case, Socket};

    /// The processor of the reference measurements. On another one they are meaningless.
    pub(crate) const CPU: &str = "Intel(R) Xeon(R) Processor";

    /// A floor this much slower than the reference is suspect.
    pub(crate) const TOLERANCE: f64 = 1.15;

    /// Median round trip of sequential calls of one pair with little payload, in microseconds; `None` without a
    /// reference.
    pub(crate) fn rtt_us(case: &Case, placement: Placement) -> Option<f64> {
        match (placement, case.socket) {
            (Placement::SameCore, Socket::Unix) => Some(12.6),
            (Placement::SameCore, Socket::Tcp) => Some(16.0),
            (Placement::Split, Socket::Unix) => Some(90.4),
            (Placement::Split, Socket::Tcp) => Some(95.3),
            (Placement::Free, _) => None,
        }
    }
}
