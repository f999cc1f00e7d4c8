//! Messages at times that keep a router's thread looking for the next one.

use std::hint;
use std::time::{Duration, Instant};

use crosstie_wamp::{Message, Payload, PublishOptions, RequestId};

use crate::hostile::strike::Strike;
use crate::process::WorkerError;

/// Just within the longest wait for which a thread of ours looks for input.
const EVERY: Duration = Duration::from_micros(75);
const PUBLICATIONS: usize = 100_000;
const TOPIC: &str = "crosstie.hostile.timed";

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut publisher = strike.session()?;
    let mut due = Instant::now();
    let mut sent = 0;
    for number in 1..=strike.size(PUBLICATIONS) as u64 {
        while Instant::now() < due {
            hint::spin_loop();
        }
        publisher.push(&Message::Publish {
            request: RequestId(number),
            options: PublishOptions::default(),
            topic: TOPIC.into(),
            payload: Payload::EMPTY,
        })?;
        publisher.flush()?;
        sent += 1;
        // A pause between two of them does not shorten the next.
        due = Instant::now() + EVERY;
        if strike.is_over() {
            break;
        }
    }
    strike.made("publications", sent);
    Ok(())
}
