//! One node: a realm with its sessions, and the member that it is for others.

use std::collections::BTreeMap;

use crosstie_fabric::{
    Change, Detached, Engine, Input, Member, Options, Refusal, Ticked, Versions, pack,
};
use crosstie_routing::{
    CallQueue, ClientFeatures, CloseReason, Crossing, Identity, Lease, Locality, NeighbourKey,
    Outbox, Pattern, Position, Publication, Realm, RealmConfig, Refused, SessionKey, Time,
    Uncrossed,
};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    MatchPolicy, Message, MessageType, Payload, PublicationId, RegistrationId, RequestId,
    SubscriptionId, Value,
};

use super::engine::{Client, Told};
use crate::Name;

/// A message to a session.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Subscribed(SubscriptionId),
    Unsubscribed,
    Published(PublicationId),
    Event(SubscriptionId, PublicationId),
    Registered(RequestId, RegistrationId),
    Unregistered(RequestId),
    Revoked(RegistrationId),
    /// With the number that is its argument.
    Invocation(RequestId, u64),
    Interrupt(RequestId),
    /// With the number that is its argument, and whether it is a progressive one.
    Result(RequestId, u64, bool),
    Error(MessageType, RequestId, String),
    Goodbye,
}

pub(super) struct Node {
    pub(super) realm: Realm<Name>,
    pub(super) member: Member,
    pub(super) heard: Vec<(Name, Heard)>,
    /// The meta events to sessions: the topic, and the ids in its arguments.
    pub(super) told: Vec<(Name, String, Vec<u64>)>,
    /// Bytes that the realm holds for other nodes.
    pub(super) held: isize,
    /// The answers of the meta API.
    pub(super) answers: BTreeMap<RequestId, Value>,
    /// The realm's requests for grants.
    pub(super) wishes: Vec<Wish>,
    /// The node's lease, and until when it takes that for its own.
    pub(super) lease: u64,
    pub(super) leased_until: Time,
}

/// A node's properties beside its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) meta_api: bool,
    pub(super) strict: bool,
    pub(super) versions: Versions,
}

#[derive(Clone, Debug)]
pub(super) enum Wish {
    Claim(u64, Key),
    GiveUp(Key),
}

/// Calls of this procedure wait for a callee that is free.
pub(super) const QUEUED: &str = "q";

/// A procedure, and how it matches.
pub(super) type Key = (&'static str, String);

fn key(pattern: Pattern<'_>) -> Key {
    (pattern.match_policy.name(), pattern.topic.to_owned())
}

/// The realm's outbox, which leads to the member as the router's does.
struct Out<'n> {
    now: Time,
    member: &'n mut Member,
    client: Option<&'n mut Client>,
    heard: &'n mut Vec<(Name, Heard)>,
    told: &'n mut Vec<(Name, String, Vec<u64>)>,
    held: &'n mut isize,
    answers: &'n mut BTreeMap<RequestId, Value>,
    wishes: &'n mut Vec<Wish>,
}

impl Outbox<Name> for Out<'_> {
    fn send(&mut self, to: &Name, message: &Message<'_>) -> Result<(), Refused> {
        let heard = match message {
            Message::Subscribed { subscription, .. } => Heard::Subscribed(*subscription),
            Message::Unsubscribed { .. } => Heard::Unsubscribed,
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => {
                if let Some(topic) = details.topic.as_deref().filter(|t| t.starts_with("wamp.")) {
                    self.told.push((*to, topic.to_owned(), ids(payload)));
                }
                Heard::Event(*subscription, *publication)
            }
            Message::Published { publication, .. } => Heard::Published(*publication),
            Message::Registered {
                request,
                registration,
            } => Heard::Registered(*request, *registration),
            Message::Unregistered {
                request,
                revoked: None,
            } => Heard::Unregistered(*request),
            Message::Unregistered {
                revoked: Some(revoked),
                ..
            } => Heard::Revoked(revoked.id),
            Message::Invocation {
                request, payload, ..
            } => Heard::Invocation(*request, number(payload.args)),
            Message::Interrupt { request, .. } => Heard::Interrupt(*request),
            Message::Result {
                request,
                details,
                payload,
            } => {
                self.keep(*request, payload);
                Heard::Result(*request, number(payload.args), details.progress)
            }
            Message::Error {
                request_type,
                request,
                error,
                ..
            } => Heard::Error(*request_type, *request, error.to_string()),
            other => panic!("nobody is told {other:?}"),
        };
        self.heard.push((*to, heard));
        Ok(())
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Name>) {
        for receiver in receivers {
            let _ = self.send(receiver, event);
        }
    }

    fn close(&mut self, session: &Name, _: CloseReason) {
        panic!("{session} is closed");
    }

    fn publish_across(&mut self, publication: &Publication<'_>) -> Result<(), Uncrossed> {
        let client = self.client.as_deref_mut();
        let (is_alone, before) = (self.member.is_alone(), self.member.counts().sent);
        let published = self
            .member
            .publish(publication, client.map(|client| client as &mut dyn Engine));
        // The router does not ask then.
        let is_said = published.is_err() || self.member.counts().sent != before;
        assert!(!is_alone || !is_said, "what is for nobody is said");
        published
    }

    fn cross(&mut self, to: NeighbourKey, crossing: &Crossing<'_>) -> Result<(), Refused> {
        let client = self.client.as_deref_mut();
        let engine = client.map(|client| client as &mut dyn Engine);
        self.member.cross(to, crossing, engine)
    }

    fn claim(&mut self, claim: u64, pattern: Pattern<'_>) {
        self.wishes.push(Wish::Claim(claim, key(pattern)));
    }

    fn give_up(&mut self, pattern: Pattern<'_>) {
        self.wishes.push(Wish::GiveUp(key(pattern)));
    }

    fn hold_across(&mut self, delta: isize) {
        *self.held += delta;
    }

    fn goodbye(&mut self, session: &Name, _: &str, _: Option<&str>) {
        self.heard.push((*session, Heard::Goodbye));
    }

    fn interest(&mut self, pattern: Pattern<'_>, begins: bool) -> Position {
        let client = self.client.as_deref_mut();
        let engine = client.map(|client| client as &mut dyn Engine);
        self.member.interest(self.now, pattern, begins, engine)
    }
}

