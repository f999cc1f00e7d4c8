//! The maximum number of channels: that of a listener, or that of an operator's order to the running broker.

use std::sync::atomic::{AtomicU32, Ordering};

use crosstie_config::AmqpTransport;

/// Maximum number of channels of new connections.
pub(crate) struct ChannelsMax {
    /// `NO_ORDER`: that of the connection's listener.
    ordered: AtomicU32,
    /// That of the listener that was opened last.
    configured: AtomicU32,
}

const NO_ORDER: u32 = u32::MAX;

impl ChannelsMax {
    pub(crate) fn new() -> Self {
        Self {
            ordered: AtomicU32::new(NO_ORDER),
            configured: AtomicU32::new(0),
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

    /// The ordered number, or else that of the listener that was opened last.
    pub(crate) fn now(&self) -> u32 {
        match self.ordered.load(Ordering::Relaxed) {
            NO_ORDER => self.configured.load(Ordering::Relaxed),
            ordered => ordered,
        }
    }

    /// Notes the options of a listener that opens, or that a reload changes. An order ends with another number.
    pub(crate) fn note_listener(&self, options: &AmqpTransport) {
        let now = options.channels_max.into();
        if self.configured.swap(now, Ordering::Relaxed) != now {
            self.ordered.store(NO_ORDER, Ordering::Relaxed);
        }
    }
}
