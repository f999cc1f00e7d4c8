//! One run: three nodes, a log, and faults.

use std::collections::BTreeSet;
use std::mem;

use crosstie_ledger::{Broken, Config, Effect, News, Owner, Release, Role, Sequence};
use crosstie_queues::{Record, Time};

use super::checks::{Ledgers, described};
use super::log::{Arrival, Log};
use super::node::{Node, QUEUES};
use crate::{Chance, Failure};

const NODES: usize = 3;

/// Small, so that all of it happens in a short run.
pub(super) const CONFIG: Config = Config {
    part_bytes_max: 300,
    batch_bytes_max: 1500,
    log_bytes_min: 6000,
    extent_bytes: 0,
    purge_bytes_min: 1500,
    acknowledgement_ms: 200,
    retry_ms: 100,
    ..Config::DEFAULT
};

/// The same, and of a few messages the log alone has most.
pub(super) const DEEP: Config = Config {
    extent_bytes: 400,
    resident_bytes_max: 500,
    long_messages: 2,
    long_body_bytes: 100,
    ..CONFIG
};

/// Three nodes and their log, from a seed.
pub struct LedgerRun {
    seed: u64,
    config: Config,
    chance: Chance,
    now_ms: u64,
    has_faults: bool,
    nodes: Vec<Node>,
    log: Log,
    /// Time, node and incarnation of each message under way.
    arrivals: Vec<(u64, usize, u64, Arrival)>,
    ledgers: Ledgers,
    incarnation: u64,
    message: u64,
    /// The queue of each message.
    queues: Vec<usize>,
    kinds: BTreeSet<String>,
    steps: Vec<String>,
}

impl LedgerRun {
    pub fn new(seed: u64) -> Self {
        let config = if seed.is_multiple_of(2) { CONFIG } else { DEEP };
        Self {
            seed,
            config,
            chance: Chance::new(seed),
            now_ms: 0,
            has_faults: true,
            nodes: (1..=NODES as u64).map(|n| Node::new(n, config)).collect(),
            log: Log::default(),
            arrivals: Vec::new(),
            ledgers: Ledgers::default(),
            incarnation: NODES as u64,
            message: 0,
            queues: vec![0],
            kinds: BTreeSet::new(),
            steps: Vec::new(),
        }
    }

    /// Plays that many steps, and then without faults until all is well; returns the kinds of events that happened.
    pub fn run(mut self, operations: usize) -> Result<BTreeSet<String>, Failure> {
        match self.play(operations) {
            Ok(()) => Ok(self.kinds),
            Err(text) => Err(Failure {
                seed: self.seed,
                text,
                log: self.steps,
            }),
        }
    }

    fn play(&mut self, operations: usize) -> Result<(), String> {
        for _ in 0..operations {
            let place = self.chance.below(NODES);
            self.act(place)?;
            self.now_ms += self.chance.below(12) as u64;
            self.pass()?;
            if self.chance.one_in(25) {
                self.ledgers.check_log(&self.log)?;
            }
        }
        self.has_faults = false;
        for round in 0..2000 {
            self.now_ms += 10;
            self.pass()?;
            for place in 0..NODES {
                self.follow(place, usize::MAX)?;
            }
            let epochs = self.nodes.iter().map(|node| node.ledger.status().epoch);
            let epoch = epochs.max().unwrap_or_default();
            for node in &mut self.nodes {
                node.ledger.handle_rival(Time(self.now_ms), epoch);
            }
            if round % 100 == 50 && !self.has_owner() {
                self.claim(0)?;
            }
            if round % 100 == 99 && !self.has_owner() {
                self.recover(0)?;
            }
        }
        self.check_end()
    }

