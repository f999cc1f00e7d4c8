//! A node: a ledger, the connection to one of the servers, and heartbeats, as the broker drives them.

use std::collections::{HashMap, VecDeque};

use crosstie_ledger::{Broken, Config, Effect, Ledger, Release, Role, Sequence};
use crosstie_queues::{Position, QueueId, Record, Time};

use crate::chance::Chance;
use crate::server::{Answer, Entry, Question};
use crate::support::{CONFIG, enqueued, owner};
use crate::world::{Body, Post, Ticket, World};

pub(crate) struct Node {
    pub(crate) place: usize,
    pub(crate) ledger: Ledger,
    /// The log and its length, as on this node's disk.
    pub(crate) known: Option<(u64, Sequence)>,
    pub(crate) term: Option<Term>,
    /// A fault: it claims the vhost, although its owner is heard.
    pub(crate) is_mistaken: bool,
    server: Option<usize>,
    connection: u64,
    reached_at: u64,
    asked: HashMap<u64, Asked>,
    number: u64,
    reading: Option<Reading>,
    claimed_since: Option<u64>,
    /// The entries that its ledger has tried, by their place.
    tried: HashMap<u64, Entry>,
    owner: Option<(Beat, u64)>,
    listening_since: u64,
    ticked_at: u64,
    due: u64,
}

/// A time as owner.
pub(crate) struct Term {
    pub(crate) epoch: u64,
    /// The number of submissions, and of those that are committed.
    pub(crate) submitted: u64,
    committed: u64,
    /// Messages in the queue that no submission in flight has added or removed.
    live: VecDeque<i64>,
    submits_at: u64,
    told_at: u64,
    progress_at: u64,
    pub(crate) hands_over_at: u64,
    is_sealed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Beat {
    epoch: u64,
    /// The owner leaves, and that node may claim the vhost.
    leaves_to: Option<usize>,
}

enum Asked {
    Append { after: Sequence },
    Read,
    Purge { to: Sequence },
    Fetch(Fetch),
}

/// Entries that are read again, and those that have come.
struct Fetch {
    first: Sequence,
    last: Sequence,
    entries: Vec<(u64, Entry)>,
}

struct Reading {
    aim: Aim,
    last: Option<u64>,
    entries: Vec<(u64, Entry)>,
    tries: u32,
    since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    Follow,
    Claim,
    End { after: Sequence },
}

const TICK_MS: u64 = 50;
const BEAT_MS: u64 = 500;
/// As long as an answer is waited for.
const ANSWER_MS: u64 = 5000;
const SILENCE_MS: u64 = 3000;
const LINK_GONE_MS: u64 = 3000;
const STALL_MS: u64 = 30_000;
const CLAIM_MS: u64 = 20_000;
const TRIES_MAX: u32 = 40;
/// Submissions that are not committed; beyond it publishers are blocked.
const OPEN_MAX: u64 = 30;

impl Node {
    pub(crate) fn new(place: usize, now: u64) -> Self {
        Self {
            place,
            ledger: ledger(),
            known: None,
            term: None,
            is_mistaken: false,
            server: None,
            connection: 0,
            reached_at: now,
            asked: HashMap::new(),
            number: 0,
            reading: None,
            claimed_since: None,
            tried: HashMap::new(),
            owner: None,
            listening_since: now,
            ticked_at: now,
            due: now,
        }
    }

    /// Starts again with what is on its disk. A connection of the former process is none of this one.
    pub(crate) fn restart(&mut self, now: u64) {
        let (known, connection) = (self.known, self.connection + 1);
        *self = Self::new(self.place, now);
        (self.known, self.connection) = (known, connection);
    }

    pub(crate) fn due(&self) -> u64 {
        let ledger = self.ledger.next_timeout().map_or(u64::MAX, |due| due.0);
        self.due.min(ledger.max(self.ticked_at + 1))
    }

    pub(crate) fn hear(&mut self, now: u64, beat: Beat) {
        if self.term.is_some() {
            self.ledger.handle_rival(Time(now), beat.epoch);
        } else if self
            .owner
            .as_ref()
            .is_none_or(|(known, _)| known.epoch <= beat.epoch)
        {
            self.owner = Some((beat, now));
        }
    }

    /// Forgets what it has read and what it has tried.
    fn begin_anew(&mut self, now: u64) {
        self.ledger = ledger();
        self.tried.clear();
        self.asked.clear();
        (self.reading, self.claimed_since, self.term) = (None, None, None);
        self.listening_since = now;
    }

