//! Delayed messages simulated from a seed: none comes early, none is lost, and none comes again, whatever becomes of the
//! clock, the store and the exchange.
//!
//! At every commit a vhost is restored from the disk, at a time before or after the present one. It must have what the
//! model had then, and send all of it once the time has come.

mod node;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::node::{Habits, Node};
use super::disk::Disk;
use super::recorder::Sent;
use crate::{Chance, Failure};

const EXCHANGES: [&str; 3] = ["x0", "x1", "x2"];

/// After it everything is due.
const END_MS: u64 = 1 << 34;

/// A vhost that delays, from a seed.
pub struct DelaySimulation {
    seed: u64,
    chance: Chance,
    habits: Habits,
    node: Node,
    model: Model,
    /// As it was on the disk, and after each of the inputs that are not.
    kept: Model,
    pending: VecDeque<Model>,
    /// By the number of their confirm: publications that wait.
    unconfirmed: BTreeMap<u64, u64>,
    last_message: u64,
    published: u64,
    kinds: BTreeSet<String>,
    log: Vec<String>,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    exchanges: BTreeSet<&'static str>,
    /// By message: the exchange that holds it, and when it is due.
    delayed: BTreeMap<u64, (&'static str, u64)>,
    ready: BTreeSet<u64>,
}

impl Model {
    fn pass(&mut self, now_ms: u64) {
        let due = self.delayed.extract_if(.., |_, (_, due)| *due <= now_ms);
        self.ready.extend(due.map(|(message, _)| message));
    }

    fn forget(&mut self, message: u64) {
        self.delayed.remove(&message);
        self.ready.remove(&message);
    }

    fn has(&self, message: u64) -> bool {
        self.delayed.contains_key(&message) || self.ready.contains(&message)
    }

    fn check(&self, node: &Node) -> Result<(), String> {
        let expected = (self.delayed.len(), self.ready.len());
        match node.counts() {
            counts if counts == expected => Ok(()),
            counts => Err(format!(
                "{counts:?} delayed and ready at {}, expected {expected:?}: {self:?}",
                node.now_ms
            )),
        }
    }
}

impl DelaySimulation {
    pub fn new(seed: u64) -> Result<Self, Failure> {
        let mut chance = Chance::new(seed);
        let habits = Habits {
            is_deep: chance.one_in(2),
            input_steps_max: match chance.one_in(2) {
                true => 1_000_000,
                false => 1 + chance.below(12) as u32,
            },
        };
        let now_ms = 1_700_000_000_000 + chance.below(100_000) as u64;
        let node = Node::start(Disk::default(), now_ms, habits, &mut chance);
        let node = node.map_err(|text| Failure {
            seed,
            text,
            log: Vec::new(),
        })?;
        let pending = node.pending.iter().map(|_| Model::default()).collect();
        Ok(Self {
            seed,
            chance,
            habits,
            node,
            model: Model::default(),
            kept: Model::default(),
            pending,
            unconfirmed: BTreeMap::new(),
            last_message: 0,
            published: 0,
            kinds: BTreeSet::new(),
            log: Vec::new(),
        })
    }

