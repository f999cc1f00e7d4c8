//! One node of a realm, as the others know it.

mod barrier;
mod pairs;
mod saying;
mod taking;

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

/// What a realm does while its other nodes cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detached {
    /// It goes on by itself.
    #[default]
    Serve,
    /// It publishes nothing; subscriptions wait.
    Refuse,
}

/// What a node is, and how it behaves.
#[derive(Clone, Debug)]
pub struct Options {
    pub realm: String,
    /// Its name, for people.
    pub node: String,
    /// A number that it has drawn for this run.
    pub incarnation: u64,
    pub detached: Detached,
    /// Topics that begin with one of them stay on the node.
    pub local_prefixes: Vec<String>,
    /// What it takes: [`Versions::OWN`], where there is no reason to say anything else.
    pub versions: Versions,
}

/// Whom a note is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    All,
    Node(u64),
}

/// How far a node is with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Detached,
    /// It has said hello, and waits for who answers.
    Joining,
    Attached,
}

/// What a tick found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticked {
    Live,
    /// The server has not answered for too long, or this node was stopped for as long: the connection is to be closed.
    Silent,
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames by kind, in the order of [`Kind::ALL`].
    pub sent: [u64; Kind::ALL.len()],
    pub received: [u64; Kind::ALL.len()],
    /// By cause, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Events that had come already.
    pub duplicates: u64,
    /// Events that found no room on the way out.
    pub dropped: u64,
    /// What the engine did not let the node do: publish, subscribe.
    pub denied: [u64; 2],
    /// Barriers that were passed, and how long they took together.
    pub barriers: u64,
    pub barrier_us: u64,
    /// Times that it was attached.
    pub attachments: u64,
    /// Times that what was between this node and another began anew, by cause in the order of [`Cause::ALL`].
    pub resets: [u64; Cause::ALL.len()],
}

/// What has come, for the realm.
#[derive(Debug)]
pub enum Input<'f> {
    /// With the number of the node that it comes from.
    Event(u64, Event<'f>),
    Crossing(NeighbourKey, Came<'f>),
}

/// Who is there for the realm, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Joined(NeighbourKey),
    Left(NeighbourKey),
    /// A node has ended in good order, or was not heard for too long: then it may join again.
    GivenUp {
        node: u64,
        has_ended: bool,
    },
    /// It was not heard for so long that it is taken for dead, while this node could hear.
    Dead(u64),
}

/// One node of a realm.
#[derive(Debug)]
pub struct Member {
    options: Options,
    subjects: Subjects,
    state: State,
    /// Since when it has a connection.
    attached: Option<Time>,
    /// When the last hello was said, once the server knows what is wanted here.
    joined: Option<Time>,
    epoch: u32,
    sequence: u64,
    server: String,
    /// What is spoken.
    version: u8,
    frame_bytes_max: usize,
    neighbours: Neighbours,
    interests: Interests,
    barriers: Barriers,
    ticked: Option<Time>,
    beat: Time,
    /// When a hello was answered last, and whether others are to be.
    greeted: Time,
    has_greetings: bool,
    /// When the server last answered.
    answered: Time,
    counts: Counts,
    /// The number of the side that was begun last.
    side_last: u64,
    changes: Vec<Change>,
    /// Kept for their room.
    frame: Vec<u8>,
    subject: String,
}

/// Where all listen, and where this node does.
const SID_ALL: u64 = 1;
const SID_NODE: u64 = 2;

const HEARTBEAT_MS: u64 = 1_000;

/// A server that does not answer for so long is gone.
const SILENT_MS: u64 = 3_000;

/// So long others have to answer a hello.
const JOINING_MS: u64 = 300;

