//! Messages whose bodies are announced and never complete, and beside them publishers of small ones.

use std::time::{Duration, Instant};

use crosstie_amqp::method::{BasicPublish, ConfirmSelect};
use crosstie_amqp::{FrameKind, frame};

use super::{declare_queue, own_name};
use crate::hostile::amqp::{AmqpPeer, content, method};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CHANNELS: usize = 40;
const ANNOUNCED_BYTES: u64 = 100 << 20;
const SENT_BYTES: usize = 8 << 20;
const PART_BYTES: usize = 128 << 10;

const SMALL_BYTES: usize = 200_000;
/// How long small ones are published beside it.
const BESIDE: Duration = Duration::from_secs(5);

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let channels = strike.few(CHANNELS);
    let mut peer = strike.amqp(channels)?;
    let part = vec![b'x'; PART_BYTES - 8];
    for channel in 1..=channels as u16 {
        method(channel, &BasicPublish::default(), &mut peer.output);
        announce(channel, &mut peer.output);
        for _ in 0..SENT_BYTES / PART_BYTES {
            frame::write(FrameKind::Body, channel, &mut peer.output, |out| {
                out.extend_from_slice(&part);
            });
        }
        if let Err(error) = peer.drive(|_| true) {
            strike.end_by(error)?;
            break;
        }
        strike.made("bodies cut short", 1);
    }
    beside(strike)?;
    // Refusals meanwhile.
    match peer.listen(Instant::now() + Duration::from_millis(100)) {
        Ok(()) => Ok(()),
        Err(error) => strike.end_by(error),
    }
}

/// A content header: class, weight, length, no properties.
fn announce(channel: u16, out: &mut Vec<u8>) {
    frame::write(FrameKind::Header, channel, out, |out| {
        out.extend_from_slice(&[0, 60, 0, 0]);
        out.extend_from_slice(&ANNOUNCED_BYTES.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    });
}

/// Publishes small messages with confirms, on a new channel if one was lost.
fn beside(strike: &mut Strike) -> Result<(), WorkerError> {
    let end = (Instant::now() + BESIDE).min(strike.deadline);
    let queue = own_name("beside");
    let body = vec![b'x'; SMALL_BYTES];
    let mut publisher = None;
    while Instant::now() < end {
        let peer = match &mut publisher {
            Some(peer) => peer,
            None => publisher.insert(open(strike, &queue)?),
        };
        match publish(peer, &queue, &body) {
            Ok(()) => strike.made("messages beside it", 1),
            Err(WorkerError::TimedOut) => break,
            Err(error) => {
                strike.made(&format!("publishers beside it lost: {error}"), 1);
                publisher = None;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    Ok(())
}

fn open(strike: &Strike, queue: &str) -> Result<AmqpPeer, WorkerError> {
    let mut peer = strike.amqp(1)?;
    declare_queue(&mut peer, queue)?;
    peer.ask(1, &ConfirmSelect { no_wait: false })?;
    Ok(peer)
}

fn publish(peer: &mut AmqpPeer, queue: &str, body: &[u8]) -> Result<(), WorkerError> {
    let publish = BasicPublish::to("", queue);
    method(1, &publish, &mut peer.output);
    content(1, &[0, 0], body, &mut peer.output);
    let purge = crosstie_amqp::method::QueuePurge {
        queue,
        no_wait: false,
    };
    let confirms = peer.seen.confirms + 1;
    peer.drive(|seen| seen.confirms >= confirms)?;
    peer.ask(1, &purge)
}
