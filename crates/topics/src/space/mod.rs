//! The space: its parts, and the ways through several of them.
//!
//! ```text
//!  connect.rs ─▶ leave.rs                    subscribe.rs ─▶ scan.rs ─┐
//!  receive.rs ─▶ publish.rs ─▶ course.rs ─▶ deliver.rs ◀──────────────┘
//!                                 │            │  ▲
//!                              work.rs      send.rs  acknowledge.rs ◀─ commit.rs
//! ```

mod acknowledge;
mod commit;
mod connect;
mod course;
mod deliver;
mod ending;
mod entries;
mod forget;
mod leave;
mod listings;
mod outside;
mod publish;
mod receive;
mod restore;
mod scan;
mod send;
mod subscribe;
mod timeouts;
mod unsubscribe;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clients::Clients;
use crate::course::{Course, Job};
use crate::ending::{Closing, Ending};
use crate::fan::Buffers;
use crate::keys::SessionKey;
use crate::ledger::Ledger;
use crate::line::Line;
use crate::random::Random;
use crate::retained::Retained;
use crate::session::Session;
use crate::shares::Shares;
use crate::timers::Timers;
use crate::trie::Trie;
use crate::{ConnectionKey, Counts, Journal, SessionNumber, SpaceConfig, SpaceLimits, Time};

/// One topic space. `H` is the type by which its owner names a connection to the [`Outbox`].
///
/// Inputs, each under the owner's lock:
///
/// 1. [`Self::connect`] for the CONNECT of an authenticated client, then [`Self::open`]. The owner sends CONNACK, and
///    reads further packets, when the outbox asks for it.
/// 2. [`Self::receive`] for each PUBLISH, then [`Self::publish`] once it is authorized or [`Self::refuse`].
/// 3. [`Self::subscribe`] and [`Self::unsubscribe`] return the codes of SUBACK and UNSUBACK, which the owner passes to
///    [`Self::reply`] before any other input: retained messages follow by [`Self::work`].
/// 4. [`Self::handle_puback`], [`Self::handle_pubrec`], [`Self::handle_pubrel`], [`Self::handle_pubcomp`].
/// 5. [`Self::resume`] when a connection that has refused a message as [`crate::Refused::Full`] has space.
/// 6. [`Self::disconnect`] for DISCONNECT, [`Self::lose`] when a connection ends in any other way. Only one of them is
///    needed, and a second has no effect.
/// 7. [`Self::handle_timeout`] when [`Self::next_timeout`] has come, which any input may change.
/// 8. [`Self::work`] while [`Self::has_backlog`], in turn with other inputs: a large fan-out, a scan of the retained
///    messages and the end of a session do a part of their work at once. Until then the publisher's acknowledgement waits.
///
/// After each input the owner takes the records of [`Self::journal`] and hands them to a store, which answers by
/// [`Self::handle_committed`] or [`Self::handle_not_committed`] in the order of positions. A store that fails keeps the
/// records, and commits them before later ones.
#[derive(Debug)]
pub struct Space<H> {
    config: SpaceConfig,
    random: Random,
    clients: Clients<H>,
    connections_made: u32,
    /// Number of publications to subscriptions.
    published: u64,
    trie: Trie,
    shares: Shares,
    retained: Retained,
    timers: Timers<Timer>,
    line: Line,
    /// Publications that wait for a later turn, in their order, and wills: clients that come and go do not hold up others.
    backlog: VecDeque<Job>,
    wills: VecDeque<Job>,
    /// Those from outside, and their receivers and those of others that are not served.
    outside_postponed: u32,
    receivers_postponed: usize,
    /// Sessions without a connection, subscriptions and messages, by the time of their end: they make room for others.
    idle: BTreeSet<(Time, SessionKey)>,
    /// Sessions that have ended, and still have parts.
    ending: VecDeque<Ending>,
    closing: BTreeMap<SessionNumber, Closing>,
    /// Identifiers of recorded sessions whose end is not committed, and its position.
    ends: BTreeMap<Arc<str>, u64>,
    /// Connections that are closed because the store has failed.
    failed: VecDeque<(SessionKey, u32)>,
    /// Sessions that are sent retained messages.
    scanning: VecDeque<SessionKey>,
    ledger: Ledger,
    // Memory that is used again.
    course: Option<Box<Course>>,
    buffers: Option<Box<Buffers>>,
}

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Will(SessionKey),
    Session(SessionKey),
    /// Expired messages of a session.
    Messages(SessionKey),
}

impl<H> Space<H> {
    /// An empty space. Random values follow from the seed, which must not be known to peers.
    pub fn new(config: SpaceConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hasher = random.hasher();
        let ledger = Ledger {
            is_stored: config.is_stored,
            ..Ledger::default()
        };
        Self {
            config,
            random,
            clients: Clients::new(hasher.clone()),
            connections_made: 0,
            published: 0,
            trie: Trie::new(hasher.clone()),
            shares: Shares::new(hasher),
            retained: Retained::new(),
            timers: Timers::new(),
            line: Line::default(),
            backlog: VecDeque::new(),
            wills: VecDeque::new(),
            outside_postponed: 0,
            receivers_postponed: 0,
            idle: BTreeSet::new(),
            ending: VecDeque::new(),
            closing: BTreeMap::new(),
            ends: BTreeMap::new(),
            failed: VecDeque::new(),
            scanning: VecDeque::new(),
            ledger,
            course: None,
            buffers: None,
        }
    }

    /// Changes the bounds. Sessions, subscriptions and messages beyond a lower one stay.
    pub fn set_limits(&mut self, limits: SpaceLimits) {
        self.config.limits = limits;
    }

    pub fn limits(&self) -> &SpaceLimits {
        &self.config.limits
    }

    /// The records for a store. The owner takes `records` after each input (`mem::take`) and hands them on together
    /// with `position`.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.ledger.journal
    }

    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.clients.len(),
            retained: self.retained.len(),
            retained_bytes: self.retained.bytes(),
            postponed: self.backlog.len() + self.wills.len(),
            ..self.ledger.counts
        }
    }

    /// Bytes of messages, retained ones included, of sessions without a connection, and of answers that wait for a commit.
    pub fn kept_bytes(&self) -> usize {
        self.ledger.kept_bytes + self.line.bytes()
    }

    /// Whether it keeps nothing at all: for its owner, before it drops the space, and for tests.
    pub fn is_empty(&self) -> bool {
        let counts = self.counts();
        let kept = [counts.sessions, counts.subscriptions, counts.queued];
        let places = [self.trie.len(), self.shares.len(), self.retained.len()];
        let lines = [self.scanning.len(), self.line.len(), self.ending.len()];
        let places =
            places
                .into_iter()
                .chain([self.closing.len(), self.ends.len(), self.failed.len()]);
        let mut all = kept
            .into_iter()
            .chain(places)
            .chain(lines)
            .chain([counts.postponed, self.idle.len()]);
        self.ledger.kept_bytes == 0 && all.all(|number| number == 0)
    }

    /// The client identifier of a connection.
    pub fn client_id(&self, key: ConnectionKey) -> Option<&Arc<str>> {
        Some(&self.connected(key)?.client_id)
    }

    /// The session of a connection that has not ended.
    fn connected(&self, key: ConnectionKey) -> Option<&Session<H>> {
        let session = self.clients.find(key.session)?;
        session.is_connected_as(key.number).then_some(session)
    }

    fn connected_mut(&mut self, key: ConnectionKey) -> Option<&mut Session<H>> {
        let session = self.clients.find_mut(key.session)?;
        session.is_connected_as(key.number).then_some(session)
    }
}
