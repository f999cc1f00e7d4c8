//! Feature announcement: the client's in HELLO, and this router's in WELCOME.

use std::fmt;

use crosstie_wamp::{Dict, Value};

use crate::forgetful::is_forgetful;

/// The features a client announced, as far as the routing depends on them. Two bytes: every session has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFeatures(u16);

/// A feature that a client announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFeature {
    CallerProgressiveCallInvocations,
    CalleeProgressiveCallInvocations,
    CalleeProgressiveCallResults,
    CalleeCallCanceling,
    CalleeCallReroute,
    CalleeCallTimeout,
    CalleeRegistrationRevocation,
    SubscriberSubscriptionRevocation,
    SubscriberAcknowledgedEventDelivery,
    CallerPayloadPassthruMode,
    CalleePayloadPassthruMode,
    PublisherPayloadPassthruMode,
}

impl ClientFeature {
    /// Every feature, in the order of its bits.
    pub const ALL: [Self; 12] = [
        Self::CallerProgressiveCallInvocations,
        Self::CalleeProgressiveCallInvocations,
        Self::CalleeProgressiveCallResults,
        Self::CalleeCallCanceling,
        Self::CalleeCallReroute,
        Self::CalleeCallTimeout,
        Self::CalleeRegistrationRevocation,
        Self::SubscriberSubscriptionRevocation,
        Self::SubscriberAcknowledgedEventDelivery,
        Self::CallerPayloadPassthruMode,
        Self::CalleePayloadPassthruMode,
        Self::PublisherPayloadPassthruMode,
    ];