    /// Does that many operations; returns what occurred.
    pub fn run(mut self, operations: usize) -> Result<BTreeSet<String>, Failure> {
        let played = (0..operations)
            .try_for_each(|_| self.step())
            .and_then(|()| self.crash());
        match played {
            Ok(()) => Ok(self.kinds),
            Err(text) => Err(Failure {
                seed: self.seed,
                text,
                log: self.log,
            }),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.chance.below(100) {
            0..45 => self.publish()?,
            45..60 => self.pass()?,
            60..64 => self.declare_or_delete()?,
            64..74 => self.get()?,
            74..94 => self.commit()?,
            94..97 => self.fail()?,
            _ => return self.crash(),
        }
        self.end_input();
        self.model.check(&self.node)
    }

    fn note(&mut self, kind: &str, what: String) {
        self.kinds.insert(kind.to_owned());
        self.log.push(format!("{kind} {what}"));
    }

    /// A time from milliseconds to weeks.
    fn draw_ms(&mut self) -> u64 {
        let bits = self.chance.below(33);
        self.chance.number() % (1 << bits)
    }

    fn publish(&mut self) -> Result<(), String> {
        let exchange = self.chance.pick(&EXCHANGES);
        if !self.model.exchanges.contains(exchange) {
            return self.declare(exchange);
        }
        let delay_ms = self.draw_ms();
        self.last_message += 1;
        self.published += 1;
        let message = self.last_message;
        self.note(
            "publish",
            format!("{message} to {exchange}, due in {delay_ms}"),
        );
        self.unconfirmed.insert(self.published, message);
        let due = self.node.now_ms + delay_ms;
        self.model.delayed.insert(message, (exchange, due));
        self.node.publish(exchange, message, delay_ms as u32)?;
        self.node.settle(&mut self.chance)?;
        self.model.pass(self.node.now_ms);
        Ok(())
    }

    fn pass(&mut self) -> Result<(), String> {
        self.node.now_ms += self.draw_ms();
        self.note("pass", format!("to {}", self.node.now_ms));
        self.node.settle(&mut self.chance)?;
        self.model.pass(self.node.now_ms);
        Ok(())
    }

    fn declare(&mut self, exchange: &'static str) -> Result<(), String> {
        self.note("declare", exchange.to_owned());
        self.node.declare(exchange)?;
        self.model.exchanges.insert(exchange);
        self.node.settle(&mut self.chance)
    }

    fn declare_or_delete(&mut self) -> Result<(), String> {
        let exchange = self.chance.pick(&EXCHANGES);
        if !self.model.exchanges.remove(exchange) {
            return self.declare(exchange);
        }
        self.note("delete", exchange.to_owned());
        self.node.delete(exchange)?;
        self.model.delayed.retain(|_, (of, _)| *of != exchange);
        self.node.settle(&mut self.chance)
    }

    fn get(&mut self) -> Result<(), String> {
        let message = self.node.get(&mut self.chance)?;
        self.note("get", format!("{message:?}"));
        match message {
            Some(message) if self.model.ready.remove(&message) => Ok(()),
            None if self.model.ready.is_empty() => Ok(()),
            _ => Err(format!("{message:?} of {:?}", self.model.ready)),
        }
    }

    fn commit(&mut self) -> Result<(), String> {
        if self.node.pending.is_empty() {
            return Ok(());
        }
        self.note("commit", String::new());
        self.kept = self.pending.pop_front().unwrap_or_default();
        self.node.commit(&mut self.chance)?;
        self.take_confirms(false)?;
        self.check_restart()
    }

    /// The store fails: what waits for it is refused, and must not come any more.
    fn fail(&mut self) -> Result<(), String> {
        if self.node.pending.is_empty() {
            return Ok(());
        }
        self.note("fail", String::new());
        self.node.fail(&mut self.chance)?;
        self.take_confirms(true)?;
        self.pending = VecDeque::from([self.model.clone()]);
        Ok(())
    }

    /// Everything but the disk is lost, and the clock may be another one.
    fn crash(&mut self) -> Result<(), String> {
        let now_ms = self.draw_restart_ms();
        self.note(
            "crash",
            format!("at {}, and a start at {now_ms}", self.node.now_ms),
        );
        let disk = self.node.disk.clone();
        self.node = Node::start(disk, now_ms, self.habits, &mut self.chance)?;
        self.model = self.kept.clone();
        self.model.pass(now_ms);
        self.unconfirmed.clear();
        self.published = 0;
        self.pending.clear();
        self.end_input();
        self.model.check(&self.node)
    }

    /// The clock is set back a little, or far ahead.
    fn draw_restart_ms(&mut self) -> u64 {
        let now_ms = self.node.now_ms;
        match self.chance.below(3) {
            0 => now_ms,
            1 => now_ms - self.chance.below(100_000) as u64,
            _ => now_ms + self.draw_ms(),
        }
    }

    /// The model of the inputs whose records are not on the disk.
    fn end_input(&mut self) {
        if self.pending.len() < self.node.pending.len() {
            self.pending
                .resize(self.node.pending.len(), self.model.clone());
        }
    }

    fn take_confirms(&mut self, has_failed: bool) -> Result<(), String> {
        for (_, sent) in std::mem::take(&mut self.node.out.sent) {
            let Sent::Confirm {
                tag,
                multiple,
                is_ack,
            } = sent
            else {
                continue;
            };
            let mut meant = self.unconfirmed.split_off(&if multiple { 0 } else { tag });
            let mut behind = meant.split_off(&(tag + 1));
            self.unconfirmed.append(&mut behind);
            for message in meant.into_values() {
                let is_there = self.model.has(message);
                match is_ack {
                    true if is_there && !self.kept.has(message) => {
                        return Err(format!("{message} is confirmed before it is kept"));
                    }
                    true => {}
                    false if !has_failed => {
                        return Err(format!("{message} is refused without reason"));
                    }
                    false => {
                        self.kinds.insert("refused".to_owned());
                        self.model.forget(message);
                    }
                }
            }
        }
        Ok(())
    }

    /// A vhost that is restored from the disk has what was kept, and sends all of it in the end.
    fn check_restart(&mut self) -> Result<(), String> {
        let now_ms = self.draw_restart_ms();
        let disk = self.node.disk.clone();
        let chance = &mut self.chance;
        let mut node = Node::start(disk, now_ms, self.habits, chance)?;
        let mut expected = self.kept.clone();
        let at_start = |text| format!("restored at {now_ms}: {text}");
        for jump_ms in [0, chance.below(1 << 20) as u64, END_MS] {
            node.now_ms += jump_ms;
            node.settle(chance)?;
            while !node.pending.is_empty() {
                node.commit(chance)?;
            }
            expected.pass(node.now_ms);
            expected.check(&node).map_err(at_start)?;
        }
        while let Some(message) = node.get(chance)? {
            if !expected.ready.remove(&message) {
                return Err(at_start(format!("{message} comes, or comes again")));
            }
        }
        match expected.ready.is_empty() {
            true => Ok(()),
            false => Err(at_start(format!("{:?} do not come", expected.ready))),
        }
    }
}
