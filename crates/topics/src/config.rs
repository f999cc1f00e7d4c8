//! The settings of a space, and its bounds.

/// The settings of a space.
#[derive(Clone, Debug)]
pub struct SpaceConfig {
    /// There is a store, which takes the records of the journal. Without one nothing is recorded, and no acknowledgement
    /// waits.
    pub is_stored: bool,
    /// PUBACK and PUBREC of MQTT 5 state that no subscription has matched (0x10). For a space whose messages have no
    /// receivers elsewhere.
    pub tells_unmatched: bool,
    pub limits: SpaceLimits,
}

impl Default for SpaceConfig {
    fn default() -> Self {
        Self {
            is_stored: false,
            tells_unmatched: true,
            limits: SpaceLimits::default(),
        }
    }
}

/// The bounds of a space.
#[derive(Clone, Debug)]
pub struct SpaceLimits {
    /// Maximum number of sessions, connected or kept. At the bound, a kept session without subscriptions and messages
    /// ends for a new one; if there is none, CONNECT is refused with 0x97 (3 in 3.x).
    pub sessions_max: usize,
    /// Maximum number of subscriptions per session. Further filters are refused with 0x97 (0x80 in 3.x).
    pub session_subscriptions_max: usize,
    /// Maximum number of subscriptions in the space. Further filters are refused with 0x97 (0x80 in 3.x).
    pub subscriptions_max: usize,
    /// Maximum number of levels of all filters, common beginnings counted once. Further filters are refused with 0x97.
    pub filter_levels_max: usize,
    /// Maximum number of levels of a filter or a topic. Filters beyond it are refused with 0x8F, publications and wills
    /// with 0x90.
    pub levels_max: usize,
    /// Maximum length of a filter or a topic, in bytes. The effect is that of `levels_max`.
    pub topic_bytes_max: usize,
    /// Maximum number of retained messages. The publication of one more is refused with 0x97; in 3.x it is
    /// acknowledged, delivered and not retained.
    pub retained_max: usize,
    /// Maximum size of all retained messages with their topics, in bytes. The effect is that of `retained_max`.
    pub retained_bytes_max: usize,
    /// Maximum number of messages that wait for one session, sent ones included; at most 60,000. The oldest unsent one
    /// is dropped for another.
    pub queued_max: usize,
    /// Maximum size of the messages that wait for one session, in bytes. The oldest unsent ones are dropped.
    pub queued_bytes_max: usize,
    /// Maximum number of unacknowledged messages that a session is sent. A client's receive maximum may be lower.
    pub in_flight_max: u16,
    /// Maximum number of incoming messages of QoS 1 and 2 that are not acknowledged, per session: the receive maximum of
    /// CONNACK. A client of MQTT 5 beyond it is disconnected with 0x93; one of 3.x is not read while so many
    /// acknowledgements of QoS 1 wait.
    pub receive_max: u16,
    /// Maximum number of incoming messages of QoS 2 that a client of 3.x has not released. The connection is closed at
    /// one more: 3.x has no receive maximum, and some clients send without waiting.
    pub unreleased_max: u16,
    /// Maximum topic alias that clients may use. A higher one is answered by DISCONNECT with 0x94.
    pub topic_alias_max: u16,
    /// Maximum time for which a session is kept after its connection, in seconds. Longer requests are cut, and CONNACK
    /// states the result.
    pub session_expiry_max_s: u32,
    /// Time for which a session of 3.x without clean session is kept, in seconds: 3.x has no word for it.
    pub session_expiry_3_s: u32,
    /// Number of steps that a publication takes at once: subscriptions visited and receivers served. The rest is for
    /// [`crate::Space::work`]. The default is some 0.2 ms.
    pub steps_max: usize,
    /// Maximum number of receivers of publications that wait for later turns; each 64 bytes of a message count as one.
    /// Beyond it, each publication works off some turns of others, and clients are not read while one of theirs waits.
    /// Beyond twice the number, publications of QoS 0 and those from outside are dropped.
    pub postponed_max: usize,
}

impl Default for SpaceLimits {
    fn default() -> Self {
        Self {
            sessions_max: 100_000,
            session_subscriptions_max: 10_000,
            subscriptions_max: 1_000_000,
            filter_levels_max: 4_000_000,
            levels_max: 128,
            topic_bytes_max: 4096,
            retained_max: 100_000,
            retained_bytes_max: 64 << 20,
            queued_max: 1000,
            queued_bytes_max: 16 << 20,
            in_flight_max: 100,
            receive_max: 100,
            unreleased_max: 10_000,
            topic_alias_max: 16,
            session_expiry_max_s: 7 * 24 * 3600,
            session_expiry_3_s: 24 * 3600,
            steps_max: 2_000,
            postponed_max: 1_000_000,
        }
    }
}
