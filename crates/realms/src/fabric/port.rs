//! A realm's member of the fabric, and its connection.

mod faults;
mod notes;
mod strangers;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_config as model;
use crosstie_fabric::{
    Change, Counts, Detached, Engine, Member, NeighbourStatus, Options, Refused, State, Ticked,
    Versions, pack,
};
use crosstie_nats::{Growing, encode};
use crosstie_routing::{
    Crossing, NeighbourKey, Pattern, Position, Publication, Refused as Uncalled, Time, Uncrossed,
};
use crosstie_transport::Connection;
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// A realm's port to other nodes. Any thread may use it for one short call.
pub struct FabricPort {
    pub settings: model::Fabric,
    pub realm: String,
    inner: Mutex<Inner>,
    /// No other node wants events. Set under the lock, and cleared while the member works: a reader then waits for the
    /// lock, so that no event is withheld from a node that has been answered.
    is_alone: AtomicBool,
    attached: Condvar,
    start: Instant,
    /// Number of events that no subscription matched.
    overdelivered: AtomicU64,
    /// Number of other nodes' registrations that were rejected.
    offers_refused: AtomicU64,
    /// Number of meta API answers without the part of a node.
    answers_partial: AtomicU64,
    /// Sessions, registrations and subscriptions of other nodes beyond the limit.
    ends_unknown: AtomicU64,
    /// Number of other nodes' testaments beyond the limit.
    testaments_refused: AtomicU64,
    /// Number of other nodes' retained events that were rejected.
    retained_refused: AtomicU64,
    /// Sends requests for grants, if the bucket is used; and the receiving end, until it is taken.
    wishes: Option<UnboundedSender<Wish>>,
    wished: Mutex<Option<UnboundedReceiver<Wish>>>,
    grants: [AtomicU64; 2],
    /// This node's incarnation, for other nodes.
    pub(crate) incarnation: u64,
}

struct Inner {
    member: Member,
    /// Set while the member is attached.
    wire: Option<Wire>,
    /// Bytes that the realm holds for other nodes, on the connection's account.
    held: isize,
    /// No further connections are made.
    is_stopped: bool,
    server: String,
    /// It has had a lease, if it needs one.
    is_leased: bool,
    /// Why it has no lease now, and gets no grants.
    ungranted: Option<String>,
    told: strangers::Told,
    /// Why the last connection ended, or failed; and the time if NATS denied a permission.
    why: String,
    denied: Option<Instant>,
}

/// Time for which a realm counts as denied: longer than the next attempt takes.
const DENIED_FOR: Duration = Duration::from_secs(10);

/// The status of a port for operators.
pub struct Seen {
    pub state: State,
    /// The connected server's name.
    pub server: String,
    /// Why no server is connected.
    pub why: String,
    /// NATS denied the last connection permissions that every node needs.
    pub is_denied: bool,
    /// Why no single-callee procedures are granted.
    pub(crate) ungranted: Option<String>,
    /// Number of subscriptions that NATS denies.
    pub interests_denied: usize,
    /// Names of the other nodes.
    pub nodes: Vec<String>,
    pub suspected: usize,
    /// Nodes without a common version, with their versions.
    pub strangers: Vec<(String, Versions)>,
    pub(crate) versions: Versions,
    pub interests: usize,
    /// Number of nodes that exchange calls with this one.
    pub pairs: usize,
    pub counts: Counts,
    pub overdelivered: u64,
    pub offers_refused: u64,
    pub answers_partial: u64,
    pub ends_unknown: u64,
    pub testaments_refused: u64,
    pub retained_refused: u64,
    /// Numbers of refused and of granted claims.
    pub grants: [u64; 2],
}

/// A request for the keeper of grants.
pub(crate) enum Wish {
    /// The number identifies the claim.
    Claim(u64, String),
    GiveUp(String),
    /// The realm has ended: the lease is to be given up, and the sender dropped after that.
    Leave(oneshot::Sender<()>),
}

