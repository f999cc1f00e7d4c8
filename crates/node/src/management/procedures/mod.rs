//! The management procedures: one table per subject, one row per procedure.

mod amqp;
mod amqp_definitions;
mod amqp_entries;
mod amqp_management;
mod amqp_orders;
mod components;
mod fabric;
mod figures;
mod host_monitor;
mod node;
mod procedure;
mod replicated;
mod router;
mod sessions;
mod time;
mod traces;
mod workers;

use crosstie_client::{ApplicationError, Arguments, Invocation, args};
use tokio::sync::oneshot;

pub(super) use self::procedure::worker_of;
use self::procedure::{Deferred, Handler, Procedure, later, now};
use self::time::{date, seconds_since};
use super::errors;
use super::request::{Call, Request};
use crate::event::{Event, Events};
use crate::node::Node;

/// All procedures.
pub(super) static PROCEDURES: [&[Procedure]; 14] = [
    &node::PROCEDURES,
    &figures::PROCEDURES,
    &workers::PROCEDURES,
    &router::PROCEDURES,
    &sessions::PROCEDURES,
    &fabric::PROCEDURES,
    &amqp::PROCEDURES,
    &amqp_entries::PROCEDURES,
    &amqp_management::PROCEDURES,
    &amqp_definitions::PROCEDURES,
    &amqp_orders::PROCEDURES,
    &components::PROCEDURES,
    &host_monitor::PROCEDURES,
    &traces::PROCEDURES,
];

/// Passes a call to the node's loop, and waits for its answer.
pub(super) async fn ask(
    procedure: &'static Procedure,
    invocation: Invocation,
    events: Events,
) -> Result<Arguments, ApplicationError> {
    let worker = worker_of(invocation.procedure()).unwrap_or_default();
    let worker = worker.to_owned();
    let (reply, answer) = oneshot::channel();
    let request = Request {
        procedure: procedure.uri,
        call: Call::new(worker, invocation.arguments),
        reply,
    };
    // A node that shuts down drops pending calls.
    if events.send(Event::Request(request)).is_err() {
        return Err(errors::ending().into());
    }
    let answer = answer.await.unwrap_or_else(|_| Err(errors::ending()));
    Ok(args![answer?])
}

impl Node {
    /// Answers a call, at once or as soon as its action is complete.
    pub(crate) fn handle_request(&mut self, request: Request) {
        let Request {
            procedure,
            call,
            reply,
        } = request;
        let mut procedures = PROCEDURES.iter().flat_map(|table| *table);
        // Only procedures of the table are registered.
        let Some(procedure) = procedures.find(|row| row.uri == procedure) else {
            return;
        };
        if !procedure.is_harmless()
            && let Err(refusal) = self.check_not_upgrading()
        {
            let _ = reply.send(Err(refusal));
            return;
        }
        match procedure.handler {
            Handler::Now(handle) => {
                let answer = handle(self, &call);
                // The caller may have gone.
                let _ = reply.send(answer);
            }
            Handler::Later(handle) => {
                if let Err((reply, error)) = handle(self, &call, reply) {
                    let _ = reply.send(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_procedure_is_there_once_and_described() {
        let text = include_str!("../../../../../docs/management.md");
        let mut seen = BTreeSet::new();
        for procedure in PROCEDURES.iter().flat_map(|table| *table) {
            assert!(
                seen.insert(procedure.uri),
                "{} is there twice",
                procedure.uri
            );
            let shown = procedure.uri.replace("..", ".<worker>.");
            assert!(
                text.contains(&format!("`{shown}`")),
                "docs/management.md does not describe {shown}"
            );
        }
    }
}
