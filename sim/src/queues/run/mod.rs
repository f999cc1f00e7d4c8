//! One run: operations for a vhost and for the model, a disk that is behind, and crashes.

mod perform;
mod restart;

pub(super) use restart::client;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_amqp::ReplyCode;
use crosstie_queues::{ChannelKey, ConnectionKey, Position, Record, Time, Vhost};

use super::disk::Disk;
use super::draw::{self, Habits, Last};
use super::model::{Model, ROOM_AFTER_MS};
use super::operation::{Channel, Operation};
use super::recorder::Recorder;
use crate::Chance;
use crate::Failure;

/// Steps that complete any input here at once.
const WHOLE: u32 = 1_000_000;

/// A vhost from a seed.
pub struct VhostSimulation {
    seed: u64,
    chance: Chance,
    habits: Habits,
    last: Last,
    vhost: Vhost<u32>,
    model: Model,
    out: Recorder,
    /// Of one input; the rest is left for later.
    input_steps_max: u32,
    connections: BTreeMap<u32, ConnectionKey>,
    channels: BTreeMap<Channel, ChannelKey>,
    disk: Disk,
    /// The state on the disk, according to the model.
    kept: Model,
    /// Records given to the disk, and not written yet.
    pending: VecDeque<Pending>,
    /// The disk has failed with the inputs up to this one.
    failed: usize,
    log: Vec<String>,
}

/// An input that something of has to survive.
struct Pending {
    input: usize,
    position: Position,
    records: Vec<Record>,
    durable: Model,
}