/// Maximum bytes that wait for a server. Beyond, events are dropped and counted.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Maximum size of a message that is packed from several frames: a longer one would delay them.
const PACK_BYTES_MAX: usize = 32 * 1024;

/// A connection to a server.
struct Wire {
    connection: Arc<Connection>,
    /// A message to a node that can grow while it is the last in the connection's queue.
    growing: Option<Growing>,
    /// Maximum message size of the server.
    message_bytes_max: usize,
}

impl Wire {
    fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused> {
        self.growing = None;
        let appended = self.connection.append(|out| {
            write(out);
            Ok::<(), ()>(())
        });
        appended.map_err(|_| Refused)
    }

    /// Sends a frame that must not be lost: without room for it, the connection is closed.
    fn say_surely(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.say(write).is_err() {
            self.connection.close();
        }
    }

    /// Appends a frame to the last message. Returns whether that was possible.
    fn grow(&mut self, subject: &str, parts: [&[u8]; 2]) -> bool {
        let Some(growing) = &mut self.growing else {
            return false;
        };
        let bytes_max = self.message_bytes_max.min(PACK_BYTES_MAX);
        // Keeps room, because an append cannot be undone: it changes bytes that were written before.
        let queued_bytes_max = QUEUE_BYTES_MAX - 2 * PACK_BYTES_MAX;
        let appended = self.connection.append_below(queued_bytes_max, |out| {
            match growing.grow(subject, parts, bytes_max, out) {
                true => Ok(()),
                false => Err(()),
            }
        });
        appended.is_ok()
    }
}

impl Engine for Wire {
    fn subscribe(&mut self, sid: u64, pattern: &str) {
        self.say_surely(|out| encode::subscribe(pattern, sid, out));
    }

    fn unsubscribe(&mut self, sid: u64) {
        self.say_surely(|out| encode::unsubscribe(sid, out));
    }

    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        self.say(|out| encode::publish(subject, frame, out))
    }

    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        let length = pack::length(frame);
        let parts = [&length[..], frame];
        if self.grow(subject, parts) {
            return Ok(());
        }
        let mut begun = None;
        self.say(|out| begun = Some(Growing::begin(subject, parts, out)))?;
        self.growing = begun;
        Ok(())
    }

    fn ping(&mut self) {
        self.say_surely(encode::ping);
    }
}

impl FabricPort {
    pub fn new(realm: &str, settings: &model::Fabric, node: String, incarnation: u64) -> Self {
        let member = Member::new(Options {
            realm: realm.to_owned(),
            node,
            incarnation,
            detached: match settings.is_refused_detached {
                true => Detached::Refuse,
                false => Detached::Serve,
            },
            local_prefixes: settings.local_prefixes.clone(),
            versions: strangers::versions(),
        });
        let (wishes, wished) = mpsc::unbounded_channel();
        let is_strict = settings.strict_replicas.is_some();
        Self {
            wishes: is_strict.then_some(wishes),
            wished: Mutex::new(is_strict.then_some(wished)),
            grants: Default::default(),
            settings: settings.clone(),
            realm: realm.to_owned(),
            inner: Mutex::new(Inner {
                member,
                wire: None,
                held: 0,
                is_stopped: false,
                server: String::new(),
                is_leased: false,
                ungranted: None,
                told: strangers::Told::default(),
                why: String::new(),
                denied: None,
            }),
            is_alone: AtomicBool::new(false),
            attached: Condvar::new(),
            start: Instant::now(),
            overdelivered: AtomicU64::new(0),
            offers_refused: AtomicU64::new(0),
            answers_partial: AtomicU64::new(0),
            ends_unknown: AtomicU64::new(0),
            testaments_refused: AtomicU64::new(0),
            retained_refused: AtomicU64::new(0),
            incarnation,
        }
    }

    /// For the realm's outbox, under its lock.
    pub fn publish(&self, publication: &Publication<'_>) -> Result<(), Uncrossed> {
        if self.is_alone.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Without reading the clock.
        let mut inner = self.inner.lock();
        let Inner { member, wire, .. } = &mut *inner;
        let engine = wire.as_mut().map(|wire| wire as &mut dyn Engine);
        member.publish(publication, engine)
    }

