//! The case `paced`: messages at a rate at which a broker is idle, and the latency of each confirm.

use std::collections::BTreeMap;
use std::time::Duration;

use crosstie_amqp::BasicProperties;
use crosstie_amqp::method::BasicPublish;

use super::worker::{Produced, Shared};
use crate::broker::confirms::Confirms;
use crate::broker::wire::{Event, Wire, properties};
use crate::load::{Body, monotonic_ns};
use crate::process::WorkerError;

/// How long the last confirms may take.
const LATE_MAX: Duration = Duration::from_secs(10);

/// Publishes one message after the other, each when it is due, whether or not earlier ones are confirmed.
pub(super) fn produce(
    shared: &Shared<'_>,
    at: usize,
    mut wire: Wire,
) -> Result<Produced, WorkerError> {
    let order = shared.order;
    let properties = properties(&BasicProperties {
        delivery_mode: Some(2),
        ..BasicProperties::default()
    });
    let publish = BasicPublish::to("", &order.queue);
    let gap_ns = 1_000_000_000 / order.rate.max(1) * order.producers as u64;
    let mut body = Body::new(at, order.payload_bytes);
    let mut produced = Produced::default();
    let mut confirms = Confirms::default();
    // The publication time of each unconfirmed message, by number.
    let mut waiting = BTreeMap::new();
    let mut due_ns = monotonic_ns();
    let mut end_ns = u64::MAX;
    while !waiting.is_empty() || end_ns == u64::MAX {
        let now_ns = monotonic_ns();
        if end_ns == u64::MAX && shared.is_time_over() {
            end_ns = now_ns + LATE_MAX.as_nanos() as u64;
            due_ns = end_ns;
            continue;
        }
        if now_ns >= end_ns {
            break;
        }
        if now_ns >= due_ns {
            let body = body.numbered(produced.published);
            wire.push_message(&publish, &properties, body);
            wire.flush()?;
            produced.published += 1;
            shared.note_published(1);
            waiting.insert(produced.published, now_ns);
            due_ns += gap_ns;
            continue;
        }
        wire.limit_waiting(Duration::from_nanos(due_ns - now_ns))?;
        let received = wire.receive(|event| {
            confirms.take(&event);
            let confirmed_ns = monotonic_ns();
            for published_ns in confirmed(&mut waiting, &event).into_values() {
                if shared.is_within(published_ns) {
                    let took_ns = confirmed_ns.saturating_sub(published_ns);
                    produced.confirms_us.push(took_ns / 1000);
                }
            }
            Ok(())
        });
        match received {
            Ok(_) | Err(WorkerError::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    wire.limit_waiting(LATE_MAX)?;
    wire.close()?;
    produced.faults.failed = confirms.refused() + waiting.len() as u64;
    Ok(produced)
}

/// Removes the messages that an event confirms.
fn confirmed(waiting: &mut BTreeMap<u64, u64>, event: &Event<'_>) -> BTreeMap<u64, u64> {
    match *event {
        Event::Ack { tag, multiple } if multiple => {
            let later = waiting.split_off(&(tag + 1));
            std::mem::replace(waiting, later)
        }
        Event::Ack { tag, .. } => waiting.remove_entry(&tag).into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// The median of the confirms' latencies, and their 99th percentile.
pub(super) fn quantiles(mut took_us: Vec<u64>) -> Option<(u64, u64)> {
    took_us.sort_unstable();
    let at = |percent: usize| took_us.get(took_us.len() * percent / 100).copied();
    Some((at(50)?, at(99)?))
}

#[cfg(test)]
mod tests {
    use super::quantiles;

    #[test]
    fn quantiles_are_of_all() {
        assert_eq!(quantiles(Vec::new()), None);
        assert_eq!(quantiles(vec![7]), Some((7, 7)));
        assert_eq!(quantiles((0..1000).rev().collect()), Some((500, 990)));
    }
}
