//! An index of other nodes' sessions, with their subscriptions and registrations. From it subscribers learn of ends
//! that the lost node cannot announce.
//!
//! It is empty while no session subscribes to such events. It holds a node's list, updated by that node's meta events,
//! which arrive in order with the list. Its size is bounded: an entry without room is not indexed, and its end is not
//! announced.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use crate::across::NeighbourKey;
use crate::events::Ending;

/// Maximum bytes indexed of one node, and of all.
const NODE_BYTES_MAX: usize = 16 << 20;
const BYTES_MAX: usize = 64 << 20;

/// Approximate memory of a session or of its part in an entry, beside its names.
const ENTRY_BYTES: usize = 128;

/// Longer names are not indexed.
const NAME_BYTES_MAX: usize = 1_024;

/// Maximum number of lost nodes that are remembered in case they return.
const GONE_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct RemoteIndex {
    /// Which ends local sessions subscribe to, in the order of [`Ending::ALL`].
    pub(super) wanted: [bool; 3],
    nodes: BTreeMap<u64, Node>,
    /// Open questions, and the nodes asked.
    pub(super) asked: BTreeMap<u64, NeighbourKey>,
    /// Entries whose end is to be published, node by node.
    ended: VecDeque<(u64, Node)>,
    /// Lost nodes: their meta events count again once they have sent their list.
    gone: BTreeSet<u64>,
    bytes: usize,
}

/// The indexed entries of one node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) sessions: BTreeMap<u64, RemoteSession>,
    /// By kind, its id, and the session.
    pub(super) parts: BTreeMap<(Ending, u64, u64), Round>,
    bytes: usize,
    /// Counts the node's lists: an entry of an earlier round has ended.
    round: Round,
    /// The node was present before the first subscription: its entries are not announced as new.
    pub(super) is_silent: bool,
}

type Round = u32;

#[derive(Debug)]
pub(super) struct RemoteSession {
    pub(super) authid: Box<str>,
    pub(super) authrole: Box<str>,
    round: Round,
}

impl RemoteSession {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.authid.len() + self.authrole.len()
    }
}

/// The outcome of indexing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    Known,
    New,
    /// There is no room for it.
    NoRoom,
}