    /// Likewise.
    pub(crate) fn interest(&self, pattern: Pattern<'_>, begins: bool) -> Position {
        self.with(|member, engine, now| member.interest(now, pattern, begins, engine))
    }

    /// Likewise, to one other node.
    pub(crate) fn cross(&self, to: NeighbourKey, crossing: &Crossing<'_>) -> Result<(), Uncalled> {
        // Without reading the clock.
        let mut inner = self.inner.lock();
        let Inner { member, wire, .. } = &mut *inner;
        let engine = wire.as_mut().map(|wire| wire as &mut dyn Engine);
        member.cross(to, crossing, engine)
    }

    /// Likewise, to the bucket.
    pub(crate) fn wish(&self, wish: Wish) {
        if let Some(wishes) = &self.wishes {
            // Fails only when the realm ends.
            let _ = wishes.send(wish);
        }
    }

    /// Takes the receiver of requests, once.
    pub(crate) fn take_wished(&self) -> Option<UnboundedReceiver<Wish>> {
        self.wished.lock().take()
    }

    pub(crate) fn note_claimed(&self, is_granted: bool) {
        self.grants[usize::from(is_granted)].fetch_add(1, Ordering::Relaxed);
    }

    /// The realm holds that many bytes more, or fewer, for other nodes.
    pub fn hold(&self, delta: isize) {
        let mut inner = self.inner.lock();
        inner.held += delta;
        if let Some(wire) = &inner.wire {
            wire.connection.hold(delta);
        }
    }

    /// The nodes that have appeared or gone since the last call; called under the realm's lock, before the realm gets
    /// their input.
    pub(crate) fn take_changes(&self) -> Vec<Change> {
        self.inner.lock().member.take_changes()
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.inner.lock().member.has_changes()
    }

    /// A connection to a server of that name is open, with that maximum message size.
    pub(crate) fn attach(
        &self,
        wire: &Arc<Connection>,
        (server, name, bytes_max): (&str, &str, usize),
    ) {
        let now = self.now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.is_stopped {
            return wire.close();
        }
        self.is_alone.store(false, Ordering::SeqCst);
        wire.hold(inner.held);
        name.clone_into(&mut inner.server);
        let wire = inner.wire.insert(Wire {
            connection: Arc::clone(wire),
            growing: None,
            message_bytes_max: bytes_max,
        });
        inner.member.attach(now, (server, bytes_max), wire);
        self.note_alone(&inner.member);
    }

    /// The connection has ended. Returns the position up to which requests no longer wait.
    pub(crate) fn detach(&self) -> Position {
        let mut inner = self.inner.lock();
        if let Some(wire) = inner.wire.take() {
            wire.connection.hold(-inner.held);
        }
        inner.server.clear();
        inner.member.detach();
        self.note_alone(&inner.member);
        inner.member.in_force()
    }

    /// Notes why no connection is open. After a denial the realm counts as denied for a while.
    pub(crate) fn note_lost(&self, why: &str, is_denied: bool) {
        let mut inner = self.inner.lock();
        why.clone_into(&mut inner.why);
        if is_denied {
            inner.denied = Some(Instant::now());
        }
    }

    /// Whether NATS denies events that match. For the realm, under its lock.
    pub fn is_denied(&self, pattern: Pattern<'_>) -> bool {
        self.inner.lock().member.is_denied(pattern)
    }

    /// Does due work. Returns the position up to which requests no longer wait.
    pub fn tick(&self) -> Position {
        let (ticked, reached) = self.with(|member, engine, now| {
            let ticked = member.handle_tick(now, engine);
            (ticked, member.in_force())
        });
        let mut inner = self.inner.lock();
        let Inner { member, told, .. } = &mut *inner;
        told.tell(&self.realm, member);
        if ticked == Ticked::Silent
            && let Some(wire) = &inner.wire
        {
            tracing::warn!(
                "Realm '{}': the NATS server '{}' has not answered for 3 s",
                self.realm,
                inner.server
            );
            wire.connection.close();
        }
        if inner.member.state() == State::Attached {
            self.attached.notify_all();
        }
        reached
    }

