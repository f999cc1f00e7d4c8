//! Live messages of an extent that were read from the log, and are written again a batch at a time.
//!
//! An extent is as large as the largest batch in it, for example a transaction's. Written again as one batch it would hold
//! up all records behind it, and each reader would have to keep it in memory. Records of the vhost come between two of
//! these batches, so that a message may have left before its turn.

use std::collections::VecDeque;
use std::mem;

use crosstie_queues::Record;

use crate::live::Live;
use crate::sizes::record_bytes;

/// The messages that are left.
#[derive(Clone, Debug)]
pub(crate) struct Repeating {
    extent: u64,
    messages: VecDeque<Record>,
    bytes: usize,
    /// Records that wait come next.
    yields: bool,
}

impl Repeating {
    pub(crate) fn new(extent: u64, messages: Vec<Record>) -> Self {
        Self {
            extent,
            bytes: messages.iter().map(record_bytes).sum(),
            messages: messages.into(),
            yields: false,
        }
    }

    /// Adds messages that are still live to a batch, up to about that many bytes.
    pub(crate) fn fill(&mut self, batch: &mut Vec<Record>, bytes_max: usize, live: &Live) {
        self.yields = true;
        let mut bytes = batch.iter().map(record_bytes).sum::<usize>();
        while bytes < bytes_max
            && let Some(mut record) = self.messages.pop_front()
        {
            let of_record = record_bytes(&record);
            self.bytes -= of_record;
            if is_live(&mut record, self.extent, live) {
                bytes += of_record;
                batch.push(record);
            }
        }
    }

    /// Whether records that wait come before the next batch. They do so once.
    pub(crate) fn take_turn(&mut self) -> bool {
        mem::take(&mut self.yields)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether a message is still live in that extent; its deliveries may have been counted meanwhile.
fn is_live(record: &mut Record, extent: u64, live: &Live) -> bool {
    let Record::Enqueued {
        queue,
        place,
        message,
    } = record
    else {
        return false;
    };
    let known = live.content(*queue, *place).map(|known| known.deliveries);
    if let Some(deliveries) = known.or_else(|| live.deliveries(*queue, *place)) {
        message.deliveries = deliveries;
    }
    live.extent_of(*queue, *place) == Some(extent)
}