    /// The role that announces it, and its name there.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::CallerProgressiveCallInvocations => ("caller", "progressive_call_invocations"),
            Self::CalleeProgressiveCallInvocations => ("callee", "progressive_call_invocations"),
            Self::CalleeProgressiveCallResults => ("callee", "progressive_call_results"),
            Self::CalleeCallCanceling => ("callee", "call_canceling"),
            Self::CalleeCallReroute => ("callee", "call_reroute"),
            Self::CalleeCallTimeout => ("callee", "call_timeout"),
            Self::CalleeRegistrationRevocation => ("callee", "registration_revocation"),
            Self::SubscriberSubscriptionRevocation => ("subscriber", "subscription_revocation"),
            Self::SubscriberAcknowledgedEventDelivery => {
                ("subscriber", ACKNOWLEDGED_EVENT_DELIVERY)
            }
            Self::CallerPayloadPassthruMode => ("caller", "payload_passthru_mode"),
            Self::CalleePayloadPassthruMode => ("callee", "payload_passthru_mode"),
            Self::PublisherPayloadPassthruMode => ("publisher", "payload_passthru_mode"),
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl FromIterator<ClientFeature> for ClientFeatures {
    fn from_iter<I: IntoIterator<Item = ClientFeature>>(features: I) -> Self {
        let bits = features.into_iter().map(ClientFeature::bit);
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

impl ClientFeatures {
    /// The client forgets a call when it cancels it, and takes an answer for a protocol violation.
    const FORGETFUL: u16 = 1 << 15;
    /// Another part of the router receives for the session: its subscriptions are authorized and answered, not made.
    const SUBSCRIBES_ELSEWHERE: u16 = 1 << 14;

    /// The session subscribes for clients of another protocol, which have bounds of their own.
    const SUBSCRIBES_FOR_OTHERS: u16 = 1 << 13;

    /// Whether the client announced the feature.
    #[inline]
    pub fn has(self, feature: ClientFeature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// Whether the client forgets a call when it cancels it.
    pub(crate) fn is_forgetful(self) -> bool {
        self.0 & Self::FORGETFUL != 0
    }

    /// Marks the client as forgetful.
    #[must_use]
    pub fn forgetful(self) -> Self {
        Self(self.0 | Self::FORGETFUL)
    }

    /// Whether the session's subscriptions are only authorized.
    pub(crate) fn subscribes_elsewhere(self) -> bool {
        self.0 & Self::SUBSCRIBES_ELSEWHERE != 0
    }

    /// Whether the bound of one session's subscriptions does not apply.
    pub(crate) fn subscribes_for_others(self) -> bool {
        self.0 & Self::SUBSCRIBES_FOR_OTHERS != 0
    }

    /// Marks a session of the router's own that subscribes for clients of another protocol. No client can announce this.
    #[must_use]
    pub fn for_others(self) -> Self {
        Self(self.0 | Self::SUBSCRIBES_FOR_OTHERS)
    }

    /// Marks a session for which another part of the router receives events: SUBSCRIBE is authorized and answered with
    /// the subscription 1, without an entry. No client can announce this.
    #[must_use]
    pub fn elsewhere(self) -> Self {
        Self(self.0 | Self::SUBSCRIBES_ELSEWHERE)
    }

    /// Parses `HELLO.Details`. A feature that is not `true` is not supported.
    pub fn from_hello(details: &Dict) -> Result<Self, RolesMissing> {
        let roles = lookup(details, "roles")
            .and_then(Value::as_dict)
            .ok_or(RolesMissing)?;
        if !["publisher", "subscriber", "caller", "callee"]
            .iter()
            .any(|role| lookup(roles, role).is_some())
        {
            return Err(RolesMissing);
        }
        let says = |role: &str, feature: &str| {
            lookup(roles, role)
                .and_then(|role| role.get("features"))
                .and_then(|features| features.get(feature))
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        let is_announced = |feature: &ClientFeature| {
            let (role, name) = feature.name();
            // The chapter on progressive call invocations spells this one with two l.
            let is_misspelt =
                *feature == ClientFeature::CalleeCallCanceling && says("callee", "call_cancelling");
            // Autobahn's clients announce this one under the other role.
            let is_elsewhere = *feature == ClientFeature::SubscriberAcknowledgedEventDelivery
                && says("publisher", name);
            says(role, name) || is_misspelt || is_elsewhere
        };
        let all = ClientFeature::ALL.into_iter();
        let announced: Self = all.filter(is_announced).collect();
        Ok(match is_forgetful(details) {
            true => announced.forgetful(),
            false => announced,
        })
    }
}

/// Whether a message is in payload passthru mode: its attributes name a scheme, which is not empty.
pub(crate) fn is_passthru(attributes: &Dict) -> bool {
    let scheme = lookup(attributes, PASSTHRU_SCHEME).and_then(Value::as_str);
    scheme.is_some_and(|scheme| !scheme.is_empty())
}

const PASSTHRU_SCHEME: &str = "ppt_scheme";

/// HELLO without a client role; the specification asks for at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolesMissing;

impl fmt::Display for RolesMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "HELLO.Details.roles names none of publisher, subscriber, caller, callee; \
             expected at least one",
        )
    }
}

impl std::error::Error for RolesMissing {}

/// The features of a realm that depend on its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmFeatures {
    pub meta_api: bool,
    /// Event history.
    pub history: bool,
    /// The realm is on several nodes.
    pub nodes: bool,
    /// One of its roles gives trust levels.
    pub trustlevels: bool,
}

/// `WELCOME.Details.roles` of such a realm.
///
/// Only what is implemented is announced, and every value is a boolean: widely used clients fail
/// on anything else.
pub fn router_roles(realm: RealmFeatures) -> Dict {
    let is_reflecting = realm.meta_api && !realm.nodes;
    let role = |always: &[&'static str], sometimes: &[(bool, &[&'static str])]| {
        let sometimes = sometimes.iter().filter(|(is, _)| *is);
        let features = sometimes
            .flat_map(|(_, features)| *features)
            .chain(always)
            .map(|name| ((*name).to_owned(), Value::Bool(true)));
        let mut role = vec![("features".to_owned(), Value::Dict(features.collect()))];
        // The specification lists it beside the features; some clients look for it there.
        if is_reflecting {
            role.push(("reflection".to_owned(), Value::Bool(true)));
        }
        Value::Dict(role)
    };
    vec![
        (
            "broker".to_owned(),
            role(
                &BROKER_FEATURES,
                &[
                    (realm.meta_api, &BROKER_META_FEATURES),
                    (realm.history, &["event_history"]),
                    (!realm.nodes, &BROKER_FEATURES_ALONE),
                    (realm.trustlevels, &["publication_trustlevels"]),
                    (is_reflecting, &["reflection"]),
                ],
            ),
        ),
        (
            "dealer".to_owned(),
            role(
                &DEALER_FEATURES,
                &[
                    (realm.meta_api, &DEALER_META_FEATURES),
                    (!realm.nodes, &DEALER_FEATURES_ALONE),
                    (realm.trustlevels, &["call_trustlevels"]),
                    (is_reflecting, &["reflection"]),
                ],
            ),
        ),
    ]
}