impl Out<'_> {
    fn keep(&mut self, request: RequestId, payload: &Payload<'_>) {
        let serializer = payload.serializer;
        let read = codec::decode_value(serializer, payload.args, &Limits::default());
        if let Ok(Value::List(mut values)) = read
            && let Some(value) = values.pop()
        {
            self.answers.insert(request, value);
        }
    }
}

impl Node {
    pub(super) fn new(incarnation: u64, seed: u64, kind: Kind) -> Self {
        let queue = CallQueue {
            uri: QUEUED.to_owned(),
            match_policy: MatchPolicy::Exact,
            calls_max: 3,
        };
        let config = RealmConfig {
            meta_api: kind.meta_api,
            call_queues: vec![queue],
            ..RealmConfig::open("r")
        };
        let mut node = Self {
            realm: Realm::new(config, seed),
            member: Member::new(Options {
                realm: "r".to_owned(),
                node: incarnation.to_string(),
                incarnation,
                detached: Detached::Serve,
                local_prefixes: Vec::new(),
                versions: kind.versions,
            }),
            heard: Vec::new(),
            told: Vec::new(),
            held: 0,
            answers: BTreeMap::new(),
            wishes: Vec::new(),
            lease: 0,
            leased_until: Time(0),
        };
        node.with(Time(0), None, |realm, out| {
            realm.join_fabric(incarnation, Locality::Spread, out);
            if kind.strict {
                realm.serve_singles_strictly();
            }
        });
        node
    }

    pub(super) fn join(&mut self, now: Time, name: Name, features: ClientFeatures) -> SessionKey {
        let identity = Identity::new("somebody", "anonymous", "simulated", "simulated");
        let joined = self.realm.join(now, name, identity, features);
        joined.expect("anybody may join").0
    }

    /// The same of a session that has been told so, with its id.
    pub(super) fn enter(
        &mut self,
        now: Time,
        client: Option<&mut Client>,
        name: Name,
        features: ClientFeatures,
    ) -> (SessionKey, u64) {
        let key = self.join(now, name, features);
        self.with(now, client, |realm, out| realm.welcomed(now, key, out));
        let places = 0..self.realm.places();
        let mut sessions = self.realm.sessions_at(places);
        let found = sessions.find(|session| *session.handle == name);
        (key, found.expect("it has joined").id.0)
    }

    pub(super) fn handle(
        &mut self,
        now: Time,
        client: Option<&mut Client>,
        from: SessionKey,
        message: &Message<'_>,
    ) {
        self.with(now, client, |realm, out| {
            let handled = realm.handle(now, from, message, out);
            handled.expect("nobody breaks the protocol");
        });
    }

    pub(super) fn leave(&mut self, now: Time, client: Option<&mut Client>, session: SessionKey) {
        self.with(now, client, |realm, out| {
            realm.leave(now, session, out);
            while realm.has_backlog() {
                realm.work(now, 3, out);
            }
        });
    }

