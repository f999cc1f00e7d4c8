//! Testaments of other nodes' sessions, which this node publishes if their node dies. Also remembers which ones it has
//! published, in case that node returns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::handover::Handed;
use crate::testaments::Scope;

/// Maximum bytes of the testaments of one node, and of all.
const NODE_BYTES_MAX: usize = 16 << 20;
const BYTES_MAX: usize = 64 << 20;

/// Maximum number of publications remembered as published for other nodes.
const PUBLISHED_MAX: usize = 1 << 16;

/// Maximum number of holders of one node's testaments.
const HOLDERS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct HeldTestaments {
    nodes: BTreeMap<u64, Node>,
    /// Testaments of dead nodes, to be published.
    due: VecDeque<(u64, u64, Handed)>,
    published: VecDeque<Published>,
    /// `published` by node and publication.
    was_published: BTreeSet<(u64, u64)>,
    bytes: usize,
}

/// A node, one of its sessions, and the session's testament.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    node: u64,
    pub(crate) session: u64,
    pub(crate) publication: u64,
}

#[derive(Debug, Default)]
struct Node {
    /// The nodes that hold these testaments; the first living one publishes them.
    holders: Vec<u64>,
    /// By session and publication: one session may have very many.
    sessions: BTreeMap<u64, BTreeMap<u64, Held>>,
    /// Number of testaments handed over so far.
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    scope: Scope,
    /// Its place in the order in which its node handed testaments over.
    place: u64,
    handed: Handed,
}

impl HeldTestaments {
    /// A node announces its holders; `is_anew` drops the testaments held so far.
    pub(crate) fn begin(&mut self, node: u64, holders: Vec<u64>, is_anew: bool) {
        if is_anew {
            self.forget(node);
        }
        let holders: Vec<_> = holders.into_iter().take(HOLDERS_MAX).collect();
        self.nodes.entry(node).or_default().holders = holders;
    }

    /// Keeps a testament; returns whether there was room for it.
    pub(crate) fn keep(&mut self, node: u64, session: u64, scope: Scope, handed: Handed) -> bool {
        let Some(id) = handed.id() else {
            return true;
        };
        if self.was_published.contains(&(node, id.0)) {
            return true;
        }
        self.release(node, session, id.0);
        let bytes = handed.bytes();
        let of = self.nodes.entry(node).or_default();
        if of.bytes + bytes > NODE_BYTES_MAX || self.bytes + bytes > BYTES_MAX {
            return false;
        }
        of.bytes += bytes;
        self.bytes += bytes;
        of.count += 1;
        let held = Held {
            scope,
            place: of.count,
            handed,
        };
        of.sessions.entry(session).or_default().insert(id.0, held);
        true
    }

    /// Removes a testament that was published or flushed.
    pub(crate) fn release(&mut self, node: u64, session: u64, publication: u64) {
        let Some(of) = self.nodes.get_mut(&node) else {
            return;
        };
        let Some(testaments) = of.sessions.get_mut(&session) else {
            return;
        };
        if let Some(held) = testaments.remove(&publication) {
            of.bytes -= held.handed.bytes();
            self.bytes -= held.handed.bytes();
        }
        if testaments.is_empty() {
            of.sessions.remove(&session);
        }
    }

    /// Drops the testaments of a node.
    pub(crate) fn forget(&mut self, node: u64) {
        if let Some(of) = self.nodes.remove(&node) {
            self.bytes -= of.bytes;
        }
    }

    /// Handles the death of a node: the first living holder of its testaments publishes them. `lives` tells whether
    /// another node does; `own` is this one.
    pub(crate) fn handle_death(&mut self, node: u64, own: u64, lives: impl Fn(u64) -> bool) {
        let Some(of) = self.nodes.remove(&node) else {
            return;
        };
        let first = of
            .holders
            .into_iter()
            .find(|holder| *holder == own || lives(*holder));
        if first != Some(own) {
            self.bytes -= of.bytes;
            return;
        }
        for (session, testaments) in of.sessions {
            let mut testaments: Vec<_> = testaments.into_values().collect();
            testaments.sort_unstable_by_key(|held| (held.scope != Scope::Detached, held.place));
            let due = testaments.into_iter();
            self.due
                .extend(due.map(|held| (node, session, held.handed)));
        }
    }

    #[inline]
    pub(crate) fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The next testament to be published.
    pub(crate) fn next_due(&mut self) -> Option<Handed> {
        let (node, session, handed) = self.due.pop_front()?;
        self.bytes -= handed.bytes();
        if self.published.len() == PUBLISHED_MAX
            && let Some(first) = self.published.pop_front()
        {
            self.was_published.remove(&(first.node, first.publication));
        }
        let publication = handed.id().map_or(0, |id| id.0);
        self.was_published.insert((node, publication));
        self.published.push_back(Published {
            node,
            session,
            publication,
        });
        Some(handed)
    }

    /// The testaments that were published for a node, which has returned.
    pub(crate) fn published(&self, node: u64) -> impl Iterator<Item = Published> {
        let published = self.published.iter().copied();
        published.filter(move |published| published.node == node)
    }

    /// Memory of all testaments.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of testaments held.
    pub(crate) fn len(&self) -> usize {
        let held = self.nodes.values().flat_map(|node| node.sessions.values());
        held.map(BTreeMap::len).sum::<usize>() + self.due.len()
    }

    /// Asserts that the sums are right. Walks everything.
    pub(crate) fn check_invariants(&self) {
        let mut sum: usize = self.due.iter().map(|(.., handed)| handed.bytes()).sum();
        for node in self.nodes.values() {
            let held = node.sessions.values().flat_map(BTreeMap::values);
            let bytes: usize = held.map(|held| held.handed.bytes()).sum();
            assert_eq!(node.bytes, bytes);
            assert!(node.sessions.values().all(|held| !held.is_empty()));
            sum += bytes;
        }
        assert_eq!(self.bytes, sum);
    }
}

/// The holders of this node's testaments, and whether they may have published them.
#[derive(Debug, Default)]
pub(crate) struct Custody {
    /// Nodes that are present, or have not been silent for long.
    pub(crate) present: BTreeSet<u64>,
    /// The holders among them, in the order in which they publish.
    pub(crate) holders: Vec<u64>,
    /// Nodes of a release without testament custody.
    pub(crate) unable: BTreeSet<u64>,
    /// Holders that are still to be handed all testaments, with the place in the table of sessions to continue from.
    pub(crate) handing: VecDeque<(u64, usize)>,
    /// Lost holders that may have published what they held: this node may have been the one that was cut off.
    pub(crate) doubtful: BTreeSet<u64>,
    /// Until when such a holder may return and report it.
    pub(crate) doubtful_until: Option<crate::Time>,
}

/// Number of holders, and maximum number of remembered nodes.
pub(crate) const COPIES: usize = 2;
pub(crate) const REMEMBERED_MAX: usize = 1_024;

impl Custody {
    /// Whether another node may have published this node's testaments.
    pub(crate) fn is_doubtful(&mut self, now: crate::Time) -> bool {
        if self.doubtful_until.take_if(|until| *until <= now).is_some() {
            self.doubtful.clear();
        }
        !self.doubtful.is_empty() && (self.present.is_empty() || self.doubtful_until.is_some())
    }
}
