//! Draws the next call to the meta API.

use crosstie_routing::{CallQueue, RoleLimits};
use crosstie_wamp::{CancelMode, ID_MAX, MatchPolicy, PublishOptions, Seldom};

use super::Simulation;
use super::draw::URIS;
use crate::{About, Ask, Chance, Kind, Name, Operation, Refusing, Request, Whom};

const AUTHIDS: [&str; 4] = ["ann", "bob", "eve", "nobody"];
const AUTHROLES: [&str; 3] = ["anonymous", "staff", "none"];

impl Simulation {
    /// A CANCEL of a call that is open or waits, mostly.
    pub(super) fn draw_cancel(&mut self, from: Name) -> Request {
        let made = self.model.calls.iter().filter(|call| call.caller == from);
        let waiting = self.model.waiting.iter().filter(|call| call.caller == from);
        let ids = made.map(|call| call.request);
        let ids: Vec<u64> = ids.chain(waiting.map(|call| call.request)).collect();
        let modes = [CancelMode::Skip, CancelMode::Kill, CancelMode::KillNoWait];
        Request::Cancel {
            request: self.draw_known(&ids),
            mode: self.chance.pick(&modes),
        }
    }

    /// A session that has not been welcomed is, sooner or later.
    pub(super) fn draw_welcome(&mut self) -> Option<Operation> {
        let waiting = self.model.members.iter().filter(|member| !member.welcomed);
        let waiting: Vec<Name> = waiting.map(|member| member.name).collect();
        let name = self.chance.pick_any(&waiting)?;
        self.chance
            .one_in(10)
            .then_some(Operation::Welcome { name })
    }

    /// The next request's id; `None` if it would make the request a part of a call.
    fn free_request(&self, from: Name) -> Option<u64> {
        let request = self.model.member(from).request_last + 1;
        let mut calls = self.model.calls.iter();
        let is_taken = calls.any(|call| (call.caller, call.request) == (from, request))
            || self.model.member(from).unfinished.contains(&request);
        (!is_taken).then_some(request)
    }

    /// Conditions at the time of drawing may not hold when an authorizer has answered.
    fn is_judged(&self, from: Name) -> bool {
        self.model.member(from).authrole == ASKED
    }

    pub(super) fn draw_reflection(&mut self, from: Name) -> Option<Request> {
        let request = self.free_request(from).filter(|_| !self.is_judged(from))?;
        let ask = self.draw_reflect(from);
        Some(Request::Meta { request, ask })
    }

    pub(super) fn draw_meta(&mut self, from: Name) -> Option<Request> {
        let request = self.free_request(from)?;
        let is_judged = self.is_judged(from);
        let ask = match self.chance.below(20) {
            0 => Ask::CountSessions {
                authroles: self.some_roles(),
            },
            1 => Ask::ListSessions {
                authroles: self.some_roles(),
                offset: self.some_number(),
                limit: self.some_number(),
            },
            2 => Ask::GetSession {
                session: self.session_id(),
            },
            3 => Ask::Kill {
                session: self.session_id(),
                reason: self.reason(),
            },
            4 if !is_judged => self.draw_killing()?,
            5..10 if !is_judged => self.draw_testament(from),
            10 => Ask::FlushTestaments {
                scope: self.scope(),
            },
            _ => self.draw_about()?,
        };
        Some(Request::Meta { request, ask })
    }

    /// Sessions that are killed together may or may not receive meta events about each other. The consequences of an
    /// answer that one of them refuses would be chance, too.
    fn draw_killing(&mut self) -> Option<Ask> {
        let mut members = self.model.members.iter();
        if members.any(|member| member.refusing == Some(Refusing::Full)) || !self.chance.one_in(4) {
            return None;
        }
        let whom = match self.chance.below(3) {
            0 => Whom::Authid(self.chance.pick(&AUTHIDS).to_owned()),
            1 => Whom::Authrole(self.chance.pick(&AUTHROLES).to_owned()),
            _ => Whom::All,
        };
        let reason = self.reason();
        Some(Ask::KillMany { whom, reason })
    }

    fn draw_testament(&mut self, from: Name) -> Ask {
        // If several leave together, it is chance whose event is retained last.
        let mut others = self.model.members.iter().filter(|m| m.name != from);
        let retain = !others.any(|member| member.testaments.iter().any(|t| t.options.retain))
            && self.chance.one_in(3);
        let Request::Publish { options, topic, .. } = self.draw_publish(from) else {
            unreachable!("that is what it draws");
        };
        Ask::AddTestament {
            topic,
            payload: self.next_payload(),
            // A testament is for no shard.
            options: PublishOptions {
                retain,
                sharding: Seldom::NONE,
                ..options
            },
            scope: self.scope(),
        }
    }

