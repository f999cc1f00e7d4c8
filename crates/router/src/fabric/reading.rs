//! What comes from the server of NATS.

use std::sync::Arc;

use crosstie_fabric::Input;
use crosstie_nats::{Decoded, Limits, Operation, decode, encode};
use crosstie_routing::Position;
use crosstie_transport::{Connection, Outcome, Protocol};

use crate::counters::{Counter, counters};
use crate::link::Link;
use crate::wamp::realm::SharedRealm;

/// The reader of a link's connection.
pub(super) struct Reading {
    pub(super) link: Arc<Link>,
    pub(super) realm: Arc<SharedRealm>,
    pub(super) connection: Arc<Connection>,
    pub(super) limits: Limits,
    /// What the realm was told last.
    pub(super) reached: Position,
    /// What the server said before it ends the connection.
    pub(super) error: Option<String>,
}

impl Protocol for Reading {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let input = &*input;
        let (mut consumed, mut wanted) = (0, 0);
        let mut inputs = Vec::new();
        let mut wrong = None;
        while consumed < input.len() {
            match decode(&input[consumed..], &self.limits) {
                Ok(Decoded::More { wanted: more }) => {
                    wanted = more;
                    break;
                }
                Ok(Decoded::Operation {
                    operation,
                    consumed: more,
                }) => {
                    consumed += more;
                    self.handle(operation, &mut inputs);
                }
                Err(e) => {
                    wrong = Some(e);
                    break;
                }
            }
        }
        if !inputs.is_empty() {
            let overdelivered = self.realm.handle_across(&inputs, &self.connection);
            self.link.note_overdelivered(overdelivered);
        }
        self.realm.handle_changes();
        let reached = self.link.with(|member, _, _| member.in_force());
        if reached > self.reached {
            self.reached = reached;
            self.realm.handle_in_force(reached);
        }
        match wrong {
            None => Outcome::Continue { consumed, wanted },
            Some(e) => {
                counters().count(Counter::PeerFaults);
                self.error = Some(format!("NATS: {e}"));
                Outcome::Close
            }
        }
    }
}

impl Reading {
    fn handle<'i>(&mut self, operation: Operation<'i>, inputs: &mut Vec<Input<'i>>) {
        match operation {
            Operation::Message(message) => {
                let came = (message.subject, message.payload);
                let taken = self.link.with(|member, engine, now| {
                    let engine = engine?;
                    Some(member.handle_message(now, came, engine))
                });
                match taken {
                    Some(Ok(Some(input))) => inputs.push(input),
                    Some(Err(refusal)) => tracing::debug!(
                        "Realm '{}': a message on '{}' is no frame of a node: {}",
                        self.link.realm,
                        message.subject,
                        refusal.name()
                    ),
                    Some(Ok(None)) | None => {}
                }
            }
            Operation::Pong => self.link.with(|member, engine, now| {
                if let Some(engine) = engine {
                    member.handle_pong(now, engine);
                }
            }),
            Operation::Ping => {
                let _ = self.connection.append(|out| {
                    encode::pong(out);
                    Ok::<(), ()>(())
                });
            }
            Operation::Error(text) => {
                tracing::warn!("Realm '{}': the NATS server says: {text}", self.link.realm);
                self.error = Some(text.to_owned());
            }
            Operation::Info(_) | Operation::Ok => {}
        }
    }
}