    fn attach(&mut self, now: u64, server: usize) {
        self.server = Some(server);
        (self.reached_at, self.listening_since) = (now, now);
        if self.term.is_some() {
            self.ledger.handle_connected(Time(now));
        }
    }

    fn detach(&mut self, now: u64) {
        self.server = None;
        self.connection += 1;
        self.reached_at = now;
        self.asked.clear();
        if self.claimed_since.is_some() {
            self.begin_anew(now);
        }
        if self.reading.take().is_some() {
            self.ledger.handle_unread(Time(now));
        }
        self.ledger.handle_not_fetched(Time(now));
    }

    fn is_to_claim(&mut self, now: u64) -> bool {
        if std::mem::take(&mut self.is_mistaken) {
            return true;
        }
        let Some((beat, at)) = &self.owner else {
            return now >= self.listening_since + SILENCE_MS;
        };
        let silent_for = now - (*at).max(self.listening_since);
        match beat.leaves_to {
            Some(to) if to == self.place => true,
            _ => silent_for >= SILENCE_MS + 100 * self.place as u64,
        }
    }

    /// The next submission: one new message, whose number follows the one before it; it may replace others.
    fn submit(&mut self, now: u64, chance: &mut Chance) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.submitted += 1;
        let mut records = vec![enqueued(
            message(term.epoch, term.submitted),
            chance.within(0..150) as usize,
        )];
        let crowd = term.live.len() as u64;
        let gone = if crowd > 20 { 2 } else { chance.within(0..2) };
        for _ in 0..gone.min(crowd) {
            let at = chance.within(0..term.live.len() as u64) as usize;
            let place = term.live.remove(at).unwrap_or_default();
            records.push(Record::dequeued(QueueId(1), place));
        }
        if chance.percent(10) {
            let key = format!("s{}", chance.within(0..4));
            let value = (!chance.percent(30)).then(|| term.submitted.to_string().into());
            let key = key.into();
            records.push(Record::Setting { key, value });
        }
        let position = Position(term.submitted);
        self.ledger.submit(Time(now), records, position);
    }

    fn note_known(&mut self) {
        let status = self.ledger.status();
        let (log, sequence) = self.known.unwrap_or((status.log, status.sequence));
        if status.log != 0 && log == status.log {
            self.known = Some((log, sequence.max(status.sequence)));
        }
    }
}

/// Of a few messages the log alone has most.
pub(crate) const DEEP: Config = Config {
    extent_bytes: 300,
    resident_bytes_max: 300,
    long_messages: 3,
    long_body_bytes: 400,
    crowded_messages: 1,
    crowded_body_bytes: 100,
    ..CONFIG
};

/// How long the memory of a node stays crowded; it is for a third of the time.
const CROWDED_MS: u64 = 2_000;

/// A ledger with two appends in flight.
fn ledger() -> Ledger {
    let mut ledger = Ledger::new(DEEP);
    ledger.limit_appends(usize::MAX);
    ledger
}

/// The place of the message with that number in its owner's term.
pub(crate) fn message(epoch: u64, number: u64) -> i64 {
    ((epoch << 32) | number).cast_signed()
}

impl World {
    pub(crate) fn tick(&mut self, place: usize, post: &mut Post) {
        let now = self.now;
        self.nodes[place].ticked_at = now;
        self.nodes[place].due = now + TICK_MS;
        self.connect(place);
        let node = &mut self.nodes[place];
        node.ledger
            .set_crowded((now / CROWDED_MS + place as u64).is_multiple_of(3));
        node.ledger.handle_timeout(Time(now));
        if let Some(reading) = &node.reading
            && now >= reading.since + ANSWER_MS
        {
            node.reading = None;
            node.ledger.handle_unread(Time(now));
        }
        match node.term {
            Some(_) => self.serve(place, post),
            None => self.stand_by(place, post),
        }
        self.act(place, post);
    }