    /// `None` if an entry exists whose id no session was sent.
    fn draw_about(&mut self) -> Option<Ask> {
        let kinds = [Kind::Registrations, Kind::Subscriptions];
        let mut entries = kinds.into_iter().flat_map(|kind| self.model.of(kind));
        if entries.any(|entry| entry.id > ID_MAX) {
            return None;
        }
        let kind = self.chance.pick(&kinds);
        let uri = self.chance.pick(&URIS).to_owned();
        let id = self.entry_id(kind);
        let about = match self.chance.below(10) {
            0 => About::List { session: None },
            1 => About::List {
                session: Some(self.session_id()),
            },
            2 => {
                let (policy, uri) = self.draw_pattern();
                About::Lookup { policy, uri }
            }
            3 => About::Match { uri },
            4 => About::Get { id },
            5 => About::Members { id },
            6 => About::CountMembers { id },
            _ => self.draw_removal(kind, id),
        };
        Some(Ask::Entries { kind, about })
    }

    /// Mostly of one that has a part in it.
    fn draw_removal(&mut self, kind: Kind, id: u64) -> About {
        let parts = self.model.of(kind).iter().filter(|entry| entry.id == id);
        let members: Vec<Name> = parts.map(|entry| entry.member).collect();
        let session = match self.chance.pick_any(&members) {
            Some(name) if !self.chance.one_in(8) => self.model.member(name).id,
            _ => self.session_id(),
        };
        About::Remove {
            id,
            session,
            reason: self.reason(),
        }
    }

    fn entry_id(&mut self, kind: Kind) -> u64 {
        let ids: Vec<u64> = self.model.of(kind).iter().map(|entry| entry.id).collect();
        match self.chance.pick_any(&ids) {
            Some(id) if !self.chance.one_in(8) => id,
            _ => 1 + self.chance.below(20) as u64,
        }
    }

    fn session_id(&mut self) -> u64 {
        let ids: Vec<u64> = self.model.members.iter().map(|member| member.id).collect();
        match self.chance.pick_any(&ids) {
            Some(id) if !self.chance.one_in(8) => id,
            _ => 1,
        }
    }

    fn some_roles(&mut self) -> Option<Vec<String>> {
        let count = self.chance.below(3);
        self.chance.one_in(2).then(|| {
            let role = |_| self.chance.pick(&AUTHROLES).to_owned();
            (0..count).map(role).collect()
        })
    }

    fn some_number(&mut self) -> Option<u64> {
        let number = self.chance.below(4) as u64;
        self.chance.one_in(2).then_some(number)
    }

    fn reason(&mut self) -> Option<String> {
        let reason = self.chance.pick(&["a.reason", "no..uri"]).to_owned();
        self.chance.one_in(3).then_some(reason)
    }

    fn scope(&mut self) -> Option<String> {
        let scope = self
            .chance
            .pick(&["detached", "detached", "destroyed", "ever"]);
        self.chance.one_in(2).then(|| scope.to_owned())
    }
}

/// The role that an authorizer is asked about.
const ASKED: &str = "asked";

/// Patterns that reach the meta events.
pub(super) const TOPICS: [(MatchPolicy, &str); 10] = [
    (MatchPolicy::Exact, "wamp.session.on_join"),
    (MatchPolicy::Exact, "wamp.session.on_leave"),
    (MatchPolicy::Exact, "wamp.subscription.on_delete"),
    (MatchPolicy::Exact, "wamp.registration.on_create"),
    (MatchPolicy::Prefix, "wamp.registration."),
    (MatchPolicy::Prefix, "wamp.reflect."),
    (MatchPolicy::Exact, "wamp.reflect.on_undefine"),
    (MatchPolicy::Prefix, "wa"),
    (MatchPolicy::Wildcard, "wamp.subscription."),
    (MatchPolicy::Wildcard, "..on_leave"),
];

/// The bounds of a role: none of them larger than the realm's bound for any session.
pub(super) fn role_limits(chance: &mut Chance) -> RoleLimits {
    let few = |chance: &mut Chance, most: usize| chance.one_in(3).then(|| chance.pick(&[most, 2]));
    let mut limits = RoleLimits::default();
    limits.subscriptions_max = few(chance, 3);
    limits.registrations_max = few(chance, 3);
    limits.calls_max = few(chance, 2);
    limits
}

/// Queues of calls, in most realms.
pub(super) fn call_queues(chance: &mut Chance) -> Vec<CallQueue> {
    if chance.one_in(4) {
        return Vec::new();
    }
    let patterns = [
        (MatchPolicy::Exact, "a.b"),
        (MatchPolicy::Prefix, "a"),
        (MatchPolicy::Prefix, "b."),
        (MatchPolicy::Wildcard, ".b"),
        (MatchPolicy::Exact, "c"),
    ];
    let queues = patterns.map(|(match_policy, uri)| CallQueue {
        uri: uri.to_owned(),
        match_policy,
        calls_max: chance.pick(&[0, 1, 4, 9]),
    });
    queues.into()
}
