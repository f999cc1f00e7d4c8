//! A member's own messages: its presence, and barriers.

use crosstie_routing::Time;
use crosstie_wamp::Serializer;

use super::{JOINING_MS, Member, State, To};
use crate::engine::Engine;
use crate::fields::{self, Field};
use crate::pair::Cause;
use crate::{Head, Kind, Versions};

/// Time after which a node that does not answer is mute. Longer than that of suspicion, as a question may have to wait.
const MUTE_AFTER_MS: u64 = 5_000;

/// The version of frames that every node accepts.
const PRESENCE_VERSION: u8 = 1;

/// Minimum time between two answers to hellos.
const GREETING_MS: u64 = 20;

impl Member {
    /// Continues to send subscriptions to a new connection; then sends hello, and is attached some time later.
    pub(super) fn say_rest(&mut self, now: Time, engine: &mut dyn Engine) {
        let Some(joined) = self.joined else {
            if self.interests.say_some(engine) {
                self.joined = Some(now);
                self.beat = now;
                self.say(Kind::Hello, To::All, None, engine);
                self.ping(now, engine);
            }
            return;
        };
        if joined.after_ms(JOINING_MS) <= now && !self.barriers.has_pings() {
            self.state = State::Attached;
            self.begin_barrier(now, engine);
            return;
        }
        // Two nodes that start at once miss each other's first hello, as their servers do not know the subscriptions
        // yet.
        self.say(Kind::Hello, To::All, None, engine);
    }

    /// Begins a barrier if one is wanted and none is in progress.
    pub(super) fn begin_barrier(&mut self, now: Time, engine: &mut dyn Engine) {
        if self.state != State::Attached || !self.barriers.may_begin() {
            return;
        }
        let asked = self.neighbours.one_per_server(&self.server);
        let number = self.barriers.begin(now, asked.values().copied());
        let asked: Vec<_> = asked.into_values().collect();
        if !asked.is_empty() {
            self.say(Kind::Barrier, To::All, Some((number, &asked)), engine);
        }
        engine.ping();
    }

    /// Stops waiting for nodes that are alive and do not answer: a barrier, or a realm's question in a pair. Calls with
    /// them end.
    pub(super) fn leave_mute(&mut self, now: Time, engine: &mut dyn Engine) {
        let mut mute = self.barriers.give_up_on(MUTE_AFTER_MS);
        let read = self.barriers.read();
        mute.extend(self.neighbours.unanswering(read, MUTE_AFTER_MS));
        if mute.is_empty() {
            return;
        }
        for incarnation in mute {
            // It was asked before its present connection opened, and has not received the question.
            let found = self.neighbours.find(incarnation);
            if found.is_some_and(|asked| !asked.could_answer(now, MUTE_AFTER_MS)) {
                continue;
            }
            self.end_pair(incarnation, Cause::Mute);
            if let Some(neighbour) = self.neighbours.find(incarnation) {
                neighbour.note_mute(now);
            }
        }
        self.settle_barrier(now, engine);
    }

    /// Answers a hello: at once, or together with others at about that time. Each answer names all nodes.
    pub(super) fn greet(&mut self, now: Time, to: u64, engine: &mut dyn Engine) {
        if self.greeted.after_ms(GREETING_MS) > now {
            self.has_greetings = true;
            return;
        }
        self.greeted = now;
        self.say(Kind::Heartbeat, To::Node(to), None, engine);
    }

    /// Asks other nodes if the asked ones do not answer.
    pub(super) fn repeat_barrier(&mut self, now: Time, engine: &mut dyn Engine) {
        let neighbours = &self.neighbours;
        let is_active = |incarnation| neighbours.is_active(incarnation);
        if !self.barriers.is_overdue(now, is_active) {
            return;
        }
        let asked = neighbours.one_per_server(&self.server);
        let number = self.barriers.repeat(now, asked.values().copied());
        let asked: Vec<_> = asked.into_values().collect();
        if !asked.is_empty() {
            self.say(Kind::Barrier, To::All, Some((number, &asked)), engine);
        }
        self.settle_barrier(now, engine);
    }

