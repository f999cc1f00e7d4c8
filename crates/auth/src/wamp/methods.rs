//! The methods of a transport, as they are configured.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Tickets, Users};

/// A method by which a session says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Anonymous,
    Ticket,
    WampCra,
}

/// Everything that a transport takes. A method that is not there is not taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Methods {
    pub anonymous: Option<Anonymous>,
    pub ticket: Option<Ticket>,
    pub wampcra: Option<WampCra>,
    pub error_texts: ErrorTexts,
}

/// What a session that proves nothing becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Anonymous {
    Static {
        role: Arc<str>,
        /// The only realm such sessions may join; any where not said.
        realm: Option<String>,
        /// A fresh one per session where not said.
        authid: Option<String>,
    },
    Dynamic(Authenticator),
}

/// Whom a ticket lets in.
#[derive(Clone, Debug, PartialEq)]
pub enum Ticket {
    Static {
        principals: Tickets,
        default_role: Option<Arc<str>>,
    },
    Dynamic(Authenticator),
}

/// Whom a signature lets in.
#[derive(Clone, Debug, PartialEq)]
pub enum WampCra {
    Static {
        users: Users,
        default_role: Option<Arc<str>>,
    },
    Dynamic(Authenticator),
}

/// A procedure that says who somebody is.
#[derive(Clone, Debug, PartialEq)]
pub struct Authenticator {
    pub procedure: String,
    /// Where it is called; in the realm that the client asks for where not said.
    pub realm: Option<String>,
    /// The role of whoever calls it.
    pub role: Arc<str>,
    /// The role of those for whom it names none.
    pub default_role: Option<Arc<str>>,
    /// How long it may take.
    pub timeout: Duration,
}

/// What a client is told of why it is not let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorTexts {
    /// The same whether there is such a principal or not.
    #[default]
    Neutral,
    /// Crossbar.io's words, by which anybody can find out who there is.
    Crossbar,
}

impl Method {
    pub const ALL: [Self; 3] = [Self::Anonymous, Self::Ticket, Self::WampCra];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// As HELLO and WELCOME have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Ticket => "ticket",
            Self::WampCra => "wampcra",
        }
    }
}

impl Methods {
    /// Whether the method is configured.
    pub fn has(&self, method: Method) -> bool {
        match method {
            Method::Anonymous => self.anonymous.is_some(),
            Method::Ticket => self.ticket.is_some(),
            Method::WampCra => self.wampcra.is_some(),
        }
    }

    /// The procedures that it calls.
    pub fn authenticators(&self) -> impl Iterator<Item = &Authenticator> {
        let anonymous = match &self.anonymous {
            Some(Anonymous::Dynamic(authenticator)) => Some(authenticator),
            _ => None,
        };
        let ticket = match &self.ticket {
            Some(Ticket::Dynamic(authenticator)) => Some(authenticator),
            _ => None,
        };
        let wampcra = match &self.wampcra {
            Some(WampCra::Dynamic(authenticator)) => Some(authenticator),
            _ => None,
        };
        [anonymous, ticket, wampcra].into_iter().flatten()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
