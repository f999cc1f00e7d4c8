//! One node of a realm, as seen by the others.

mod announcements;
mod barrier;
mod pairs;
mod reception;
pub(crate) mod status;

use crosstie_routing::{NeighbourKey, Pattern, Position, Publication, Time, Uncrossed};

use crate::crossing::Came;
use crate::denied::{Denied, Matters};
use crate::engine::{Engine, Refused};
use crate::event::{self, Event};
use crate::interests::Interests;
use crate::neighbours::Neighbours;
use crate::pair::Cause;
use crate::{Head, Kind, Refusal, Subjects, Versions};

use barrier::Barriers;

/// The behaviour of a realm while its other nodes are unreachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detached {
    /// Serves its own sessions.
    #[default]
    Serve,
    /// Publishes nothing; subscriptions wait.
    Refuse,
}

/// The properties and settings of a node.
#[derive(Clone, Debug)]
pub struct Options {
    pub realm: String,
    /// Its name, for display.
    pub node: String,
    /// A number drawn at its start.
    pub incarnation: u64,
    pub detached: Detached,
    /// Topics with one of these prefixes stay on the node.
    pub local_prefixes: Vec<String>,
    /// The versions that it accepts: [`Versions::OWN`], except in tests.
    pub versions: Versions,
}

/// The receiver of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    All,
    Node(u64),
}

/// The state of a node's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Detached,
    /// Hello is sent, and the node waits for answers.
    Joining,
    Attached,
}

/// The result of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticked {
    Live,
    /// The server has been silent for too long, or this node did not run for as long: close the connection.
    Silent,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames by kind, in the order of [`Kind::ALL`].
    pub sent: [u64; Kind::ALL.len()],
    pub received: [u64; Kind::ALL.len()],
    /// By cause, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Events that had arrived before.
    pub duplicates: u64,
    /// Events dropped for lack of room in the output.
    pub dropped: u64,
    /// Denials by the engine: of publishing, of subscribing.
    pub denied: [u64; 2],
    /// Number of completed barriers, and their total duration.
    pub barriers: u64,
    pub barrier_us: u64,
    /// Number of attachments.
    pub attachments: u64,
    /// Number of pairs that ended, by cause in the order of [`Cause::ALL`].
    pub resets: [u64; Cause::ALL.len()],
}

/// An input for the realm.
#[derive(Debug)]
pub enum Input<'f> {
    /// With the number of its node.
    Event(u64, Event<'f>),
    Crossing(NeighbourKey, Came<'f>),
}

/// A change of the realm's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Joined(NeighbourKey),
    Left(NeighbourKey),
    /// A node has left in order, or was silent for too long: it may join again.
    GivenUp {
        node: u64,
        has_ended: bool,
    },
    /// A node was silent for so long that it counts as dead, while this node could hear others.
    Dead {
        node: u64,
        /// This node could not hear others when that one died, for so long that it counts as dead itself.
        is_missed: bool,
    },
}

/// One node of a realm.
#[derive(Debug)]
pub struct Member {
    options: Options,
    subjects: Subjects,
    state: State,
    /// The time since which it is connected.
    attached: Option<Time>,
    /// The time of the last hello, once the server knows this node's subscriptions.
    joined: Option<Time>,
    epoch: u32,
    sequence: u64,
    server: String,
    /// The spoken version.
    version: u8,
    frame_bytes_max: usize,
    neighbours: Neighbours,
    interests: Interests,
    barriers: Barriers,
    ticked: Option<Time>,
    beat: Time,
    /// The time of the last answer to a hello, and whether another is due.
    greeted: Time,
    has_greetings: bool,
    /// The time of the server's last answer.
    answered: Time,
    counts: Counts,
    /// The number of the last side.
    side_last: u64,
    changes: Vec<Change>,
    /// Buffers that are reused.
    frame: Vec<u8>,
    subject: String,
}

/// The subscriptions to the subject of all nodes, and to this node's own.
const SID_ALL: u64 = 1;
const SID_NODE: u64 = 2;

const HEARTBEAT_MS: u64 = 1_000;

/// Silence after which a server counts as gone.
const SILENT_MS: u64 = 3_000;

/// Time between two ticks from which on this node counts as stopped or starved of processor time.
const TICK_MS_MAX: u64 = 1_000;

/// Time for other nodes to answer a hello.
const JOINING_MS: u64 = 300;

/// Estimated bytes of a topic, a publisher's names and the options, in the longest frame.
const NOTE_BYTES: usize = 512;

