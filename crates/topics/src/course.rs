//! The course of a publication: its walk, its receivers, its records. It may take several turns.

use std::ops::Range;
use std::sync::Arc;

use crosstie_mqtt::{PacketId, QoS};

use crate::keys::{GroupKey, SessionKey};
use crate::subscribers::PackedOptions;
use crate::trie::Walk;
use crate::{Message, SessionNumber};

/// The origin of a publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// None from outside.
    pub(crate) publisher: Option<SessionKey>,
    /// It is the will of this session.
    pub(crate) will_of: Option<SessionKey>,
    /// The session's number, if the will is recorded.
    pub(crate) will_number: SessionNumber,
    pub(crate) connection: u32,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) qos: QoS,
}

/// A publication that waits for a later turn.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) source: Source,
    pub(crate) message: Arc<Message>,
    pub(crate) course: Box<Course>,
    /// Bytes of its course on the account of the space.
    pub(crate) charged: isize,
}

/// The progress of a publication.
#[derive(Debug, Default)]
pub(crate) struct Course {
    pub(crate) walk: Walk,
    pub(crate) is_walked: bool,
    /// Number of filters that match.
    pub(crate) nodes: usize,
    /// Subscriptions that match.
    pub(crate) targets: Vec<Target>,
    /// Those of several filters are sorted by session in runs: what is left of each.
    pub(crate) runs: Vec<Range<usize>>,
    /// Number of targets that are sorted.
    pub(crate) sorted: usize,
    /// Number of targets that are done.
    pub(crate) at: usize,
    /// Groups of shared subscriptions that match.
    pub(crate) deals: Vec<GroupKey>,
    pub(crate) dealt: usize,
    /// A subscription has matched.
    pub(crate) is_matched: bool,
    /// All receivers are served, and it is acknowledged.
    pub(crate) is_concluded: bool,
    pub(crate) recording: Recording,
}

/// The records of a publication.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Other inputs may come before the end. The record of the message is written then.
    pub(crate) is_long: bool,
    /// Position of the last one that is written; 0 if there is none.
    pub(crate) position: u64,
    /// Sessions with entries of QoS 2, which are not sent before that record.
    pub(crate) stored: Vec<SessionKey>,
}

/// A subscription that matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) session: SessionKey,
    pub(crate) identifier: u32,
    pub(crate) options: PackedOptions,
}

impl Target {
    /// Whether a publication is for it: a client may not want its own ones.
    #[inline]
    pub(crate) fn is_for(&self, source: &Source) -> bool {
        let publisher = source.publisher.or(source.will_of);
        !(self.options.no_local() && publisher == Some(self.session))
    }
}

impl Source {
    /// Whether a client is paused before it publishes more, and would publish it again.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.publisher.is_some() && self.qos > QoS::AtMostOnce
    }

    pub(crate) const OUTSIDE: Self = Self {
        publisher: None,
        will_of: None,
        will_number: SessionNumber(0),
        connection: 0,
        packet_id: None,
        qos: QoS::AtMostOnce,
    };
}

impl Course {
    /// Whether no subscription is known to match: one that expires before its walk may have some.
    pub(crate) fn is_unmatched(&self) -> bool {
        self.is_walked && !self.is_matched && self.left() == 0
    }

    /// Receivers that are still to be served.
    pub(crate) fn left(&self) -> usize {
        self.targets.len() - self.at + self.deals.len() - self.dealt
    }

    /// Sorts the next run of targets; its length.
    pub(crate) fn sort_run(&mut self, length_max: usize) -> usize {
        let end = self.targets.len().min(self.sorted + length_max);
        let run = self.sorted..end;
        if let Some(targets) = self.targets.get_mut(run.clone()) {
            targets.sort_unstable_by_key(|target| target.session);
        }
        self.sorted = end;
        self.runs.push(run.clone());
        run.len()
    }

    /// The targets of the next session, unless it has one and there is one run.
    #[inline(never)]
    pub(crate) fn take_several(&mut self) -> Option<Vec<Target>> {
        if self.runs.len() > 1 {
            return Some(self.take_merged());
        }
        let left = self.targets.get(self.at..)?;
        let first = left.first()?;
        let own = left.iter().take_while(|one| one.session == first.session);
        let own = left.get(..own.count()).filter(|own| own.len() > 1)?;
        self.at += own.len();
        Some(own.to_vec())
    }

    /// The targets of the next session, of several runs.
    fn take_merged(&mut self) -> Vec<Target> {
        let targets = &self.targets;
        let head = |run: &Range<usize>| targets.get(run.clone())?.first();
        let heads = self.runs.iter().filter_map(head);
        let mut own = Vec::new();
        if let Some(session) = heads.map(|target| target.session).min() {
            for run in &mut self.runs {
                while let Some(target) = head(run).filter(|target| target.session == session) {
                    own.push(*target);
                    run.start += 1;
                }
            }
        }
        self.at += own.len();
        own
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let targets = self.targets.capacity() * size_of::<Target>();
        let deals = self.deals.capacity() * size_of::<GroupKey>();
        targets + deals + self.recording.stored.capacity() * size_of::<SessionKey>()
    }

    /// Makes it ready for another publication, with the memory of this one.
    pub(crate) fn reset(&mut self) {
        if self.targets.capacity() > TARGETS_KEPT {
            *self = Self::default();
            return;
        }
        self.targets.clear();
        self.runs.clear();
        self.sorted = 0;
        self.deals.clear();
        self.recording.stored.clear();
        (self.is_walked, self.is_matched, self.is_concluded) = (false, false, false);
        (self.nodes, self.at, self.dealt) = (0, 0, 0);
        (self.recording.is_long, self.recording.position) = (false, 0);
    }
}

/// The memory of more receivers is not kept for the next publication.
const TARGETS_KEPT: usize = 16 << 10;
