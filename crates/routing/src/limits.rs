//! Bounds of one realm and of one session.

/// Bounds of a realm. Reaching one answers the request with an ERROR, and never closes the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions in the realm; [`crate::Realm::join`] refuses another.
    pub sessions_max: usize,
    /// Subscriptions of one session; one more is `crosstie.error.subscriptions_max`.
    pub subscriptions_max: usize,
    /// Registrations of one session; one more is `crosstie.error.registrations_max`.
    pub registrations_max: usize,
    /// Open calls of one session as caller; one more is `crosstie.error.calls_max`.
    pub calls_max: usize,
    /// Subscriptions of all sessions together, each session's counted; one more is
    /// `crosstie.error.realm_subscriptions_max`. The last quarter is for sessions that have less than
    /// their share, which is the bound divided by the number of sessions.
    pub realm_subscriptions_max: usize,
    /// Likewise registrations: `crosstie.error.realm_registrations_max`.
    pub realm_registrations_max: usize,
    /// Likewise open calls: `crosstie.error.realm_calls_max`.
    pub realm_calls_max: usize,
    /// Bytes of the attributes that a progressive call keeps of its first CALL (`ppt_*`, `enc_*`,
    /// `_*`) to pass them on with each part; more are `crosstie.error.call_options_bytes_max`.
    pub call_options_bytes_max: usize,
    /// Bytes of one call that is kept whole, which is while it waits, where a longer one is
    /// `crosstie.error.kept_call_bytes_max`, and while it may go to another callee.
    pub kept_call_bytes_max: usize,
    /// Bytes of all calls that are kept; beyond, a call is `crosstie.error.kept_calls_bytes_max`. The last quarter is
    /// for callers with less than their share.
    pub kept_calls_bytes_max: usize,
    /// Shapes of wildcard patterns of one length that the realm has subscriptions of, and likewise
    /// registrations: which of a pattern's components are empty. To match a URI costs a lookup for
    /// each. A pattern with one more is `crosstie.error.wildcard_shapes_max`.
    pub wildcard_shapes_max: usize,
    /// Bytes of a topic or procedure, pattern or not; a longer one is `wamp.error.invalid_uri`.
    /// It also bounds the work of matching, which grows with the length of the URI.
    pub uri_bytes_max: usize,
    /// Maximum time that a call stays open, in milliseconds, with or without a timeout of its own; 0 means no bound.
    pub call_timeout_ms_max: u64,
    /// Retained events in the realm; at one more the oldest is evicted.
    pub retained_events_max: usize,
    /// Bytes of all retained events, with their topics and lists; beyond, the oldest are evicted.
    pub retained_bytes_max: usize,
    /// Bytes of one retained event; a longer one is `crosstie.error.retained_event_bytes_max`. Also bounds the bytes of
    /// retained events that one subscription is sent.
    pub retained_event_bytes_max: usize,
    /// Retained events that one subscription is sent; the others are skipped.
    pub retained_sent_max: usize,
    /// Bytes of all recorded events, each counted in every history that contains it; beyond, the oldest are evicted.
    pub history_bytes_max: usize,
    /// Bytes of the events in one answer about them, unless the first event alone has more.
    pub history_answer_bytes_max: usize,
    /// Testaments of one session; one more is `crosstie.error.testaments_max`.
    pub testaments_max: usize,
    /// Bytes of one session's testaments, with 192 for each; more are
    /// `crosstie.error.testaments_bytes_max`.
    pub testaments_bytes_max: usize,
    /// Definitions of one session; one more is `crosstie.error.definitions_max`.
    pub definitions_max: usize,
    /// Bytes of one session's definitions, with 256 for each; more are `crosstie.error.definitions_bytes_max`.
    pub definitions_bytes_max: usize,
    /// Definitions of all sessions; the last quarter is for sessions with less than their share.
    pub realm_definitions_max: usize,
    /// Unacknowledged events of a session; at one more it is closed.
    pub unacknowledged_events_max: usize,
    /// Bytes of them, with 192 for each; beyond, it is closed.
    pub unacknowledged_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions_max: 1_000_000,
            subscriptions_max: 10_000,
            registrations_max: 10_000,
            calls_max: 10_000,
            realm_subscriptions_max: 1_000_000,
            realm_registrations_max: 1_000_000,
            realm_calls_max: 1_000_000,
            call_options_bytes_max: 4_096,
            kept_call_bytes_max: 1 << 20,
            kept_calls_bytes_max: 16 << 20,
            wildcard_shapes_max: 1_024,
            uri_bytes_max: 1_024,
            call_timeout_ms_max: 0,
            retained_events_max: 10_000,
            retained_bytes_max: 16 << 20,
            retained_event_bytes_max: 256 << 10,
            retained_sent_max: 1_000,
            history_bytes_max: 64 << 20,
            history_answer_bytes_max: 1 << 20,
            testaments_max: 128,
            testaments_bytes_max: 256 << 10,
            definitions_max: 1_000,
            definitions_bytes_max: 256 << 10,
            realm_definitions_max: 10_000,
            unacknowledged_events_max: 10_000,
            unacknowledged_bytes_max: 16 << 20,
        }
    }
}