const BROKER_FEATURES: [&str; 8] = [
    "event_retention",
    "pattern_based_subscription",
    "payload_encryption_cryptobox",
    "payload_passthru_mode",
    "payload_transparency",
    "publisher_exclusion",
    "publisher_identification",
    "subscriber_blackwhite_listing",
];

const DEALER_FEATURES: [&str; 14] = [
    "call_canceling",
    "call_reroute",
    "call_timeout",
    "caller_identification",
    "pattern_based_registration",
    "payload_encryption_cryptobox",
    "payload_passthru_mode",
    "payload_transparency",
    "progressive_call_invocations",
    "progressive_call_results",
    "registration_revocation",
    "sharded_registration",
    "shared_registration",
    "x_least_busy",
];

/// Features of realms on one node. The specification misspells sharded subscriptions: the realm announces that spelling
/// and the regular one.
const BROKER_FEATURES_ALONE: [&str; 3] = [
    "sharded_subscriptions",
    "shareded_subscriptions",
    ACKNOWLEDGED_EVENT_DELIVERY,
];
const DEALER_FEATURES_ALONE: [&str; 1] = ["x_sticky"];

const ACKNOWLEDGED_EVENT_DELIVERY: &str = "x_acknowledged_event_delivery";

/// Features of realms with the meta API; the last one is Crosstie's own: lists in parts.
const BROKER_META_FEATURES: [&str; 4] = [
    "session_meta_api",
    "subscription_meta_api",
    "subscription_revocation",
    "x_meta_api_paging",
];

const DEALER_META_FEATURES: [&str; 4] = [
    "registration_meta_api",
    "session_meta_api",
    "testament_meta_api",
    "x_meta_api_paging",
];

pub(crate) fn lookup<'d>(dict: &'d Dict, key: &str) -> Option<&'d Value> {
    dict.iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dict(entries: &[(&str, Value)]) -> Value {
        Value::Dict(
            entries
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        )
    }

    fn hello(role: &str, features: &[(&str, Value)]) -> Dict {
        vec![(
            "roles".to_owned(),
            dict(&[(role, dict(&[("features", dict(features))]))]),
        )]
    }

    #[test]
    fn hello_is_read_feature_by_feature() {
        let callee = |features: &[_]| ClientFeatures::from_hello(&hello("callee", features));
        let yes = Value::Bool(true);
        let canceling = ClientFeatures::from_iter([ClientFeature::CalleeCallCanceling]);
        for (features, expected) in [
            (vec![], ClientFeatures::default()),
            (vec![("call_canceling", yes.clone())], canceling),
            (vec![("call_cancelling", yes.clone())], canceling),
            (
                vec![("call_canceling", Value::Bool(false))],
                ClientFeatures::default(),
            ),
            (
                vec![("call_canceling", Value::from("yes"))],
                ClientFeatures::default(),
            ),
            (vec![("unheard_of", yes)], ClientFeatures::default()),
        ] {
            assert_eq!(callee(&features), Ok(expected), "{features:?}");
        }
    }

    #[test]
    fn each_feature_is_told_from_the_others() {
        for feature in ClientFeature::ALL {
            let (role, name) = feature.name();
            let read = ClientFeatures::from_hello(&hello(role, &[(name, Value::Bool(true))]));
            assert_eq!(read, Ok(ClientFeatures::from_iter([feature])), "{name}");
            let has = |other: &ClientFeature| read.unwrap_or_default().has(*other);
            assert_eq!(ClientFeature::ALL.into_iter().filter(has).count(), 1);
        }
    }

    #[test]
    fn hello_without_a_role_is_refused() {
        for details in [
            vec![],
            hello("observer", &[]),
            vec![("roles".to_owned(), Value::Null)],
        ] {
            assert_eq!(
                ClientFeatures::from_hello(&details),
                Err(RolesMissing),
                "{details:?}"
            );
        }
        let bare = vec![("roles".to_owned(), dict(&[("caller", dict(&[]))]))];
        assert_eq!(
            ClientFeatures::from_hello(&bare),
            Ok(ClientFeatures::default())
        );
    }
}
