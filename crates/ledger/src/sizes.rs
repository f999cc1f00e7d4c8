//! The sizes of records in a batch.

use crosstie_queues::Record;

/// Approximate size of a record in a batch.
pub(crate) fn record_bytes(record: &Record) -> usize {
    RECORD_BYTES + record.memory_bytes()
}

/// Approximate size of a record without a message.
pub(crate) const RECORD_BYTES: usize = 64;
