//! Several threads work in one realm behind the one lock, as a router's do: each thread holds
//! some sessions, does random things with them, and answers what they are sent. Which thread
//! comes first is the machine's choice, so that only what holds in any order is checked:
//!
//! - every call gets exactly one last answer, and nothing after it;
//! - one caller's calls reach one callee in the order in which they were made;
//! - one publisher's events reach one subscriber in the order of publication, none of them before
//!   SUBSCRIBED and none after UNSUBSCRIBED;
//! - when all have left, nothing stays.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_routing::{
    ClientFeature, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, SessionKey, Time,
};
use crosstie_sim::{Chance, Name, Request, Sent};
use crosstie_wamp::{
    CallOptions, CancelMode, InvocationPolicy, MatchPolicy, Message, PublishOptions,
    RegisterOptions, SubscribeOptions,
};

const THREADS: usize = 4;
const OPERATIONS: usize = 20_000;
const SESSIONS_PER_THREAD: usize = 4;

#[test]
fn threads_share_a_realm() {
    let seed = std::env::var("SIM_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let shared = Arc::new(Shared::new(seed));
    let workers: Vec<_> = (0..THREADS)
        .map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || Worker::new(shared, seed * 1_000 + index as u64).run())
        })
        .collect();
    let answered: u64 = workers
        .into_iter()
        .map(|worker| worker.join().expect("no panic"))
        .sum();
    let (realm, inboxes) = &mut *shared.realm.lock().expect("no panic");
    while realm.has_backlog() {
        realm.work(Time(0), 64, inboxes);
    }
    realm.check_invariants();
    assert!(
        realm.is_idle(),
        "all have left, and {:?} stayed",
        realm.counts()
    );
    assert!(
        answered > OPERATIONS as u64 / 4,
        "only {answered} calls were answered"
    );
}

/// What all threads see.
struct Shared {
    /// The lock under test: realm and inboxes change together, as realm and out-queues do.
    realm: Mutex<(Realm<Name>, Inboxes)>,
    names: AtomicU64,
    payloads: AtomicU64,
    /// Calls without their last answer, over all threads.
    calls_open: AtomicUsize,
    /// How often a thread has come to a point where it waits for the others.
    arrivals: AtomicUsize,
    failed: AtomicBool,
}

#[derive(Default)]
struct Inboxes(HashMap<Name, VecDeque<Sent>>);

impl Outbox<Name> for Inboxes {
    fn send(&mut self, to: &Name, message: &Message<'_>) -> Result<(), Refused> {
        let Some(inbox) = self.0.get_mut(to) else {
            return Err(Refused::Gone);
        };
        inbox.push_back(Sent::from_message(message).expect("a message of a realm"));
        Ok(())
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Name>) {
        for receiver in receivers {
            let _ = self.send(receiver, event);
        }
    }

    fn close(&mut self, session: &Name, reason: CloseReason) {
        panic!("{session} is closed for {reason:?}, but no queue is ever full here");
    }
}

/// One thread's sessions.
struct Worker {
    shared: Arc<Shared>,
    chance: Chance,
    sessions: Vec<Client>,
    answered: u64,
}

/// One session, as its peer knows it.
struct Client {
    name: Name,
    key: SessionKey,
    request_last: u64,
    /// Calls without their last answer, and whether they take progress.
    calls: HashMap<u64, bool>,
    subscribing: HashSet<u64>,
    subscriptions: HashSet<u64>,
    unsubscribing: HashMap<u64, u64>,
    /// Invocations that are to be answered.
    invocations: Vec<u64>,
    invocation_last: u64,
    /// The last payload of each sender's, by subscription (0 for calls).
    seen: HashMap<(u64, u64), u64>,
}

impl Shared {
    fn new(seed: u64) -> Self {
        let mut realm = Realm::new(RealmConfig::open("shared"), seed);
        // What sessions leave behind goes in turns, between which the others go on.
        realm.set_steps_at_once_max(0);
        Self {
            realm: Mutex::new((realm, Inboxes::default())),
            names: AtomicU64::new(0),
            payloads: AtomicU64::new(0),
            calls_open: AtomicUsize::new(0),
            arrivals: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }
}

impl Shared {
    /// A short turn of the realm's own.
    fn work(&self, steps_max: u32) {
        let (realm, inboxes) = &mut *self.realm.lock().expect("no panic");
        realm.work(Time(0), steps_max, inboxes);
    }

    /// Waits until every thread has come to the first point (nobody calls any more) or to the
    /// second (every call has been answered, too). Does `meanwhile` all the time.
    fn wait_for(&self, point: usize, mut meanwhile: impl FnMut()) {
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        let everyone = || self.arrivals.load(Ordering::SeqCst) >= point * THREADS;
        let answered = || point == 1 || self.calls_open.load(Ordering::SeqCst) == 0;
        while !everyone() || !answered() {
            self.work(8);
            meanwhile();
            assert!(
                !self.failed.load(Ordering::SeqCst),
                "another thread has failed"
            );
            // Not how fast it must be: without it, a lost answer would be waited for forever.
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "calls are not answered"
            );
            thread::yield_now();
        }
    }
}

