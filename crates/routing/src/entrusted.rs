//! Testaments of other nodes' sessions, which this node publishes if their node dies; and what it has published so, for a node
//! that comes back all the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::handed::Handed;
use crate::testaments::Scope;

/// What one node may entrust, and all.
const NODE_BYTES_MAX: usize = 16 << 20;
const BYTES_MAX: usize = 64 << 20;

/// Publications that are remembered to have been published for others.
const PUBLISHED_MAX: usize = 1 << 16;

/// Nodes that hold what one entrusts.
const HOLDERS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Entrusted {
    nodes: BTreeMap<u64, Node>,
    /// Those of nodes that have died.
    due: VecDeque<(u64, u64, Handed)>,
    published: VecDeque<Published>,
    /// The same by node and publication.
    was_published: BTreeSet<(u64, u64)>,
    bytes: usize,
}

/// A node, one of its sessions, and that one's testament.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    node: u64,
    pub(crate) session: u64,
    pub(crate) publication: u64,
}

#[derive(Debug, Default)]
struct Node {
    /// Who else holds them; the first of them that lives publishes them.
    holders: Vec<u64>,
    /// Those of each session by their publications: a node may entrust very many of one.
    sessions: BTreeMap<u64, BTreeMap<u64, Held>>,
    /// How many it has entrusted.
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    scope: Scope,
    /// Which of all that its node has entrusted it was.
    place: u64,
    handed: Handed,
}

impl Entrusted {
    /// A node says who holds what it entrusts, beginning anew or not.
    pub(crate) fn begin(&mut self, node: u64, holders: Vec<u64>, is_anew: bool) {
        if is_anew {
            self.forget(node);
        }
        let holders: Vec<_> = holders.into_iter().take(HOLDERS_MAX).collect();
        self.nodes.entry(node).or_default().holders = holders;
    }

    /// Keeps one; whether there was room for it.
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

    /// It has been published, or taken back.
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

    /// The node begins anew.
    fn forget(&mut self, node: u64) {
        if let Some(of) = self.nodes.remove(&node) {
            self.bytes -= of.bytes;
        }
    }

    /// The node has died. Of those who hold its testaments the first that lives publishes them, of which `lives` says whether
    /// it does; `own` is this one.
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

    /// The next one to be published.
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

    /// What was published for a node, which is back.
    pub(crate) fn published(&self, node: u64) -> impl Iterator<Item = Published> {
        let published = self.published.iter().copied();
        published.filter(move |published| published.node == node)
    }

    /// What they take in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many are held.
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

/// To whom this node entrusts its sessions' testaments, and whether they may have been published meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Entrusting {
    /// The nodes that are there, or have not been silent for long.
    pub(crate) present: BTreeSet<u64>,
    /// Those of them that hold what is entrusted, in the order in which they publish it.
    pub(crate) holders: Vec<u64>,
    /// Those that do not understand what that is.
    pub(crate) unable: BTreeSet<u64>,
    /// Who is to be handed all that there is, and from which place of the table of sessions on.
    pub(crate) handing: VecDeque<(u64, usize)>,
    /// Holders that were lost, and may have published what they held: it is this node that may have been cut off.
    pub(crate) doubtful: BTreeSet<u64>,
    /// Until when they may come back and say so.
    pub(crate) doubtful_until: Option<crate::Time>,
}

/// Nodes that are entrusted with the same, and others that are remembered.
pub(crate) const COPIES: usize = 2;
pub(crate) const REMEMBERED_MAX: usize = 1_024;

impl Entrusting {
    /// Whether what was entrusted may have been published by another node.
    pub(crate) fn is_doubtful(&mut self, now: crate::Time) -> bool {
        if self.doubtful_until.take_if(|until| *until <= now).is_some() {
            self.doubtful.clear();
        }
        !self.doubtful.is_empty() && (self.present.is_empty() || self.doubtful_until.is_some())
    }
}
