//! Counters of MQTT, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_mqtt::PacketType;

/// Events since the start of the process.
#[derive(Debug)]
pub struct Figures {
    received: [AtomicU64; TYPES],
    sent: [AtomicU64; TYPES],
    dropped: [AtomicU64; Dropped::ALL.len()],
}

/// Packet types have numbers below this.
const TYPES: usize = 16;

crosstie_collections::named! {
    /// Why a message did not cross between MQTT and WAMP, or was not published.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dropped {
        /// The publication was not permitted.
        Denied = "denied",
        /// The topic has no URI.
        NoUri = "no_uri",
        /// The URI has no topic.
        NoTopic = "no_topic",
        /// No mapping matches.
        Unmapped = "unmapped",
        /// The payload does not fit its mapping.
        Payload = "payload",
        /// It exceeds the receiver's maximum packet size, or its output queue. Clients of a vhost.
        Large = "large",
        /// It was delivered, and not retained, at a bound. Clients of a vhost.
        RetainedMax = "retained_max",
    }
}

static FIGURES: Figures = Figures {
    received: [const { AtomicU64::new(0) }; TYPES],
    sent: [const { AtomicU64::new(0) }; TYPES],
    dropped: [const { AtomicU64::new(0) }; Dropped::ALL.len()],
};

impl Figures {
    /// Those of the process.
    pub fn get() -> &'static Self {
        &FIGURES
    }

    pub fn count_received(&self, packet_type: PacketType) {
        self.received[packet_type as usize % TYPES].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_sent(&self, packet_type: PacketType) {
        self.sent[packet_type as usize % TYPES].fetch_add(1, Ordering::Relaxed);
    }

    pub fn add_published(&self, count: u64) {
        self.sent[PacketType::Publish as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub fn count_dropped(&self, why: Dropped) {
        self.dropped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Packets by type.
    pub fn received(&self, packet_type: PacketType) -> u64 {
        self.received[packet_type as usize % TYPES].load(Ordering::Relaxed)
    }

    /// Packets by type.
    pub fn sent(&self, packet_type: PacketType) -> u64 {
        self.sent[packet_type as usize % TYPES].load(Ordering::Relaxed)
    }

    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize].load(Ordering::Relaxed)
    }
}
