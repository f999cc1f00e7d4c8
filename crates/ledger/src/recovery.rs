//! What an operator has had done to a log, as the log says it.

use std::sync::Arc;

use crate::broken::Broken;
use crate::entry::{Head, Kind};
use crate::reader::{Reader, put};

/// What was done to a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The node that did it.
    pub by: Arc<str>,
    /// What its contents are from, in words.
    pub from: Arc<str>,
    /// The logs that are no more, the last of them last.
    pub replaced: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// What is before it counts.
    Whole = 1,
    /// What is before it does not.
    Begins = 2,
    Ends = 3,
    /// It is said once more, since the front is about to go.
    Again = 4,
}

/// Logs that are named: of more the first ones are forgotten.
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
    /// Of a body, or the first part of one.
    pub(crate) fn of(part: &[u8]) -> Option<Self> {
        const PHASES: [Phase; 4] = [Phase::Whole, Phase::Begins, Phase::Ends, Phase::Again];
        let phase = part.first()?.checked_sub(1)?;
        PHASES.get(usize::from(phase)).copied()
    }

    /// That of an entry, if it is the first of such a batch.
    pub(crate) fn of_entry(head: &Head, part: &[u8]) -> Option<Self> {
        let is_first = head.kind == Kind::Recovered && head.part == 0;
        is_first.then(|| Self::of(part)).flatten()
    }
}
