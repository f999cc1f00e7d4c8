//! The maximum number of channels: that of a listener, or that of an operator's order to the running broker.

use std::sync::atomic::{AtomicU32, Ordering};

use crosstie_config::AmqpTransport;
use parking_lot::Mutex;

/// Maximum number of channels of new connections.
pub(crate) struct ChannelsMax {
    /// `NO_ORDER`: that of the connection's listener.
    ordered: AtomicU32,
    /// That of each open listener by its id, the newest last.
    configured: Mutex<Vec<(String, u16)>>,
}

const NO_ORDER: u32 = u32::MAX;

impl ChannelsMax {
    pub(crate) fn new() -> Self {
        Self {
            ordered: AtomicU32::new(NO_ORDER),
            configured: Mutex::default(),
        }
    }

    /// The maximum that a client of such a listener is offered.
    pub(crate) fn of(&self, options: &AmqpTransport) -> u16 {
        match self.ordered.load(Ordering::Relaxed) {
            NO_ORDER => options.channels_max,
            // RabbitMQ's word for no bound: channels have numbers of 16 bits.
            0 => u16::MAX,
            ordered => u16::try_from(ordered).unwrap_or(u16::MAX),
        }
    }

    pub(crate) fn order(&self, channels_max: u16) {
        self.ordered.store(channels_max.into(), Ordering::Relaxed);
    }

    /// The ordered number, or else that of the listener that was opened last; 0 without any.
    pub(crate) fn now(&self) -> u32 {
        match self.ordered.load(Ordering::Relaxed) {
            NO_ORDER => {
                let configured = self.configured.lock();
                configured.last().map_or(0, |(_, max)| (*max).into())
            }
            ordered => ordered,
        }
    }

    /// Notes the open listeners. An order ends if one of them had another number before.
    pub(crate) fn note_listeners<'l>(&self, open: impl Iterator<Item = (&'l str, u16)>) {
        let open: Vec<_> = open.map(|(id, max)| (id.to_owned(), max)).collect();
        let mut configured = self.configured.lock();
        let is_changed = configured.iter().any(|(of, former)| {
            let same = open.iter().find(|(id, _)| id == of);
            same.is_some_and(|(_, max)| max != former)
        });
        if is_changed {
            self.ordered.store(NO_ORDER, Ordering::Relaxed);
        }
        *configured = open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_ends_with_another_number_of_a_listener() {
        let channels_max = ChannelsMax::new();
        let note = |open: &[(&str, u16)]| channels_max.note_listeners(open.iter().copied());
        assert_eq!(channels_max.now(), 0);
        note(&[("one", 100)]);
        note(&[("one", 100), ("two", 200)]);
        assert_eq!(channels_max.now(), 200);
        channels_max.order(7);
        // Either is opened again for another of its options; listeners come and go.
        for open in [
            &[("one", 100), ("two", 200)][..],
            &[("two", 200), ("one", 100)],
            &[("two", 200), ("three", 300)],
            &[("two", 200)],
        ] {
            note(open);
            assert_eq!(channels_max.now(), 7, "{open:?}");
        }
        note(&[("three", 300), ("two", 201)]);
        assert_eq!(channels_max.now(), 201);
        channels_max.order(8);
        note(&[("three", 300), ("two", 201)]);
        assert_eq!(channels_max.now(), 8);
        note(&[]);
        assert_eq!(channels_max.now(), 8);
    }
}
