//! The other nodes of a realm: their announcements, and when they were last heard.

use std::collections::BTreeMap;

use crosstie_routing::Time;

use crate::pair::Pair;
use crate::{Head, Refusal, Versions};

/// Maximum number of nodes, as a client of the engine may draw any number of incarnations.
pub(crate) const NEIGHBOURS_MAX: usize = 1_024;

/// Silence after which a node is no longer waited for.
const SUSPECTED_MS: u64 = 3_000;

/// Silence after which a node is probed: it has missed a heartbeat. Also the interval of probes.
const PROBED_MS: u64 = 1_500;
const PROBED_EACH_MS: u64 = 500;

/// Time for which a mute node is not asked again.
const MUTE_MS: u64 = 60_000;

/// Silence after which a node is dead, if it could have been heard.
const DEAD_MS: u64 = 13_000;

/// Time after which a dead node is forgotten.
const FORGOTTEN_MS: u64 = 60_000;

/// Maximum length of a node's texts.
const TEXT_BYTES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    by_incarnation: BTreeMap<u64, Neighbour>,
}

#[derive(Debug)]
pub(crate) struct Neighbour {
    /// It has announced itself.
    is_known: bool,
    pub(crate) is_suspected: bool,
    is_dead: bool,
    /// The time until which it is not asked, because it did not answer; and the time of the unanswered question.
    mute_until: Option<Time>,
    pub(crate) asked: Option<Time>,
    pub(crate) node: String,
    pub(crate) server: String,
    heard: Time,
    /// The time of the last probe.
    probed: Time,
    /// The time since which it has its present connection.
    since: Time,
    epoch: u32,
    /// The sequence of its last event.
    sequence: u64,
    pub(crate) pair: Pair,
    pub(crate) versions: Versions,
    /// No common version, in its view or in this node's.
    pub(crate) is_refused: bool,
    pub(crate) is_refusing: bool,
}

impl Neighbour {
    pub(crate) fn is_active(&self) -> bool {
        self.is_there() && !self.is_mute() && !self.is_strange()
    }

