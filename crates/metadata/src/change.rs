//! A change of the metadata, parsed.

use std::sync::Arc;

use crosstie_queues::policy::{Policy, PolicyKind};
use serde_json::Value as Json;

use crate::Refusal;
use crate::body::Body;
use crate::limits::{Limits, UserLimit, VhostLimit, limit};
use crate::named::name;
use crate::permission::{Permission, TopicPermission};
use crate::policies;
use crate::user::NewUser;
use crate::vhost::VhostAbout;

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    User(Arc<str>),
    Vhost(Arc<str>),
    Permission {
        vhost: Arc<str>,
        user: Arc<str>,
    },
    /// Without an exchange: of all exchanges, which can only be deleted so.
    TopicPermission {
        vhost: Arc<str>,
        user: Arc<str>,
        exchange: Option<Arc<str>>,
    },
    /// One limit, or all.
    VhostLimits {
        vhost: Arc<str>,
        name: Option<String>,
    },
    /// One limit, or all.
    UserLimits {
        user: Arc<str>,
        name: Option<String>,
    },
    GlobalParameter(Arc<str>),
    Policy {
        kind: PolicyKind,
        vhost: Arc<str>,
        name: Arc<str>,
    },
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// All of them, or none. One that deletes a vhost changes no other vhost.
    All(Vec<Self>),
    Delete(Entry),
    PutGlobalParameter {
        name: Arc<str>,
        value: Json,
    },
    PutPermission {
        vhost: Arc<str>,
        user: Arc<str>,
        permission: Permission,
    },
    PutPolicy {
        kind: PolicyKind,
        vhost: Arc<str>,
        policy: Policy,
    },
    PutTopicPermission {
        vhost: Arc<str>,
        user: Arc<str>,
        exchange: Arc<str>,
        permission: TopicPermission,
    },
    PutUser {
        name: Arc<str>,
        user: NewUser,
    },
    PutUserLimit {
        user: Arc<str>,
        limit: UserLimit,
        value: i64,
    },
    /// Replaces all limits of the user.
    PutUserLimits {
        user: Arc<str>,
        limits: Limits<UserLimit>,
    },
    /// A user who makes a vhost gets all permissions in it.
    PutVhost {
        name: Arc<str>,
        about: VhostAbout,
        by: Option<Arc<str>>,
        /// Whether messages are traced, if that changes. It is of the running broker, which carries it out.
        tracing: Option<bool>,
    },
    PutVhostLimit {
        vhost: Arc<str>,
        limit: VhostLimit,
        value: i64,
    },
    /// Replaces all limits of the vhost.
    PutVhostLimits {
        vhost: Arc<str>,
        limits: Limits<VhostLimit>,
    },
}

impl Change {
    /// Parses the body of a request of the HTTP API that puts an entry. `by` is the user who asks for it.
    ///
    /// Of topic permissions the exchange is in the body. A limit's body is `{"value": number}`; for all limits of a
    /// vhost or user `value` is an object of them.
    pub fn put(entry: Entry, body: &Json, by: Option<&str>) -> Result<Self, Refusal> {
        Ok(match entry {
            Entry::User(name) => Self::PutUser {
                name: checked("user", name)?,
                user: NewUser::parse(body)?,
            },
            Entry::Vhost(name) => Self::PutVhost {
                name: checked("vhost", name)?,
                about: VhostAbout::parse(body)?,
                by: by.map(Arc::from),
                tracing: Body::of(body)?.boolean("tracing")?,
            },
            Entry::Permission { vhost, user } => Self::PutPermission {
                vhost,
                user,
                permission: Permission::parse(body)?,
            },
            Entry::TopicPermission { vhost, user, .. } => {
                let (exchange, permission) = TopicPermission::parse(body)?;
                Self::PutTopicPermission {
                    vhost,
                    user,
                    exchange: name("exchange", &exchange)?,
                    permission,
                }
            }
            Entry::VhostLimits {
                vhost,
                name: Some(name),
            } => {
                let (limit, value) = limit(&name, value(body)?)?;
                Self::PutVhostLimit {
                    vhost,
                    limit,
                    value,
                }
            }
            Entry::VhostLimits { vhost, name: None } => Self::PutVhostLimits {
                vhost,
                limits: Limits::parse(value(body)?)?,
            },
            Entry::UserLimits {
                user,
                name: Some(name),
            } => {
                let (limit, value) = limit(&name, value(body)?)?;
                Self::PutUserLimit { user, limit, value }
            }
            Entry::UserLimits { user, name: None } => Self::PutUserLimits {
                user,
                limits: Limits::parse(value(body)?)?,
            },
            Entry::Policy { kind, vhost, name } => Self::PutPolicy {
                kind,
                vhost,
                policy: policies::parse(kind, &checked("policy", name)?, body)?,
            },
            Entry::GlobalParameter(name) => Self::PutGlobalParameter {
                name: checked("global parameter", name)?,
                value: value(body)?.clone(),
            },
        })
    }
}

fn checked(what: &str, text: Arc<str>) -> Result<Arc<str>, Refusal> {
    name(what, &text)
}

fn value(body: &Json) -> Result<&Json, Refusal> {
    let body = Body::of(body)?;
    body.require(&["value"])?;
    Ok(body.get("value").unwrap_or(&Json::Null))
}
