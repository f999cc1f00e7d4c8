//! Somebody whom a node lets in, by each method: what the node is told of them, and how they prove it.

use crosstie_client::{Anonymous, Authenticator, Ticket, WampCra};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::subject::router::REALM;

const AUTHID: &str = "joe";
const SECRET: &str = "a secret of the bench";
pub(super) const ROLE: &str = "user";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    Anonymous,
    Ticket,
    WampCra,
}

impl Method {
    const ALL: [Self; 3] = [Self::Anonymous, Self::Ticket, Self::WampCra];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Ticket => "ticket",
            Self::WampCra => "wampcra",
        }
    }

    /// The `auth` of a transport that takes all of them.
    pub(super) fn configuration() -> Value {
        let all = Self::ALL.into_iter();
        all.map(|method| (method.name().to_owned(), method.section()))
            .collect()
    }

    fn section(self) -> Value {
        match self {
            Self::Anonymous => json!({ "type": "static", "realm": REALM, "role": ROLE }),
            Self::Ticket => json!({
                "type": "static",
                "principals": { AUTHID: { "ticket": SECRET, "role": ROLE } }
            }),
            Self::WampCra => json!({
                "type": "static",
                "users": { AUTHID: { "secret": SECRET, "role": ROLE } }
            }),
        }
    }

    pub(super) fn authenticator(self) -> Box<dyn Authenticator> {
        let authid = AUTHID.to_owned();
        match self {
            Self::Anonymous => Box::new(Anonymous::default()),
            Self::Ticket => Box::new(Ticket {
                authid,
                ticket: SECRET.to_owned(),
            }),
            Self::WampCra => Box::new(WampCra {
                authid,
                secret: SECRET.to_owned(),
            }),
        }
    }

    /// Of somebody who does not know the ticket.
    pub(super) fn guess() -> Box<dyn Authenticator> {
        Box::new(Ticket {
            authid: AUTHID.to_owned(),
            ticket: "not the secret".to_owned(),
        })
    }
}
