//! Checks that a queue supports priorities: without a consumer, waiting messages are delivered by priority.

use crosstie_amqp::BasicProperties;
use crosstie_amqp::method::BasicPublish;

use crate::broker::confirms::Confirms;
use crate::broker::wire::{Event, Wire, properties};
use crate::process::WorkerError;

/// Of each level.
const MESSAGES: u8 = 3;

/// The properties of a message of each level.
pub(super) fn properties_of(levels: u8, delivery_mode: Option<u8>) -> Vec<Vec<u8>> {
    let of_level = |level| {
        properties(&BasicProperties {
            delivery_mode,
            priority: (levels > 1).then_some(level),
            ..BasicProperties::default()
        })
    };
    (0..levels).map(of_level).collect()
}

/// Publishes some messages of each level in turn, and then consumes them. Returns how many arrived before one that is
/// more urgent, or was published earlier.
pub(super) fn misplaced(wire: &mut Wire, queue: &str, levels: u8) -> Result<u64, WorkerError> {
    let publish = BasicPublish::to("", queue);
    let count = levels * MESSAGES;
    wire.select_confirms()?;
    let properties = properties_of(levels, None);
    for number in 0..count {
        let level = usize::from(number % levels);
        wire.push_message(&publish, &properties[level], &[number]);
    }
    wire.flush()?;
    let mut confirms = Confirms::default();
    while confirms.all_up_to() < count.into() {
        wire.receive(|event| {
            confirms.take(&event);
            Ok(())
        })?;
    }
    let mut expected: Vec<u8> = (0..count).collect();
    expected.sort_by_key(|number| std::cmp::Reverse(number % levels));
    let mut expected = expected.into_iter();
    let mut misplaced = 0;
    let mut left = count;
    wire.consume(queue, "levels", true)?;
    while left > 0 {
        wire.receive(|event| {
            if let Event::Delivery { body, .. } = event {
                left -= 1;
                misplaced += u64::from(body.first().copied() != expected.next());
            }
            Ok(())
        })?;
    }
    Ok(misplaced)
}