    pub(crate) fn answered(
        &mut self,
        place: usize,
        ticket: Ticket,
        answer: Answer,
        post: &mut Post,
    ) {
        let now = Time(self.now);
        let node = &mut self.nodes[place];
        if !self.machines[place].is_node_up || ticket.connection != node.connection {
            return;
        }
        match (node.asked.remove(&ticket.number), answer) {
            (Some(Asked::Append { after }), Answer::Appended(sequence)) => {
                assert_eq!(sequence, after.0 + 1, "appended at another place");
                node.ledger.handle_appended(now, Sequence(sequence));
            }
            (Some(Asked::Append { after }), Answer::Refused) => {
                self.oracle.refused += 1;
                node.ledger.handle_refused(now, after);
            }
            (Some(Asked::Fetch(fetch)), Answer::Entries(entries)) => {
                self.fetched(place, fetch, entries, post);
            }
            (Some(Asked::Purge { to }), Answer::Purged) => node.ledger.handle_purged(now, to),
            (Some(Asked::Read), Answer::Info { last, messages }) => {
                if let Some(reading) = &mut node.reading {
                    reading.last = Some(last);
                    if messages == 0 {
                        reading.tries = TRIES_MAX;
                    }
                    self.read_on(place, post);
                }
            }
            (Some(Asked::Read), Answer::Entries(entries)) => {
                if let Some(reading) = &mut node.reading {
                    reading.tries += u32::from(entries.is_empty());
                    reading.entries.extend(entries);
                    self.read_on(place, post);
                }
            }
            _ => {}
        }
        self.act(place, post);
    }

    /// Carries out the ledger's effects.
    pub(crate) fn act(&mut self, place: usize, post: &mut Post) {
        while let Some(effect) = self.nodes[place].ledger.next_effect() {
            let now = self.now;
            match effect {
                Effect::Append { after, entry } => {
                    let tried = self.nodes[place].tried.insert(after.0, entry.clone());
                    let is_same = tried.is_none_or(|tried| tried == entry);
                    assert!(is_same, "a place is tried with two entries");
                    let asked = Asked::Append { after };
                    let after = after.0;
                    self.ask(place, asked, Question::Append { after, entry }, post);
                }
                Effect::Read { after } => {
                    self.oracle.reads += 1;
                    self.read(place, Aim::End { after }, post);
                }
                Effect::Purge { to } => {
                    let purge = Question::Purge { to: to.0 };
                    if !self.ask(place, Asked::Purge { to }, purge, post) {
                        self.nodes[place].ledger.handle_not_purged();
                    }
                }
                Effect::Fetch { first, last } => {
                    let entries = Vec::new();
                    self.fetch(
                        place,
                        Fetch {
                            first,
                            last,
                            entries,
                        },
                        post,
                    );
                }
                Effect::Owning => self.own(place),
                Effect::Committed(Position(position)) => {
                    let node = &mut self.nodes[place];
                    node.note_known();
                    if let Some(term) = &mut node.term {
                        term.progress_at = now;
                        for number in term.committed + 1..=position {
                            term.live.push_back(message(term.epoch, number));
                        }
                        term.committed = position;
                        self.oracle.confirm(term.epoch, position);
                    }
                }
                Effect::Released => {
                    let to = self.chance.within(0..self.nodes.len() as u64) as usize;
                    self.tell(place, Some(to), post);
                    self.oracle.handed += 1;
                    self.nodes[place].begin_anew(now);
                }
                Effect::Deposed => {
                    self.oracle.deposed += u64::from(self.nodes[place].term.is_some());
                    self.nodes[place].begin_anew(now);
                }
                Effect::Broken(at, broken) => panic!("node {place}: entry {}: {broken}", at.0),
            }
        }
    }

    /// Keeps the connection to a server, or finds another one. A server that ended has closed its connections; one that
    /// is cut off is silent.
    fn connect(&mut self, place: usize) {
        let now = self.now;
        match self.nodes[place].server {
            Some(server) if self.reaches_server(place, server) => {
                self.nodes[place].reached_at = now;
            }
            Some(server) => {
                let is_closed = self.reaches(place, server);
                let node = &mut self.nodes[place];
                if is_closed || now >= node.reached_at + SILENCE_MS {
                    node.detach(now);
                }
            }
            None => {
                let there = (0..self.servers.len()).filter(|at| self.reaches_server(place, *at));
                let there: Vec<_> = there.collect();
                if let Some(server) = self.chance.one_of(&there) {
                    self.nodes[place].attach(now, server);
                }
            }
        }
    }

    fn stand_by(&mut self, place: usize, post: &mut Post) {
        let now = self.now;
        let node = &mut self.nodes[place];
        if let Some(since) = node.claimed_since {
            if now >= since + CLAIM_MS {
                node.begin_anew(now);
            }
            return;
        }
        if node.server.is_none() || node.reading.is_some() {
            return;
        }
        let aim = match node.is_to_claim(now) {
            true => Aim::Claim,
            false => Aim::Follow,
        };
        self.read(place, aim, post);
    }

