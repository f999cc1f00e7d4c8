//! One run of calls over several nodes: sessions register, call, answer and cancel, and each result is checked.

mod checks;
mod received;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_fabric::Kind;
use crosstie_routing::{ClientFeature, ClientFeatures};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, InvocationPolicy, MatchPolicy, Message, MessageType,
    Payload, RegisterOptions, RegistrationId, RequestId, Runmode, Serializer, YieldOptions,
};

use super::cluster::{Cluster, Place, Setting};
use super::node::{Heard, Node, QUEUED};
use super::play::{Play, Present};
use crate::Name;

/// Procedures, how they match and are shared.
const PROCEDURES: [(MatchPolicy, &str, InvocationPolicy, &str); 9] = [
    (MatchPolicy::Exact, "s", InvocationPolicy::Single, "s"),
    (MatchPolicy::Exact, "t", InvocationPolicy::RoundRobin, "t"),
    (MatchPolicy::Exact, "f", InvocationPolicy::First, "f"),
    (MatchPolicy::Exact, "l", InvocationPolicy::Last, "l"),
    (MatchPolicy::Exact, "b", InvocationPolicy::LeastBusy, "b"),
    (MatchPolicy::Prefix, "p.", InvocationPolicy::Random, "p.x"),
    // Callees that serve one call at a time; calls of the first of both wait for them.
    (
        MatchPolicy::Exact,
        QUEUED,
        InvocationPolicy::RoundRobin,
        QUEUED,
    ),
    (MatchPolicy::Exact, "c", InvocationPolicy::First, "c"),
    // Calls for one shard.
    (
        MatchPolicy::Exact,
        SHARDED,
        InvocationPolicy::Random,
        SHARDED,
    ),
];

const SHARDED: &str = "h";
const KEYS: [&str; 3] = ["k1", "k2", "k3"];

/// With faults one takes 8 seconds.
const MINUTE_OF_QUIETS: usize = 9;

/// Callees of one call that say that they are not available.
const ASKED_MAX: usize = 8;

const TIMEOUT_MS: u64 = 700;

pub struct Calls {
    cluster: Cluster,
    sessions: BTreeMap<Name, Session>,
    /// Calls that were cancelled without telling their callee, by the number that travels with each call.
    skipped: BTreeSet<u64>,
    answered_across: usize,
    /// How often the callees of each procedure have been others, or may have.
    changes: [u64; PROCEDURES.len()],
    /// The callees of ordered calls: by procedure, its changes, the key of a shard, and how many were asked before.
    given: BTreeMap<Given, Name>,
}

