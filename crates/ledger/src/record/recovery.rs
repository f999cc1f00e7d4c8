//! An operator's recovery of a log, as the log describes it.

use std::sync::Arc;

use crate::broken::Broken;
use crate::entry::{Head, Kind};
use crate::reader::{Reader, put};

/// The recovery of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The node that wrote it.
    pub by: Arc<str>,
    /// The source of its contents, in words.
    pub from: Arc<str>,
    /// The replaced logs, the latest one last.
    pub replaced: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The records before it are live.
    Whole = 1,
    /// The records before it are not live.
    Begins = 2,
    Ends = 3,
    /// A repetition, before the front with the original is purged.
    Again = 4,
}

/// Maximum number of replaced logs; beyond it the oldest are dropped.
pub(crate) const REPLACED_MAX: usize = 16;

impl Recovery {
    pub(crate) fn encode(&self, phase: Phase) -> Vec<u8> {
        let mut out = vec![phase as u8];
        put(self.by.as_bytes(), &mut out);
        put(self.from.as_bytes(), &mut out);
        for log in &self.replaced {
            out.extend_from_slice(&log.to_be_bytes());
        }
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<(Phase, Self), Broken> {
        let mut reader = Reader(body);
        let phase = Phase::of(body).ok_or(Broken::Body)?;
        reader.octet()?;
        let mut recovery = Self {
            by: reader.shared_text()?,
            from: reader.shared_text()?,
            replaced: Vec::new(),
        };
        while !reader.is_empty() {
            if recovery.replaced.len() == REPLACED_MAX {
                return Err(Broken::Body);
            }
            recovery.replaced.push(reader.long()?);
        }
        Ok((phase, recovery))
    }
}

impl Phase {
    /// Reads a body, or the first part of one.
    pub(crate) fn of(part: &[u8]) -> Option<Self> {
        const PHASES: [Phase; 4] = [Phase::Whole, Phase::Begins, Phase::Ends, Phase::Again];
        let phase = part.first()?.checked_sub(1)?;
        PHASES.get(usize::from(phase)).copied()
    }

    /// Reads that of an entry, if it is the first of such a batch.
    pub(crate) fn of_entry(head: &Head, part: &[u8]) -> Option<Self> {
        let is_first = head.kind == Kind::Recovered && head.part == 0;
        is_first.then(|| Self::of(part)).flatten()
    }
}
