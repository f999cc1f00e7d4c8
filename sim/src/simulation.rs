//! Draws operations, gives them to the realm and to the model, and compares.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crosstie_routing::{
    Allow, ClientFeatures, CloseReason, Disclose, DiscloseMe, Identity, Limits, Outbox, Permission,
    Realm, RealmConfig, Refused, RequestIdCheck, Role, SessionKey, Time,
};
use crosstie_wamp::{
    CallOptions, CancelMode, ID_MAX, InvocationPolicy, MatchPolicy, Message, PublishOptions,
    Receivers, RegisterOptions, SessionId,
};

use crate::{Chance, Model, Name, Operation, Refusing, Request, Sent};

/// Sessions that are in the realm at once.
const MEMBERS_MAX: usize = 12;

/// Names of what is published to and called; some are no URIs, some are the router's.
const URIS: [&str; 11] = [
    "a", "a.b", "a.b.c", "a.b.d", "a.c", "b", "b.c", "b.b.c", "a..c", "wamp.x", "c",
];
const PREFIXES: [&str; 6] = ["", "a", "a.", "a.b", "b", "wamp."];
const WILDCARDS: [&str; 8] = [".b", "a.", "a..c", "..", ".b.", "a.b.", "..c", "wamp."];

/// One run.
pub struct Simulation {
    seed: u64,
    chance: Chance,
    realm: Realm<Name>,
    model: Model,
    out: Recorder,
    keys: HashMap<Name, SessionKey>,
    now: Time,
    name_last: Name,
    payload_last: u64,
    log: Vec<String>,
}

/// A run in which realm and model differ.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub text: String,
    /// The operations up to the one that failed.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail = self.log.len().saturating_sub(12);
        for (step, line) in self.log.iter().enumerate().skip(tail) {
            writeln!(f, "{step:5} {line}")?;
        }
        writeln!(f, "{}", self.text)?;
        write!(f, "replay with SIM_SEED={}", self.seed)
    }
}

