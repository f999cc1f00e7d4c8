//! Draws the next operation: mostly meaningful ones of a client, and some that it should not send.

use crosstie_routing::{
    Allow, Authorizer, CacheOptions, CacheScope, CallTimeoutUnit, ClientFeature, Decision,
    Disclose, DiscloseMe, EmptyEligible, Limits, Permission, RealmConfig, RefusalCause,
    RequestIdCheck, Retention, Role, RoleMatch, Verdict,
};
use crosstie_wamp::{
    ID_MAX, MatchPolicy, PublishOptions, Receivers, Seldom, SessionId, Sharding, SubscribeOptions,
};

use super::Simulation;
use super::draw_meta::{TOPICS, call_queues, role_limits};
use crate::{Chance, Name, Operation, Refusing, Request};

/// Sessions that are in the realm at once.
const MEMBERS_MAX: usize = 12;

/// Topics and procedures; some are invalid URIs, some are the router's.
pub(super) const URIS: [&str; 11] = [
    "a", "a.b", "a.b.c", "a.b.d", "a.c", "b", "b.c", "b.b.c", "a..c", "wamp.x", "c",
];
const PREFIXES: [&str; 6] = ["", "a", "a.", "a.b", "b", "wamp."];
const WILDCARDS: [&str; 8] = [".b", "a.", "a..c", "..", ".b.", "a.b.", "..c", "wamp."];

impl Simulation {
    pub(super) fn draw(&mut self) -> Operation {
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
        if let Some(welcome) = self.draw_welcome() {
            return welcome;
        }
        let name = self.chance.pick(&names);
        let is_judged = self.judged.iter().any(|judged| judged.name == name);
        match self.chance.below(100) {
            0..3 => Operation::Leave { name },
            3..9 => Operation::Pass {
                milliseconds: self.chance.below(60) as u64,
            },
            9..14 => self.draw_refusal(name),
            14 if !is_judged && self.chance.one_in(8) => Operation::Send {
                from: name,
                request: Request::Nonsense,
            },
            15 if self.chance.one_in(20) => Operation::StopRole {
                authrole: self
                    .chance
                    .pick(&["anonymous", "staff", "asked"])
                    .to_owned(),
            },
            15 if self.chance.one_in(60) => Operation::End,
            // Answers arrive late and in any order, also for sessions that have left.
            _ if is_judged || (!self.judged.is_empty() && self.chance.one_in(8)) => {
                self.draw_verdict()
            }
            _ => Operation::Send {
                from: name,
                request: self.draw_request(name),
            },
        }
    }

    fn draw_join(&mut self) -> Operation {
        let chance = &mut self.chance;
        self.name_last += 1;
        let announced = |_: &ClientFeature| !chance.one_in(3);
        let features = ClientFeature::ALL.into_iter().filter(announced).collect();
        Operation::Join {
            name: self.name_last,
            authid: chance.pick(&["ann", "bob", "eve"]).to_owned(),
            authrole: chance
                .pick(&["anonymous", "anonymous", "staff", "asked"])
                .to_owned(),
            features,
            welcomed: !chance.one_in(6),
        }
    }

    fn draw_verdict(&mut self) -> Operation {
        let place = self.chance.below(self.judged.len());
        let chance = &mut self.chance;
        let verdict = match chance.one_in(8) {
            true => Verdict::Failed {
                cause: RefusalCause::AuthorizerFailed,
                text: "simulated".to_owned(),
            },
            false => Verdict::Decided(Decision {
                allow: !chance.one_in(4),
                disclose: chance.one_in(2),
                cache: chance.one_in(2),
                trustlevel: chance.pick(&[None, None, Some(7)]),
            }),
        };
        let judged = &self.judged[place];
        Operation::Judge {
            name: judged.name,
            request: judged.request.clone(),
            verdict,
        }
    }

    fn draw_refusal(&mut self, name: Name) -> Operation {
        let refusing = match self.model.member(name).refusing {
            // A lost connection does not come back.
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
            // Its last messages are still read, but it has not learned the ids of its registrations.
            return self.draw_answer(from);
        }
        match self.chance.below(100) {
            0..12 => self.draw_publish(from),
            12..20 => self.draw_subscribe(from),
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
            58..64 => self.draw_cancel(from),
            64..72 => self.draw_next_part(from),
            72..82 => match self.draw_meta(from) {
                Some(meta) => meta,
                None => self.draw_answer(from),
            },
            82..85 => match self.draw_reflection(from) {
                Some(meta) => meta,
                None => self.draw_answer(from),
            },
            _ => self.draw_answer(from),
        }
    }

    fn draw_subscribe(&mut self, from: Name) -> Request {
        let (match_policy, topic) = match self.chance.one_in(4) {
            true => self
                .chance
                .pick(&TOPICS.map(|(policy, uri)| (policy, uri.to_owned()))),
            false => self.draw_pattern(),
        };
        let options = SubscribeOptions {
            match_policy,
            get_retained: self.chance.one_in(2),
            nkey: self
                .chance
                .pick(&[None, None, Some("n1"), Some("n2"), Some("n3")])
                .map(Box::from)
                .into(),
            acknowledged_delivery: false,
            is_forwarded: false,
            unsupported: None,
        };
        Request::Subscribe {
            request: self.draw_id(from),
            options,
            topic,
        }
    }