type Given = (usize, u64, Option<&'static str>, usize);

/// A session as itself sees it.
pub(super) struct Session {
    place: Place,
    /// Open REGISTERs and UNREGISTERs: a procedure's index, or a registration that is to end.
    registering: BTreeMap<RequestId, usize>,
    ending: BTreeMap<RequestId, RegistrationId>,
    /// Its confirmed registrations, and the request of each.
    registered: BTreeMap<RegistrationId, (usize, RequestId)>,
    calls: BTreeMap<RequestId, Call>,
    /// Invocations that it has not answered.
    invocations: BTreeMap<RequestId, Invocation>,
    /// Of each caller, the last number that it was invoked for.
    last: BTreeMap<Name, u64>,
}

struct Call {
    number: u64,
    place: usize,
    /// Progress that has come.
    progress: u64,
    /// The callees when it was made, with their requests.
    holders: Vec<(Name, RequestId)>,
    is_cancelled: bool,
    has_timeout: bool,
    /// The changes when it was made, and the resource that it is about.
    since: u64,
    rkey: Option<&'static str>,
    /// The callees that were invoked for it, with the request of their registration.
    asked: Vec<(Name, Option<RequestId>)>,
    /// A callee has sent a progressive result, and has to finish.
    is_begun: bool,
}

struct Invocation {
    number: u64,
    progress: u64,
    is_interrupted: bool,
}

impl Calls {
    pub fn new(seed: u64, setting: Setting) -> Self {
        Self {
            cluster: Cluster::new(seed, setting),
            sessions: BTreeMap::new(),
            skipped: BTreeSet::new(),
            answered_across: 0,
            changes: [0; PROCEDURES.len()],
            given: BTreeMap::new(),
        }
    }

    /// Plays that many steps, lets everything arrive, and has all sessions leave; returns how many calls other nodes
    /// answered.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for _ in 0..self.cluster.setting.nodes * 2 {
            self.join();
        }
        for _ in 0..steps {
            match self.cluster.chance.below(20) {
                0 => self.tick(),
                1 | 2 => self.register(),
                3 => self.unregister(),
                4..=7 => self.call(),
                8 | 9 => self.answer(),
                10 => self.cancel(),
                11 if self.cluster.setting.faults && self.cluster.chance.one_in(8) => self.fail(),
                12 if self.cluster.chance.one_in(4) => self.join(),
                13 if self.cluster.chance.one_in(8) => self.leave_any(),
                _ => {
                    self.step();
                }
            }
        }
        self.quiet();
        // A silent node is asked again a minute later.
        for _ in 0..MINUTE_OF_QUIETS {
            let mut nodes = self.cluster.nodes.values();
            if nodes.all(|node| node.member.suspected() == 0) {
                break;
            }
            self.quiet();
        }
        self.check_quiet();
        self.check_directories();
        for name in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.leave(name);
        }
        self.quiet();
        for node in self.cluster.nodes.values() {
            let counts = node.realm.counts();
            assert_eq!(counts.calls + counts.calls_across, 0, "a call stays");
            assert_eq!(counts.kept_bytes, 0, "what is kept of one stays");
            assert_eq!(counts.registrations + counts.registrations_elsewhere, 0);
            assert!(node.held >= 0 && !node.realm.has_backlog());
            assert!(node.realm.next_timeout().is_none());
        }
        self.answered_across
    }

    fn join(&mut self) {
        // Some learn by GOODBYE that a registration is revoked.
        let is_told = self.cluster.chance.one_in(2);
        let features: ClientFeatures = ClientFeature::ALL
            .into_iter()
            .filter(|feature| is_told || *feature != ClientFeature::CalleeRegistrationRevocation)
            .collect();
        let Some((name, place)) = self.cluster.join(features) else {
            return;
        };
        let session = Session {
            place,
            registering: BTreeMap::new(),
            ending: BTreeMap::new(),
            registered: BTreeMap::new(),
            calls: BTreeMap::new(),
            invocations: BTreeMap::new(),
            last: BTreeMap::new(),
        };
        self.sessions.insert(name, session);
    }

    fn register(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let place = self.cluster.chance.below(PROCEDURES.len());
        let (match_policy, procedure, invoke, _) = PROCEDURES[place];
        let request = self.cluster.request();
        let mut options = RegisterOptions {
            match_policy,
            invoke,
            concurrency: u32::from(is_bounded(place)),
            ..RegisterOptions::default()
        };
        // Some are of the same shard.
        if procedure == SHARDED
            && let nkey @ ("n1" | "n2") = &*format!("n{}", name % 3)
        {
            options.nkey = Some(nkey.into()).into();
        }
        if let Some(session) = self.sessions.get_mut(&name) {
            session.registering.insert(request, place);
        }
        self.changes[place] += 1;
        self.say(
            name,
            &Message::Register {
                request,
                options,
                procedure: procedure.into(),
            },
        );
    }

    fn unregister(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let request = self.cluster.request();
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let ids: Vec<_> = session.registered.keys().copied().collect();
        let Some(registration) = self.cluster.chance.pick_any(&ids) else {
            return;
        };
        if let Some((place, _)) = session.registered.remove(&registration) {
            self.changes[place] += 1;
        }
        session.ending.insert(request, registration);
        self.say(
            name,
            &Message::Unregister {
                request,
                registration,
            },
        );
    }

    fn call(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let place = self.cluster.chance.below(PROCEDURES.len());
        let procedure = PROCEDURES[place].3;
        let request = self.cluster.request();
        let number = request.0;
        let has_timeout = self.cluster.chance.one_in(8);
        let rkey = (procedure == SHARDED).then(|| self.cluster.chance.pick(&KEYS));
        let mut holders = Vec::new();
        for (name, session) in &self.sessions {
            let of_it = session.registered.values();
            let of_it = of_it.filter(|(registered, _)| *registered == place);
            holders.extend(of_it.map(|(_, since)| (*name, *since)));
        }
        let call = Call {
            number,
            place,
            progress: 0,
            holders,
            is_cancelled: false,
            has_timeout,
            since: self.changes[place],
            rkey,
            asked: Vec::new(),
            is_begun: false,
        };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.calls.insert(request, call);
        }
        let args = format!("[{number}]");
        let mut options = CallOptions {
            receive_progress: true,
            timeout_ms: if has_timeout { TIMEOUT_MS } else { 0 },
            ..CallOptions::default()
        };
        if let Some(rkey) = rkey {
            let sharding = options.sharding.get_or_insert_default();
            sharding.rkey = Some(rkey.into());
            sharding.runmode = Some(Runmode::Partition);
        }
        self.say(
            name,
            &Message::Call {
                request,
                options,
                procedure: procedure.into(),
                payload: payload(&args),
            },
        );
    }

    /// A callee answers something that it was invoked for.
    fn answer(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let progress = self.cluster.chance.one_in(3);
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let open: Vec<_> = session.invocations.keys().copied().collect();
        let Some(request) = self.cluster.chance.pick_any(&open) else {
            return;
        };
        let Some(invocation) = session.invocations.get_mut(&request) else {
            return;
        };
        invocation.progress += 1;
        let number = invocation.number;
        // A result is the call's number, with how much has come of it.
        let args = format!("[{}]", invocation.number * 1_000 + invocation.progress);
        if !progress {
            session.invocations.remove(&request);
        }
        let message = Message::Yield {
            request,
            options: YieldOptions {
                progress,
                ..YieldOptions::default()
            },
            payload: payload(&args),
        };
        let fails = !progress && self.cluster.chance.one_in(2);
        let is_unavailable = self.cluster.chance.one_in(2);
        let error = match is_unavailable {
            true => "wamp.error.unavailable",
            false => "e.failed",
        };
        let error = Message::Error {
            request_type: MessageType::Invocation,
            request,
            details: Vec::new(),
            error: error.into(),
            payload: Payload::EMPTY,
        };
        if progress && let Some(call) = self.call_of(number) {
            call.is_begun = true;
        }
        self.say(name, if fails { &error } else { &message });
    }

    fn cancel(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let modes = [CancelMode::Skip, CancelMode::Kill, CancelMode::KillNoWait];
        let mode = self.cluster.chance.pick(&modes);
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let open: Vec<_> = session.calls.keys().copied().collect();
        let Some(request) = self.cluster.chance.pick_any(&open) else {
            return;
        };
        if let Some(call) = session.calls.get_mut(&request) {
            call.is_cancelled = true;
            if mode == CancelMode::Skip {
                self.skipped.insert(call.number);
            }
        }
        let options = CancelOptions { mode };
        self.say(name, &Message::Cancel { request, options });
    }

    fn call_of(&mut self, number: u64) -> Option<&mut Call> {
        let all = self.sessions.values_mut();
        let mut calls = all.flat_map(|session| session.calls.values_mut());
        calls.find(|call| call.number == number)
    }

    fn caller(&self, number: u64) -> Option<Name> {
        let mut all = self.sessions.iter();
        let found = all.find(|(_, s)| s.calls.values().any(|call| call.number == number));
        found.map(|(name, _)| *name)
    }

    fn bounced(&self) -> u64 {
        // The node that sent one may be gone, with its counters.
        let of = |node: &Node| node.member.counts().received[Kind::Bounce as usize];
        self.cluster.nodes.values().map(of).sum()
    }
}

impl Present for Session {
    fn place(&self) -> Place {
        self.place
    }
}

impl Play for Calls {
    type Session = Session;

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn sessions(&mut self) -> &mut BTreeMap<Name, Session> {
        &mut self.sessions
    }

    fn judge(&mut self, name: Name, heard: Heard) {
        self.judge_heard(name, heard);
    }

    fn leave(&mut self, name: Name) {
        self.changes.iter_mut().for_each(|changes| *changes += 1);
        if let Some(session) = self.sessions.remove(&name) {
            self.cluster.leave(session.place);
            self.hear(session.place.node);
        }
    }
}

/// Whether callees serve one call at a time.
fn is_bounded(place: usize) -> bool {
    [QUEUED, "c"].contains(&PROCEDURES[place].1)
}

fn payload(args: &str) -> Payload<'_> {
    Payload::new(Serializer::Json, args.as_bytes(), b"")
}