/// Tells the other threads that this one has failed.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
    }
}

impl Worker {
    fn new(shared: Arc<Shared>, seed: u64) -> Self {
        Self {
            shared,
            chance: Chance::new(seed),
            sessions: Vec::new(),
            answered: 0,
        }
    }

    /// The number of calls that were answered.
    fn run(mut self) -> u64 {
        let _alarm = Alarm(Arc::clone(&self.shared));
        for _ in 0..SESSIONS_PER_THREAD {
            self.join();
        }
        for _ in 0..OPERATIONS {
            let place = self.chance.below(self.sessions.len());
            if self.chance.one_in(200) {
                self.leave(place);
                self.join();
            } else {
                self.act(place);
            }
            if self.chance.one_in(8) {
                self.shared.work(1 + self.chance.below(16) as u32);
            }
            self.read(place);
        }
        // When nobody calls any more, what is open is answered, and then all leave.
        let shared = Arc::clone(&self.shared);
        shared.wait_for(1, || {});
        shared.wait_for(2, || {
            for place in 0..self.sessions.len() {
                self.read(place);
                self.answer_all(place);
            }
        });
        for place in 0..self.sessions.len() {
            self.read(place);
            assert!(self.sessions[place].calls.is_empty());
        }
        while !self.sessions.is_empty() {
            self.leave(0);
        }
        self.answered
    }

    fn join(&mut self) {
        let name = self.shared.names.fetch_add(1, Ordering::SeqCst) as Name + 1;
        let identity = Identity::new("worker", "anonymous", "simulated", "simulated");
        let cancels = self.chance.one_in(2);
        let canceling = cancels.then_some(ClientFeature::CalleeCallCanceling);
        let progress = Some(ClientFeature::CalleeProgressiveCallResults);
        let features = progress.into_iter().chain(canceling).collect();
        let (realm, inboxes) = &mut *self.shared.realm.lock().expect("no panic");
        inboxes.0.insert(name, VecDeque::new());
        let (key, _) = realm
            .join(Time(0), name, identity, features)
            .expect("the role is there");
        self.sessions.push(Client::new(name, key));
    }

    fn leave(&mut self, place: usize) {
        let client = self.sessions.swap_remove(place);
        let (realm, inboxes) = &mut *self.shared.realm.lock().expect("no panic");
        realm.leave(Time(0), client.key, inboxes);
        inboxes.0.remove(&client.name);
        self.shared
            .calls_open
            .fetch_sub(client.calls.len(), Ordering::SeqCst);
    }

    /// One random request.
    fn act(&mut self, place: usize) {
        let client = &mut self.sessions[place];
        client.request_last += 1;
        let request = client.request_last;
        let uri = self.chance.pick(&["a.x", "a.y", "b.x", "b.y"]).to_owned();
        // A payload tells its sender and counts for all senders together.
        let payload = self.shared.payloads.fetch_add(1, Ordering::SeqCst) * 1_000_000
            + u64::from(client.name);
        let message = match self.chance.below(12) {
            0 => {
                client.subscribing.insert(request);
                subscribe(&mut self.chance, request, uri)
            }
            1 => {
                let ids: Vec<u64> = client.subscriptions.iter().copied().collect();
                let Some(subscription) = self.chance.pick_any(&ids) else {
                    return;
                };
                client.unsubscribing.insert(request, subscription);
                Request::Unsubscribe {
                    request,
                    subscription,
                }
            }
            2 => register(&mut self.chance, request, uri),
            3 => {
                let ids: Vec<u64> = client.calls.keys().copied().collect();
                let Some(request) = self.chance.pick_any(&ids) else {
                    return;
                };
                let modes = [CancelMode::Skip, CancelMode::Kill, CancelMode::KillNoWait];
                Request::Cancel {
                    request,
                    mode: self.chance.pick(&modes),
                }
            }
            4..7 => Request::Publish {
                request,
                options: PublishOptions {
                    exclude_me: self.chance.one_in(2),
                    ..PublishOptions::default()
                },
                topic: uri,
                payload,
            },
            7..9 => return self.answer_all(place),
            _ => {
                let receive_progress = self.chance.one_in(3);
                client.calls.insert(request, receive_progress);
                self.shared.calls_open.fetch_add(1, Ordering::SeqCst);
                let options = CallOptions {
                    receive_progress,
                    ..CallOptions::default()
                };
                Request::Call {
                    request,
                    options,
                    procedure: uri,
                    payload,
                }
            }
        };
        self.send(place, &message);
    }

