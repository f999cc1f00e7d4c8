//! The meta API, naively: answers, actions and events.

use crosstie_routing::{ClientFeature, Refused, error};
use crosstie_wamp::{CallOptions, Dict, ID_MAX, MatchPolicy, Value};

use super::patterns::matches;
use super::{Entry, Member, Model};
use crate::ask::json;
use crate::{About, Ask, Kind, Name, Sent, Whom};

/// The reason that a session is told, unless its caller gives one.
const KILLED: &str = "wamp.close.killed";

impl Model {
    /// Handles a call of the meta API; whether it is a violation.
    pub(super) fn ask(&mut self, from: Name, request: u64, ask: &Ask) -> bool {
        let options = CallOptions::default();
        if let Some(violation) = self.begin_call(from, request, &options, 0) {
            return violation;
        }
        let procedure = ask.procedure();
        let answer = match self.open_call(from, request, &options, &procedure, 0) {
            Err(error::NO_SUCH_PROCEDURE) if self.config.meta_api => {
                self.answer_ask(from, request, ask)
            }
            Err(uri) => Err(uri),
            Ok(()) => unreachable!("nobody serves what is the router's"),
        };
        match answer {
            Ok(value) => {
                let result = Sent::result_of(request, &value);
                if let Err(Refused::Unrepresentable(_)) = self.reply(from, result) {
                    self.refuse(from, "CALL", request, error::INVALID_ARGUMENT);
                }
            }
            Err(uri) => self.refuse(from, "CALL", request, uri),
        }
        false
    }

    /// Announces a session.
    pub(super) fn welcome(&mut self, name: Name) {
        self.member_mut(name).welcomed = true;
        let details = self.describe(self.member(name));
        self.tell("wamp.session.on_join", vec![Value::Dict(details)]);
    }

    /// Announces the end of a session, which was this.
    pub(super) fn tell_left(&mut self, member: &Member) {
        if member.welcomed {
            let arguments = vec![
                Value::from(member.id),
                Value::from(member.authid.as_str()),
                Value::from(member.authrole.as_str()),
            ];
            self.tell("wamp.session.on_leave", arguments);
        }
    }

    /// `entry` is a session's new part in something, of which it is the first one or not.
    pub(super) fn tell_entered(&mut self, kind: Kind, entry: &Entry, is_first: bool) {
        if Self::is_protected(&entry.uri) {
            return;
        }
        let session = Value::from(self.member(entry.member).id);
        let (of, verb) = match kind {
            Kind::Registrations => ("registration", "on_register"),
            Kind::Subscriptions => ("subscription", "on_subscribe"),
        };
        if is_first {
            let details = Value::Dict(details(kind, entry));
            self.tell(
                &format!("wamp.{of}.on_create"),
                vec![session.clone(), details],
            );
        }
        self.tell(&format!("wamp.{of}.{verb}"), vec![session, entry.id.into()]);
    }

    /// Takes a session's part in something away; whether it had one.
    pub(super) fn take_entry(&mut self, kind: Kind, id: u64, member: Name) -> bool {
        let is_it = |entry: &Entry| entry.id == id && entry.member == member;
        let all = match kind {
            Kind::Registrations => &mut self.callees,
            Kind::Subscriptions => &mut self.subscribers,
        };
        let Some(place) = all.iter().position(is_it) else {
            return false;
        };
        let mut entry = all.remove(place);
        // Its session was not told of its id, and others may be now.
        if entry.id > ID_MAX {
            let what = kind.name();
            entry.id = self.learn_id(what, Some(entry.id), self.told_id(kind, member));
        }
        self.tell_exited(kind, &entry);
        true
    }

    /// The same on another session's request: the member is told if it supports revocation.
    pub(super) fn remove_entry(&mut self, kind: Kind, id: u64, member: Name) -> bool {
        if !self.take_entry(kind, id, member) {
            return false;
        }
        let (feature, revoked) = match kind {
            Kind::Registrations => (
                ClientFeature::CalleeRegistrationRevocation,
                Sent::Unregistered {
                    request: 0,
                    revoked: Some(id),
                },
            ),
            Kind::Subscriptions => (
                ClientFeature::SubscriberSubscriptionRevocation,
                Sent::Unsubscribed {
                    request: 0,
                    revoked: Some(id),
                },
            ),
        };
        if self.member(member).features.has(feature) {
            let _ = self.reply(member, revoked);
        }
        true
    }