    fn has_owner(&self) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| node.ledger.role() == Role::Owning)
    }

    /// Checks that all waiting records are committed, all nodes agree, and unconfirmed messages come only from crashed
    /// owners.
    fn check_end(&mut self) -> Result<(), String> {
        let mut owners = self.nodes.iter();
        let owner = owners.find(|node| node.ledger.role() == Role::Owning);
        let owner = owner.ok_or("nobody owns the vhost")?;
        if !owner.ledger.is_settled() || !owner.unconfirmed.is_empty() {
            return Err(format!("{:?} are not confirmed", owner.unconfirmed));
        }
        let expected = described(&owner.ledger, &self.log)?;
        for node in &self.nodes {
            if described(&node.ledger, &self.log)? != expected {
                return Err("a follower has something else".to_owned());
            }
        }
        if self.log.purges > 0 {
            self.kinds.insert("purged".to_owned());
        }
        self.ledgers.check_log(&self.log)
    }

    /// Something happens at a node.
    fn act(&mut self, place: usize) -> Result<(), String> {
        let (choice, count) = (self.chance.below(100), self.chance.below(5));
        let role = self.nodes[place].ledger.role();
        self.steps
            .push(format!("{} node {place} {role:?} {choice}", self.now_ms));
        match (choice, role) {
            (0, _) => {
                self.kinds.insert(format!("crash {role:?}"));
                self.restart(place);
                Ok(())
            }
            (1..6, Role::Following) => self.claim(place),
            (6, Role::Following) => self.recover(place),
            (87, Role::Owning) => {
                let now = Time(self.now_ms);
                self.nodes[place].ledger.release(now, &Release::default());
                self.drain(place)
            }
            (_, Role::Following) => self.follow(place, count),
            (_, Role::Owning) => self.use_vhost(place, choice),
            _ => Ok(()),
        }
    }

    fn restart(&mut self, place: usize) {
        self.incarnation += 1;
        self.nodes[place] = Node::new(self.incarnation, self.config);
    }

    /// A follower reads some entries.
    fn follow(&mut self, place: usize, count: usize) -> Result<(), String> {
        let now = Time(self.now_ms);
        let node = &mut self.nodes[place];
        if node.ledger.role() != Role::Following {
            return Ok(());
        }
        let entries = self.log.behind(node.ledger.status().sequence);
        let is_end = entries.len() <= count;
        for (sequence, entry) in entries.into_iter().take(count) {
            let news = match node.ledger.handle_entry(sequence, &entry) {
                Err(Broken::Missing) => {
                    self.kinds.insert("behind".to_owned());
                    self.restart(place);
                    return Ok(());
                }
                news => news.map_err(|broken| format!("node {place}: {broken}"))?,
            };
            match (news, node.is_shadow) {
                (News::Records(records), true) => {
                    for record in records {
                        node.vhost.restore(now, record);
                    }
                    node.judge_shadow();
                }
                (News::Recovered, true) => {
                    self.restart(place);
                    return Ok(());
                }
                _ => {}
            }
        }
        if is_end && !node.is_shadow {
            node.begin_shadow(now);
        }
        Ok(())
    }

    fn claim(&mut self, place: usize) -> Result<(), String> {
        self.follow(place, usize::MAX)?;
        let node = &mut self.nodes[place];
        let end = node.ledger.check_end(Sequence(self.log.last), None);
        match end {
            Ok(()) if node.is_shadow => {}
            Err(Broken::Unfinished) => {
                self.kinds.insert("unfinished".to_owned());
                return Ok(());
            }
            _ => return Ok(()),
        }
        let owner = Owner {
            node: format!("n{place}").into(),
            address: "".into(),
            incarnation: node.incarnation,
        };
        node.ledger.claim(Time(self.now_ms), &owner, self.seed + 1);
        self.drain(place)
    }

    /// An operator has a log recovered at a node, whichever owns it.
    fn recover(&mut self, place: usize) -> Result<(), String> {
        self.follow(place, usize::MAX)?;
        if self.nodes[place].ledger.role() != Role::Following {
            return Ok(());
        }
        let (now, is_whole) = (Time(self.now_ms), self.chance.one_in(2));
        let name = self.seed + 1 + self.incarnation;
        self.incarnation += 1;
        let node = &mut self.nodes[place];
        super::recovery::begin(node, now, &self.log, (name, is_whole))?;
        self.drain(place)
    }

    /// Ends a recovery: the logs before it are removed.
    fn end_recovery(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        let begun = node.recovers_from.take();
        self.kinds.insert("recovered".to_owned());
        if let Some(begun) = begun
            && begun.0 > 0
            && !(self.has_faults && self.chance.one_in(4))
        {
            let incarnation = self.nodes[place].incarnation;
            let at = self.now_ms + 1 + self.chance.below(60) as u64;
            let purge = Arrival::Purge(begun);
            self.arrivals.push((at, place, incarnation, purge));
        }
        self.restart(place);
    }

    /// The client of an owner does something.
    fn use_vhost(&mut self, place: usize, choice: usize) -> Result<(), String> {
        let now = Time(self.now_ms);
        let queue = self.chance.below(QUEUES.len());
        let name = QUEUES[queue];
        let node = &mut self.nodes[place];
        // Queues that only grow are deep for longer.
        let is_growing = node.config.long_messages < usize::MAX && queue == 0;
        match choice {
            50..80 if is_growing && !choice.is_multiple_of(4) => {}
            80..82 if is_growing && self.chance.one_in(2) => {}
            0..50 => {
                self.message += 1;
                self.queues.push(queue);
                let bytes = if choice == 1 { 900 } else { 20 };
                node.declare(now, name)?;
                node.publish(now, name, self.message, bytes);
            }
            50..80 => {
                node.declare(now, name)?;
                if let Some(taken) = node.take(now, name, choice < 55)? {
                    self.ledgers.gone.insert(taken);
                }
            }
            80..82 => {
                node.declare(now, name)?;
                match choice {
                    80 => node.purge(now, name)?,
                    _ => node.delete(now, name)?,
                }
                let published = (1..=self.message).filter(|n| self.queues[*n as usize] == queue);
                self.ledgers.gone.extend(published);
            }
            82..86 => {
                node.declare(now, name)?;
                node.bind(now, name, QUEUES[choice % 3])?;
            }
            86 => node.delete_exchange(now)?,
            88..90 => node.put_setting(name, choice > 88),
            _ => {}
        }
        self.drain(place)
    }

    /// Handles messages that have arrived by now, and due timers.
    fn pass(&mut self) -> Result<(), String> {
        loop {
            let now_ms = self.now_ms;
            let due = self.arrivals.iter().enumerate();
            let due = due.filter(|(_, (at, ..))| *at <= now_ms);
            let Some((first, _)) = due.min_by_key(|(_, (at, ..))| *at) else {
                break;
            };
            let (_, place, incarnation, arrival) = self.arrivals.swap_remove(first);
            self.arrive(place, incarnation, arrival)?;
        }
        for place in 0..NODES {
            self.nodes[place].ledger.handle_timeout(Time(self.now_ms));
            self.drain(place)?;
            if !self.has_faults || self.chance.one_in(2) {
                self.read_pages(place)?;
            }
        }
        Ok(())
    }

    /// Reads the pages that a node has requested. Entries may have been purged since then.
    fn read_pages(&mut self, place: usize) -> Result<(), String> {
        let node = &mut self.nodes[place];
        if node.read_pages(Time(self.now_ms), &self.log)? {
            self.kinds.insert("paged".to_owned());
            self.drain(place)?;
        }
        Ok(())
    }

    fn arrive(&mut self, place: usize, incarnation: u64, arrival: Arrival) -> Result<(), String> {
        let now = Time(self.now_ms);
        let back = match arrival {
            Arrival::Append { after, entry } => match self.log.append(after, &entry) {
                Some(sequence) => {
                    self.ledgers.note(sequence, &entry)?;
                    Some(Arrival::Appended(sequence))
                }
                None => Some(Arrival::Refused(after)),
            },
            Arrival::Read { after } => Some(Arrival::End {
                after,
                last: Sequence(self.log.last),
                entries: self.log.behind(after),
            }),
            Arrival::Purge(to) => {
                self.log.purge(to);
                Some(Arrival::Purged(to))
            }
            Arrival::Fetch { first, last } => {
                let node = &mut self.nodes[place];
                if node.incarnation == incarnation {
                    node.fetch(now, &self.log, (first, last))?;
                    self.drain(place)?;
                }
                None
            }
            arrival => {
                let node = &mut self.nodes[place];
                if node.incarnation == incarnation {
                    match arrival {
                        Arrival::Appended(sequence) => node.ledger.handle_appended(now, sequence),
                        Arrival::Refused(after) => node.ledger.handle_refused(now, after),
                        Arrival::Purged(to) => node.ledger.handle_purged(now, to),
                        Arrival::End {
                            after,
                            last,
                            entries,
                        } => {
                            let entries = entries.iter().map(|(at, entry)| (*at, &**entry));
                            node.ledger.handle_end(now, (after, last), entries);
                        }
                        _ => {}
                    }
                    self.drain(place)?;
                }
                None
            }
        };
        if let Some(back) = back {
            if matches!(back, Arrival::Refused(_)) && self.has_faults && self.chance.one_in(3) {
                self.send(place, incarnation, back.clone());
            }
            self.send(place, incarnation, back);
        }
        Ok(())
    }

    /// Something is under way, or lost.
    fn send(&mut self, place: usize, incarnation: u64, arrival: Arrival) {
        if self.has_faults && self.chance.one_in(12) {
            return;
        }
        let late = self.has_faults && self.chance.one_in(10);
        let delay = 1 + self.chance.below(if late { 500 } else { 15 }) as u64;
        let at = self.now_ms + delay;
        self.arrivals.push((at, place, incarnation, arrival));
    }

    /// Handles the outputs of an input.
    fn drain(&mut self, place: usize) -> Result<(), String> {
        let now = Time(self.now_ms);
        loop {
            let node = &mut self.nodes[place];
            let incarnation = node.incarnation;
            let journal = node.vhost.journal();
            let (records, position) = (mem::take(&mut journal.records), journal.position);
            if !records.is_empty() {
                self.note_submitted(&records);
                self.nodes[place].ledger.submit(now, records, position);
            }
            let node = &mut self.nodes[place];
            node.vhost.flush_confirms(&mut node.seen);
            let confirmed = mem::take(&mut node.seen.confirmed);
            for (tag, multiple) in confirmed {
                let from = if multiple { 0 } else { tag };
                let rest = node.unconfirmed.split_off(&(tag + 1));
                let mut told = mem::replace(&mut node.unconfirmed, rest);
                let kept = told.split_off(&from);
                node.unconfirmed.extend(told);
                for message in kept.into_values() {
                    let queue = self.queues.get(message as usize).copied();
                    self.ledgers.confirm(message, queue)?;
                    self.kinds.insert("confirmed".to_owned());
                }
            }
            let Some(effect) = node.ledger.next_effect() else {
                if node.ledger.role() == Role::Recovering && node.ledger.is_settled() {
                    self.end_recovery(place);
                }
                return Ok(());
            };
            let name = format!("{effect:?}");
            let name = name.split([' ', '(']).next().unwrap_or_default();
            self.kinds.insert(name.to_owned());
            match effect {
                Effect::Append { after, entry } => {
                    self.send(place, incarnation, Arrival::Append { after, entry });
                }
                Effect::Read { after } => self.send(place, incarnation, Arrival::Read { after }),
                Effect::Purge { to } => self.purge(place, incarnation, to),
                Effect::Fetch { first, last } => {
                    let at = self.now_ms + 1 + self.chance.below(60) as u64;
                    match self.has_faults && self.chance.one_in(4) {
                        true => node.ledger.handle_not_fetched(now),
                        false => {
                            let fetch = Arrival::Fetch { first, last };
                            self.arrivals.push((at, place, incarnation, fetch));
                        }
                    }
                }
                Effect::Owning => {
                    if node.rebuild(now) {
                        self.kinds.insert("deep".to_owned());
                    }
                    self.ledgers.check_owner(node, &self.log)?;
                    node.open(now)?;
                }
                Effect::Committed(position) => node.commit(position, &self.ledgers)?,
                Effect::Deposed | Effect::Released => self.restart(place),
                Effect::Broken(sequence, broken) => {
                    return Err(format!("node {place}, entry {sequence:?}: {broken}"));
                }
            }
        }
    }

    /// A purge is lost sometimes; then it is tried again.
    fn purge(&mut self, place: usize, incarnation: u64, to: Sequence) {
        if self.has_faults && self.chance.one_in(4) {
            self.nodes[place].ledger.handle_not_purged();
            return;
        }
        let at = self.now_ms + 1 + self.chance.below(60) as u64;
        self.arrivals
            .push((at, place, incarnation, Arrival::Purge(to)));
    }

    fn note_submitted(&mut self, records: &[Record]) {
        let is_long = records.len() > 1;
        self.kinds
            .insert(if is_long { "several" } else { "one" }.to_owned());
    }
}
