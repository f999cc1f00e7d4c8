//! The router's answer to HELLO: this client's identity, and the router's features.

use crosstie_wamp::{Dict, SessionId, Value};

use crate::config::Config;

/// The router's WELCOME.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Welcome {
    /// The session's id.
    pub session: SessionId,
    /// The realm.
    pub realm: String,
    /// The name that the router assigned.
    pub authid: Option<String>,
    /// The role that the router assigned.
    pub authrole: Option<String>,
    /// The method of authentication.
    pub authmethod: Option<String>,
    /// The source of the identity in the router.
    pub authprovider: Option<String>,
    /// The router's name for itself.
    pub agent: Option<String>,
    /// `WELCOME.Details.authextra`.
    pub authextra: Dict,
    /// `WELCOME.Details.roles`.
    pub roles: Dict,
}

impl Welcome {
    pub(crate) fn new(session: SessionId, details: Dict, config: &Config) -> Self {
        let mut welcome = Self {
            session,
            realm: config.realm.clone(),
            authid: None,
            authrole: None,
            authmethod: None,
            authprovider: None,
            agent: None,
            authextra: Dict::new(),
            roles: Dict::new(),
        };
        for (key, value) in details {
            match (key.as_str(), value) {
                ("realm", Value::String(text)) => welcome.realm = text,
                ("authid", Value::String(text)) => welcome.authid = Some(text),
                ("authrole", Value::String(text)) => welcome.authrole = Some(text),
                ("authmethod", Value::String(text)) => welcome.authmethod = Some(text),
                ("authprovider", Value::String(text)) => welcome.authprovider = Some(text),
                ("agent", Value::String(text)) => welcome.agent = Some(text),
                ("authextra", Value::Dict(dict)) => welcome.authextra = dict,
                ("roles", Value::Dict(dict)) => welcome.roles = dict,
                _ => {}
            }
        }
        welcome
    }

    /// Whether the router's `role` (`broker`, `dealer`) announced `feature`.
    pub fn announces(&self, role: &str, feature: &str) -> bool {
        let role = self.roles.iter().find(|(name, _)| name == role);
        let announced = role.and_then(|(_, role)| role.get("features")?.get(feature)?.as_bool());
        announced == Some(true)
    }
}
