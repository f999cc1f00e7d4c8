//! Permissions of a user in a vhost.

use std::sync::Arc;

use crosstie_auth::{CLIENT_ID, PatternError, Permissions};
use serde_json::{Value as Json, json};

use crate::Refusal;
use crate::body::Body;

/// Three patterns over names of queues and exchanges, as they were given and compiled.
#[derive(Clone, Debug)]
pub struct Permission {
    pub configure: String,
    pub write: String,
    pub read: String,
    pub compiled: Arc<Permissions>,
}

/// Two patterns over the routing keys of a topic exchange. `{username}` and `{vhost}` stand for the user and the vhost, and
/// `{client_id}` for the identifier of a client that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPermission {
    pub write: String,
    pub read: String,
}

impl Permission {
    pub fn new(configure: &str, write: &str, read: &str) -> Result<Self, PatternError> {
        let compiled = Arc::new(Permissions::parse(configure, write, read)?);
        Ok(Self {
            configure: configure.to_owned(),
            write: write.to_owned(),
            read: read.to_owned(),
            compiled,
        })
    }

    /// Permission to do everything.
    pub fn all() -> Self {
        let everything = || ".*".to_owned();
        Self {
            configure: everything(),
            write: everything(),
            read: everything(),
            compiled: Arc::new(Permissions::all()),
        }
    }

    pub(crate) fn parse(json: &Json) -> Result<Self, Refusal> {
        let body = Body::of(json)?;
        body.require(&["configure", "write", "read"])?;
        let pattern = |key| Ok::<_, Refusal>(body.text(key)?.unwrap_or_default());
        let made = Self::new(pattern("configure")?, pattern("write")?, pattern("read")?);
        made.map_err(|error| invalid_regexp(&error))
    }

    /// As a store keeps it.
    pub(crate) fn stored(&self) -> Json {
        json!({"configure": self.configure, "write": self.write, "read": self.read})
    }
}

impl TopicPermission {
    /// The exchange and the patterns.
    pub(crate) fn parse(json: &Json) -> Result<(String, Self), Refusal> {
        let body = Body::of(json)?;
        body.require(&["exchange", "write", "read"])?;
        let text = |key| Ok::<_, Refusal>(body.text(key)?.unwrap_or_default().to_owned());
        let made = Self {
            write: text("write")?,
            read: text("read")?,
        };
        made.compile("", "")
            .map_err(|error| invalid_regexp(&error))?;
        Ok((text("exchange")?, made))
    }

    /// The patterns for a user in a vhost, as permissions to write and to read.
    pub fn compile(&self, user: &str, vhost: &str) -> Result<Permissions, PatternError> {
        let patterns = [&self.write, &self.read];
        let [write, read] = patterns.map(|pattern| {
            let pattern = pattern.replace("{client_id}", CLIENT_ID);
            let pattern = pattern.replace("{username}", user);
            pattern.replace("{vhost}", vhost)
        });
        Permissions::parse("", &write, &read)
    }

    /// As a store keeps it.
    pub(crate) fn stored(&self) -> Json {
        json!({"write": self.write, "read": self.read})
    }
}

fn invalid_regexp(error: &PatternError) -> Refusal {
    let PatternError {
        pattern, reason, ..
    } = error;
    Refusal::invalid(format!("invalid_regexp: {pattern:?}: {reason}"))
}

impl PartialEq for Permission {
    fn eq(&self, other: &Self) -> bool {
        let patterns = |of: &Self| [of.configure.clone(), of.write.clone(), of.read.clone()];
        patterns(self) == patterns(other)
    }
}

impl Eq for Permission {}
