//! WELCOME: a session's details, the router's roles, and the place that serves the session.
//!
//! The roles make up two thirds of WELCOME, and are equal for all sessions of similar realms, so that they are encoded
//! once for each serializer. To build, encode and drop them for each session took 20,000 of the 56,000 instructions of
//! an anonymous session's joining and leaving.

use std::sync::OnceLock;

use crosstie_routing::{Identity, RealmFeatures, Refused, router_roles};
use crosstie_wamp::codec::{self, Detail};
use crosstie_wamp::{Dict, Serializer, SessionId, Value};
use std::sync::atomic::Ordering;

use crate::origin::{self, Origin};
use crate::peer::Peer;
use crate::realm::SharedRealm;
use crate::resumption::Told;

/// The contents of one WELCOME.
pub(super) struct Welcome<'w> {
    pub session: SessionId,
    pub realm: &'w SharedRealm,
    pub identity: &'w Identity,
    /// The session's `authextra` without the serving place.
    pub(super) extra: &'w Dict,
    /// The names of the serving node and worker, if disclosed.
    pub own: Option<(&'w str, &'w str)>,
    /// The resumption details, if the client requested them.
    pub(super) resumption: Option<&'w Told>,
}

/// The length that a client accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Whole,
    /// Without the serving place, and without features outside standards.
    Short,
    /// Without any feature: the router serves them whether or not it announces them.
    Bare,
}

impl Length {
    const ALL: [Self; 3] = [Self::Whole, Self::Short, Self::Bare];

    fn shorten(self, roles: &mut Dict) {
        let is_kept = |name: &str| match self {
            Self::Whole => true,
            Self::Short => !name.starts_with("x_"),
            Self::Bare => false,
        };
        for (_, role) in roles {
            let Value::Dict(role) = role else { continue };
            // A feature that is announced beside the others, as in the specification.
            role.retain(|(name, said)| matches!(said, Value::Dict(_)) || is_kept(name));
            for (_, features) in role {
                if let Value::Dict(features) = features {
                    features.retain(|(name, _)| is_kept(name));
                }
            }
        }
    }
}

impl Welcome<'_> {
    /// Queues WELCOME, shortened if the client accepts only short messages.
    pub(super) fn send(&self, peer: &Peer) -> Result<(), Refused> {
        let mut sent = Err(Refused::TooLong);
        for length in Length::ALL {
            sent = self.send_as(peer, length);
            if sent != Err(Refused::TooLong) {
                break;
            }
        }
        sent
    }

    fn send_as(&self, peer: &Peer, length: Length) -> Result<(), Refused> {
        let Self {
            session,
            realm,
            identity,
            ..
        } = self;
        let is_short = length != Length::Whole;
        let own = self.own.filter(|_| !is_short);
        let own = own.map(|(node, worker)| Origin::of(peer, node, worker));
        let serializer = peer.wire.serializer;
        let mut details = Vec::with_capacity(DETAILS_MAX);
        details.extend([
            ("realm", Detail::Text(realm.name())),
            ("roles", Detail::Written(roles(realm, length, serializer))),
            ("authid", Detail::Text(&identity.authid)),
            ("authrole", Detail::Text(&identity.authrole)),
            ("authmethod", Detail::Text(&identity.authmethod)),
            ("authprovider", Detail::Text(&identity.authprovider)),
            ("agent", Detail::Text(AGENT)),
        ]);
        if let Some(told) = self.resumption {
            details.extend(told.details());
        }
        // A client's own details must not pass for the router's.
        let is_kept = |key: &str| own.is_none() && !is_short || !origin::is_key(key);
        let extra = self.extra.iter().filter(|(key, _)| is_kept(key));
        let mut extra: Vec<_> = extra
            .map(|(key, value)| (key.as_str(), Detail::Value(value)))
            .collect();
        if let Some(own) = &own {
            details.extend(own.details());
            extra.extend(own.details());
        }
        if !extra.is_empty() {
            details.push(("authextra", Detail::Dict(extra)));
        }
        peer.send_welcome(*session, &details)
    }
}

/// The router's roles for realms of that kind.
fn roles(realm: &SharedRealm, length: Length, serializer: Serializer) -> &'static [u8] {
    static WRITTEN: [OnceLock<Vec<u8>>; KINDS * Serializer::ALL.len()] =
        [const { OnceLock::new() }; KINDS * Serializer::ALL.len()];
    let features = RealmFeatures {
        meta_api: realm.meta_api,
        history: realm.has_history,
        nodes: realm.port.is_some(),
        trustlevels: realm.gives_trustlevels.load(Ordering::Relaxed),
    };
    let kind = [
        features.meta_api,
        features.history,
        features.nodes,
        features.trustlevels,
    ];
    let kind = kind
        .into_iter()
        .fold(length as usize, |kind, is| 2 * kind + usize::from(is));
    let place = &WRITTEN[kind * Serializer::ALL.len() + serializer.index()];
    place.get_or_init(|| {
        let mut roles = router_roles(features);
        length.shorten(&mut roles);
        let mut written = Vec::new();
        codec::encode_value(&Value::Dict(roles), serializer, &mut written)
            .expect("every serializer has texts and booleans");
        written
    })
}

const AGENT: &str = concat!("Crosstie-", env!("CARGO_PKG_VERSION"));
/// With or without the meta API, event history, several nodes and trust levels, for each length.
const KINDS: usize = 16 * Length::ALL.len();
const DETAILS_MAX: usize = 15;