impl Member {
    pub fn new(options: Options) -> Self {
        Self {
            subjects: Subjects::new(&options.realm),
            version: options.versions.last,
            options,
            state: State::Detached,
            attached: None,
            joined: None,
            epoch: 0,
            sequence: 0,
            server: String::new(),
            frame_bytes_max: 0,
            neighbours: Neighbours::default(),
            interests: Interests::new(SID_NODE),
            barriers: Barriers::default(),
            ticked: None,
            beat: Time(0),
            greeted: Time(0),
            has_greetings: false,
            answered: Time(0),
            counts: Counts::default(),
            side_last: 0,
            changes: Vec::new(),
            frame: Vec::with_capacity(NOTE_BYTES),
            subject: String::new(),
        }
    }

    /// A connection to the server of that name has opened, with that maximum message size.
    pub fn attach(
        &mut self,
        now: Time,
        (server, frame_bytes_max): (&str, usize),
        engine: &mut dyn Engine,
    ) {
        self.epoch += 1;
        self.sequence = 0;
        self.state = State::Joining;
        self.attached = Some(now);
        self.joined = None;
        server.clone_into(&mut self.server);
        self.frame_bytes_max = frame_bytes_max;
        self.counts.attachments += 1;
        self.answered = now;
        self.ticked = Some(now);
        engine.subscribe(SID_ALL, self.subjects.all());
        let own = self.subjects.of_node(self.options.incarnation);
        engine.subscribe(SID_NODE, &own);
        self.barriers.forget_pings();
        self.interests.forget_said();
        self.say_rest(now, engine);
    }

    /// The connection has ended.
    pub fn detach(&mut self) {
        self.state = State::Detached;
        self.ticked = None;
        self.end_pairs();
        self.barriers
            .give_up(self.options.detached == Detached::Serve);
    }

    /// Leaves in order: other nodes need not wait for this one.
    pub fn leave(&mut self, engine: &mut dyn Engine) {
        if self.state != State::Detached {
            self.say(Kind::Leave, To::All, None, engine);
        }
    }