    fn serve(&mut self, place: usize, post: &mut Post) {
        let now = self.now;
        let node = &mut self.nodes[place];
        let Some(term) = &mut node.term else {
            return;
        };
        if node.ledger.is_settled() {
            term.progress_at = now;
        }
        let is_cut = node.server.is_none() && now >= node.reached_at + LINK_GONE_MS;
        if is_cut || now >= term.progress_at + STALL_MS {
            node.begin_anew(now);
            return;
        }
        term.is_sealed |= now >= term.hands_over_at;
        if term.is_sealed {
            node.ledger.release(Time(now), &Release::default());
        } else if now >= term.submits_at {
            term.submits_at = now + self.chance.within(1..60);
            let bunch = self.chance.within(1..4);
            for _ in 0..bunch {
                let term = self.nodes[place].term.as_ref();
                if term.is_some_and(|term| term.submitted < term.committed + OPEN_MAX) {
                    self.nodes[place].submit(now, &mut self.chance);
                }
            }
        }
        let told = self.nodes[place]
            .term
            .as_mut()
            .map(|term| &mut term.told_at);
        if let Some(told_at) = told
            && now >= *told_at + BEAT_MS
        {
            *told_at = now;
            self.tell(place, None, post);
        }
    }

    /// Asks for entries again.
    fn fetch(&mut self, place: usize, fetch: Fetch, post: &mut Post) {
        let taken = fetch.entries.last().map_or(0, |(at, _)| *at);
        let from = fetch.first.0.max(taken + 1);
        if !self.ask(place, Asked::Fetch(fetch), Question::Get { from }, post) {
            let now = Time(self.now);
            self.nodes[place].ledger.handle_not_fetched(now);
        }
    }

    fn fetched(
        &mut self,
        place: usize,
        mut fetch: Fetch,
        entries: Vec<(u64, Entry)>,
        post: &mut Post,
    ) {
        let now = Time(self.now);
        let ledger = &mut self.nodes[place].ledger;
        let before = fetch.entries.len();
        let within = entries.into_iter().filter(|(at, _)| *at <= fetch.last.0);
        fetch.entries.extend(within);
        // The server has fewer entries than others, or purged these for a former owner.
        // What is purged at the front is missing.
        let front = fetch.entries.first().map_or(fetch.first.0, |(at, _)| *at);
        fetch.first = Sequence(front);
        let expected = (front..).take(fetch.entries.len());
        let is_gapless = expected.eq(fetch.entries.iter().map(|(at, _)| *at));
        if fetch.entries.len() == before || !is_gapless {
            return ledger.handle_not_fetched(now);
        }
        if fetch.first.0 + (fetch.entries.len() as u64) <= fetch.last.0 {
            return self.fetch(place, fetch, post);
        }
        let entries = fetch.entries.iter();
        let entries = entries.map(|(at, entry)| (Sequence(*at), &**entry));
        if let Err(broken) = ledger.handle_fetched(now, entries) {
            panic!("node {place}: entries from {:?} on: {broken}", fetch.first);
        }
        self.oracle.fetched += 1;
    }

    /// The node owns the vhost: it has the records that the log has.
    fn own(&mut self, place: usize) {
        let now = self.now;
        let node = &mut self.nodes[place];
        node.claimed_since = None;
        node.note_known();
        let epoch = node.ledger.status().epoch;
        let records = self.oracle.records(&self.servers, &node.ledger);
        let live = records.iter().filter_map(|record| match record {
            Record::Enqueued { place, .. } => Some(*place),
            _ => None,
        });
        let stays = self.chance.percent(70);
        let stays_for = self.chance.within(1000..15_000);
        node.term = Some(Term {
            epoch,
            submitted: 0,
            committed: 0,
            live: live.collect(),
            submits_at: now,
            told_at: 0,
            progress_at: now,
            hands_over_at: if stays { u64::MAX } else { now + stays_for },
            is_sealed: false,
        });
        self.oracle.own(&self.servers, &self.nodes[place].ledger);
    }

    /// Sends a heartbeat to the nodes whose servers this node's server reaches.
    fn tell(&self, place: usize, leaves_to: Option<usize>, post: &mut Post) {
        let epoch = self.nodes[place].ledger.status().epoch;
        for to in 0..self.nodes.len() {
            let ends = (self.nodes[place].server, self.nodes[to].server);
            if let (Some(near), Some(far)) = ends
                && to != place
                && self.reaches(place, near)
                && self.reaches(near, far)
            {
                post.send(place, to, Body::Beat(Beat { epoch, leaves_to }));
            }
        }
    }