    /// Leaves the fabric in order. Its grants are given up when the result has a value or is closed.
    pub fn stop(&self) -> oneshot::Receiver<()> {
        let (leaving, left) = oneshot::channel();
        let mut inner = self.inner.lock();
        inner.is_stopped = true;
        let Inner { member, wire, .. } = &mut *inner;
        if let Some(wire) = wire {
            member.leave(wire);
            wire.connection.finish();
        }
        self.wish(Wish::Leave(leaving));
        left
    }

    /// Runs an action on the member, with its connection if one is open.
    pub fn with<R>(&self, act: impl FnOnce(&mut Member, Option<&mut dyn Engine>, Time) -> R) -> R {
        let now = self.now();
        let mut inner = self.inner.lock();
        let Inner { member, wire, .. } = &mut *inner;
        self.is_alone.store(false, Ordering::SeqCst);
        let result = match wire {
            Some(wire) => act(member, Some(wire), now),
            None => act(member, None, now),
        };
        self.note_alone(member);
        result
    }

    fn note_alone(&self, member: &Member) {
        self.is_alone.store(member.is_alone(), Ordering::SeqCst);
    }

    /// Waits until it is attached, or until that time. Returns whether it is.
    pub fn await_attached(&self, until: Instant) -> bool {
        let mut inner = self.inner.lock();
        let is_there = |inner: &Inner| {
            let is_leased = self.wishes.is_none() || inner.is_leased;
            inner.member.state() == State::Attached && is_leased
        };
        while !is_there(&inner) {
            if self.attached.wait_until(&mut inner, until).timed_out() {
                return is_there(&inner);
            }
        }
        true
    }

    pub fn is_stopped(&self) -> bool {
        self.inner.lock().is_stopped
    }

    /// Whether sessions must be refused.
    pub(crate) fn is_refusing(&self) -> bool {
        self.inner.lock().member.is_refusing()
    }

    pub fn seen(&self) -> Seen {
        let inner = self.inner.lock();
        Seen {
            state: inner.member.state(),
            server: inner.server.clone(),
            why: inner.why.clone(),
            is_denied: inner.denied.is_some_and(|at| at.elapsed() < DENIED_FOR),
            ungranted: inner.ungranted.clone(),
            interests_denied: inner.member.interests_denied(),
            nodes: inner
                .member
                .active()
                .map(|(node, _)| node.to_owned())
                .collect(),
            suspected: inner.member.suspected(),
            strangers: strangers::all(&inner.member),
            versions: inner.member.versions(),
            interests: inner.member.interests(),
            pairs: inner.member.pairs(),
            counts: *inner.member.counts(),
            overdelivered: self.overdelivered.load(Ordering::Relaxed),
            offers_refused: self.offers_refused.load(Ordering::Relaxed),
            answers_partial: self.answers_partial.load(Ordering::Relaxed),
            ends_unknown: self.ends_unknown.load(Ordering::Relaxed),
            testaments_refused: self.testaments_refused.load(Ordering::Relaxed),
            retained_refused: self.retained_refused.load(Ordering::Relaxed),
            grants: self
                .grants
                .each_ref()
                .map(|count| count.load(Ordering::Relaxed)),
        }
    }

    /// The other nodes, and the bytes that wait for the NATS server.
    pub fn neighbours(&self) -> (Vec<NeighbourStatus>, usize) {
        let now = self.now();
        let inner = self.inner.lock();
        let wire = inner.wire.as_ref();
        let queued_bytes = wire.map_or(0, |wire| wire.connection.queued_bytes());
        (inner.member.neighbours(now).collect(), queued_bytes)
    }

    fn now(&self) -> Time {
        // 0 precedes all times.
        let elapsed = self.start.elapsed() + Duration::from_secs(1);
        Time(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for FabricPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FabricPort")
            .field("realm", &self.realm)
            .finish_non_exhaustive()
    }
}
