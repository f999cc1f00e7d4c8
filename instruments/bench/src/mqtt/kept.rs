//! The session of a subscriber that was away: everything has to be in it, and then it has to go.

use std::time::{Duration, Instant};

use crosstie_mqtt::Packet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::arrivals::{Arrivals, answer};
use super::order::LoadOrder;
use super::wire::{Dial, Out, Scratch, Session, Wire};
use crate::load::Faults;
use crate::process::WorkerError;

/// How long the broker may send nothing.
const LATE_MAX: Duration = Duration::from_secs(10);
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Resumes the session, receives all of its messages, and removes it.
pub(super) fn drain(
    order: &LoadOrder,
    dial: &Dial,
    published: &[u64],
    faults: &mut Faults,
) -> Result<(), WorkerError> {
    let client_id = order.client_id("s", 0);
    let mut wire = dial.open(Session {
        client_id: &client_id,
        clean_start: false,
        is_kept: true,
    })?;
    if !wire.session_present() {
        return Err(WorkerError::Refused(
            "to resume the session of the subscriber".to_owned(),
        ));
    }
    let mut arrivals = Arrivals::new(order)?;
    receive_all(&mut wire, &mut arrivals, published, faults)?;
    faults.lost += arrivals.lost(published);
    wire.leave()?;
    remove(order, dial)
}

/// Ends the subscriber's session.
pub(super) fn remove(order: &LoadOrder, dial: &Dial) -> Result<(), WorkerError> {
    let fresh = dial.open(Session {
        client_id: &order.client_id("s", 0),
        clean_start: true,
        is_kept: false,
    })?;
    fresh.leave()
}

fn receive_all(
    wire: &mut Wire,
    arrivals: &mut Arrivals,
    published: &[u64],
    faults: &mut Faults,
) -> Result<(), WorkerError> {
    let expected: u64 = published.iter().sum();
    let mut scratch = Scratch::new();
    let mut count = 0;
    let mut take = |count: &mut u64, out: &mut Out, packet: &Packet<'_>| {
        if let Packet::Publish(message) = packet
            && arrivals.take(message, faults).is_some()
        {
            *count += 1;
        }
        match answer(packet) {
            Some(answer) => out.push(&answer),
            None => Ok(()),
        }
    };
    wire.take_early(|out, packet| take(&mut count, out, packet))?;
    let mut heard = (count, Instant::now());
    while count < expected && heard.1.elapsed() < LATE_MAX {
        let is_sent = wire.flush()?;
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, !is_sent);
        match poll(&mut [PollFd::new(&*wire, wanted)], Some(&LOOK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        wire.receive(&mut scratch, |out, packet| take(&mut count, out, packet))?;
        if count > heard.0 {
            heard = (count, Instant::now());
        }
    }
    Ok(())
}