    fn read(&mut self, place: usize, aim: Aim, post: &mut Post) {
        self.nodes[place].reading = Some(Reading {
            aim,
            last: None,
            entries: Vec::new(),
            tries: 0,
            since: self.now,
        });
        match aim {
            Aim::Follow => self.read_on(place, post),
            _ => {
                self.ask(place, Asked::Read, Question::Info, post);
            }
        }
    }

    /// Asks for the next entries, or ends the reading.
    fn read_on(&mut self, place: usize, post: &mut Post) {
        let now = self.now;
        let node = &mut self.nodes[place];
        let Some(reading) = &mut node.reading else {
            return;
        };
        if let Aim::End { after } = reading.aim {
            let reached = reading.entries.last().map_or(after.0, |(at, _)| *at);
            match reading.last {
                Some(last) if reached >= last || reading.tries >= TRIES_MAX => {
                    let entries = std::mem::take(&mut reading.entries);
                    node.reading = None;
                    if reached < last || last < after.0 {
                        return node.ledger.handle_unread(Time(now));
                    }
                    let entries = entries.iter().map(|(at, entry)| (Sequence(*at), &**entry));
                    let end = (after, Sequence(last));
                    node.ledger.handle_end(Time(now), end, entries);
                }
                _ => {
                    let from = reached + 1;
                    self.ask(place, Asked::Read, Question::Get { from }, post);
                }
            }
            return;
        }
        let is_first = reading.entries.is_empty() && reading.tries == 0;
        for (at, entry) in std::mem::take(&mut reading.entries) {
            match node.ledger.handle_entry(Sequence(at), &entry) {
                Ok(_) => {}
                // The log was purged meanwhile, and is read from its beginning.
                Err(Broken::Missing) if node.ledger.status().sequence.0 > 0 => {
                    return node.begin_anew(now);
                }
                Err(broken) => panic!("node {place} cannot read entry {at}: {broken}"),
            }
        }
        node.note_known();
        let reached = node.ledger.status().sequence.0;
        let Some(reading) = &mut node.reading else {
            return;
        };
        let is_over = match reading.last {
            Some(last) => reached >= last || reading.tries >= TRIES_MAX,
            None => !is_first,
        };
        if !is_over {
            let from = reached + 1;
            self.ask(place, Asked::Read, Question::Get { from }, post);
            return;
        }
        let last = reading.last;
        node.reading = None;
        if let Some(last) = last {
            self.claim(place, last);
        }
    }

    /// Claims the vhost after the log was read to its end, unless its owner has been heard meanwhile.
    fn claim(&mut self, place: usize, last: u64) {
        let now = self.now;
        let syncs = self.syncs(place);
        let node = &mut self.nodes[place];
        match node.ledger.check_end(Sequence(last), node.known) {
            Ok(()) if syncs && node.ledger.role() == Role::Following => {
                self.oracle.claims += 1;
                node.claimed_since = Some(now);
                let log = self.chance.within(1..u64::MAX);
                let name = format!("node{place}");
                node.ledger.claim(Time(now), &owner(&name), log);
            }
            // A former leader may report an older end for a while.
            Ok(()) | Err(Broken::Shorter | Broken::Missing) => node.listening_since = now,
            Err(broken) => panic!("node {place}: the log to entry {last}: {broken}"),
        }
    }

    /// Asks the server that answers: the leader as far as the node's own server knows, or any. Returns whether there is
    /// one.
    fn ask(&mut self, place: usize, asked: Asked, question: Question, post: &mut Post) -> bool {
        let node = &mut self.nodes[place];
        node.number += 1;
        let ticket = Ticket {
            node: place,
            connection: node.connection,
            number: node.number,
        };
        node.asked.insert(ticket.number, asked);
        let Some(near) = node.server.filter(|near| self.reaches_server(place, *near)) else {
            return false;
        };
        let is_any = matches!(question, Question::Get { .. });
        let there = self.servers.iter().filter(|server| {
            self.reaches_server(near, server.place) && (is_any || server.is_leader())
        });
        let there: Vec<_> = there.map(|server| server.place).collect();
        let Some(to) = self.chance.one_of(&there) else {
            return false;
        };
        post.send(place, to, Body::Asked(ticket, question));
        true
    }
}