impl Simulation {
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let config = draw_config(&mut chance);
        Self {
            seed,
            realm: Realm::new(config.clone(), chance.number()),
            chance,
            model: Model::new(config),
            out: Recorder::default(),
            keys: HashMap::new(),
            now: Time(0),
            name_last: 0,
            payload_last: 0,
            log: Vec::new(),
        }
    }

    /// Plays that many operations, lets everyone leave, and tells which kinds of message and
    /// which errors were sent.
    pub fn run(mut self, operations: usize) -> Result<BTreeSet<String>, Failure> {
        let outcome = self.play(operations);
        match outcome {
            Ok(()) => Ok(self.out.kinds),
            Err(text) => Err(Failure {
                seed: self.seed,
                text,
                log: self.log,
            }),
        }
    }

    fn play(&mut self, operations: usize) -> Result<(), String> {
        for _ in 0..operations {
            let operation = self.draw();
            self.step(&operation)?;
        }
        while let Some(member) = self.model.members.first() {
            self.step(&Operation::Leave { name: member.name })?;
        }
        if !self.realm.is_idle() || !self.model.is_idle() {
            return Err(format!(
                "all have left, and {:?} stayed",
                self.realm.counts()
            ));
        }
        Ok(())
    }

    fn step(&mut self, operation: &Operation) -> Result<(), String> {
        self.log.push(format!("{operation:?}"));
        let violation = self.apply(operation)?;
        self.realm.check_invariants();
        let sent = std::mem::take(&mut self.out.sent);
        for (name, sent) in &sent {
            if *sent == Sent::Closed {
                self.close(*name)?;
            }
        }
        self.model.check(operation, sent, violation)?;
        let (due, expected) = (self.realm.next_timeout(), self.model.next_timeout_ms());
        if due != expected.map(|milliseconds| Time(milliseconds * 1_000)) {
            return Err(format!("next timeout is {due:?}, expected {expected:?} ms"));
        }
        if let (true, Operation::Send { from, .. }) = (violation, operation) {
            // It may have been closed for the same message.
            if self.keys.contains_key(from) {
                self.step(&Operation::Leave { name: *from })?;
            }
        }
        Ok(())
    }

    /// Gives an operation to the realm; whether it was a violation.
    fn apply(&mut self, operation: &Operation) -> Result<bool, String> {
        let mut violation = false;
        match operation {
            Operation::Join {
                name,
                authid,
                authrole,
                features,
            } => {
                let identity = Identity {
                    authid: authid.as_str().into(),
                    authrole: authrole.as_str().into(),
                    authmethod: "simulated".into(),
                    authprovider: "simulated".into(),
                };
                let joined = self.realm.join(self.now, *name, identity, *features);
                let (key, id) = joined.map_err(|refused| refused.to_string())?;
                self.keys.insert(*name, key);
                self.model.join(*name, id.0, operation);
            }
            Operation::Leave { name } => {
                let key = self.keys.remove(name).ok_or("it has no key")?;
                self.realm.leave(self.now, key, &mut self.out);
            }
            Operation::Send { from, request } => {
                let key = self.keys[from];
                let (realm, out, now) = (&mut self.realm, &mut self.out, self.now);
                let outcome = request.with_message(|message| realm.handle(now, key, message, out));
                violation = outcome.is_err();
            }
            Operation::Refuse {
                name,
                refusing: Some(refusing),
            } => {
                self.out.refusing.insert(*name, *refusing);
            }
            Operation::Refuse {
                name,
                refusing: None,
            } => {
                self.out.refusing.remove(name);
            }
            Operation::Pass { milliseconds } => {
                self.now = self.now.after_ms(*milliseconds);
                if self.realm.next_timeout().is_some_and(|due| due <= self.now) {
                    self.realm.handle_timeout(self.now, &mut self.out);
                }
            }
        }
        match self.out.complaint.take() {
            Some(complaint) => Err(complaint),
            None => Ok(violation),
        }
    }

    /// The realm had a session closed: nothing that its owner still does with it has effect.
    fn close(&mut self, name: Name) -> Result<(), String> {
        let key = self.keys.remove(&name).ok_or("it was closed already")?;
        let before = self.realm.counts();
        let late = Request::Subscribe {
            request: 1,
            policy: MatchPolicy::Exact,
            topic: "late".to_owned(),
        };
        let (realm, out, now) = (&mut self.realm, &mut self.out, self.now);
        let outcome = late.with_message(|message| realm.handle(now, key, message, out));
        realm.leave(now, key, out);
        if outcome.is_err() || !self.out.sent.is_empty() || self.realm.counts() != before {
            return Err("a closed session had an effect".to_owned());
        }
        Ok(())
    }

    fn draw(&mut self) -> Operation {
        let members = self.model.members.len();
        if members < 2 || (members < MEMBERS_MAX && self.chance.one_in(12)) {
            return self.draw_join();
        }
        let names: Vec<Name> = self
            .model
            .members
            .iter()
            .map(|member| member.name)
            .collect();
        let name = self.chance.pick(&names);
        match self.chance.below(100) {
            0..3 => Operation::Leave { name },
            3..9 => Operation::Pass {
                milliseconds: self.chance.below(60) as u64,
            },
            9..14 => self.draw_refusal(name),
            14 if self.chance.one_in(8) => Operation::Send {
                from: name,
                request: Request::Nonsense,
            },
            _ => Operation::Send {
                from: name,
                request: self.draw_request(name),
            },
        }
    }

    fn draw_join(&mut self) -> Operation {
        let chance = &mut self.chance;
        self.name_last += 1;
        let mut announced = || !chance.one_in(3);
        let features = ClientFeatures {
            caller_progressive_call_invocations: announced(),
            callee_progressive_call_invocations: announced(),
            callee_progressive_call_results: announced(),
            callee_call_canceling: announced(),
            callee_call_timeout: announced(),
        };
        Operation::Join {
            name: self.name_last,
            authid: chance.pick(&["ann", "bob", "eve"]).to_owned(),
            authrole: chance.pick(&["anonymous", "anonymous", "staff"]).to_owned(),
            features,
        }
    }

    fn draw_refusal(&mut self, name: Name) -> Operation {
        let refusing = match self.model.member(name).refusing {
            // What is gone does not come back.
            Some(Refusing::Gone) => return Operation::Leave { name },
            Some(_) => None,
            None => Some(match self.chance.below(6) {
                0 => Refusing::Gone,
                1 | 2 => Refusing::Full,
                _ => Refusing::Unrepresentable,
            }),
        };
        Operation::Refuse { name, refusing }
    }

    fn draw_request(&mut self, from: Name) -> Request {
        if self.model.member(from).refusing == Some(Refusing::Gone) {
            // Its last messages are still read, but it has not learned what it registered.
            return self.draw_answer(from);
        }
        match self.chance.below(100) {
            0..12 => self.draw_publish(from),
            12..20 => {
                let (policy, topic) = self.draw_pattern();
                Request::Subscribe {
                    request: self.draw_id(from),
                    policy,
                    topic,
                }
            }
            20..23 => {
                let mine = self
                    .model
                    .subscribers
                    .iter()
                    .filter(|entry| entry.member == from);
                let ids: Vec<u64> = mine.map(|entry| entry.id).collect();
                let subscription = self.draw_known(&ids);
                Request::Unsubscribe {
                    request: self.draw_id(from),
                    subscription,
                }
            }
            23..33 => self.draw_register(from),
            33..36 => {
                let mine = self
                    .model
                    .callees
                    .iter()
                    .filter(|entry| entry.member == from);
                let ids: Vec<u64> = mine.map(|entry| entry.id).collect();
                let registration = self.draw_known(&ids);
                Request::Unregister {
                    request: self.draw_id(from),
                    registration,
                }
            }
            36..58 => self.draw_call(from),
            58..64 => {
                let made = self.model.calls.iter().filter(|call| call.caller == from);
                let ids: Vec<u64> = made.map(|call| call.request).collect();
                let modes = [CancelMode::Skip, CancelMode::Kill, CancelMode::KillNoWait];
                Request::Cancel {
                    request: self.draw_known(&ids),
                    mode: self.chance.pick(&modes),
                }
            }
            64..72 => self.draw_next_part(from),
            _ => self.draw_answer(from),
        }
    }

    fn draw_publish(&mut self, from: Name) -> Request {
        let request = self.draw_id(from);
        let chance = &mut self.chance;
        let mut options = PublishOptions {
            acknowledge: chance.one_in(2),
            exclude_me: !chance.one_in(3),
            disclose_me: chance.pick(&[None, None, Some(false), Some(true)]),
            ..PublishOptions::default()
        };
        if chance.one_in(3) {
            let members = &self.model.members;
            let ids: Vec<u64> = members
                .iter()
                .map(|member| member.id)
                .chain([1, 2])
                .collect();
            let some_ids = |chance: &mut Chance| {
                let count = chance.below(5);
                chance.one_in(4).then(|| {
                    (0..count)
                        .map(|_| SessionId(chance.pick(&ids)))
                        .collect::<Vec<_>>()
                })
            };
            let some_names = |chance: &mut Chance, names: &[&str]| {
                let count = chance.below(3);
                chance.one_in(4).then(|| {
                    (0..count)
                        .map(|_| chance.pick(names).to_owned())
                        .collect::<Vec<_>>()
                })
            };
            let (authids, authroles) = (["ann", "bob", "nobody"], ["staff", "anonymous", "none"]);
            options.receivers = Some(Box::new(Receivers {
                exclude: some_ids(chance),
                exclude_authid: some_names(chance, &authids),
                exclude_authrole: some_names(chance, &authroles),
                eligible: some_ids(chance),
                eligible_authid: some_names(chance, &authids),
                eligible_authrole: some_names(chance, &authroles),
            }));
        }
        let topic = self.chance.pick(&URIS).to_owned();
        Request::Publish {
            request,
            options,
            topic,
            payload: self.next_payload(),
        }
    }

    fn draw_register(&mut self, from: Name) -> Request {
        let (match_policy, procedure) = self.draw_pattern();
        let invoke = self.chance.pick(&[
            InvocationPolicy::Single,
            InvocationPolicy::First,
            InvocationPolicy::Last,
            InvocationPolicy::RoundRobin,
            InvocationPolicy::RoundRobin,
            InvocationPolicy::Random,
        ]);
        let forward_timeout = self.chance.one_in(2);
        let options = RegisterOptions {
            match_policy,
            invoke,
            forward_timeout,
        };
        Request::Register {
            request: self.draw_id(from),
            options,
            procedure,
        }
    }

    fn draw_call(&mut self, from: Name) -> Request {
        let request = self.draw_id(from);
        let announced = self
            .model
            .member(from)
            .features
            .caller_progressive_call_invocations;
        let chance = &mut self.chance;
        let options = CallOptions {
            timeout_ms: if chance.one_in(2) {
                chance.below(200) as u64
            } else {
                0
            },
            receive_progress: chance.one_in(2),
            progress: chance.one_in(3) && (announced || chance.one_in(20)),
            disclose_me: chance.pick(&[None, None, Some(false), Some(true)]),
            passthru: None,
        };
        let procedure = chance.pick(&URIS).to_owned();
        Request::Call {
            request,
            options,
            procedure,
            payload: self.next_payload(),
        }
    }

    /// A CALL that continues one, in time or late.
    fn draw_next_part(&mut self, from: Name) -> Request {
        let open = self.model.calls.iter();
        let open = open.filter(|call| call.caller == from && call.next_part.is_some());
        let ended = self.model.member(from).unfinished.iter().copied();
        let ids: Vec<u64> = open.map(|call| call.request).chain(ended).collect();
        let Some(request) = self.chance.pick_any(&ids) else {
            return self.draw_call(from);
        };
        let options = CallOptions {
            progress: !self.chance.one_in(3),
            ..CallOptions::default()
        };
        Request::Call {
            request,
            options,
            procedure: "a".to_owned(),
            payload: self.next_payload(),
        }
    }

    fn draw_answer(&mut self, from: Name) -> Request {
        let served = self.model.calls.iter().filter(|call| call.callee == from);
        let ids: Vec<u64> = served.map(|call| call.invocation).collect();
        let last = self.model.member(from).invocation_last as usize;
        let stray = if self.chance.one_in(60) {
            last + 1
        } else {
            self.chance.below(last + 1)
        };
        let mut invocation = stray.max(1) as u64;
        if let Some(id) = self.chance.pick_any(&ids)
            && !self.chance.one_in(10)
        {
            invocation = id;
        } else if stray == 0 {
            return self.draw_call(from);
        }
        let payload = self.next_payload();
        if self.chance.one_in(5) {
            return Request::Error {
                invocation,
                payload,
            };
        }
        Request::Yield {
            invocation,
            progress: self.chance.one_in(2),
            payload,
        }
    }

    fn draw_pattern(&mut self) -> (MatchPolicy, String) {
        let (policy, uris) = match self.chance.below(3) {
            0 => (MatchPolicy::Prefix, &PREFIXES[..]),
            1 => (MatchPolicy::Wildcard, &WILDCARDS[..]),
            _ => (MatchPolicy::Exact, &URIS[..]),
        };
        (policy, self.chance.pick(uris).to_owned())
    }

    /// A request id: the next one, but for a few.
    fn draw_id(&mut self, from: Name) -> u64 {
        let next = self.model.member(from).request_last + 1;
        if self.chance.one_in(150) {
            1 + self.chance.below(next as usize + 3) as u64
        } else {
            next
        }
    }

    /// One of the ids that make sense, but for a few.
    fn draw_known(&mut self, ids: &[u64]) -> u64 {
        let any = 1 + self.chance.below(20) as u64;
        // Larger ones are the model's own, for what the session was not told.
        let ids: Vec<u64> = ids.iter().copied().filter(|id| *id <= ID_MAX).collect();
        if self.chance.one_in(8) {
            any
        } else {
            self.chance.pick_any(&ids).unwrap_or(any)
        }
    }

    fn next_payload(&mut self) -> u64 {
        self.payload_last += 1;
        self.payload_last
    }
}

