//! Keys of the records of a store: a JSON list of the kind and the names.

use std::fmt;
use std::sync::Arc;

use crosstie_queues::policy::PolicyKind;
use serde_json::{Value as Json, json};

/// The key of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    About(Arc<str>),
    GlobalParameter(Arc<str>),
    OperatorPolicy(Arc<str>, Arc<str>),
    Permission(Arc<str>, Arc<str>),
    Policy(Arc<str>, Arc<str>),
    /// A change of that entry of a log.
    Promise(Box<Self>),
    TopicPermission(Arc<str>, Arc<str>, Arc<str>),
    User(Arc<str>),
    UserLimits(Arc<str>),
    VhostLimits(Arc<str>),
}

/// A record of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub key: String,
    /// `None`: the record of that key is deleted.
    pub value: Option<String>,
}

impl Stored {
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, String::len)
    }
}

impl Key {
    /// The text of the key.
    pub fn text(&self) -> String {
        let parts = match self {
            Self::About(vhost) => json!(["vhost-about", **vhost]),
            Self::GlobalParameter(name) => json!(["global-parameter", **name]),
            Self::OperatorPolicy(vhost, name) => json!(["operator-policy", **vhost, **name]),
            Self::Policy(vhost, name) => json!(["policy", **vhost, **name]),
            Self::Permission(vhost, user) => json!(["permission", **vhost, **user]),
            Self::Promise(key) => json!(["promise", key.text()]),
            Self::TopicPermission(vhost, user, exchange) => {
                json!(["topic-permission", **vhost, **user, **exchange])
            }
            Self::User(name) => json!(["user", **name]),
            Self::UserLimits(user) => json!(["user-limits", **user]),
            Self::VhostLimits(vhost) => json!(["vhost-limits", **vhost]),
        };
        parts.to_string()
    }

    /// The vhost that the entry belongs to.
    pub fn vhost(&self) -> Option<&Arc<str>> {
        match self {
            Self::About(vhost)
            | Self::OperatorPolicy(vhost, _)
            | Self::Permission(vhost, _)
            | Self::Policy(vhost, _)
            | Self::TopicPermission(vhost, ..)
            | Self::VhostLimits(vhost) => Some(vhost),
            // The promise is the store's.
            Self::GlobalParameter(_) | Self::Promise(_) | Self::User(_) | Self::UserLimits(_) => {
                None
            }
        }
    }

    /// The user whose permission this is.
    pub fn user(&self) -> Option<&Arc<str>> {
        match self {
            Self::Permission(_, user) | Self::TopicPermission(_, user, _) => Some(user),
            _ => None,
        }
    }

    /// Reads the text of a key; `None` if it is a later version's.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<String> = serde_json::from_str(text).ok()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Some(match parts[..] {
            ["global-parameter", name] => Self::GlobalParameter(name.into()),
            ["operator-policy", vhost, name] => Self::OperatorPolicy(vhost.into(), name.into()),
            ["policy", vhost, name] => Self::Policy(vhost.into(), name.into()),
            ["promise", key] => Self::Promise(Box::new(Self::parse(key)?)),
            ["permission", vhost, user] => Self::Permission(vhost.into(), user.into()),
            ["topic-permission", vhost, user, exchange] => {
                Self::TopicPermission(vhost.into(), user.into(), exchange.into())
            }
            ["user", name] => Self::User(name.into()),
            ["user-limits", user] => Self::UserLimits(user.into()),
            ["vhost-about", vhost] => Self::About(vhost.into()),
            ["vhost-limits", vhost] => Self::VhostLimits(vhost.into()),
            _ => return None,
        })
    }

    pub(crate) fn of_policy(kind: PolicyKind, vhost: &Arc<str>, name: &Arc<str>) -> Self {
        let (vhost, name) = (Arc::clone(vhost), Arc::clone(name));
        match kind {
            PolicyKind::Operator => Self::OperatorPolicy(vhost, name),
            PolicyKind::User => Self::Policy(vhost, name),
        }
    }

    /// The record that keeps this value; without one, the record that deletes it.
    pub fn stored(&self, value: Option<&Json>) -> Stored {
        Stored {
            key: self.text(),
            value: value.map(Json::to_string),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(vhost) => write!(f, "description of vhost '{vhost}'"),
            Self::GlobalParameter(name) => write!(f, "global parameter '{name}'"),
            Self::OperatorPolicy(vhost, name) => {
                write!(f, "operator policy '{name}' in vhost '{vhost}'")
            }
            Self::Policy(vhost, name) => write!(f, "policy '{name}' in vhost '{vhost}'"),
            Self::Permission(vhost, user) => {
                write!(f, "permission of user '{user}' in vhost '{vhost}'")
            }
            Self::Promise(key) => write!(f, "change of {key}"),
            Self::TopicPermission(vhost, user, exchange) => write!(
                f,
                "topic permission of user '{user}' for exchange '{exchange}' in vhost '{vhost}'"
            ),
            Self::User(name) => write!(f, "user '{name}'"),
            Self::UserLimits(user) => write!(f, "limits of user '{user}'"),
            Self::VhostLimits(vhost) => write!(f, "limits of vhost '{vhost}'"),
        }
    }
}