    /// Handles a message of one of its subscriptions. Returns an event for the realm, if any.
    pub fn handle_message<'f>(
        &mut self,
        now: Time,
        (subject, frame): (&str, &'f [u8]),
        engine: &mut dyn Engine,
    ) -> Result<Option<Input<'f>>, Refusal> {
        self.counts.received_bytes += frame.len() as u64;
        let taken = self.take(now, subject, frame, engine);
        if let Err(refusal) = &taken {
            self.counts.refused[*refusal as usize] += 1;
        }
        taken
    }

    /// The engine denies a permission. Returns the consequence.
    pub fn handle_denied(&mut self, denied: Denied<'_>) -> Matters {
        let is_publish = matches!(denied, Denied::Publish(_));
        self.counts.denied[usize::from(!is_publish)] += 1;
        match denied {
            Denied::Publish(subject) if self.subjects.is_topic(subject) => Matters::Event,
            Denied::Subscribe(subject) if self.interests.deny(subject) => Matters::Interest,
            _ => Matters::Link,
        }
    }

    /// Whether the engine denies this node messages that match.
    pub fn is_denied(&self, pattern: Pattern<'_>) -> bool {
        let subject = self.subjects.of_pattern(pattern);
        subject.is_some_and(|subject| self.interests.is_denied(&subject))
    }

    /// The key of a claim on that pattern; `None` if it is too long.
    pub fn claim(&self, pattern: Pattern<'_>) -> Option<String> {
        self.subjects.of_claim(pattern)
    }

    /// Number of denied subscriptions.
    pub fn interests_denied(&self) -> usize {
        self.interests.denied()
    }

    /// The server has processed everything before a ping.
    pub fn handle_pong(&mut self, now: Time, engine: &mut dyn Engine) {
        self.answered = now;
        if self.barriers.handle_pong() {
            self.settle_barrier(now, engine);
        }
    }

    /// Does due work; to be called about four times a second.
    pub fn handle_tick(&mut self, now: Time, engine: Option<&mut dyn Engine>) -> Ticked {
        let ran = self
            .ticked
            .is_none_or(|ticked| ticked.after_ms(SILENT_MS) > now);
        let heard_to = self.heard_to(now, ran);
        for silent in self.neighbours.handle_tick(now, heard_to) {
            self.end_pair(silent, Cause::Silent);
            self.changes.push(Change::GivenUp {
                node: silent,
                has_ended: false,
            });
        }
        let since = self.attached.filter(|_| self.state == State::Attached);
        if let Some(since) = since {
            for (node, is_missed) in self.neighbours.dead(self.barriers.read(), since) {
                self.changes.push(Change::Dead { node, is_missed });
            }
        }
        self.choose_version();
        let (Some(engine), Some(ticked)) = (engine, self.ticked.replace(now)) else {
            self.ticked = None;
            self.interests.handle_tick(now, None);
            return Ticked::Live;
        };
        self.interests.handle_tick(now, Some(engine));
        // The server's silence does not count while this node did not run.
        let asleep = now.0.saturating_sub(ticked.after_ms(TICK_MS_MAX).0);
        self.answered = Time(self.answered.0 + asleep);
        if !ran || self.answered.after_ms(SILENT_MS) <= now {
            return Ticked::Silent;
        }
        if self.state == State::Joining {
            self.say_rest(now, engine);
        }
        let is_due = self.beat.after_ms(HEARTBEAT_MS) <= now;
        if is_due || std::mem::take(&mut self.has_greetings) {
            self.say(Kind::Heartbeat, To::All, None, engine);
        }
        if is_due {
            self.beat = now;
            self.ping(now, engine);
        }
        self.probe_silent(now, engine);
        self.leave_mute(now, engine);
        if self.state == State::Attached {
            self.repeat_barrier(now, engine);
        }
        Ticked::Live
    }

    /// A pattern is subscribed or no longer. Returns the position from which on that is in force.
    pub fn interest(
        &mut self,
        now: Time,
        pattern: Pattern<'_>,
        begins: bool,
        engine: Option<&mut dyn Engine>,
    ) -> Position {
        // Events with such topics do not cross either.
        let Some(subject) = self.subjects.of_pattern(pattern) else {
            return Position(0);
        };
        if !begins {
            self.interests.end(now, &subject);
            return Position(0);
        }
        if self.interests.has(&subject) {
            return self.interests.begin(subject, Position(0), None);
        }
        let waits = self.state != State::Detached || self.options.detached == Detached::Refuse;
        let position = match waits {
            true => self.barriers.want(),
            false => Position(0),
        };
        let Some(engine) = engine else {
            return self.interests.begin(subject, position, None);
        };
        self.interests.begin(subject, position, Some(&mut *engine));
        self.begin_barrier(now, engine);
        position
    }

    /// Whether no other node wants events and publishing is allowed: [`Member::publish`] would do nothing. That holds
    /// until an input, a tick, or a change of the connection.
    pub fn is_alone(&self) -> bool {
        match self.state {
            State::Detached => self.options.detached == Detached::Serve,
            State::Joining => false,
            State::Attached => self.neighbours.active().next().is_none(),
        }
    }

    /// Sends an event to other nodes, if some may want it.
    pub fn publish(
        &mut self,
        publication: &Publication<'_>,
        engine: Option<&mut dyn Engine>,
    ) -> Result<(), Uncrossed> {
        let mut local = self.options.local_prefixes.iter();
        if local.any(|prefix| publication.topic.starts_with(prefix)) {
            return Ok(());
        }
        let (Some(engine), true) = (engine, self.state != State::Detached) else {
            return match self.options.detached {
                Detached::Serve => Ok(()),
                Detached::Refuse => Err(Uncrossed::Detached),
            };
        };
        if self.state == State::Attached && self.neighbours.active().next().is_none() {
            return Ok(());
        }
        if !self
            .subjects
            .write_topic(publication.topic, &mut self.subject)
        {
            return Err(Uncrossed::TooLong);
        }
        let head = Head {
            serializer: publication.payload.serializer,
            sequence: self.sequence + 1,
            ..self.head(Kind::Event)
        };
        self.frame.clear();
        event::write(&head, publication, &mut self.frame);
        if self.frame.len() > self.frame_bytes_max {
            return Err(Uncrossed::TooLong);
        }
        self.sequence += 1;
        match engine.publish(&self.subject, &self.frame) {
            Ok(()) => self.count_sent(Kind::Event),
            Err(Refused) => self.counts.dropped += 1,
        }
        self.frame.shrink_to(FRAME_ROOM_MAX);
        Ok(())
    }

    /// The position up to which others know this node's subscriptions.
    pub fn in_force(&self) -> Position {
        self.barriers.in_force()
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Whether sessions must be refused.
    pub fn is_refusing(&self) -> bool {
        self.state == State::Detached && self.options.detached == Detached::Refuse
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Names and servers of the active nodes.
    pub fn active(&self) -> impl Iterator<Item = (&str, &str)> {
        let active = self.neighbours.active();
        active.map(|(_, neighbour)| (&*neighbour.node, &*neighbour.server))
    }

    /// Whether another node has this one's name: operators cannot tell them apart.
    pub fn has_namesake(&self) -> bool {
        self.active().any(|(node, _)| node == self.options.node)
    }

    /// Number of nodes that have been silent for a while.
    pub fn suspected(&self) -> usize {
        self.neighbours.suspected()
    }

    /// Names and versions of active nodes without a common version.
    pub fn strangers(&self) -> impl Iterator<Item = (&str, Versions)> {
        self.neighbours.strangers()
    }

    /// The versions that this node accepts.
    pub fn versions(&self) -> Versions {
        self.options.versions
    }

    /// Number of its subscriptions.
    pub fn interests(&self) -> usize {
        self.interests.len()
    }
}

/// Maximum size of a buffer that is kept.
const FRAME_ROOM_MAX: usize = 64 * 1024;
