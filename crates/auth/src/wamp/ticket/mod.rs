//! Tickets: WAMP advanced profile, "Ticket-based Authentication".

mod hash;
mod tickets;

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::answer::Assigned;
use super::client::Client;
use super::next::{Next, Outcome};
use super::{Cause, Derivation, Provider, Source};

pub use hash::{TicketHash, TicketHashError, TicketWork};
use tickets::Found;
pub use tickets::Tickets;

/// The source of the tickets that clients authenticate with.
pub type Ticket = Source<Tickets>;

impl Ticket {
    /// Handles HELLO: requests a ticket.
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
            let found = principals.find(&authid);
            if !found.hash().is_slow() {
                let is_right = found.hash().verify(authenticate.signature);
                return found.conclude(client, is_right, default_role.as_ref());
            }
            let work = Derivation::Ticket(found.hash().work(authenticate.signature));
            Ok(Next::derive(work, move |client, key| {
                let found = principals.find(&authid);
                let is_right = found.hash().is(&key);
                found.conclude(client, is_right, default_role.as_ref())
            }))
        }))
    }
}

impl Found<'_> {
    /// Decides, after the ticket has been checked.
    fn conclude(
        self,
        client: &mut Client,
        is_right: bool,
        default_role: Option<&Arc<str>>,
    ) -> Outcome {
        let cause = match self {
            Found::Known(known) if is_right => {
                let assigned = Assigned {
                    role: known.role.clone(),
                    extra: client.authextra.take().unwrap_or_default(),
                    ..Assigned::default()
                };
                let principal = client.assign(assigned, default_role, Provider::Static)?;
                return Ok(Next::accept(principal));
            }
            Found::Known(_) => Cause::WrongTicket,
            Found::Nobody(_) => Cause::UnknownPrincipal,
        };
        let crossbar = "ticket in static WAMP-Ticket authentication is invalid";
        Err(client.refusal(cause, crossbar))
    }
}
