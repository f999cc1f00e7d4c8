//! A log server: one of a group that agrees on a log by Raft, and answers nodes as JetStream does.
//!
//! A leader decides on an append when it arrives, by the length of its own log, and acknowledges it once a majority has
//! stored it. A leader that has lost its majority without knowing refuses what it cannot decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chance::Chance;
use crate::world::{Body, Post, Ticket};

pub(crate) type Entry = Arc<[u8]>;

/// One command in a group's log.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    term: u64,
    pub(crate) command: Command,
}

#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// A leader's first one: what is before it is decided with it.
    Begin,
    Append(Entry),
    /// Purges the stream up to and including a number.
    Purge(u64),
}

/// A message between servers.
#[derive(Clone, Debug)]
pub(crate) enum Letter {
    Vote {
        term: u64,
        /// The term and the length of the candidate's log.
        end: (u64, usize),
    },
    Voted {
        term: u64,
    },
    Append {
        term: u64,
        /// The number of slots in front, and the term of the last of these.
        front: (usize, u64),
        slots: Vec<Slot>,
        commit: usize,
    },
    Appended {
        term: u64,
        /// The number of slots that are as the leader's, or at which to try again.
        matched: Result<usize, usize>,
    },
}

/// A node's question.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Append {
        after: u64,
        entry: Entry,
    },
    /// The leader's end.
    Info,
    /// Entries from a number on, from any server.
    Get {
        from: u64,
    },
    Purge {
        to: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Appended(u64),
    Refused,
    Info { last: u64, messages: u64 },
    Entries(Vec<(u64, Entry)>),
    Purged,
}

/// Whether a server syncs what it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    Always,
    Sometimes,
}

#[derive(Debug)]
enum Role {
    Follower,
    Candidate {
        votes: Vec<usize>,
    },
    Leader {
        next: Vec<usize>,
        matched: Vec<usize>,
        /// Its first slot: it answers once that is decided.
        begin: usize,
        heard: Vec<u64>,
    },
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) place: usize,
    count: usize,
    pub(crate) sync: Sync,
    /// It lost a part of its disk, and has no vote until a leader has brought it up to date.
    pub(crate) is_behind: bool,
    // On its disk.
    term: u64,
    voted: Option<usize>,
    pub(crate) log: Vec<Slot>,
    commit: usize,
    // The stream, as far as it is decided: its entries from the first one on, purged or not.
    stream: Vec<Entry>,
    first: u64,
    // In memory.
    role: Role,
    due: u64,
    /// Questions by the slot that answers them.
    asked: BTreeMap<usize, Ticket>,
}

/// Slots in one letter.
const SLOTS_MAX: usize = 64;

const BEAT_MS: u64 = 1000;

/// An election takes 4 to 9 s.
const ELECTION_MS: std::ops::Range<u64> = 4000..9000;

/// Without a majority for this long, a leader steps down.
const ALONE_MS: u64 = 10_000;

impl Server {
    pub(crate) fn new(place: usize, count: usize, sync: Sync, chance: &mut Chance) -> Self {
        // The first election is quick, so that a run begins.
        let due = chance.within(0..300);
        Self {
            place,
            count,
            sync,
            is_behind: false,
            term: 0,
            voted: None,
            log: Vec::new(),
            commit: 0,
            stream: Vec::new(),
            first: 1,
            role: Role::Follower,
            due,
            asked: BTreeMap::new(),
        }
    }

    /// Starts again with what is on its disk.
    pub(crate) fn restart(&mut self, now: u64, chance: &mut Chance) {
        self.role = Role::Follower;
        self.asked.clear();
        self.due = now + chance.within(ELECTION_MS);
    }

    /// Loses the last slots of its disk, or all of it.
    pub(crate) fn lose(&mut self, slots: usize) {
        self.log.truncate(self.log.len().saturating_sub(slots));
        if self.log.is_empty() {
            (self.term, self.voted) = (0, None);
        }
        self.is_behind = true;
        let commit = self.commit.min(self.log.len());
        (self.commit, self.first) = (0, 1);
        self.stream.clear();
        self.decide(commit);
    }

