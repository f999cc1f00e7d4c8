//! The names of queues and exchanges in faults.

use std::borrow::Cow;
use std::fmt;

pub(crate) use crosstie_auth::ResourceKind;

/// A queue or an exchange, displayed in RabbitMQ's words: `queue 'q' in vhost '/'`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource<'a> {
    pub(crate) kind: ResourceKind,
    pub(crate) name: &'a str,
    pub(crate) vhost: &'a str,
}

impl<'a> Resource<'a> {
    pub(crate) fn exchange(name: &'a str, vhost: &'a str) -> Self {
        let kind = ResourceKind::Exchange;
        Self { kind, name, vhost }
    }

    pub(crate) fn queue(name: &'a str, vhost: &'a str) -> Self {
        let kind = ResourceKind::Queue;
        Self { kind, name, vhost }
    }

    pub(super) fn is_default_exchange(&self) -> bool {
        self.kind == ResourceKind::Exchange && self.name.is_empty()
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        write!(f, "{kind} '{}' in vhost '{}'", self.name, self.vhost)
    }
}

/// RabbitMQ takes line ends out of names that are declared, deleted or bound.
pub(crate) fn strip_line_ends(name: &str) -> Cow<'_, str> {
    match name.contains(['\r', '\n']) {
        true => name.replace(['\r', '\n'], "").into(),
        false => name.into(),
    }
}