fn draw_config(chance: &mut Chance) -> RealmConfig {
    let mut config = RealmConfig::open("simulated");
    config.request_id_check = chance.pick(&[RequestIdCheck::Loose, RequestIdCheck::Strict]);
    config.disclose_me = chance.pick(&[DiscloseMe::Allow, DiscloseMe::Refuse]);
    config.limits = Limits::default();
    config.limits.subscriptions_max = chance.pick(&[3, 1_000]);
    config.limits.registrations_max = chance.pick(&[3, 1_000]);
    config.limits.calls_max = chance.pick(&[2, 1_000]);
    config.limits.call_timeout_ms_max = chance.pick(&[0, 100]);
    let permission = |match_policy, uri: &str, allowed: [bool; 4], disclosed: bool| Permission {
        uri: uri.to_owned(),
        match_policy,
        allow: Allow {
            call: allowed[0],
            register: allowed[1],
            publish: allowed[2],
            subscribe: allowed[3],
        },
        disclose: Disclose {
            caller: disclosed,
            publisher: disclosed,
        },
        cache: true,
    };
    config.roles.push(Role {
        name: "staff".to_owned(),
        permissions: vec![
            permission(MatchPolicy::Prefix, "a", [true; 4], false),
            permission(MatchPolicy::Prefix, "a.b", [true, false, true, true], true),
            permission(MatchPolicy::Exact, "a.b", [false; 4], false),
            permission(MatchPolicy::Wildcard, ".c", [true; 4], true),
            permission(
                MatchPolicy::Wildcard,
                "..d",
                [false, true, false, true],
                false,
            ),
            permission(MatchPolicy::Prefix, "b", [true, true, false, false], false),
        ],
    });
    config
}

