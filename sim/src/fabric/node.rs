//! One node: a realm with its sessions, and the member that it is for others.

use crosstie_fabric::{Detached, Engine, Member, Options};
use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Pattern, Position, Publication, Realm,
    RealmConfig, Refused, SessionKey, Time, Uncrossed,
};
use crosstie_wamp::{Message, PublicationId, SubscriptionId};

use super::engine::{Client, Told};
use crate::Name;

/// What a session was told.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Subscribed(SubscriptionId),
    Unsubscribed,
    Published(PublicationId),
    Event(SubscriptionId, PublicationId),
}

pub(super) struct Node {
    pub(super) realm: Realm<Name>,
    pub(super) member: Member,
    pub(super) heard: Vec<(Name, Heard)>,
}

/// The realm's outbox, which leads to the member as the router's does.
struct Out<'n> {
    now: Time,
    member: &'n mut Member,
    client: Option<&'n mut Client>,
    heard: &'n mut Vec<(Name, Heard)>,
}

impl Outbox<Name> for Out<'_> {
    fn send(&mut self, to: &Name, message: &Message<'_>) -> Result<(), Refused> {
        let heard = match message {
            Message::Subscribed { subscription, .. } => Heard::Subscribed(*subscription),
            Message::Unsubscribed { .. } => Heard::Unsubscribed,
            Message::Event {
                subscription,
                publication,
                ..
            } => Heard::Event(*subscription, *publication),
            Message::Published { publication, .. } => Heard::Published(*publication),
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
        self.member
            .publish(publication, client.map(|client| client as &mut dyn Engine))
    }

    fn interest(&mut self, pattern: Pattern<'_>, begins: bool) -> Position {
        let client = self.client.as_deref_mut();
        let engine = client.map(|client| client as &mut dyn Engine);
        self.member.interest(self.now, pattern, begins, engine)
    }
}

impl Node {
    pub(super) fn new(incarnation: u64, seed: u64) -> Self {
        let config = RealmConfig {
            meta_api: false,
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
            }),
            heard: Vec::new(),
        };
        node.with(Time(0), None, |realm, out| realm.join_fabric(out));
        node
    }

    pub(super) fn join(&mut self, now: Time, name: Name) -> SessionKey {
        let identity = Identity {
            authid: "somebody".into(),
            authrole: "anonymous".into(),
            authmethod: "simulated".into(),
            authprovider: "simulated".into(),
        };
        let joined = self
            .realm
            .join(now, name, identity, ClientFeatures::default());
        joined.expect("anybody may join").0
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
        let event = match told {
            Told::Pong => {
                self.member.handle_pong(now, client);
                None
            }
            Told::Message(subject, frame) => {
                let taken = self.member.handle_message(now, (subject, frame), client);
                taken.expect("nodes say what nodes say")
            }
        };
        let client = Some(client);
        self.with(now, client, |realm, out| {
            if let Some(publication) = event.as_ref().and_then(|event| event.publication()) {
                realm.handle_publication(now, &publication, out);
            }
        });
        self.settle(now);
    }

    /// Whoever waits for nothing any more is told so.
    pub(super) fn settle(&mut self, now: Time) {
        let reached = self.member.in_force();
        self.with(now, None, |realm, out| {
            realm.handle_in_force(now, reached, out);
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
        };
        act(&mut self.realm, &mut out)
    }
}