    pub(super) fn told(&mut self, now: Time, client: &mut Client, told: &Told) {
        match told {
            Told::Pong => self.member.handle_pong(now, client),
            Told::Message(subject, message) => {
                for frame in pack::frames(message) {
                    let taken = self.member.handle_message(now, (subject, frame), client);
                    // A node that does not know all others yet may send frames of a version that not all of them
                    // accept.
                    if matches!(taken, Err(Refusal::Version)) {
                        continue;
                    }
                    let input = taken.expect("nodes say what nodes say");
                    self.take(now, client, input.as_ref());
                }
            }
        }
        self.settle(now, Some(client));
    }

    /// Gives one input to the realm.
    fn take(&mut self, now: Time, client: &mut Client, input: Option<&Input<'_>>) {
        self.change(now, Some(&mut *client));
        self.with(now, Some(client), |realm, out| match input {
            Some(Input::Event(from, event)) => {
                if let Some(publication) = event.publication() {
                    realm.handle_publication(now, *from, &publication, out);
                }
            }
            Some(Input::Crossing(from, came)) => {
                let crossing = came.crossing().expect("it was read whole");
                realm.handle_crossing(now, *from, &crossing, out);
            }
            None => {}
        });
    }

    /// Tells the realm which nodes joined and left.
    fn change(&mut self, now: Time, client: Option<&mut Client>) {
        let changes = self.member.take_changes();
        self.with(now, client, |realm, out| {
            for change in changes {
                match change {
                    Change::Joined(key) => realm.join_neighbour(now, key, out),
                    Change::Left(key) => realm.leave_neighbour(now, key, out),
                    Change::GivenUp { node, has_ended } => {
                        realm.give_up_neighbour(now, (node, has_ended), out);
                    }
                    Change::Dead { node, is_missed } => {
                        realm.handle_death(now, (node, is_missed), out);
                    }
                }
            }
        });
    }

    /// The node's lease lasts until then.
    pub(super) fn have_lease(&mut self, now: Time, client: Option<&mut Client>, lease: Lease) {
        self.leased_until = lease.served_until;
        self.with(now, client, |realm, out| {
            realm.end_lease(now, out);
            realm.handle_lease(now, lease);
        });
    }

    pub(super) fn end_lease(&mut self, now: Time, client: Option<&mut Client>) {
        self.with(now, client, |realm, out| realm.end_lease(now, out));
    }

    pub(super) fn claimed(
        &mut self,
        now: Time,
        client: Option<&mut Client>,
        (claim, is_granted): (u64, bool),
    ) {
        self.with(now, client, |realm, out| {
            realm.handle_claimed(now, claim, is_granted, out);
        });
    }

    /// Some time has passed.
    pub(super) fn tick(&mut self, now: Time, mut client: Option<&mut Client>) -> Ticked {
        let engine = client.as_deref_mut();
        let engine = engine.map(|client| client as &mut dyn Engine);
        let ticked = self.member.handle_tick(now, engine);
        self.settle(now, client);
        ticked
    }

    /// Completes requests whose subscriptions are in force.
    pub(super) fn settle(&mut self, now: Time, mut client: Option<&mut Client>) {
        self.change(now, client.as_deref_mut());
        let reached = self.member.in_force();
        self.with(now, client, |realm, out| {
            realm.handle_in_force(now, reached, out);
            if realm.next_timeout().is_some_and(|due| due <= now) {
                realm.handle_timeout(now, out);
            }
            while realm.has_backlog() {
                realm.work(now, 3, out);
            }
            realm.check_invariants();
        });
    }

    fn with<R>(
        &mut self,
        now: Time,
        client: Option<&mut Client>,
        act: impl FnOnce(&mut Realm<Name>, &mut Out<'_>) -> R,
    ) -> R {
        let mut out = Out {
            now,
            member: &mut self.member,
            client,
            heard: &mut self.heard,
            told: &mut self.told,
            held: &mut self.held,
            answers: &mut self.answers,
            wishes: &mut self.wishes,
        };
        act(&mut self.realm, &mut out)
    }
}

/// The ids that are arguments, or in them.
fn ids(payload: &Payload<'_>) -> Vec<u64> {
    let read = codec::decode_value(payload.serializer, payload.args, &Limits::default());
    let Ok(Value::List(values)) = read else {
        return Vec::new();
    };
    let id = |value: &Value| {
        let of = |name: &str| value.get(name).and_then(Value::as_u64);
        let of_details = || of("session").or_else(|| of("id"));
        value.as_u64().or_else(of_details)
    };
    values.iter().filter_map(id).collect()
}

/// The number that is the only argument.
fn number(args: &[u8]) -> u64 {
    let text = std::str::from_utf8(args).unwrap_or_default();
    text.trim_matches(['[', ']']).parse().unwrap_or(0)
}