    pub(super) fn draw_publish(&mut self, from: Name) -> Request {
        let request = self.draw_id(from);
        let chance = &mut self.chance;
        let mut options = PublishOptions {
            acknowledge: chance.one_in(2),
            exclude_me: !chance.one_in(3),
            disclose_me: chance.pick(&[None, None, Some(false), Some(true)]),
            retain: chance.one_in(3),
            retain_ms: chance.pick(&[None, None, None, Some(0), Some(50)]),
            sharding: draw_rkey(chance),
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

    pub(super) fn draw_pattern(&mut self) -> (MatchPolicy, String) {
        let (policy, uris) = match self.chance.below(3) {
            0 => (MatchPolicy::Prefix, &PREFIXES[..]),
            1 => (MatchPolicy::Wildcard, &WILDCARDS[..]),
            _ => (MatchPolicy::Exact, &URIS[..]),
        };
        (policy, self.chance.pick(uris).to_owned())
    }

    /// A request id: the next one, but for a few.
    pub(super) fn draw_id(&mut self, from: Name) -> u64 {
        let next = self.model.member(from).request_last + 1;
        if self.chance.one_in(150) {
            1 + self.chance.below(next as usize + 3) as u64
        } else {
            next
        }
    }

    /// One of the ids that make sense, but for a few.
    pub(super) fn draw_known(&mut self, ids: &[u64]) -> u64 {
        let any = 1 + self.chance.below(20) as u64;
        // Larger ones are the model's own, for ids that the session was not sent.
        let ids: Vec<u64> = ids.iter().copied().filter(|id| *id <= ID_MAX).collect();
        if self.chance.one_in(8) {
            any
        } else {
            self.chance.pick_any(&ids).unwrap_or(any)
        }
    }

    pub(super) fn next_payload(&mut self) -> u64 {
        self.payload_last += 1;
        self.payload_last
    }
}

/// A realm with few or many limits, and with a role that may do some things.
pub(super) fn config(chance: &mut Chance) -> RealmConfig {
    let mut config = RealmConfig::open("simulated");
    config.meta_api = !chance.one_in(4);
    config.request_id_check = chance.pick(&[RequestIdCheck::Loose, RequestIdCheck::Strict]);
    config.disclose_me = chance.pick(&[DiscloseMe::Allow, DiscloseMe::Refuse]);
    config.call_timeout_unit = match chance.one_in(4) {
        true => CallTimeoutUnit::Seconds,
        false => CallTimeoutUnit::Milliseconds,
    };
    config.empty_eligible = chance.pick(&[EmptyEligible::Nobody, EmptyEligible::Everybody]);
    config.limits = limits(chance);
    config.retention = retention(chance);
    config.call_queues = call_queues(chance);
    config.roles.push(staff(chance));
    let mut authorizer = Authorizer::new("simulated.authorize");
    authorizer.cache = CacheOptions {
        scope: chance.pick(&[
            CacheScope::Uri,
            CacheScope::Role,
            CacheScope::Authid,
            CacheScope::Session,
        ]),
        expiry_ms: chance.pick(&[0, 100]),
        entries_max: chance.pick(&[2, 1_000]),
        ..CacheOptions::default()
    };
    config.roles.push(Role::asking("asked", authorizer));
    config
}

/// A role that may do some things.
fn staff(chance: &mut Chance) -> Role {
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
            callee: disclosed,
        },
        cache: true,
        trustlevel: disclosed.then_some(3),
    };
    let mut staff = Role::new(
        "staff",
        vec![
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
            permission(
                MatchPolicy::Prefix,
                "wamp.",
                [true, false, false, true],
                true,
            ),
        ],
    );
    staff.role_match = chance.pick(&[
        RoleMatch::Specific,
        RoleMatch::Specific,
        RoleMatch::Crossbar,
    ]);
    staff.limits = role_limits(chance);
    staff.trustlevel = chance.pick(&[None, Some(1)]);
    staff
}

/// Topics whose retained events expire.
fn retention(chance: &mut Chance) -> Vec<Retention> {
    let known = [
        (MatchPolicy::Exact, "a.b", 30),
        (MatchPolicy::Prefix, "a", 100),
        (MatchPolicy::Wildcard, ".c", 70),
    ];
    let drawn = known.into_iter().filter(|_| chance.one_in(4));
    let retention = drawn.map(|(match_policy, uri, age_ms_max)| Retention {
        uri: uri.to_owned(),
        match_policy,
        age_ms_max,
    });
    retention.collect()
}

fn limits(chance: &mut Chance) -> Limits {
    let mut limits = Limits::default();
    limits.retained_events_max = chance.pick(&[3, 1_000]);
    limits.retained_sent_max = chance.pick(&[2, 1_000]);
    limits.subscriptions_max = chance.pick(&[3, 1_000]);
    limits.registrations_max = chance.pick(&[3, 1_000]);
    limits.testaments_max = chance.pick(&[2, 1_000]);
    limits.definitions_max = chance.pick(&[1, 1_000]);
    limits.realm_definitions_max = chance.pick(&[4, 1_000]);
    limits.calls_max = chance.pick(&[2, 1_000]);
    limits.call_timeout_ms_max = chance.pick(&[0, 100]);
    limits
}

/// The resource of a publication: mostly none.
fn draw_rkey(chance: &mut Chance) -> Seldom<Sharding> {
    match chance.pick(&[None, None, None, Some("k1"), Some("k2"), Some("k3")]) {
        None => Seldom::NONE,
        Some(rkey) => Seldom::from(Sharding {
            rkey: Some(rkey.into()),
            ..Sharding::default()
        }),
    }
}
