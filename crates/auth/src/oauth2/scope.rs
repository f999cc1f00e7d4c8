//! One scope: an access to names of a vhost, or a tag.

use std::fmt;

use super::wildcard::Wildcard;
use crate::Access;

/// A scope that means something to a broker, without the prefix of its resource server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `tag:NAME`
    Tag(String),
    /// `read:VHOST/NAME`, `write:VHOST/NAME/ROUTINGKEY`, …
    Access(AccessScope),
}

/// The patterns of a scope. One that cannot be read matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessScope {
    pub(super) access: Access,
    pub(super) vhost: Option<Wildcard>,
    pub(super) name: Option<Wildcard>,
    /// Without one the scope says nothing about routing keys.
    pub(super) routing_key: Option<Wildcard>,
}

/// The reason why a text is no scope of a broker. A token may have others, which mean nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// Neither an access nor a tag.
    Kind,
    /// An access without two or three parts.
    Parts,
}

impl Scope {
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        let (kind, rest) = text.split_once(':').ok_or(ScopeError::Kind)?;
        let access = match kind {
            "tag" => return Ok(Self::Tag(rest.to_owned())),
            "configure" => Access::Configure,
            "read" => Access::Read,
            "write" => Access::Write,
            _ => return Err(ScopeError::Kind),
        };
        let parts: Vec<&str> = rest.split('/').collect();
        let (vhost, name, routing_key) = match parts[..] {
            [vhost, name] => (vhost, name, None),
            [vhost, name, routing_key] => (vhost, name, Some(routing_key)),
            _ => return Err(ScopeError::Parts),
        };
        Ok(Self::Access(AccessScope {
            access,
            vhost: Wildcard::parse(vhost),
            name: Wildcard::parse(name),
            routing_key: routing_key.and_then(Wildcard::parse),
        }))
    }
}

impl AccessScope {
    pub(super) fn is_in(&self, vhost: &str) -> bool {
        self.vhost
            .as_ref()
            .is_some_and(|pattern| pattern.matches(vhost))
    }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind => "expected read:, write:, configure: or tag:",
            Self::Parts => "expected a vhost and a name, and at most a routing key",
        })
    }
}

impl std::error::Error for ScopeError {}
