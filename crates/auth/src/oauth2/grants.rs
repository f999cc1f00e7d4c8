//! The rights of a token in one vhost.

use super::scope::AccessScope;
use super::wildcard::Wildcard;
use crate::Access;

/// The scopes that count in one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    granted: Box<[Grant]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    access: Access,
    name: Wildcard,
    routing_key: Option<Wildcard>,
}

impl Grants {
    /// The rights in a vhost. `None`: no scope names the vhost, so that it may not even be opened.
    pub(super) fn of(scopes: &[AccessScope], vhost: &str) -> Option<Self> {
        let mut scopes = scopes.iter().filter(|scope| scope.is_in(vhost)).peekable();
        scopes.peek()?;
        let granted = scopes.filter_map(|scope| {
            Some(Grant {
                access: scope.access,
                name: scope.name.clone()?,
                routing_key: scope.routing_key.clone(),
            })
        });
        Some(Self {
            granted: granted.collect(),
        })
    }

    /// Their size in memory.
    pub fn bytes(&self) -> usize {
        let of = |wildcard: &Option<Wildcard>| wildcard.as_ref().map_or(0, Wildcard::bytes);
        let grants = self.granted.iter();
        let texts = grants.map(|grant| grant.name.bytes() + of(&grant.routing_key));
        size_of_val(&*self.granted) + texts.sum::<usize>()
    }

    /// Whether a queue or exchange of that name may be accessed so.
    pub fn may(&self, access: Access, name: &str) -> bool {
        self.granted
            .iter()
            .any(|grant| grant.access == access && grant.name.matches(name))
    }

    /// Whether a topic exchange may be accessed so with a routing key. A scope without a routing key does not suffice.
    pub fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        let fits = |pattern: &Option<Wildcard>| {
            let pattern = pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.matches(routing_key))
        };
        self.granted.iter().any(|grant| {
            grant.access == access && grant.name.matches(exchange) && fits(&grant.routing_key)
        })
    }
}
