//! One stream's files as a table of segments.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosstie_queues::{StreamExtent, StreamLimits, Time};

use crate::bytes::sealed;
use crate::record::MAGIC;

/// A stream's segments, shared by the thread that writes and the one that reads.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) directory: String,
    limits: Mutex<StreamLimits>,
    table: Mutex<Table>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The oldest first.
    pub(crate) segments: VecDeque<Segment>,
    /// The offset behind the last message.
    pub(crate) end: u64,
    pub(crate) last_at_ms: u64,
    /// The newest segment is not written to any more: the next message begins another.
    pub(crate) is_sealed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) first: u64,
    /// Those that are synced.
    pub(crate) bytes: u64,
    /// The times of its first and last message.
    pub(crate) first_at_ms: u64,
    pub(crate) last_at_ms: u64,
}

/// Messages that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) path: String,
    pub(crate) position: u64,
    /// The offsets between the readable messages around it: some of these are lost.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            position,
            from,
            to,
        } = self;
        write!(
            f,
            "the messages from offset {from} to {} cannot be read ('{path}' at byte {position})",
            to.saturating_sub(1)
        )
    }
}

impl Log {
    pub(crate) fn new(directory: String, limits: StreamLimits, table: Table) -> Self {
        Self {
            directory,
            limits: Mutex::new(limits),
            table: Mutex::new(table),
        }
    }

    pub(crate) fn limits(&self) -> StreamLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the bounds; segments beyond them go when the writer looks for such.
    pub(crate) fn set_limits(&self, limits: StreamLimits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    pub(crate) fn extent(&self) -> StreamExtent {
        StreamExtent {
            first: self.segments.front().map_or(self.end, |s| s.first),
            end: self.end,
            last_at: Time(self.last_at_ms),
            bytes: self.segments.iter().map(|segment| segment.bytes).sum(),
        }
    }

    /// The place among the segments of the one that has that offset, or would have it.
    pub(crate) fn of_offset(&self, offset: u64) -> usize {
        let behind = self
            .segments
            .partition_point(|segment| segment.first <= offset);
        behind.saturating_sub(1)
    }

    /// How many of the oldest segments have to go at `now_ms`: those beyond the bytes that a stream may have beside its
    /// newest segment, and those whose last message is too old.
    pub(crate) fn expired(&self, limits: &StreamLimits, now_ms: u64) -> usize {
        let older = self.segments.len().saturating_sub(1);
        let mut kept_bytes = 0;
        let mut kept = 0;
        for segment in self.segments.iter().rev().skip(1) {
            kept_bytes += segment.bytes;
            if limits.bytes_max.is_some_and(|max| kept_bytes > max) {
                break;
            }
            kept += 1;
        }
        let aged = self.segments.iter().take(older);
        let aged = aged.take_while(|segment| {
            let age_ms = now_ms.saturating_sub(segment.last_at_ms);
            limits.age_max_ms.is_some_and(|max| age_ms > max)
        });
        (older - kept).max(aged.count())
    }

    /// The time at which the oldest segment is too old.
    pub(crate) fn next_expiry_ms(&self, limits: &StreamLimits) -> Option<u64> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        Some(
            oldest
                .last_at_ms
                .saturating_add(limits.age_max_ms?)
                .saturating_add(1),
        )
    }
}

/// The head of a segment's file.
pub(crate) fn segment_head(first: u64, before: Option<Segment>) -> Vec<u8> {
    let before = before.map_or((u64::MAX, 0), |before| (before.first, before.bytes));
    sealed([MAGIC, first, before.0, before.1])
}

/// A stream without messages.
pub(crate) fn empty(directory: String, limits: StreamLimits) -> Arc<Log> {
    Arc::new(Log::new(directory, limits, Table::default()))
}