/// Of a topic, a publisher's names and options, where the longest frame is guessed.
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

    /// There is a connection to the server of that name, which takes messages of so many octets.
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

    /// There is no connection any more.
    pub fn detach(&mut self) {
        self.state = State::Detached;
        self.ticked = None;
        self.end_pairs();
        self.barriers
            .give_up(self.options.detached == Detached::Serve);
    }

    /// Ends in good order: others need not wait for this node.
    pub fn leave(&mut self, engine: &mut dyn Engine) {
        if self.state != State::Detached {
            self.say(Kind::Leave, To::All, None, engine);
        }
    }

    /// Takes what came under one of its subscriptions; an event is for the realm.
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

    /// The engine does not let the node do something; what that matters to.
    pub fn handle_denied(&mut self, denied: Denied<'_>) -> Matters {
        let is_publish = matches!(denied, Denied::Publish(_));
        self.counts.denied[usize::from(!is_publish)] += 1;
        match denied {
            Denied::Publish(subject) if self.subjects.is_topic(subject) => Matters::Event,
            Denied::Subscribe(subject) if self.interests.deny(subject) => Matters::Interest,
            _ => Matters::Link,
        }
    }

    /// Whether the engine does not let this node have what matches.
    pub fn is_denied(&self, pattern: Pattern<'_>) -> bool {
        let subject = self.subjects.of_pattern(pattern);
        subject.is_some_and(|subject| self.interests.is_denied(&subject))
    }

    /// The key under which is kept who has that for itself alone; `None` where it is too long.
    pub fn claim(&self, pattern: Pattern<'_>) -> Option<String> {
        self.subjects.of_claim(pattern)
    }

    /// How many subjects are wanted and denied.
    pub fn interests_denied(&self) -> usize {
        self.interests.denied()
    }

    /// The server has done what it was asked to before a ping.
    pub fn handle_pong(&mut self, now: Time, engine: &mut dyn Engine) {
        self.answered = now;
        if self.barriers.handle_pong() {
            self.settle_barrier(now, engine);
        }
    }

    /// Does what is due; to be called some four times a second.
    pub fn handle_tick(&mut self, now: Time, engine: Option<&mut dyn Engine>) -> Ticked {
        for silent in self.neighbours.handle_tick(now) {
            self.end_pair(silent, Cause::Silent);
            self.changes.push(Change::GivenUp {
                node: silent,
                has_ended: false,
            });
        }
        let since = self.attached.filter(|_| self.state == State::Attached);
        let dead = self.neighbours.dead(now, since);
        self.changes.extend(dead.into_iter().map(Change::Dead));
        self.choose_version();
        let (Some(engine), Some(ticked)) = (engine, self.ticked.replace(now)) else {
            self.ticked = None;
            self.interests.handle_tick(now, None);
            return Ticked::Live;
        };
        self.interests.handle_tick(now, Some(engine));
        let is_late = |since: Time| since.after_ms(SILENT_MS) <= now;
        if is_late(ticked) || is_late(self.answered) {
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
            self.ping(engine);
        }
        self.leave_mute(now, engine);
        if self.state == State::Attached {
            self.repeat_barrier(now, engine);
        }
        Ticked::Live
    }

    /// What matches a pattern is wanted, or not any more; from which position on that is in force.
    pub fn interest(
        &mut self,
        now: Time,
        pattern: Pattern<'_>,
        begins: bool,
        engine: Option<&mut dyn Engine>,
    ) -> Position {
        // What is published there does not cross either.
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

    /// Whether events are for nobody else and may be published: [`Member::publish`] would do nothing. That stays so until
    /// something comes, time passes, or the connection does.
    pub fn is_alone(&self) -> bool {
        match self.state {
            State::Detached => self.options.detached == Detached::Serve,
            State::Joining => false,
            State::Attached => self.neighbours.active().next().is_none(),
        }
    }

    /// Sends an event to other nodes, if there may be some that want it.
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

    /// Up to where others know what is wanted here.
    pub fn in_force(&self) -> Position {
        self.barriers.in_force()
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Whether sessions are to be turned away.
    pub fn is_refusing(&self) -> bool {
        self.state == State::Detached && self.options.detached == Detached::Refuse
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Names and servers of the nodes that are there.
    pub fn active(&self) -> impl Iterator<Item = (&str, &str)> {
        let active = self.neighbours.active();
        active.map(|(_, neighbour)| (&*neighbour.node, &*neighbour.server))
    }

    /// Whether one of them is called as this one: operators cannot tell them apart.
    pub fn has_namesake(&self) -> bool {
        self.active().any(|(node, _)| node == self.options.node)
    }

    /// How many nodes have not been heard for a while.
    pub fn suspected(&self) -> usize {
        self.neighbours.suspected()
    }

    /// Names and versions of the nodes that are there, and with which this one speaks none.
    pub fn strangers(&self) -> impl Iterator<Item = (&str, Versions)> {
        self.neighbours.strangers()
    }

    /// What this node takes.
    pub fn versions(&self) -> Versions {
        self.options.versions
    }

    /// How many subjects it wants.
    pub fn interests(&self) -> usize {
        self.interests.len()
    }
}

/// A frame's room that is kept.
const FRAME_ROOM_MAX: usize = 64 * 1024;
