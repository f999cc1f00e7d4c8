//! Many consumers of one queue, on one connection, which ends.

use crosstie_amqp::method::{BasicConsume, BasicQos};

use super::{declare_queue, own_name};
use crate::hostile::amqp::method;
use crate::hostile::strike::Strike;

use crate::process::WorkerError;

const CHANNELS: usize = 20;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let queue = own_name("consumed");
    let consumers = strike.size(strike.order.consumers);
    let channels = CHANNELS.min(consumers);
    let mut peer = strike.amqp(channels)?;
    declare_queue(&mut peer, &queue)?;
    for channel in 1..=channels as u16 {
        for number in 0..consumers / channels {
            let consume = BasicConsume {
                queue: &queue,
                consumer_tag: &number.to_string(),
                no_wait: true,
                ..BasicConsume::default()
            };
            method(channel, &consume, &mut peer.output);
        }
        // Its answer proves that all before it were accepted.
        match peer.ask(channel, &BasicQos::default()) {
            Ok(()) => strike.made("consumers", (consumers / channels) as u64),
            Err(error @ WorkerError::Dismissed(_)) => {
                strike.end_by(error)?;
                peer.reopen()?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