/// The outbox: keeps what was sent, and refuses what it is told to.
#[derive(Default)]
struct Recorder {
    sent: Vec<(Name, Sent)>,
    refusing: HashMap<Name, Refusing>,
    closed: BTreeSet<Name>,
    kinds: BTreeSet<String>,
    complaint: Option<String>,
}

impl Recorder {
    fn note(&mut self, sent: &Sent) {
        let kind = match sent {
            Sent::Error { uri, .. } => uri.clone(),
            other => format!("{other:?}")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        self.kinds.insert(kind);
    }
}

impl Outbox<Name> for Recorder {
    fn send(&mut self, to: &Name, message: &Message<'_>) -> Result<(), Refused> {
        if self.closed.contains(to) {
            self.complaint = Some(format!("{to} was sent {message:?} after it was closed"));
        }
        let sent = match Sent::from_message(message) {
            Ok(sent) => sent,
            Err(complaint) => {
                self.complaint = Some(complaint);
                return Ok(());
            }
        };
        let refusing = self.refusing.get(to);
        if let Some(refused) = refusing.and_then(|r| r.refusal(sent.carries_payload())) {
            return Err(refused);
        }
        self.note(&sent);
        self.sent.push((*to, sent));
        Ok(())
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Name>) {
        for receiver in receivers {
            let _ = self.send(receiver, event);
        }
    }

    fn close(&mut self, session: &Name, _reason: CloseReason) {
        if !self.closed.insert(*session) {
            self.complaint = Some(format!("{session} was closed twice"));
        }
        self.note(&Sent::Closed);
        self.sent.push((*session, Sent::Closed));
    }
}
