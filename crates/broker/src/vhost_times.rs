//! Times and sizes of a vhost's messages, for the metrics.

use std::sync::Arc;

use crosstie_collections::Histogram;
use crosstie_queues::Sizes;

/// Times and sizes of a vhost's messages.
pub struct VhostTimes {
    pub name: Arc<str>,
    /// Microseconds from a record to its commit, and from a publication to its confirm.
    pub commits: Histogram,
    pub confirms: Histogram,
    /// Milliseconds in a queue.
    pub queue_waits: Histogram,
    /// Of published bodies, and their number.
    pub sizes: Sizes,
    pub published: u64,
}
