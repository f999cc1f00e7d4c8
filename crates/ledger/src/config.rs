//! The sizes and times of a ledger.

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Maximum size of a batch's part.
    pub part_bytes_max: usize,
    /// Approximate maximum size of a batch.
    pub batch_bytes_max: usize,
    /// A log is cleaned only if it has at least this size, and twice the size of its live records.
    pub log_bytes_min: u64,
    /// A batch joins the extent before it if that has fewer octets: what is purged together, and read together.
    pub extent_bytes: u64,
    /// Minimum size of a purge.
    pub purge_bytes_min: u64,
    /// Bytes of messages in memory from which on the messages of long queues are left to the log.
    pub resident_bytes_max: u64,
    /// A queue is long if it has more messages, or more bytes of bodies.
    pub long_messages: usize,
    pub long_body_bytes: u64,
    /// The same while memory is crowded ([`crate::Ledger::set_crowded`]).
    pub crowded_messages: usize,
    pub crowded_body_bytes: u64,
    /// How long to wait for an acknowledgement before the log's end is read.
    pub acknowledgement_ms: u64,
    /// The interval of further attempts.
    pub retry_ms: u64,
}

impl Config {
    /// Nothing is left to the log.
    pub const DEFAULT: Self = Self {
        part_bytes_max: 512 << 10,
        batch_bytes_max: 1 << 20,
        log_bytes_min: 64 << 20,
        extent_bytes: 256 << 10,
        purge_bytes_min: 32 << 20,
        resident_bytes_max: u64::MAX,
        long_messages: usize::MAX,
        long_body_bytes: u64::MAX,
        crowded_messages: usize::MAX,
        crowded_body_bytes: u64::MAX,
        acknowledgement_ms: 2000,
        retry_ms: 1000,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}