    /// `entry` was a session's part in something.
    fn tell_exited(&mut self, kind: Kind, entry: &Entry) {
        if Self::is_protected(&entry.uri) {
            return;
        }
        let session = self.member(entry.member).id;
        self.exited.push((kind, entry.id, session));
        let (of, verb) = match kind {
            Kind::Registrations => ("registration", "on_unregister"),
            Kind::Subscriptions => ("subscription", "on_unsubscribe"),
        };
        let arguments = vec![Value::from(session), Value::from(entry.id)];
        self.tell(&format!("wamp.{of}.{verb}"), arguments);
        if self.of(kind).iter().any(|other| other.id == entry.id) {
            return;
        }
        // If several leave together, any may be the last.
        let last = self.exited.clone().into_iter();
        let last = last.filter(|(of, id, _)| (*of, *id) == (kind, entry.id));
        let said = |(_, id, session): &(Kind, u64, u64)| vec![(*session).into(), (*id).into()];
        let possible: Vec<_> = last.map(|who| said(&who)).collect();
        self.tell_one_of(&format!("wamp.{of}.on_delete"), &possible);
    }

    /// Publishes an event of the realm's own.
    pub(super) fn tell(&mut self, topic: &str, arguments: Vec<Value>) {
        self.tell_one_of(topic, &[arguments]);
    }

    /// Publishes one of these; the last one is as good as the one that the realm chose.
    pub(super) fn tell_one_of(&mut self, topic: &str, possible: &[Vec<Value>]) {
        if !self.config.meta_api {
            return;
        }
        for entry in self.subscribers.clone() {
            if !matches(entry.policy, &entry.uri, topic) {
                continue;
            }
            let of_pattern = (entry.policy != MatchPolicy::Exact).then(|| topic.to_owned());
            let events = possible.iter().map(|arguments| Sent::MetaEvent {
                subscription: entry.id,
                topic: of_pattern.clone(),
                arguments: json(Value::List(arguments.clone())),
            });
            let events: Vec<_> = events.collect();
            let came = |event: &&Sent| self.actual.contains(&(entry.member, (*event).clone()));
            let event = events.iter().find(came).or_else(|| events.last()).cloned();
            if let Some(event) = event {
                let _ = self.deliver(entry.member, event);
            }
        }
    }

    /// The id of a session's new subscription or registration in a meta event: the session itself has not been sent it.
    pub(super) fn told_id(&self, kind: Kind, from: Name) -> Option<u64> {
        let topics = match kind {
            Kind::Registrations => "wamp.registration.",
            Kind::Subscriptions => "wamp.subscription.",
        };
        let session = self.member(from).id;
        let is_known = |id: &u64| self.ids_used.contains(&(kind.name(), *id));
        self.actual.iter().find_map(|(_, sent)| {
            let Sent::MetaEvent {
                subscription,
                topic,
                arguments,
            } = sent
            else {
                return None;
            };
            let of_exact = self.subscribers.iter().find(|e| e.id == *subscription);
            let topic = topic
                .as_deref()
                .or_else(|| of_exact.map(|entry| &*entry.uri))?;
            let rest = arguments.strip_prefix(&format!("[{session},"))?;
            let rest = rest.strip_prefix("{\"id\":").unwrap_or(rest);
            let digits = rest.split([',', ']']).next()?;
            let id = digits.parse().ok().filter(|id| !is_known(id));
            id.filter(|_| topic.starts_with(topics))
        })
    }

    pub(super) fn is_protected(uri: &str) -> bool {
        Self::check_reserved(uri).is_err()
    }

    pub(crate) fn of(&self, kind: Kind) -> &Vec<Entry> {
        match kind {
            Kind::Registrations => &self.callees,
            Kind::Subscriptions => &self.subscribers,
        }
    }