impl VhostSimulation {
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let habits = Habits::draw(&mut chance);
        // In half of all runs the work of each input is cut into parts; the result is the same.
        let input_steps_max = match seed % 2 {
            0 => WHOLE,
            _ => 1 + chance.below(12) as u32,
        };
        Self {
            seed,
            habits,
            last: Last::default(),
            vhost: restart::vhost(chance.number(), input_steps_max),
            input_steps_max,
            chance,
            model: Model::default(),
            out: Recorder::default(),
            connections: BTreeMap::new(),
            channels: BTreeMap::new(),
            disk: Disk::default(),
            kept: Model::default(),
            pending: VecDeque::new(),
            failed: 0,
            log: Vec::new(),
        }
    }

    /// Does that many operations, lets everyone leave, crashes, and returns the methods and reply codes that occurred.
    pub fn run(mut self, operations: usize) -> Result<BTreeSet<String>, Failure> {
        match self.play(operations) {
            Ok(()) => Ok(self.out.kinds),
            Err(text) => Err(Failure {
                seed: self.seed,
                text,
                log: self.log,
            }),
        }
    }

    fn play(&mut self, operations: usize) -> Result<(), String> {
        for _ in 0..operations {
            let (model, pending) = (&self.model, self.pending.len());
            let (chance, last) = (&mut self.chance, &mut self.last);
            let operation = draw::draw(chance, self.habits, last, model, pending);
            self.step(&operation)?;
            if let Operation::Qos { .. } = operation {
                // Deliveries that a higher limit allows follow its answer. Until then, for each message the model would
                // have to cover both cases.
                let milliseconds = ROOM_AFTER_MS;
                self.step(&Operation::Pass { milliseconds })?;
            }
        }
        while let Some(connection) = self.model.connections.first() {
            let operation = Operation::Disconnect {
                connection: *connection,
            };
            self.step(&operation)?;
        }
        let counts = self.vhost.counts();
        if counts.connections + counts.channels + counts.consumers > 0 {
            return Err(format!("all have left, and there are {counts:?}"));
        }
        let inputs = self.pending.len();
        if inputs > 0 {
            self.step(&Operation::Commit { inputs })?;
        }
        self.step(&Operation::Crash)
    }

    fn step(&mut self, operation: &Operation) -> Result<(), String> {
        self.log.push(format!("{operation:?}"));
        self.model.input += 1;
        let expected = self.model.apply(operation);
        let done = self.perform(operation)?;
        let is_written = !self.vhost.journal().records.is_empty();
        self.work();
        let expected = match (operation, expected) {
            (Operation::TxCommit(from), Ok(())) => self.end_transaction(*from, is_written)?,
            (_, expected) => expected,
        };
        if done != expected {
            return Err(format!("it ended with {done:?}, expected {expected:?}"));
        }
        if let (Err(code), Some(channel)) = (done, operation.channel()) {
            self.end_by_fault(code, channel);
        }
        // Due timers are handled at once.
        let now = Time(self.model.now_ms);
        self.work();
        while self.vhost.next_timeout().is_some_and(|due| due <= now) {
            self.vhost.handle_timeout(now, &mut self.out);
            self.work();
        }
        if let Some(complaint) = self.out.complaint.take() {
            return Err(complaint);
        }
        let has_records = self.take_records();
        self.model.committed = match self.pending.front() {
            Some(pending) => pending.input - 1,
            None => self.model.input,
        };
        self.vhost.flush_confirms(&mut self.out);
        let sent = std::mem::take(&mut self.out.sent);
        self.model.check(sent, self.failed)?;
        // The vhost may have closed some by itself.
        let model = &self.model;
        self.channels
            .retain(|channel, _| model.open(*channel).is_some());
        for found in self.vhost.queues() {
            let queue = self.model.queue(&found.name);
            if queue.is_some_and(|queue| found.messages_ready < queue.ready()) {
                self.model.expire_hidden(&found.name);
            }
        }
        if let Some(pending) = self.pending.back_mut().filter(|_| has_records) {
            pending.durable = self.model.durable(false);
        }
        self.check_counts()
    }

    /// Does the postponed work of an input, in parts of any size.
    fn work(&mut self) {
        let now = Time(self.model.now_ms);
        while self.vhost.has_backlog() {
            let steps_max = self.chance.below(30) as u32;
            self.vhost.work(now, steps_max, &mut self.out);
        }
    }

    /// The model's part of a commit, of which something has to be on the disk or not; how it has to
    /// end.
    fn end_transaction(
        &mut self,
        from: Channel,
        is_written: bool,
    ) -> Result<Result<(), u16>, String> {
        let sent = std::mem::take(&mut self.out.sent);
        let (expected, rest) = self.model.commit(from, sent, is_written)?;
        self.out.sent = rest;
        Ok(expected)
    }

    /// The owner's reaction to a fault: it closes the channel, or the connection.
    fn end_by_fault(&mut self, code: u16, channel: Channel) {
        let now = Time(self.model.now_ms);
        if code == ReplyCode::ChannelError as u16 {
            let connection = channel.connection;
            self.channels
                .retain(|channel, _| channel.connection != connection);
            self.out.refusing.remove(&connection);
            if let Some(key) = self.connections.remove(&connection) {
                self.vhost.close_connection(now, key, &mut self.out);
                self.model.disconnect(connection);
            }
        } else if let Some(key) = self.channels.remove(&channel) {
            self.vhost.close_channel(now, key, &mut self.out);
            self.model.close_channel(channel);
        }
    }

    /// Hands the records of the input to the disk, which writes them later. Returns whether there were any.
    fn take_records(&mut self) -> bool {
        let journal = self.vhost.journal();
        let records = std::mem::take(&mut journal.records);
        let position = journal.position;
        if records.is_empty() {
            return false;
        }
        self.pending.push_back(Pending {
            input: self.model.input,
            position,
            records,
            // Set once the messages are checked.
            durable: Model::default(),
        });
        true
    }

    fn check_counts(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for found in self.vhost.queues() {
            let queue = self.model.queue(&found.name);
            let queue = queue.ok_or_else(|| format!("there is a queue {}", found.name))?;
            let ready = queue.ready();
            let expected = (ready, queue.entries.len() - ready, queue.consumers.len());
            let counts = (
                found.messages_ready,
                found.messages_unacknowledged,
                found.consumers,
            );
            if counts != expected {
                return Err(format!(
                    "{} has {counts:?} messages ready, messages unacknowledged, consumers; \
                     expected {expected:?}: {queue:?}",
                    found.name
                ));
            }
            names.insert(found.name.to_string());
        }
        let mut queues = self.model.queues.iter();
        if let Some(missing) = queues.find(|queue| !names.contains(&queue.name)) {
            return Err(format!("there is no queue {}", missing.name));
        }
        let (kept, expected) = (self.vhost.counts().dead_letters_kept, self.model.letters());
        if kept != expected {
            return Err(format!("{kept} dead letters are kept, expected {expected}"));
        }
        let is_empty = self
            .model
            .queues
            .iter()
            .all(|queue| queue.entries.is_empty() && queue.letters.is_empty());
        let open = self.model.channels.iter();
        let mut transactions = open.filter_map(|open| open.transaction.as_ref());
        let holds_none = transactions.all(|transaction| transaction.publications.is_empty());
        let uncommitted_bytes = self.vhost.uncommitted_bytes();
        if holds_none != (uncommitted_bytes == 0) {
            return Err(format!("{uncommitted_bytes} bytes are not committed"));
        }
        let memory_bytes = self.vhost.memory_bytes();
        if is_empty && self.model.orphans.is_empty() && memory_bytes != 0 {
            return Err(format!("{memory_bytes} bytes of no messages"));
        }
        Ok(())
    }
}
