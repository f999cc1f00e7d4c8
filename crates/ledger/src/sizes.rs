//! The sizes of records in a batch.

use crosstie_queues::Record;

/// Approximate size of a record in a batch.
pub(crate) fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Enqueued { message, .. } => RECORD_BYTES + message.content.memory_bytes(),
        Record::Setting { key, value } => {
            RECORD_BYTES + key.len() + value.as_ref().map_or(0, |value| value.len())
        }
        _ => RECORD_BYTES,
    }
}

/// Approximate size of a record without a message.
pub(crate) const RECORD_BYTES: usize = 64;
