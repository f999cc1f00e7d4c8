//! Streams in one direction, or there and back. Every load has a connection of its own that ends with it. So counted
//! bytes have certainly passed the server, and nothing is left in a buffer between the load and its figure.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::case::Mode;
use super::driver::{Connection, Driven, Fault, Load};
use super::pattern::shown;
use crate::report::table::thousands;

pub(super) const READ_BYTES: usize = 64 * 1024;

/// `STREAM`: towards a server that echoes or discards.
pub(super) fn stream(load: &mut Load, length: Duration) -> Result<Driven, Fault> {
    let connection = load.connect()?;
    let begun = Instant::now();
    let bytes = match load.order.case.mode {
        Mode::Echo => echo(load, &connection, begun + length)?,
        Mode::Discard | Mode::Chargen => discard(load, &connection, begun + length)?,
    };
    Ok(driven(bytes, begun))
}

/// `MAERTS`: from a server that sends without end.
pub(super) fn maerts(load: &mut Load, length: Duration) -> Result<Driven, Fault> {
    let connection = load.connect()?;
    let begun = Instant::now();
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    while bytes == 0 || begun.elapsed() < length {
        match connection.read(&mut buffer).map_err(io_fault(bytes))? {
            0 => return Err(Fault::Closed { done: done(bytes) }),
            came => {
                bytes += came as u64;
                load.watch.add(came as u64);
            }
        }
    }
    Ok(driven(bytes, begun))
}

fn driven(bytes: u64, begun: Instant) -> Driven {
    Driven {
        bytes,
        seconds: begun.elapsed().as_secs_f64(),
        ..Driven::default()
    }
}

/// Writes until `end`, ends the stream, and waits for the server to close: a server closes when it has read the end of
/// the stream, and so everything before it.
fn discard(load: &Load, connection: &Connection, end: Instant) -> Result<u64, Fault> {
    let send_bytes = load.order.send_bytes;
    let mut sent = 0;
    while sent == 0 || Instant::now() < end {
        let chunk = load.pattern.at(sent, send_bytes);
        connection.write_all(chunk).map_err(io_fault(sent))?;
        sent += send_bytes as u64;
        load.watch.add(send_bytes as u64);
    }
    shutdown(connection.fd(), Shutdown::Write).map_err(|errno| io_fault(sent)(errno.into()))?;
    let mut answer = [0; 64];
    match connection.read(&mut answer).map_err(io_fault(sent))? {
        0 => Ok(sent),
        length => Err(Fault::Answered(shown(&answer[..length]))),
    }
}

/// Sends and receives at once until `end`, then ends the stream and takes the remaining echoes.
///
/// One thread: a second one would only add the switches between them to the client's core.
fn echo(load: &Load, connection: &Connection, end: Instant) -> Result<u64, Fault> {
    let send_bytes = load.order.send_bytes as u64;
    let mut buffer = vec![0; READ_BYTES];
    let (mut sent, mut came) = (0_u64, 0_u64);
    let mut sending = true;
    loop {
        let mut moved = 0;
        if sending {
            // A write begins where the last one was cut off, so that writes stay whole.
            let rest = send_bytes - sent % send_bytes;
            let part = load.pattern.at(sent, rest as usize);
            let taken = try_send(connection, part).map_err(io_fault(came))?;
            sent += taken as u64;
            moved += taken;
            if sent >= send_bytes && Instant::now() >= end {
                sending = false;
                shutdown(connection.fd(), Shutdown::Write)
                    .map_err(|errno| io_fault(came)(errno.into()))?;
            }
        }
        match try_receive(connection, &mut buffer).map_err(io_fault(came))? {
            Some(0) if sending => return Err(Fault::Closed { done: done(came) }),
            Some(0) if came < sent => return Err(Fault::Lost { sent, came }),
            Some(0) => return Ok(came),
            Some(length) => {
                let expected = load.pattern.at(came, length);
                if came + length as u64 > sent || buffer[..length] != *expected {
                    return Err(difference(came, expected, &buffer[..length]));
                }
                came += length as u64;
                moved += length;
                load.watch.add(length as u64);
            }
            None => {}
        }
        if moved == 0 {
            wait(connection, sending).map_err(io_fault(came))?;
        }
    }
}

/// The offset at which two parts of a stream, both from `offset`, begin to differ.
fn difference(offset: u64, expected: &[u8], came: &[u8]) -> Fault {
    let same = expected
        .iter()
        .zip(came)
        .take_while(|(a, b)| a == b)
        .count();
    Fault::Content {
        done: done(offset + same as u64),
        sent: shown(&expected[same..]),
        came: shown(&came[same..]),
    }
}

/// The number of bytes taken, possibly none.
fn try_send(connection: &Connection, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match send(connection.fd(), bytes, flags) {
        Err(Errno::AGAIN) => Ok(0),
        outcome => Ok(outcome?),
    }
}

/// `None` if nothing is there yet, zero at the end of the stream.
fn try_receive(connection: &Connection, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(connection.fd(), buffer, RecvFlags::DONTWAIT) {
        Err(Errno::AGAIN) => Ok(None),
        outcome => Ok(Some(outcome?.0)),
    }
}

fn wait(connection: &Connection, sending: bool) -> io::Result<()> {
    let mut events = PollFlags::IN;
    events.set(PollFlags::OUT, sending);
    poll(&mut [PollFd::new(connection.fd(), events)], None)?;
    Ok(())
}

fn done(bytes: u64) -> String {
    format!("{} bytes", thousands(bytes as f64))
}

fn io_fault(bytes: u64) -> impl Fn(io::Error) -> Fault {
    move |source| Fault::Io {
        done: done(bytes),
        source,
    }
}
