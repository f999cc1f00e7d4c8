//! One run of calls over several nodes: what sessions register, call, answer and cancel, and what becomes of it.

mod checks;
mod judging;

use std::collections::{BTreeMap, BTreeSet};

use crosstie_fabric::{Kind, Ticked};
use crosstie_routing::{ClientFeature, ClientFeatures, SessionKey, Time};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, InvocationPolicy, MatchPolicy, Message, MessageType,
    Payload, RegisterOptions, RegistrationId, RequestId, Serializer, YieldOptions,
};

use super::Setting;
use super::engine::{NodeIndex, Servers};
use super::node::Node;
use crate::{Chance, Name};

/// Procedures, how they match and are shared.
const PROCEDURES: [(MatchPolicy, &str, InvocationPolicy, &str); 5] = [
    (MatchPolicy::Exact, "s", InvocationPolicy::Single, "s"),
    (MatchPolicy::Exact, "t", InvocationPolicy::RoundRobin, "t"),
    (MatchPolicy::Exact, "f", InvocationPolicy::First, "f"),
    (MatchPolicy::Exact, "l", InvocationPolicy::Last, "l"),
    (MatchPolicy::Prefix, "p.", InvocationPolicy::Random, "p.x"),
];

const TICK_MS: u64 = 100;
const TICK_WITHOUT_FAULTS_MS: u64 = 10;

const TIMEOUT_MS: u64 = 700;

pub struct Calls {
    setting: Setting,
    chance: Chance,
    servers: Servers,
    nodes: BTreeMap<NodeIndex, Node>,
    sessions: BTreeMap<Name, Session>,
    now: Time,
    name_last: Name,
    request_last: u64,
    /// Each call has a number that goes with it; those that were cancelled without their callee being told.
    skipped: BTreeSet<u64>,
    answered_across: usize,
}

/// A session as itself sees it.
#[derive(Default)]
struct Session {
    node: NodeIndex,
    key: Option<SessionKey>,
    /// What it asked for, by request: a procedure's place, or a registration that is to end.
    registering: BTreeMap<RequestId, usize>,
    ending: BTreeMap<RequestId, RegistrationId>,
    /// What it was told that it has, and since which request.
    registered: BTreeMap<RegistrationId, (usize, RequestId)>,
    calls: BTreeMap<RequestId, Call>,
    /// What it was invoked for and has not answered.
    invocations: BTreeMap<RequestId, Invocation>,
    /// Of each caller, the last number that it was invoked for.
    last: BTreeMap<Name, u64>,
}

struct Call {
    number: u64,
    place: usize,
    /// Progress that has come.
    progress: u64,
    /// Who served it when it was made, and by which request.
    holders: Vec<(Name, RequestId)>,
    is_cancelled: bool,
    has_timeout: bool,
}

struct Invocation {
    number: u64,
    progress: u64,
    is_interrupted: bool,
}

impl Calls {
    pub fn new(seed: u64, setting: Setting) -> Self {
        let mut chance = Chance::new(seed);
        let mut servers = Servers::new(setting.servers);
        let mut nodes = BTreeMap::new();
        for index in 0..setting.nodes {
            nodes.insert(index, Node::new(index as u64 + 1, chance.number()));
            servers.connect(index, chance.below(setting.servers));
        }
        let mut calls = Self {
            setting,
            chance,
            servers,
            nodes,
            sessions: BTreeMap::new(),
            now: Time(1_000_000),
            name_last: 0,
            request_last: 0,
            skipped: BTreeSet::new(),
            answered_across: 0,
        };
        for index in 0..setting.nodes {
            calls.attach(index);
        }
        calls
    }

