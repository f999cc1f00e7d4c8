//! Tickets: WAMP advanced profile, "Ticket-based Authentication".

mod tickets;

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::answer::Assigned;
use super::client::Client;
use super::next::{Next, Outcome};
use super::{Authenticator, Cause, Provider};

pub use tickets::Tickets;

/// Whom a ticket lets in.
#[derive(Clone, Debug, PartialEq)]
pub enum Ticket {
    Static {
        principals: Arc<Tickets>,
        default_role: Option<Arc<str>>,
    },
    Dynamic(Authenticator),
}

impl Ticket {
    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        match self {
            Self::Static { .. } => None,
            Self::Dynamic(authenticator) => Some(authenticator),
        }
    }

    /// The roles that the configuration gives.
    pub(super) fn roles(&self) -> Vec<&str> {
        match self {
            Self::Static {
                principals,
                default_role,
            } => principals.roles().chain(default_role.as_deref()).collect(),
            Self::Dynamic(_) => Vec::new(),
        }
    }

    /// Handles HELLO: a ticket is asked for.
    pub(super) fn begin(&self, client: &Client) -> Outcome {
        let (principals, default_role) = match self {
            Self::Dynamic(authenticator) => {
                let authenticator = authenticator.clone();
                return Ok(Next::challenge(Dict::new(), move |client, authenticate| {
                    let ticket = authenticate.signature;
                    Ok(Next::ask(client, &authenticator, Some(ticket)))
                }));
            }
            Self::Static {
                principals,
                default_role,
            } => (Arc::clone(principals), default_role.clone()),
        };
        let authid = client.need_authid()?.to_owned();
        client.check_known(principals.has(&authid))?;
        Ok(Next::challenge(Dict::new(), move |client, authenticate| {
            let Some(role) = principals.verify(&authid, authenticate.signature) else {
                let cause = match principals.has(&authid) {
                    true => Cause::WrongTicket,
                    false => Cause::UnknownPrincipal,
                };
                let crossbar = "ticket in static WAMP-Ticket authentication is invalid";
                return Err(client.refusal(cause, crossbar));
            };
            let assigned = Assigned {
                role: role.clone(),
                extra: client.authextra.take().unwrap_or_default(),
                ..Assigned::default()
            };
            let principal = client.assign(assigned, default_role.as_ref(), Provider::Static)?;
            Ok(Next::accept(principal))
        }))
    }
}