    fn answer_ask(&mut self, from: Name, request: u64, ask: &Ask) -> Result<Value, &'static str> {
        match ask {
            Ask::CountSessions { authroles } => {
                Ok(Value::from(self.listed(authroles).len() as u64))
            }
            Ask::ListSessions {
                authroles,
                offset,
                limit,
            } => Ok(self.list_sessions(request, authroles, *offset, *limit)),
            Ask::GetSession { session } => {
                let member = self.seen(*session)?;
                Ok(Value::Dict(self.describe(member)))
            }
            Ask::Kill { session, reason } => {
                let reason = good_reason(reason)?.unwrap_or(KILLED);
                let name = self.seen(*session)?.name;
                if name == from {
                    return Err(error::NO_SUCH_SESSION);
                }
                self.kill(&[name], reason);
                Ok(Value::Null)
            }
            Ask::KillMany { whom, reason } => {
                let reason = good_reason(reason)?.unwrap_or(KILLED);
                Ok(self.kill_many(from, whom, reason))
            }
            Ask::AddTestament {
                topic,
                payload,
                options,
                scope,
            } => {
                let testament = (topic.as_str(), *payload, options);
                self.add_testament(from, request, testament, scope.as_deref())
            }
            Ask::FlushTestaments { scope } => self.flush_testaments(from, scope.as_deref()),
            Ask::Reflection(reflect) => self.answer_reflect(from, reflect),
            Ask::Entries { kind, about } => self.answer_about(*kind, about),
        }
    }

    fn answer_about(&mut self, kind: Kind, about: &About) -> Result<Value, &'static str> {
        let of_id = |id: u64| self.of(kind).iter().filter(move |entry| entry.id == id);
        let find = |id: u64| match of_id(id).next() {
            None => Err(kind.no_such()),
            Some(entry) if Self::is_protected(&entry.uri) => Err(error::NOT_AUTHORIZED),
            Some(entry) => Ok(entry),
        };
        match about {
            About::List { session } => {
                let member = session.map(|id| self.seen(id)).transpose()?;
                let is_listed = |entry: &&Entry| {
                    !Self::is_protected(&entry.uri)
                        && member.is_none_or(|member| member.name == entry.member)
                };
                let ids = |policy: MatchPolicy| {
                    let all = self.of(kind).iter().filter(is_listed);
                    let all = all.filter(|entry| entry.policy == policy);
                    (policy.name().to_owned(), ids(all.map(|entry| entry.id)))
                };
                let policies = [
                    MatchPolicy::Exact,
                    MatchPolicy::Prefix,
                    MatchPolicy::Wildcard,
                ];
                Ok(Value::Dict(policies.map(ids).into()))
            }
            About::Lookup { policy, uri } => {
                let same = |entry: &&Entry| entry.policy == *policy && entry.uri == *uri;
                let found = self.of(kind).iter().find(same);
                let found = found.filter(|_| !Self::is_protected(uri));
                Ok(found.map_or(Value::Null, |entry| entry.id.into()))
            }
            About::Match { uri } if Self::is_protected(uri) => Ok(Value::Null),
            About::Match { uri } if kind == Kind::Registrations => {
                let serving = self.serving(uri);
                Ok(serving.first().map_or(Value::Null, |entry| entry.id.into()))
            }
            About::Match { uri } => {
                let all = self.subscribers.iter();
                let all = all.filter(|entry| matches(entry.policy, &entry.uri, uri));
                match ids(all.map(|entry| entry.id)) {
                    Value::List(ids) if ids.is_empty() => Ok(Value::Null),
                    some => Ok(some),
                }
            }
            About::Get { id } => Ok(Value::Dict(details(kind, find(*id)?))),
            About::Members { id } => {
                find(*id)?;
                Ok(ids(of_id(*id).map(|entry| self.member(entry.member).id)))
            }
            About::CountMembers { id } => {
                find(*id)?;
                Ok(Value::from(of_id(*id).count() as u64))
            }
            About::Remove {
                id,
                session,
                reason,
            } => {
                good_reason(reason)?;
                let member = self.seen(*session)?.name;
                find(*id)?;
                match self.remove_entry(kind, *id, member) {
                    true => Ok(Value::Null),
                    false => Err(kind.no_such()),
                }
            }
        }
    }

    fn list_sessions(
        &mut self,
        request: u64,
        authroles: &Option<Vec<String>>,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Value {
        let all = ids(self.listed(authroles).iter().map(|member| member.id));
        if offset.is_none() && limit.is_none() {
            return all;
        }
        let Value::List(all) = all else {
            unreachable!("ids are a list");
        };
        // Which ones are in a part is the realm's choice.
        let left = all.len().saturating_sub(offset.unwrap_or(0) as usize);
        let count = left.min(limit.unwrap_or(u64::MAX) as usize);
        let told = self
            .actual
            .iter()
            .find_map(|(_, sent)| sent.list_told(request));
        let told = told.unwrap_or_else(|| all.iter().take(count).cloned().collect());
        if told.len() != count || told.iter().any(|id| !all.contains(id)) {
            self.complaint = Some(format!("{told:?} is no part of {all:?} with {count} ids"));
        }
        Value::List(told)
    }

    fn kill_many(&mut self, from: Name, whom: &Whom, reason: &str) -> Value {
        let is_meant = |member: &&Member| {
            let is_of = match whom {
                Whom::Authid(authid) => member.authid == *authid,
                Whom::Authrole(authrole) => member.authrole == *authrole,
                Whom::All => true,
            };
            is_of && member.welcomed && member.name != from
        };
        let meant: Vec<_> = self.members.iter().filter(is_meant).collect();
        let killed = ids(meant.iter().map(|member| member.id));
        let names: Vec<_> = meant.iter().map(|member| member.name).collect();
        self.kill(&names, reason);
        match whom {
            Whom::Authid(_) => killed,
            _ => Value::from(names.len() as u64),
        }
    }

    /// Ends sessions. It is up to chance how many of those killed together still receive meta events about one another.
    fn kill(&mut self, names: &[Name], reason: &str) {
        self.dying.extend(names);
        for name in names {
            let reason = reason.to_owned();
            self.expected.push((*name, Sent::Goodbye { reason }));
        }
        names.iter().for_each(|name| self.leave(*name));
    }

    fn listed(&self, authroles: &Option<Vec<String>>) -> Vec<&Member> {
        let is_listed = |member: &&Member| {
            let named = authroles.as_ref();
            member.welcomed && named.is_none_or(|names| names.contains(&member.authrole))
        };
        self.members.iter().filter(is_listed).collect()
    }

    /// The session of that id, if it is spoken of.
    fn seen(&self, id: u64) -> Result<&Member, &'static str> {
        let is_it = |member: &&Member| member.id == id && member.welcomed && !member.closed;
        let found = self.members.iter().find(is_it);
        found.ok_or(error::NO_SUCH_SESSION)
    }

    fn describe(&self, member: &Member) -> Dict {
        let text = |key: &str, value: &str| (key.to_owned(), Value::from(value));
        vec![
            ("session".to_owned(), Value::from(member.id)),
            text("authid", &member.authid),
            text("authrole", &member.authrole),
            text("authmethod", "simulated"),
            text("authprovider", "simulated"),
            text("realm", &self.config.name),
            ("authextra".to_owned(), Value::Null),
            // Never resumed here: the realm is simulated without resumption.
            ("resumed".to_owned(), Value::from(false)),
            ("resumable".to_owned(), Value::from(false)),
            ("resume_token".to_owned(), Value::Null),
        ]
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Registrations => "registration",
            Self::Subscriptions => "subscription",
        }
    }

    fn no_such(self) -> &'static str {
        match self {
            Self::Registrations => error::NO_SUCH_REGISTRATION,
            Self::Subscriptions => error::NO_SUCH_SUBSCRIPTION,
        }
    }
}

/// Each id once, in their order.
fn ids(all: impl Iterator<Item = u64>) -> Value {
    let mut all: Vec<u64> = all.collect();
    all.sort_unstable();
    all.dedup();
    Value::List(all.into_iter().map(Value::from).collect())
}

fn details(kind: Kind, entry: &Entry) -> Dict {
    let ms = entry.created_ms;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let created = format!(
        "1970-01-01T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z",
        ms % 1_000
    );
    let mut details = vec![
        ("id".to_owned(), Value::from(entry.id)),
        ("created".to_owned(), Value::String(created)),
        ("uri".to_owned(), Value::from(entry.uri.as_str())),
        ("match".to_owned(), Value::from(entry.policy.name())),
    ];
    if kind == Kind::Registrations {
        details.push(("invoke".to_owned(), Value::from(entry.invoke.name())));
    }
    details
}

/// The reason, which is to be a URI.
fn good_reason(reason: &Option<String>) -> Result<Option<&str>, &'static str> {
    match reason.as_deref() {
        Some(reason) if reason.contains("..") => Err(error::INVALID_URI),
        reason => Ok(reason),
    }
}
