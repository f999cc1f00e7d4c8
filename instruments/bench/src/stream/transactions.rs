//! Requests and responses: over one connection, and over one connection each.
//!
//! A transaction lasts from the end of the previous one to its own last system call, so that latencies and rate share
//! one clock without gaps.

use std::io;
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use super::driver::{Connection, Driven, Fault, Load};
use super::pattern::shown;
use crate::load::Latencies;
use crate::report::table::thousands;

/// `RR`: one connection, one request in flight.
pub(super) fn request_response(load: &mut Load, length: Duration) -> Result<Driven, Fault> {
    let connection = load.connect()?;
    let mut exchange = Exchange::new(load.order.request_bytes);
    let watch = load.watch.clone();
    repeat(length, || {
        exchange.exchange(&connection)?;
        watch.add(1);
        Ok(())
    })
}

/// `CRR` as in netperf without a control connection: connect, send, receive, end the stream, wait for the server to end
/// its own, close.
pub(super) fn connect_request_response(load: &mut Load, length: Duration) -> Result<Driven, Fault> {
    let mut exchange = Exchange::new(load.order.request_bytes);
    let watch = load.watch.clone();
    repeat(length, || {
        let connection = load.connect()?;
        exchange.exchange(&connection)?;
        exchange.end(&connection)?;
        watch.add(1);
        Ok(())
    })
}

/// At least one, and as many as begin within `length`.
fn repeat(
    length: Duration,
    mut transaction: impl FnMut() -> Result<(), Fault>,
) -> Result<Driven, Fault> {
    let mut latencies = Latencies::default();
    let begun = Instant::now();
    let mut before = begun;
    while latencies.count() == 0 || before - begun < length {
        transaction()?;
        let now = Instant::now();
        latencies.record((now - before).as_nanos() as u64);
        before = now;
    }
    Ok(Driven {
        transactions: latencies.count(),
        seconds: (before - begun).as_secs_f64(),
        recorded: latencies.recorded(),
        ..Driven::default()
    })
}

/// Distinguishable requests, and their answers.
struct Exchange {
    number: u64,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl Exchange {
    fn new(bytes: usize) -> Self {
        Self {
            number: 0,
            request: vec![b'x'; bytes],
            response: vec![0; bytes],
        }
    }

    fn exchange(&mut self, connection: &Connection) -> Result<(), Fault> {
        for (byte, number) in self.request.iter_mut().zip(self.number.to_le_bytes()) {
            *byte = number;
        }
        let written = connection.write_all(&self.request);
        written.map_err(|source| self.fault(source))?;
        let mut came = 0;
        while came < self.response.len() {
            match connection.read(&mut self.response[came..]) {
                Ok(0) => return Err(Fault::Closed { done: self.done() }),
                Ok(length) => came += length,
                Err(source) => return Err(self.fault(source)),
            }
        }
        if self.response != self.request {
            return Err(Fault::Content {
                done: self.done(),
                sent: shown(&self.request),
                came: shown(&self.response),
            });
        }
        self.number += 1;
        Ok(())
    }

    /// Ends the stream and waits until the server has ended its own.
    fn end(&mut self, connection: &Connection) -> Result<(), Fault> {
        let ended = shutdown(connection.fd(), Shutdown::Write).map_err(io::Error::from);
        let outcome = ended.and_then(|()| connection.read(&mut self.response));
        match outcome {
            Ok(0) => Ok(()),
            Ok(length) => Err(Fault::NotClosed {
                done: self.done(),
                came: shown(&self.response[..length]),
            }),
            Err(source) => Err(self.fault(source)),
        }
    }

    fn fault(&self, source: io::Error) -> Fault {
        Fault::Io {
            done: self.done(),
            source,
        }
    }

    fn done(&self) -> String {
        format!("{} transactions", thousands(self.number as f64))
    }
}