    pub(super) fn settle_barrier(&mut self, now: Time, engine: &mut dyn Engine) {
        if let Some(begun) = self.barriers.settle() {
            self.counts.barriers += 1;
            self.counts.barrier_us += now.0.saturating_sub(begun.0);
            self.begin_barrier(now, engine);
        }
    }

    pub(super) fn ping(&mut self, now: Time, engine: &mut dyn Engine) {
        self.barriers.note_ping(now);
        engine.ping();
    }

    /// The time up to which messages of other nodes can be missed. A connected node first reads what waits for it: it may
    /// have been starved of processor time. If it did not run for so long that others suspect it, calls with them have
    /// ended.
    pub(super) fn heard_to(&self, now: Time, ran: bool) -> Time {
        match self.state {
            State::Joining | State::Attached if ran => self.barriers.read(),
            _ => now,
        }
    }

    /// Probes nodes that have missed a heartbeat: their answer comes from the thread that reads, whatever delays their
    /// timer. A ping shows whether the answers have been read.
    pub(super) fn probe_silent(&mut self, now: Time, engine: &mut dyn Engine) {
        let (probed, is_silent) = self.neighbours.silent(now);
        for incarnation in probed {
            self.say(Kind::Hello, To::Node(incarnation), None, engine);
        }
        let is_overdue = is_silent
            || self.barriers.is_late(now, MUTE_AFTER_MS)
            || !self.neighbours.unanswering(now, MUTE_AFTER_MS).is_empty();
        if is_overdue && !self.barriers.has_pings() {
            self.ping(now, engine);
        }
    }

    /// Sends a frame that is not an event; a barrier has a number and names the asked nodes.
    pub(super) fn say(
        &mut self,
        kind: Kind,
        to: To,
        barrier: Option<(u64, &[u64])>,
        engine: &mut dyn Engine,
    ) {
        let head = self.head(kind);
        let frame = &mut self.frame;
        frame.clear();
        head.write(frame);
        if matches!(kind, Kind::Hello | Kind::Heartbeat) {
            fields::put(Field::Node, self.options.node.as_bytes(), frame);
            fields::put(Field::Server, self.server.as_bytes(), frame);
            let said = self.neighbours.all().flat_map(|(incarnation, neighbour)| {
                let (side, said) = neighbour.pair.said();
                [incarnation, side, said]
            });
            let said: Vec<_> = said.flat_map(u64::to_be_bytes).collect();
            fields::put(Field::Said, &said, frame);
            let Versions { first, last } = self.options.versions;
            fields::put(Field::Versions, &[first, last], frame);
            let strangers = self.neighbours.all().filter(|(_, other)| other.is_refused);
            let strangers = strangers.flat_map(|(incarnation, _)| incarnation.to_be_bytes());
            let strangers: Vec<_> = strangers.collect();
            if !strangers.is_empty() {
                fields::put(Field::Strangers, &strangers, frame);
            }
        }
        if let Some((number, asked)) = barrier {
            let asked: Vec<_> = asked.iter().flat_map(|asked| asked.to_be_bytes()).collect();
            fields::put(Field::Number, &number.to_be_bytes(), frame);
            fields::put(Field::Asked, &asked, frame);
        }
        fields::end(frame);
        self.publish_note(kind, to, engine);
    }

    /// Sends the frame in the buffer.
    pub(super) fn publish_note(&mut self, kind: Kind, to: To, engine: &mut dyn Engine) {
        let frame = &self.frame;
        let sent = match to {
            To::All => engine.publish(self.subjects.all(), frame),
            To::Node(incarnation) => engine.publish(&self.subjects.of_node(incarnation), frame),
        };
        // A lost frame is repeated: heartbeats at intervals, barriers after a timeout.
        if sent.is_ok() {
            self.count_sent(kind);
        }
    }

    pub(super) fn head(&self, kind: Kind) -> Head {
        Head {
            version: match kind.is_presence() {
                true => PRESENCE_VERSION,
                false => self.version,
            },
            kind,
            serializer: Serializer::Json,
            epoch: self.epoch,
            incarnation: self.options.incarnation,
            sequence: 0,
        }
    }

    pub(super) fn count_sent(&mut self, kind: Kind) {
        self.counts.sent[kind as usize] += 1;
        self.counts.sent_bytes += self.frame.len() as u64;
    }
}