    /// Answers every invocation the session knows of, the latest first.
    fn answer_all(&mut self, place: usize) {
        while let Some(invocation) = self.sessions[place].invocations.pop() {
            if self.chance.one_in(4) {
                let progress = Request::Yield {
                    invocation,
                    progress: true,
                    payload: 1,
                };
                self.send(place, &progress);
            }
            let last = if self.chance.one_in(4) {
                Request::Error {
                    is_unavailable: false,
                    invocation,
                    payload: 2,
                }
            } else {
                Request::Yield {
                    invocation,
                    progress: false,
                    payload: 3,
                }
            };
            self.send(place, &last);
        }
    }

    fn send(&self, place: usize, request: &Request) {
        let key = self.sessions[place].key;
        let outcome = request.with_message(|message| {
            let (realm, inboxes) = &mut *self.shared.realm.lock().expect("no panic");
            realm.handle(Time(0), key, message, inboxes)
        });
        assert_eq!(outcome, Ok(()), "{request:?}");
    }

    /// Takes what came, and checks it against what the session knows.
    fn read(&mut self, place: usize) {
        let client = &mut self.sessions[place];
        let inbox = {
            let (_, inboxes) = &mut *self.shared.realm.lock().expect("no panic");
            std::mem::take(inboxes.0.get_mut(&client.name).expect("it has an inbox"))
        };
        for sent in inbox {
            if client.take(&sent) {
                self.answered += 1;
                self.shared.calls_open.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

fn subscribe(chance: &mut Chance, request: u64, uri: String) -> Request {
    let match_policy = chance.pick(&[MatchPolicy::Exact, MatchPolicy::Wildcard]);
    let wildcard = match_policy == MatchPolicy::Wildcard;
    let topic = if wildcard { ".x".to_owned() } else { uri };
    Request::Subscribe {
        request,
        options: SubscribeOptions::matching(match_policy),
        topic,
    }
}

fn register(chance: &mut Chance, request: u64, procedure: String) -> Request {
    let invoke = chance.pick(&[InvocationPolicy::RoundRobin, InvocationPolicy::Random]);
    Request::Register {
        request,
        options: RegisterOptions {
            invoke,
            ..RegisterOptions::default()
        },
        procedure,
    }
}

impl Client {
    fn new(name: Name, key: SessionKey) -> Self {
        Self {
            name,
            key,
            request_last: 0,
            calls: HashMap::new(),
            subscribing: HashSet::new(),
            subscriptions: HashSet::new(),
            unsubscribing: HashMap::new(),
            invocations: Vec::new(),
            invocation_last: 0,
            seen: HashMap::new(),
        }
    }

    /// Checks a message; whether it is the last answer to a call.
    fn take(&mut self, sent: &Sent) -> bool {
        match sent {
            Sent::Subscribed {
                request,
                subscription,
            } => {
                assert!(self.subscribing.remove(request), "{sent:?} is no answer");
                self.subscriptions.insert(*subscription);
            }
            Sent::Unsubscribed { request, .. } => {
                let subscription = self.unsubscribing.remove(request);
                self.subscriptions.remove(&subscription.expect("an answer"));
            }
            Sent::Event {
                subscription,
                payload,
                ..
            } => {
                assert!(
                    self.subscriptions.contains(subscription),
                    "{sent:?} is not subscribed"
                );
                self.check_order(*subscription, *payload);
            }
            Sent::Invocation {
                request, payload, ..
            } => self.take_invocation(*request, *payload),
            Sent::Result {
                request,
                progress: true,
                ..
            } => {
                assert_eq!(
                    self.calls.get(request),
                    Some(&true),
                    "{sent:?} was not asked for"
                );
            }
            Sent::Result { request, .. }
            | Sent::Error {
                kind: "CALL",
                request,
                ..
            } => {
                assert!(
                    self.calls.remove(request).is_some(),
                    "{sent:?} answers no open call"
                );
                return true;
            }
            // A second UNSUBSCRIBE of the same subscription finds it gone.
            Sent::Error {
                kind: "UNSUBSCRIBE",
                request,
                ..
            } => {
                self.unsubscribing.remove(request);
            }
            _ => {}
        }
        false
    }

    fn take_invocation(&mut self, request: u64, payload: u64) {
        let expected = self.invocation_last + 1;
        assert_eq!(request, expected, "an invocation is out of sequence");
        self.invocation_last = request;
        self.invocations.push(request);
        self.check_order(0, payload);
    }

    fn check_order(&mut self, subscription: u64, payload: u64) {
        let (sequence, sender) = (payload / 1_000_000, payload % 1_000_000);
        if let Some(earlier) = self.seen.insert((subscription, sender), sequence) {
            assert!(
                earlier < sequence,
                "{payload} of {sender} came after {earlier}"
            );
        }
    }
}