    /// Plays so many steps, lets all arrive, and has everybody leave; how many calls were answered by other nodes.
    pub fn play(mut self, steps: usize) -> usize {
        self.quiet();
        for _ in 0..self.setting.nodes * 2 {
            self.join();
        }
        for _ in 0..steps {
            match self.chance.below(20) {
                0 => self.tick(),
                1 | 2 => self.register(),
                3 => self.unregister(),
                4..=7 => self.call(),
                8 | 9 => self.answer(),
                10 => self.cancel(),
                11 if self.setting.faults && self.chance.one_in(8) => self.fail(),
                12 if self.chance.one_in(4) => self.join(),
                13 if self.chance.one_in(8) => self.leave_any(),
                _ => {
                    self.step();
                }
            }
        }
        self.quiet();
        self.check_quiet();
        self.check_directories();
        for name in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.leave(name);
        }
        self.quiet();
        for node in self.nodes.values() {
            let counts = node.realm.counts();
            assert_eq!(counts.calls + counts.calls_across, 0, "a call stays");
            assert_eq!(counts.registrations + counts.registrations_elsewhere, 0);
            assert!(node.held >= 0 && !node.realm.has_backlog());
            assert!(node.realm.next_timeout().is_none());
        }
        self.answered_across
    }

    fn attach(&mut self, index: NodeIndex) {
        if let (Some(node), Some(client)) = (
            self.nodes.get_mut(&index),
            self.servers.clients.get_mut(&index),
        ) {
            let server = format!("server{}", client.server);
            node.member.attach(self.now, (&server, 1 << 20), client);
        }
    }

    fn step(&mut self) -> bool {
        let Some(told) = self.servers.step(&mut self.chance) else {
            return false;
        };
        if let Some((index, told)) = told
            && let Some(node) = self.nodes.get_mut(&index)
            && let Some(client) = self.servers.clients.get_mut(&index)
        {
            node.told(self.now, client, &told);
            self.hear(index);
        }
        true
    }

    fn tick(&mut self) {
        let tick_ms = match self.setting.faults {
            true => TICK_MS,
            false => TICK_WITHOUT_FAULTS_MS,
        };
        self.now = self.now.after_ms(tick_ms);
        for index in 0..self.setting.nodes {
            let client = self.servers.clients.get_mut(&index);
            let is_cut = client.is_none();
            let Some(node) = self.nodes.get_mut(&index) else {
                continue;
            };
            let ticked = node.tick(self.now, client);
            self.hear(index);
            if ticked == Ticked::Silent {
                self.detach(index);
            } else if is_cut && self.chance.one_in(3) {
                let server = self.chance.below(self.setting.servers);
                self.servers.connect(index, server);
                self.attach(index);
            }
        }
    }

    fn quiet(&mut self) {
        for _ in 0..80 {
            while self.step() {}
            self.tick();
        }
        while self.step() {}
    }

    fn detach(&mut self, index: NodeIndex) {
        self.servers.cut(index);
        if let Some(node) = self.nodes.get_mut(&index) {
            node.member.detach();
            node.settle(self.now, None);
            self.hear(index);
        }
    }

    fn fail(&mut self) {
        let index = self.chance.below(self.setting.nodes);
        match self.chance.below(3) {
            0 => self.detach(index),
            1 if self.setting.servers > 1 => {
                let from = self.chance.below(self.setting.servers);
                let to = (from + 1) % self.setting.servers;
                self.servers.cut_route(from, to);
            }
            _ => {
                self.servers.cut(index);
                self.sessions.retain(|_, session| session.node != index);
                let (incarnation, seed) = (self.chance.number(), self.chance.number());
                self.nodes.insert(index, Node::new(incarnation, seed));
            }
        }
    }

    fn join(&mut self) {
        let index = self.chance.below(self.setting.nodes);
        let Some(node) = self.nodes.get_mut(&index) else {
            return;
        };
        self.name_last += 1;
        // Some are told that a registration is revoked by GOODBYE.
        let is_told = self.chance.one_in(2);
        let features: ClientFeatures = ClientFeature::ALL
            .into_iter()
            .filter(|feature| is_told || *feature != ClientFeature::CalleeRegistrationRevocation)
            .collect();
        let key = node.join(self.now, self.name_last, features);
        let session = Session {
            node: index,
            key: Some(key),
            ..Session::default()
        };
        self.sessions.insert(self.name_last, session);
    }

    fn leave_any(&mut self) {
        if let Some(name) = self.somebody() {
            self.leave(name);
        }
    }

    fn leave(&mut self, name: Name) {
        let Some(session) = self.sessions.remove(&name) else {
            return;
        };
        let client = self.servers.clients.get_mut(&session.node);
        if let (Some(node), Some(key)) = (self.nodes.get_mut(&session.node), session.key) {
            node.leave(self.now, client, key);
            self.hear(session.node);
        }
    }

    fn register(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let place = self.chance.below(PROCEDURES.len());
        let (match_policy, procedure, invoke, _) = PROCEDURES[place];
        let request = self.request();
        let options = RegisterOptions {
            match_policy,
            invoke,
            ..RegisterOptions::default()
        };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.registering.insert(request, place);
        }
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
        let request = self.request();
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let ids: Vec<_> = session.registered.keys().copied().collect();
        let Some(registration) = self.chance.pick_any(&ids) else {
            return;
        };
        session.registered.remove(&registration);
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
        let place = self.chance.below(PROCEDURES.len());
        let procedure = PROCEDURES[place].3;
        let request = self.request();
        let number = request.0;
        let has_timeout = self.chance.one_in(8);
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
        };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.calls.insert(request, call);
        }
        let args = format!("[{number}]");
        self.say(
            name,
            &Message::Call {
                request,
                options: CallOptions {
                    receive_progress: true,
                    timeout_ms: if has_timeout { TIMEOUT_MS } else { 0 },
                    ..CallOptions::default()
                },
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
        let progress = self.chance.one_in(3);
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let open: Vec<_> = session.invocations.keys().copied().collect();
        let Some(request) = self.chance.pick_any(&open) else {
            return;
        };
        let Some(invocation) = session.invocations.get_mut(&request) else {
            return;
        };
        invocation.progress += 1;
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
        let fails = !progress && self.chance.one_in(4);
        let error = Message::Error {
            request_type: MessageType::Invocation,
            request,
            details: Vec::new(),
            error: "e.failed".into(),
            payload: Payload::EMPTY,
        };
        self.say(name, if fails { &error } else { &message });
    }

    fn cancel(&mut self) {
        let Some(name) = self.somebody() else {
            return;
        };
        let modes = [CancelMode::Skip, CancelMode::Kill, CancelMode::KillNoWait];
        let mode = self.chance.pick(&modes);
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let open: Vec<_> = session.calls.keys().copied().collect();
        let Some(request) = self.chance.pick_any(&open) else {
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

    fn say(&mut self, name: Name, message: &Message<'_>) {
        let Some(session) = self.sessions.get(&name) else {
            return;
        };
        let index = session.node;
        let client = self.servers.clients.get_mut(&index);
        if let (Some(node), Some(key)) = (self.nodes.get_mut(&index), session.key) {
            node.handle(self.now, client, key, message);
            self.hear(index);
        }
    }

    fn hear(&mut self, index: NodeIndex) {
        let Some(node) = self.nodes.get_mut(&index) else {
            return;
        };
        for (name, heard) in std::mem::take(&mut node.heard) {
            self.judge(name, heard);
        }
    }

    fn caller(&self, number: u64) -> Option<Name> {
        let mut all = self.sessions.iter();
        let found = all.find(|(_, s)| s.calls.values().any(|call| call.number == number));
        found.map(|(name, _)| *name)
    }

    fn bounced(&self) -> u64 {
        let of = |node: &Node| node.member.counts().sent[Kind::Bounce as usize];
        self.nodes.values().map(of).sum()
    }

    fn somebody(&mut self) -> Option<Name> {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        self.chance.pick_any(&names)
    }

    fn request(&mut self) -> RequestId {
        self.request_last += 1;
        RequestId(self.request_last)
    }
}

fn payload(args: &str) -> Payload<'_> {
    Payload {
        serializer: Serializer::Json,
        args: args.as_bytes(),
        kwargs: b"",
    }
}