    /// It has announced itself, and is heard.
    pub(crate) fn is_there(&self) -> bool {
        self.is_known && !self.is_suspected
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Time since its last frame.
    pub(crate) fn silent_ms(&self, now: Time) -> u64 {
        now.0.saturating_sub(self.heard.0) / 1_000
    }

    pub(crate) fn is_strange(&self) -> bool {
        self.is_refused || self.is_refusing
    }

    pub(crate) fn is_mute(&self) -> bool {
        self.mute_until.is_some()
    }

    /// It has answered.
    pub(crate) fn note_answer(&mut self) {
        self.mute_until = None;
        self.asked = None;
    }

    /// Whether it could have answered a question of that age.
    pub(crate) fn could_answer(&self, now: Time, for_ms: u64) -> bool {
        self.since.after_ms(for_ms) <= now
    }

    pub(crate) fn note_mute(&mut self, now: Time) {
        self.mute_until = Some(now.after_ms(MUTE_MS));
        self.asked = None;
    }

    /// Whether an event is newer than all earlier ones of its sender.
    pub(crate) fn take_sequence(&mut self, head: &Head) -> bool {
        if head.epoch != self.epoch || head.sequence <= self.sequence {
            return false;
        }
        self.sequence = head.sequence;
        true
    }

    /// Notes its announcement. Returns whether that is the first.
    pub(crate) fn know(&mut self, node: &str, server: &str) -> bool {
        if self.node != node || self.server != server {
            cut(node).clone_into(&mut self.node);
            cut(server).clone_into(&mut self.server);
        }
        !std::mem::replace(&mut self.is_known, true)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

impl Neighbours {
    /// Notes a frame of its sender, which is alive. Returns whether the sender has a new connection.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        head: &Head,
    ) -> Result<(&mut Neighbour, bool), Refusal> {
        let is_full = self.by_incarnation.len() >= NEIGHBOURS_MAX;
        if is_full && !self.by_incarnation.contains_key(&head.incarnation) {
            return Err(Refusal::Neighbours);
        }
        let entry = self.by_incarnation.entry(head.incarnation);
        let neighbour = entry.or_insert_with(|| Neighbour {
            is_known: false,
            is_suspected: false,
            is_dead: false,
            mute_until: None,
            asked: None,
            node: String::new(),
            server: String::new(),
            heard: now,
            probed: now,
            since: now,
            epoch: head.epoch,
            sequence: 0,
            pair: Pair::default(),
            versions: Versions::OWN,
            is_refused: false,
            is_refusing: false,
        });
        neighbour.heard = now;
        neighbour.is_suspected = false;
        neighbour.is_dead = false;
        let is_anew = head.epoch > neighbour.epoch;
        if is_anew {
            neighbour.epoch = head.epoch;
            neighbour.since = now;
            neighbour.sequence = 0;
            neighbour.note_answer();
        }
        Ok((neighbour, is_anew))
    }

    pub(crate) fn find(&mut self, incarnation: u64) -> Option<&mut Neighbour> {
        self.by_incarnation.get_mut(&incarnation)
    }

    /// All nodes that have been heard.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Neighbour)> {
        self.by_incarnation.iter().map(|(number, n)| (*number, n))
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (u64, &mut Neighbour)> {
        let all = self.by_incarnation.iter_mut();
        all.map(|(number, neighbour)| (*number, neighbour))
    }

    pub(crate) fn leave(&mut self, incarnation: u64) {
        self.by_incarnation.remove(&incarnation);
    }

    /// Suspects and forgets nodes that were silent up to `heard_to`. Returns the newly suspected ones.
    pub(crate) fn handle_tick(&mut self, now: Time, heard_to: Time) -> Vec<u64> {
        // Nodes that this node could not hear for a while are not forgotten before it can hear again.
        self.by_incarnation.retain(|_, neighbour| {
            neighbour.heard.after_ms(FORGOTTEN_MS) > heard_to || !neighbour.is_dead
        });
        let mut suspected = Vec::new();
        for (incarnation, neighbour) in &mut self.by_incarnation {
            let is_silent = neighbour.heard.after_ms(SUSPECTED_MS) <= heard_to;
            if is_silent && !neighbour.is_suspected {
                suspected.push(*incarnation);
            }
            // Only its next message ends the suspicion.
            neighbour.is_suspected |= is_silent;
            neighbour.mute_until.take_if(|until| *until <= now);
        }
        suspected
    }

    /// Nodes that are due for a probe, and whether any is due for suspicion.
    pub(crate) fn silent(&mut self, now: Time) -> (Vec<u64>, bool) {
        let mut is_overdue = false;
        let all = self.by_incarnation.iter_mut();
        let probed = all.filter_map(|(incarnation, neighbour)| {
            let is_missed = neighbour.is_there() && neighbour.heard.after_ms(PROBED_MS) <= now;
            if !is_missed {
                return None;
            }
            is_overdue |= neighbour.heard.after_ms(SUSPECTED_MS) <= now;
            let is_due = neighbour.probed.after_ms(PROBED_EACH_MS) <= now;
            is_due.then(|| {
                neighbour.probed = now;
                *incarnation
            })
        });
        (probed.collect(), is_overdue)
    }

    /// The nodes that are newly dead by what was read until `read`, if this node could hear others since `since`; and
    /// whether it could not for as long when they were last heard.
    pub(crate) fn dead(&mut self, read: Time, since: Time) -> Vec<(u64, bool)> {
        let all = self.by_incarnation.iter_mut();
        let dead = all.filter_map(|(incarnation, neighbour)| {
            let silent = neighbour.heard.max(since);
            let is_dead = neighbour.is_suspected && silent.after_ms(DEAD_MS) <= read;
            let is_news = is_dead && !std::mem::replace(&mut neighbour.is_dead, true);
            let is_missed = neighbour.heard.after_ms(DEAD_MS) <= since;
            is_news.then_some((*incarnation, is_missed))
        });
        dead.collect()
    }

    /// The nodes that have not answered a question within that time, by what was read until `read`.
    pub(crate) fn unanswering(&self, read: Time, for_ms: u64) -> Vec<u64> {
        let is_late = |asked: Time| asked.after_ms(for_ms) <= read;
        let all = self.by_incarnation.iter();
        all.filter(|(_, neighbour)| neighbour.asked.is_some_and(is_late))
            .map(|(incarnation, _)| *incarnation)
            .collect()
    }

    pub(crate) fn is_active(&self, incarnation: u64) -> bool {
        let found = self.by_incarnation.get(&incarnation);
        found.is_some_and(Neighbour::is_active)
    }

    pub(crate) fn active(&self) -> impl Iterator<Item = (u64, &Neighbour)> {
        let all = self.by_incarnation.iter().map(|(number, n)| (*number, n));
        all.filter(|(_, neighbour)| neighbour.is_active())
    }

    pub(crate) fn suspected(&self) -> usize {
        let all = self.by_incarnation.values();
        all.filter(|neighbour| neighbour.is_suspected || neighbour.is_mute())
            .count()
    }

    /// Chooses the version to speak, and refuses nodes without it. Returns the version, and the nodes whose pairs must
    /// end.
    pub(crate) fn choose_version(&mut self, own: Versions) -> (u8, Vec<u64>) {
        let there = self.all().filter(|(_, other)| other.is_there());
        let there: Vec<_> = there.map(|(_, other)| other.versions).collect();
        let version = own.choose(&there);
        let mut refused = Vec::new();
        for (incarnation, other) in self.all_mut() {
            other.is_refused = other.is_there() && !other.versions.has(version);
            if other.is_strange() && other.pair.is_open {
                refused.push(incarnation);
            }
        }
        (version, refused)
    }

    /// Nodes that this node refuses, or that refuse this node.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = (&str, Versions)> {
        let there = self
            .all()
            .filter(|(_, other)| other.is_there() && other.is_strange());
        there.map(|(_, other)| (&*other.node, other.versions))
    }

    /// One node at each server except `but`.
    pub(crate) fn one_per_server(&self, but: &str) -> BTreeMap<String, u64> {
        let mut chosen = BTreeMap::new();
        for (incarnation, neighbour) in self.active() {
            if neighbour.server != but {
                chosen
                    .entry(neighbour.server.clone())
                    .or_insert(incarnation);
            }
        }
        chosen
    }
}
