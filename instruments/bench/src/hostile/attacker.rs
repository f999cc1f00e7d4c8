//! The attacker's process: it makes one attack that should not be able to stop others, counts what was permitted and
//! refused, and ends by a deadline of its own.

use std::time::Instant;

use super::catalogue;
use super::strike::{Order, Strike};
use crate::process::{WorkerError, descriptors, say};

pub(crate) const ROLE: &str = "hostile-attacker";

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    descriptors::raise();
    let attack = catalogue::find(&order.attack)
        .ok_or_else(|| WorkerError::handshake(format!("no attack is called {}", order.attack)))?;
    let begun = Instant::now();
    let mut strike = Strike::begin(order, begun);
    if let Err(error) = (attack.strike)(&mut strike) {
        strike.end_by(error)?;
    }
    say(&strike.end(begun.elapsed()));
    Ok(())
}
