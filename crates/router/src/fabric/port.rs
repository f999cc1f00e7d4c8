//! The member of the fabric that a realm is, and its connection.

mod faults;
mod notes;
mod strangers;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_config as model;
use crosstie_fabric::{
    Change, Counts, Detached, Engine, Member, Options, Refused, State, Ticked, Versions, pack,
};
use crosstie_nats::{Growing, encode};
use crosstie_routing::{
    Crossing, NeighbourKey, Pattern, Position, Publication, Refused as Uncalled, Time, Uncrossed,
};
use crosstie_transport::Connection;
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// A realm's way to other nodes. Any thread may use it for one short call.
pub(crate) struct FabricPort {
    pub(crate) settings: model::Fabric,
    pub(crate) realm: String,
    inner: Mutex<Inner>,
    /// Events are for nobody else. It is set under the lock, and is not while the member does something: whoever reads it then
    /// waits for the lock, so that no event is kept back from a node that has been answered.
    is_alone: AtomicBool,
    attached: Condvar,
    start: Instant,
    /// Events that no subscription matched.
    overdelivered: AtomicU64,
    /// Other nodes' registrations that were not taken.
    offers_refused: AtomicU64,
    /// What the meta API has answered without some node.
    answers_partial: AtomicU64,
    /// What other nodes have, and had no room here.
    ends_unknown: AtomicU64,
    /// Testaments that they handed over, and had no room here.
    testaments_refused: AtomicU64,
    /// Events that they retain, and that were not taken.
    retained_refused: AtomicU64,
    /// To who asks the bucket, where there is one; and its other end, until that is taken.
    wishes: Option<UnboundedSender<Wish>>,
    wished: Mutex<Option<UnboundedReceiver<Wish>>>,
    grants: [AtomicU64; 2],
    /// What other nodes know this one by.
    pub(crate) incarnation: u64,
}

struct Inner {
    member: Member,
    /// There while the member is attached.
    wire: Option<Wire>,
    /// Bytes that the realm holds for other nodes, on the account of the connection.
    held: isize,
    /// Nothing is dialled any more.
    is_stopped: bool,
    server: String,
    /// It has had a lease, where it needs one.
    is_leased: bool,
    /// Why it has none now, and is granted nothing.
    ungranted: Option<String>,
    told: strangers::Told,
    /// Why the last connection ended that way, or none was had; and when that was a denial.
    why: String,
    denied: Option<Instant>,
}

/// So long a realm counts as denied: longer than it takes to try again.
const DENIED_FOR: Duration = Duration::from_secs(10);

/// What operators see of a port.
pub(crate) struct Seen {
    pub(crate) state: State,
    /// Of the server, while there is one.
    pub(crate) server: String,
    /// Why there is none.
    pub(crate) why: String,
    /// Its last connection was of no use, for NATS does not let the node say or hear what it has to.
    pub(crate) is_denied: bool,
    /// Why no procedure is granted for one callee, where that is so.
    pub(crate) ungranted: Option<String>,
    /// Subjects that it wants and is not sent.
    pub(crate) interests_denied: usize,
    /// Names of the other nodes that are there.
    pub(crate) nodes: Vec<String>,
    pub(crate) suspected: usize,
    /// Names of those that this one speaks no version with, and theirs.
    pub(crate) strangers: Vec<(String, Versions)>,
    pub(crate) versions: Versions,
    pub(crate) interests: usize,
    /// Nodes that calls go to and come from.
    pub(crate) pairs: usize,
    pub(crate) counts: Counts,
    pub(crate) overdelivered: u64,
    pub(crate) offers_refused: u64,
    pub(crate) answers_partial: u64,
    pub(crate) ends_unknown: u64,
    pub(crate) testaments_refused: u64,
    pub(crate) retained_refused: u64,
    /// Claims that were refused, and granted.
    pub(crate) grants: [u64; 2],
}

/// What the realm wants of who grants procedures for one callee.
pub(crate) enum Wish {
    /// Under that number.
    Claim(u64, String),
    GiveUp(String),
}

/// Bytes that may wait for a server. Beyond it events are dropped and counted.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The longest message that several frames make: a longer one would be waited for.
const PACK_BYTES_MAX: usize = 32 * 1024;

