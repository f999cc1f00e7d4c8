//! Views for operators, and counters.

use std::sync::Arc;

use crosstie_mqtt::{Options, QoS, Version};

use crate::Time;

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page<T, P> {
    pub items: Vec<T>,
    /// The place of the next part; none if this is the last one.
    pub next: Option<P>,
}

impl<T, P> Default for Page<T, P> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            next: None,
        }
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    pub client_id: Arc<str>,
    pub version: Version,
    pub is_connected: bool,
    pub expiry_s: u32,
    /// If it has no connection.
    pub ends_at: Option<Time>,
    pub subscriptions: usize,
    /// Messages that are sent and not acknowledged.
    pub in_flight: usize,
    /// Messages that are not sent.
    pub queued: usize,
    pub queued_bytes: usize,
    /// Incoming messages of QoS 2 that are not released.
    pub unreleased: usize,
    pub has_will: bool,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionStatus {
    pub filter: Arc<str>,
    pub options: Options,
    /// 0: none.
    pub identifier: u32,
}

/// A retained message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedStatus {
    pub topic: Box<str>,
    pub qos: QoS,
    pub payload_bytes: usize,
    pub expires_at: Option<Time>,
}

/// Present numbers, and events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sessions: usize,
    pub connected: usize,
    pub subscriptions: usize,
    pub retained: usize,
    pub retained_bytes: usize,
    /// Messages that wait for sessions, sent ones included.
    pub queued: usize,
    /// Publications that wait for a later turn.
    pub postponed: usize,
    /// Publications by clients, by QoS.
    pub received: [u64; 3],
    /// Publications from outside, wills included.
    pub from_outside: u64,
    /// Sent messages by QoS, repeated ones included.
    pub sent: [u64; 3],
    /// Incoming messages of QoS 2 that were repeated.
    pub repeated: u64,
    pub taken_over: u64,
    pub wills: u64,
    /// Publications that no subscription has matched.
    pub unmatched: u64,
    pub expired_sessions: u64,
    /// Idle sessions that have ended early to make room for others.
    pub evicted_sessions: u64,
    pub expired_messages: u64,
    /// Messages of QoS 0 for a receiver whose queue was full.
    pub dropped_full: u64,
    /// Publications of QoS 0 or from outside that came while twice as many waited as may.
    pub dropped_postponed: u64,
    /// The oldest messages of a session at its bound.
    pub dropped_oldest: u64,
    /// Messages that exceed the maximum packet size of their receiver, or the free space of its queue.
    pub dropped_large: u64,
    /// Messages whose receiver has refused them by PUBREC.
    pub refused_by_receiver: u64,
    /// CONNECTs beyond `sessions_max`.
    pub refused_sessions: u64,
    /// Filters beyond a bound.
    pub refused_subscriptions: u64,
    /// Retained messages beyond a bound.
    pub refused_retained: u64,
    /// Connections that were beyond their receive maximum.
    pub refused_receive_max: u64,
    /// Topic aliases that were 0, unknown or beyond the maximum.
    pub refused_aliases: u64,
    /// Publications and filters with too many levels or bytes.
    pub refused_topics: u64,
}