impl RemoteIndex {
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.contains(&true)
    }

    pub(super) fn wants(&self, ending: Ending) -> bool {
        self.wanted[ending as usize]
    }

    /// Memory of the index.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of indexed sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.nodes.values().map(|node| node.sessions.len()).sum()
    }

    /// A node begins to send its list.
    pub(super) fn begin_round(&mut self, incarnation: u64, is_silent: bool) {
        self.gone.remove(&incarnation);
        // The node returned before all ends were published.
        let ended = self.ended.iter().position(|(of, _)| *of == incarnation);
        let ended = ended.and_then(|place| self.ended.remove(place));
        let node = self.nodes.entry(incarnation).or_default();
        if let Some((_, ended)) = ended {
            node.bytes += ended.bytes;
            for (id, who) in ended.sessions {
                self.bytes -= node.sessions.insert(id, who).map_or(0, |who| {
                    node.bytes -= who.bytes();
                    who.bytes()
                });
            }
            for (part, round) in ended.parts {
                if node.parts.insert(part, round).is_some() {
                    node.bytes -= ENTRY_BYTES;
                    self.bytes -= ENTRY_BYTES;
                }
            }
        }
        node.round = node.round.wrapping_add(1);
        node.is_silent |= is_silent;
    }

    /// Ends a node's list: entries that it did not contain have ended.
    pub(super) fn end_round(&mut self, incarnation: u64) {
        let Some(node) = self.nodes.get_mut(&incarnation) else {
            return;
        };
        node.is_silent = false;
        let round = node.round;
        let missing = Node {
            sessions: node
                .sessions
                .extract_if(.., |_, who| who.round != round)
                .collect(),
            parts: node
                .parts
                .extract_if(.., |_, known| *known != round)
                .collect(),
            ..Node::default()
        };
        self.tell_later(incarnation, missing);
    }

    fn tell_later(&mut self, incarnation: u64, mut missing: Node) {
        if missing.sessions.is_empty() && missing.parts.is_empty() {
            return;
        }
        let sessions: usize = missing.sessions.values().map(RemoteSession::bytes).sum();
        missing.bytes = sessions + missing.parts.len() * ENTRY_BYTES;
        if let Some(node) = self.nodes.get_mut(&incarnation) {
            node.bytes -= missing.bytes;
        }
        self.ended.push_back((incarnation, missing));
    }

    /// Ends all entries of a lost node.
    pub(super) fn give_up(&mut self, incarnation: u64) {
        self.gone.insert(incarnation);
        if self.gone.len() > GONE_MAX {
            self.gone.pop_first();
        }
        if let Some(node) = self.nodes.remove(&incarnation) {
            self.ended.push_back((incarnation, node));
        }
    }

    pub(super) fn is_gone(&self, incarnation: u64) -> bool {
        self.gone.contains(&incarnation)
    }

    pub(super) fn is_silent(&self, incarnation: u64) -> bool {
        let node = self.nodes.get(&incarnation);
        node.is_some_and(|node| node.is_silent)
    }

    pub(super) fn note_session(&mut self, node: u64, id: u64, names: [&str; 2]) -> Noted {
        let bytes = ENTRY_BYTES + names[0].len() + names[1].len();
        let is_long = names.iter().any(|name| name.len() > NAME_BYTES_MAX);
        let has_room = self.has_room(node, bytes) && !is_long;
        let of = self.nodes.entry(node).or_default();
        if let Some(known) = of.sessions.get_mut(&id) {
            known.round = of.round;
            return Noted::Known;
        }
        if !has_room {
            return Noted::NoRoom;
        }
        let [authid, authrole] = names.map(Into::into);
        let who = RemoteSession {
            authid,
            authrole,
            round: of.round,
        };
        of.sessions.insert(id, who);
        of.bytes += bytes;
        self.bytes += bytes;
        Noted::New
    }

    pub(super) fn note_part(&mut self, node: u64, part: (Ending, u64, u64)) -> Noted {
        let has_room = self.has_room(node, ENTRY_BYTES);
        let of = self.nodes.entry(node).or_default();
        if let Some(known) = of.parts.get_mut(&part) {
            *known = of.round;
            return Noted::Known;
        }
        if !has_room {
            return Noted::NoRoom;
        }
        of.parts.insert(part, of.round);
        of.bytes += ENTRY_BYTES;
        self.bytes += ENTRY_BYTES;
        Noted::New
    }

    /// Removes a session whose own node has announced its end.
    pub(super) fn forget_session(&mut self, node: u64, id: u64) {
        if let Some(of) = self.nodes.get_mut(&node)
            && let Some(who) = of.sessions.remove(&id)
        {
            of.bytes -= who.bytes();
            self.bytes -= who.bytes();
        }
    }

    pub(super) fn forget_part(&mut self, node: u64, part: (Ending, u64, u64)) {
        if let Some(of) = self.nodes.get_mut(&node)
            && of.parts.remove(&part).is_some()
        {
            of.bytes -= ENTRY_BYTES;
            self.bytes -= ENTRY_BYTES;
        }
    }

    /// Drops entries of a kind that no session subscribes to any more.
    pub(super) fn forget_all(&mut self, ending: Ending) {
        let ended = self.ended.iter_mut().map(|(_, node)| node);
        for node in self.nodes.values_mut().chain(ended) {
            let before = node.bytes;
            match ending {
                Ending::Session => {
                    let sessions = mem::take(&mut node.sessions);
                    node.bytes -= sessions.values().map(RemoteSession::bytes).sum::<usize>();
                }
                ending => {
                    let parts = node.parts.extract_if(.., |(of, ..), _| *of == ending);
                    node.bytes -= parts.count() * ENTRY_BYTES;
                }
            }
            self.bytes -= before - node.bytes;
        }
    }

    /// Drops everything: no session subscribes to ends any more.
    pub(super) fn forget_nodes(&mut self) {
        self.nodes.clear();
        self.ended.clear();
        self.asked.clear();
        self.bytes = 0;
    }

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The next ended part, and whether it was the node's last one in that entry.
    pub(super) fn next_part(&mut self) -> Option<((Ending, u64, u64), bool)> {
        let (incarnation, node) = self.ended.front_mut()?;
        let (part, _) = node.parts.pop_first()?;
        node.bytes -= ENTRY_BYTES;
        self.bytes -= ENTRY_BYTES;
        let of_same = (part.0, part.1, 0)..=(part.0, part.1, u64::MAX);
        let is_elsewhere = |node: &Node| node.parts.range(of_same.clone()).next().is_some();
        let stays = is_elsewhere(node) || self.nodes.get(incarnation).is_some_and(is_elsewhere);
        Some((part, !stays))
    }

    /// The next ended session. To be called when no parts are left; the node is done with its last session.
    pub(super) fn next_session(&mut self) -> Option<(u64, RemoteSession)> {
        let (_, node) = self.ended.front_mut()?;
        let Some((id, who)) = node.sessions.pop_first() else {
            self.ended.pop_front();
            return None;
        };
        node.bytes -= who.bytes();
        self.bytes -= who.bytes();
        Some((id, who))
    }

    fn has_room(&self, node: u64, bytes: usize) -> bool {
        let of_node = self.nodes.get(&node).map_or(0, |node| node.bytes);
        of_node + bytes <= NODE_BYTES_MAX && self.bytes + bytes <= BYTES_MAX
    }

    /// Asserts that the sums are right. Walks everything.
    pub(crate) fn check_invariants(&self) {
        let ended = self.ended.iter().map(|(_, node)| node);
        let all = self.nodes.values().chain(ended);
        let mut sum = 0;
        for node in all {
            let sessions: usize = node.sessions.values().map(RemoteSession::bytes).sum();
            assert_eq!(node.bytes, sessions + node.parts.len() * ENTRY_BYTES);
            sum += node.bytes;
        }
        assert_eq!(self.bytes, sum);
        assert!(self.is_wanted() || self.bytes == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_bounded() {
        let mut known = RemoteIndex {
            wanted: [true; 3],
            ..RemoteIndex::default()
        };
        for node in 0..6 {
            let mut id = 0;
            while known.note_session(node, id, ["a", "b"]) == Noted::New {
                known.note_part(node, (Ending::Registration, id, id));
                id += 1;
            }
            assert!(known.nodes[&node].bytes <= NODE_BYTES_MAX);
        }
        assert!(known.bytes() <= BYTES_MAX);
        assert!(known.bytes() > BYTES_MAX - NODE_BYTES_MAX);
        known.check_invariants();
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        known.forget_nodes();
        assert_eq!(known.note_session(1, 1, [&long, ""]), Noted::NoRoom);
        known.check_invariants();
    }

    #[test]
    fn an_entry_missing_from_the_next_list_has_ended() {
        let mut known = RemoteIndex {
            wanted: [true; 3],
            ..RemoteIndex::default()
        };
        known.begin_round(7, true);
        for id in 1..=3 {
            known.note_session(7, id, ["a", "b"]);
            known.note_part(7, (Ending::Registration, 9, id));
        }
        known.end_round(7);
        assert!(!known.has_ended() && !known.is_silent(7));
        known.forget_session(7, 1);
        known.forget_part(7, (Ending::Registration, 9, 1));
        known.begin_round(7, false);
        assert_eq!(known.note_session(7, 2, ["a", "b"]), Noted::Known);
        assert_eq!(
            known.note_part(7, (Ending::Registration, 9, 2)),
            Noted::Known
        );
        assert_eq!(known.note_session(7, 4, ["a", "b"]), Noted::New);
        known.end_round(7);
        assert_eq!(
            known.next_part(),
            Some(((Ending::Registration, 9, 3), false))
        );
        assert_eq!(known.next_part(), None);
        assert_eq!(known.next_session().map(|(id, _)| id), Some(3));
        assert!(known.next_session().is_none() && !known.has_ended());
        known.check_invariants();
        // The node is lost, and returns before all ends are published.
        known.give_up(7);
        assert_eq!(
            known.next_part(),
            Some(((Ending::Registration, 9, 2), true))
        );
        known.begin_round(7, false);
        assert_eq!(known.note_session(7, 2, ["a", "b"]), Noted::Known);
        known.end_round(7);
        assert_eq!(known.next_session().map(|(id, _)| id), Some(4));
        known.check_invariants();
    }
}