/// A connection to a server.
struct Wire {
    connection: Arc<Connection>,
    /// What a node is being said, for as long as it is the last in the connection's queue.
    growing: Option<Growing>,
    /// The longest message that the server takes.
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

    /// What must not be lost, or what follows would be wrong: the connection ends where there is no room.
    fn say_surely(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.say(write).is_err() {
            self.connection.close();
        }
    }

    /// Appends to the last message; whether it could be.
    fn grow(&mut self, subject: &str, parts: [&[u8]; 2]) -> bool {
        let Some(growing) = &mut self.growing else {
            return false;
        };
        let bytes_max = self.message_bytes_max.min(PACK_BYTES_MAX);
        // So that it need not be taken back for want of room: what was written before has changed with it.
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
    pub(crate) fn new(
        realm: &str,
        settings: &model::Fabric,
        node: String,
        incarnation: u64,
    ) -> Self {
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
    pub(crate) fn publish(&self, publication: &Publication<'_>) -> Result<(), Uncrossed> {
        if self.is_alone.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Without a look at the clock.
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
        // Without a look at the clock.
        let mut inner = self.inner.lock();
        let Inner { member, wire, .. } = &mut *inner;
        let engine = wire.as_mut().map(|wire| wire as &mut dyn Engine);
        member.cross(to, crossing, engine)
    }

    /// Likewise, to the bucket.
    pub(crate) fn wish(&self, wish: Wish) {
        if let Some(wishes) = &self.wishes {
            // Nobody takes it only when the realm ends.
            let _ = wishes.send(wish);
        }
    }

    /// What is wished, once.
    pub(crate) fn take_wished(&self) -> Option<UnboundedReceiver<Wish>> {
        self.wished.lock().take()
    }

    pub(crate) fn note_claimed(&self, is_granted: bool) {
        self.grants[usize::from(is_granted)].fetch_add(1, Ordering::Relaxed);
    }

    /// The realm holds so many bytes more for other nodes, or less.
    pub(crate) fn hold(&self, delta: isize) {
        let mut inner = self.inner.lock();
        inner.held += delta;
        if let Some(wire) = &inner.wire {
            wire.connection.hold(delta);
        }
    }

    /// Who is there for the realm since this was last asked, or not any more; to be asked under the realm's lock,
    /// before it is given what has come.
    pub(crate) fn take_changes(&self) -> Vec<Change> {
        self.inner.lock().member.take_changes()
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.inner.lock().member.has_changes()
    }

    /// There is a connection, to a server of that name that takes messages of so many bytes.
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

    /// There is none any more; up to which position nobody waits.
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

    /// Why there is no connection; one that ended by a denial is of no use for a while.
    pub(crate) fn note_lost(&self, why: &str, is_denied: bool) {
        let mut inner = self.inner.lock();
        why.clone_into(&mut inner.why);
        if is_denied {
            inner.denied = Some(Instant::now());
        }
    }

    /// Whether what matches is not heard from other nodes. For the realm, under its lock.
    pub(crate) fn is_denied(&self, pattern: Pattern<'_>) -> bool {
        self.inner.lock().member.is_denied(pattern)
    }

    /// Does what is due; up to which position nobody waits.
    pub(crate) fn tick(&self) -> Position {
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

    /// Ends in good order.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.is_stopped = true;
        let Inner { member, wire, .. } = &mut *inner;
        if let Some(wire) = wire {
            member.leave(wire);
            wire.connection.finish();
        }
    }

    /// Has the member do something, with its way out where there is one.
    pub(crate) fn with<R>(
        &self,
        act: impl FnOnce(&mut Member, Option<&mut dyn Engine>, Time) -> R,
    ) -> R {
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

    /// Waits until it is attached, so long at most; whether it is.
    pub(crate) fn await_attached(&self, until: Instant) -> bool {
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

    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.lock().is_stopped
    }

    /// Whether sessions are to be turned away.
    pub(crate) fn is_refusing(&self) -> bool {
        self.inner.lock().member.is_refusing()
    }

    pub(crate) fn seen(&self) -> Seen {
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

    fn now(&self) -> Time {
        // 0 is before everything.
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
