//! Many unacknowledged messages of one consumer: a change of its prefetch, requeueing one by one, and its end.

use crosstie_amqp::method::{BasicCancel, BasicConsume, BasicNack, BasicPublish, BasicQos};

use super::{declare_queue, own_name};
use crate::hostile::amqp::{AmqpPeer, content, method};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const OF_QOS: usize = 500_000;
const QOS: usize = 3_000;
const OF_NACKS: usize = 150_000;
const OF_THE_END: usize = 1_000_000;

/// Messages that are published in one write.
const BURST: usize = 1_000;

const TAG: &str = "hostile";

/// The limit of a channel, off and on.
pub(in crate::hostile) fn qos(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    hold(strike, &mut peer, OF_QOS)?;
    let changes = strike.size(QOS);
    for number in 0..changes {
        let qos = BasicQos {
            prefetch_count: 1 + u16::from(number % 2 == 1),
            global: number % 2 == 0,
            ..BasicQos::default()
        };
        method(1, &qos, &mut peer.output);
    }
    peer.await_answers(changes as u64)?;
    strike.made("basic.qos", changes as u64);
    Ok(())
}

/// Requeued one by one, into the middle of the queue.
pub(in crate::hostile) fn nacks(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    let messages = hold(strike, &mut peer, OF_NACKS)?;
    let cancel = BasicCancel {
        consumer_tag: TAG,
        no_wait: false,
    };
    peer.ask(1, &cancel)?;
    for delivery_tag in shuffled(messages) {
        let nack = BasicNack {
            delivery_tag,
            multiple: false,
            requeue: true,
        };
        method(1, &nack, &mut peer.output);
    }
    peer.ask(1, &BasicQos::default())?;
    strike.made("nacks", messages);
    Ok(())
}

/// The connection ends.
pub(in crate::hostile) fn end(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    hold(strike, &mut peer, OF_THE_END)?;
    Ok(())
}

/// Publishes and consumes so many; returns their number at this scale.
fn hold(strike: &mut Strike, peer: &mut AmqpPeer, full: usize) -> Result<u64, WorkerError> {
    let queue = own_name("held");
    declare_queue(peer, &queue)?;
    let consume = BasicConsume {
        queue: &queue,
        consumer_tag: TAG,
        ..BasicConsume::default()
    };
    peer.ask(1, &consume)?;
    let messages = strike.size(full);
    let publish = BasicPublish::to("", &queue);
    let mut published = 0;
    while published < messages {
        let burst = BURST.min(messages - published);
        for _ in 0..burst {
            method(1, &publish, &mut peer.output);
            content(1, &[0, 0], b"x", &mut peer.output);
        }
        published += burst;
        // So that neither the queue nor the connection's output grows beyond a few bursts.
        let wanted = published.saturating_sub(10 * BURST) as u64;
        peer.drive(|seen| seen.deliveries >= wanted)?;
    }
    peer.drive(|seen| seen.deliveries >= messages as u64)?;
    strike.made("unacknowledged", messages as u64);
    Ok(messages as u64)
}

/// All numbers from 1 to `count`, in a fixed pseudo-random order.
fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (1..=count).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for at in (1..numbers.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        numbers.swap(at, (state % (at as u64 + 1)) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_numbers_are_all_there() {
        let mut numbers = shuffled(1_000);
        assert_ne!(numbers[..3], [1, 2, 3]);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=1_000));
    }
}
