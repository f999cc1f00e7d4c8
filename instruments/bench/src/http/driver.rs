//! The clients: a connection each, kept open, and a thread each; the callee is a process of its own.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::answer;
use super::expected::Expected;
use super::request::Request;
use super::{events, idle};
use crate::load::{Found, Latencies, Stream, in_windows, of_all};
use crate::process::{Driver, PATIENCE, WorkerError, say};
use crate::subject::Endpoint;
use crate::wamp::callee::Callee;
use crate::wamp::caller::PairOrder;

pub(crate) const ROLE: &str = "http";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Ask {
        request: Request,
        address: SocketAddr,
        connections: usize,
        /// The called procedure, if there is one.
        procedure: String,
    },
    /// Answer calls until the end.
    Serve(PairOrder),
    /// Publishes, and receives the events.
    Events(events::Order),
    /// Opens sessions over long-poll that wait.
    Wait(SocketAddr),
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    match order {
        Order::Serve(pair) => {
            let callee = Callee::register(&pair)?;
            say(&Driver::<Found>::Ready);
            callee.serve().map(|_| ())
        }
        Order::Events(order) => events::work(&order),
        Order::Wait(address) => idle::work(address),
        Order::Ask {
            request,
            address,
            connections,
            procedure,
        } => {
            let connect = |number| Asker::connect(request, address, &procedure, number);
            let askers = (0..connections).map(connect).collect::<Result<_, _>>();
            ask_in_windows(askers?)
        }
    }
}

fn ask_in_windows(mut askers: Vec<Asker>) -> Result<(), WorkerError> {
    in_windows(|_, end| {
        thread::scope(|scope| {
            let threads: Vec<_> = askers
                .iter_mut()
                .map(|asker| scope.spawn(move || asker.ask_until(end)))
                .collect();
            of_all(threads)
        })
    })
}

/// One connection, and its repeated request.
pub(super) struct Asker {
    stream: Stream,
    request: Vec<u8>,
    expected: Expected,
    /// Received bytes, up to `length`.
    input: Vec<u8>,
    length: usize,
}

/// A longer answer is a wrong one.
const INPUT_BYTES: usize = 16 * 1024;

impl Asker {
    pub(super) fn connect(
        request: Request,
        address: SocketAddr,
        procedure: &str,
        number: usize,
    ) -> Result<Self, WorkerError> {
        let endpoint = Endpoint::Tcp(address);
        let stream = Stream::connect(&endpoint)
            .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
        stream.limit_waiting(Some(PATIENCE))?;
        let (request, expected) = request.exchange(address, procedure, number);
        Ok(Self {
            stream,
            request,
            expected,
            input: vec![0; INPUT_BYTES],
            length: 0,
        })
    }

    fn ask_until(&mut self, end: Instant) -> Result<Latencies, WorkerError> {
        let mut times = Latencies::default();
        let mut now = Instant::now();
        while now < end {
            let begun = now;
            self.ask()?;
            now = Instant::now();
            let waited = now.duration_since(begun).as_nanos();
            times.record(u64::try_from(waited).unwrap_or(u64::MAX));
        }
        Ok(times)
    }

    /// One request and its answer.
    pub(super) fn ask(&mut self) -> Result<(), WorkerError> {
        self.stream.write_all(&self.request).map_err(late)?;
        self.length = 0;
        loop {
            let space = &mut self.input[self.length..];
            if space.is_empty() {
                return Err(WorkerError::handshake("an answer that does not end"));
            }
            match self.stream.read(space).map_err(late)? {
                0 => return Err(WorkerError::Closed("answering")),
                length => self.length += length,
            }
            let bytes = &self.input[..self.length];
            let Some(answer) = answer::read(bytes).map_err(WorkerError::handshake)? else {
                continue;
            };
            if answer.length < bytes.len() {
                return Err(WorkerError::handshake("more came than one answer"));
            }
            let checked = self.expected.check(answer.status, &answer.body);
            return checked.map_err(WorkerError::Handshake);
        }
    }
}

/// The error of a read or write beyond its time limit.
pub(crate) fn late(error: io::Error) -> WorkerError {
    match error.kind() {
        io::ErrorKind::WouldBlock => WorkerError::TimedOut,
        _ => error.into(),
    }
}