    pub(crate) fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader { begin, .. } if begin < self.commit)
    }

    pub(crate) fn last(&self) -> u64 {
        self.stream.len() as u64
    }

    /// Everything that was ever decided, and the first number that is not purged.
    pub(crate) fn decided(&self) -> (&[Entry], u64) {
        (&self.stream, self.first)
    }

    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    pub(crate) fn handle_timeout(&mut self, now: u64, chance: &mut Chance, post: &mut Post) {
        if let Role::Leader { heard, .. } = &self.role {
            let others = self.others();
            let lately = others.filter(|other| now - heard[*other] < ALONE_MS);
            if lately.count() + 1 > self.count / 2 {
                self.due = now + BEAT_MS;
                self.replicate_all(post);
                return;
            }
            self.follow(now, chance);
            return;
        }
        self.due = now + chance.within(ELECTION_MS);
        if self.is_behind {
            return;
        }
        self.term += 1;
        self.voted = Some(self.place);
        self.role = Role::Candidate {
            votes: vec![self.place],
        };
        let (term, end) = (self.term, self.end());
        for to in self.others() {
            post.send(self.place, to, Body::Letter(Letter::Vote { term, end }));
        }
        self.count_votes(now, post);
    }

    pub(crate) fn handle_letter(
        &mut self,
        now: u64,
        (from, letter): (usize, Letter),
        chance: &mut Chance,
        post: &mut Post,
    ) {
        let (Letter::Vote { term, .. }
        | Letter::Voted { term }
        | Letter::Append { term, .. }
        | Letter::Appended { term, .. }) = letter;
        if term > self.term {
            (self.term, self.voted) = (term, None);
            if !matches!(self.role, Role::Follower) {
                self.follow(now, chance);
            }
        }
        match letter {
            Letter::Vote { end, .. } => {
                let is_free = self.voted.is_none_or(|voted| voted == from);
                if term == self.term && is_free && end >= self.end() && !self.is_behind {
                    self.voted = Some(from);
                    self.due = now + chance.within(ELECTION_MS);
                    post.send(self.place, from, Body::Letter(Letter::Voted { term }));
                }
            }
            Letter::Voted { .. } => {
                if let Role::Candidate { votes } = &mut self.role
                    && term == self.term
                    && !votes.contains(&from)
                {
                    votes.push(from);
                    self.count_votes(now, post);
                }
            }
            Letter::Append {
                front,
                slots,
                commit,
                ..
            } => {
                if term == self.term {
                    self.due = now + chance.within(ELECTION_MS);
                    self.role = Role::Follower;
                    let matched = self.store(front, slots);
                    if let Ok(matched) = matched {
                        self.is_behind &= matched < commit;
                        self.decide(commit.min(matched));
                    }
                    let term = self.term;
                    let letter = Letter::Appended { term, matched };
                    post.send(self.place, from, Body::Letter(letter));
                }
            }
            Letter::Appended { matched, .. } => self.note_matched(now, (from, term), matched, post),
        }
    }

    /// Answers a node's question, now or later.
    pub(crate) fn handle_question(&mut self, ticket: Ticket, question: Question, post: &mut Post) {
        let answer = match question {
            Question::Get { from } => {
                let from = from.max(self.first);
                let entries = (from..=self.last()).take(SLOTS_MAX);
                let entries = entries.map(|at| (at, Arc::clone(&self.stream[at as usize - 1])));
                Answer::Entries(entries.collect())
            }
            _ if !self.is_leader() => return,
            Question::Info => Answer::Info {
                last: self.last(),
                messages: self.last() + 1 - self.first,
            },
            Question::Append { after, .. } if after != self.length() => Answer::Refused,
            Question::Append { entry, .. } => {
                return self.propose(Command::Append(entry), Some(ticket), post);
            }
            Question::Purge { to } => {
                return self.propose(Command::Purge(to), Some(ticket), post);
            }
        };
        post.answer(self.place, ticket, answer);
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let place = self.place;
        (0..self.count).filter(move |other| *other != place)
    }

    fn end(&self) -> (u64, usize) {
        let last = self.log.last().map_or(0, |slot| slot.term);
        (last, self.log.len())
    }

    /// The number of entries in its log, decided or not.
    fn length(&self) -> u64 {
        let open = self.log[self.commit..].iter();
        let open = open.filter(|slot| matches!(slot.command, Command::Append(_)));
        self.last() + open.count() as u64
    }

    fn follow(&mut self, now: u64, chance: &mut Chance) {
        self.role = Role::Follower;
        // Nobody answers what it was asked.
        self.asked.clear();
        self.due = now + chance.within(ELECTION_MS);
    }

    fn count_votes(&mut self, now: u64, post: &mut Post) {
        let Role::Candidate { votes } = &self.role else {
            return;
        };
        if votes.len() <= self.count / 2 {
            return;
        }
        self.role = Role::Leader {
            next: vec![self.log.len(); self.count],
            matched: vec![0; self.count],
            begin: self.log.len(),
            heard: vec![now; self.count],
        };
        self.due = now + BEAT_MS;
        self.propose(Command::Begin, None, post);
    }

    fn propose(&mut self, command: Command, ticket: Option<Ticket>, post: &mut Post) {
        let term = self.term;
        self.log.push(Slot { term, command });
        if let Some(ticket) = ticket {
            self.asked.insert(self.log.len(), ticket);
        }
        self.replicate_all(post);
        self.note_majority(post);
    }

    fn replicate_all(&mut self, post: &mut Post) {
        for to in self.others() {
            self.replicate(to, post);
        }
    }

    fn replicate(&mut self, to: usize, post: &mut Post) {
        let Role::Leader { next, .. } = &mut self.role else {
            return;
        };
        let from = next[to];
        let until = self.log.len().min(from + SLOTS_MAX);
        // Sent without waiting: a follower that lacks slots in front says so.
        next[to] = until;
        let before = from.checked_sub(1).map_or(0, |at| self.log[at].term);
        let letter = Letter::Append {
            term: self.term,
            front: (from, before),
            slots: self.log[from..until].to_vec(),
            commit: self.commit,
        };
        post.send(self.place, to, Body::Letter(letter));
    }

    /// Stores slots behind those in front. Returns how many are as the leader's, or where to try again.
    fn store(&mut self, (front, before): (usize, u64), slots: Vec<Slot>) -> Result<usize, usize> {
        let known = front.checked_sub(1).map_or(Some(0), |at| {
            let slot = self.log.get(at);
            slot.map(|slot| slot.term)
        });
        if known != Some(before) {
            return Err(self.log.len().min(front.saturating_sub(1)));
        }
        let until = front + slots.len();
        for (at, slot) in (front..).zip(slots) {
            if self.log.get(at).is_some_and(|own| own.term != slot.term) {
                assert!(at >= self.commit, "a decided slot is replaced");
                self.log.truncate(at);
            }
            if at == self.log.len() {
                self.log.push(slot);
            }
        }
        Ok(until)
    }

    fn note_matched(
        &mut self,
        now: u64,
        (from, term): (usize, u64),
        matched_now: Result<usize, usize>,
        post: &mut Post,
    ) {
        let length = self.log.len();
        let Role::Leader {
            next,
            matched,
            heard,
            ..
        } = &mut self.role
        else {
            return;
        };
        if term != self.term {
            return;
        }
        heard[from] = now;
        match matched_now {
            Ok(until) => {
                matched[from] = matched[from].max(until);
                if next[from] < length {
                    self.replicate(from, post);
                }
                self.note_majority(post);
            }
            Err(at) => {
                next[from] = at;
                self.replicate(from, post);
            }
        }
    }

    /// Decides what a majority has, of this term.
    fn note_majority(&mut self, post: &mut Post) {
        let Role::Leader { matched, .. } = &mut self.role else {
            return;
        };
        matched[self.place] = self.log.len();
        let mut sorted = matched.clone();
        sorted.sort_unstable();
        let held = sorted[(self.count - 1) / 2];
        let is_own = held > self.commit && self.log[held - 1].term == self.term;
        if !is_own {
            return;
        }
        self.decide(held);
        let later = self.asked.split_off(&(held + 1));
        for (slot, ticket) in std::mem::replace(&mut self.asked, later) {
            let answer = match self.log[slot - 1].command {
                Command::Append(_) => {
                    let behind = self.log[slot..held].iter();
                    let behind = behind.filter(|slot| matches!(slot.command, Command::Append(_)));
                    Answer::Appended(self.last() - behind.count() as u64)
                }
                _ => Answer::Purged,
            };
            post.answer(self.place, ticket, answer);
        }
        // Followers learn of it with the next letter.
        self.replicate_all(post);
    }

    fn decide(&mut self, commit: usize) {
        while self.commit < commit {
            match &self.log[self.commit].command {
                Command::Begin => {}
                Command::Append(entry) => self.stream.push(Arc::clone(entry)),
                Command::Purge(to) => self.first = self.first.max(to + 1),
            }
            self.commit += 1;
        }
    }
}
