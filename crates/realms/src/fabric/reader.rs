//! Reads the messages from the NATS server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::{Denied, Input, Matters, pack};
use crosstie_front::counters::{Counter, counters};
use crosstie_jetstream::Greeting;
use crosstie_nats::{Decoded, Denial, Limits, Operation, decode, encode};
use crosstie_routing::Position;
use crosstie_transport::{Connection, Ended, Outcome, Protocol};
use tokio::sync::oneshot;

use crate::fabric::port::FabricPort;
use crate::realm::SharedRealm;

/// The reader of a port's connection. The port has it from the server's first PONG on, which answers the PING behind CONNECT: a
/// server that is not trusted, or does not let the node in, never was the realm's.
pub(super) struct Reading {
    pub(super) port: Arc<FabricPort>,
    pub realm: Arc<SharedRealm>,
    pub(super) connection: Arc<Connection>,
    pub(super) greeting: Greeting,
    pub limits: Limits,
    /// Signals that the port has the connection; taken then.
    pub(super) attached: Option<oneshot::Sender<()>>,
    /// The position last passed to the realm.
    pub(super) reached: Position,
    /// The server's error before it ends the connection.
    pub error: Option<String>,
    /// The server denies permissions that every node needs.
    pub(super) is_denied: bool,
    /// The server denies a subscription that a session waits for.
    pub(super) refuses: bool,
    pub(super) denials: Denials,
}

/// Limits the log lines about denials, so that a peer that causes many does not fill the log.
#[derive(Default)]
pub(super) struct Denials {
    said: Option<Instant>,
}

impl Denials {
    fn may_say(&mut self) -> bool {
        let is_due = self.said.is_none_or(|at| at.elapsed() >= SAID_EVERY);
        if is_due {
            self.said = Some(Instant::now());
        }
        is_due
    }
}

const SAID_EVERY: Duration = Duration::from_secs(10);

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
            self.port.note_overdelivered(overdelivered);
        }
        self.realm.handle_changes();
        // Before requests for accepted patterns are answered: the server reports denials before it answers a ping.
        if std::mem::take(&mut self.refuses) {
            self.realm.handle_denied();
        }
        let reached = self.port.with(|member, _, _| member.in_force());
        if reached > self.reached {
            self.reached = reached;
            self.realm.handle_in_force(reached);
        }
        match wrong {
            None if self.is_denied => Outcome::Close,
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
                self.handle_message(message.subject, message.payload, inputs);
            }
            Operation::Pong if self.attached.is_some() => self.attach(),
            Operation::Pong => self.port.with(|member, engine, now| {
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
            Operation::Error(text) => match Denial::read(text) {
                Some(denial) => self.handle_denial(denial, text),
                None => {
                    if self.attached.is_none() {
                        let realm = &self.port.realm;
                        tracing::warn!("Realm '{realm}': the NATS server says: {text}");
                    }
                    self.error = Some(text.to_owned());
                }
            },
            Operation::Info(_) | Operation::Ok => {}
        }
    }

    fn attach(&mut self) {
        let Greeting {
            id,
            name,
            payload_bytes_max,
            ..
        } = &self.greeting;
        let (realm, at) = (&self.port.realm, self.connection.peer());
        tracing::info!("Realm '{realm}': on NATS server '{name}' at {at}");
        self.port
            .attach(&self.connection, (id, name, *payload_bytes_max));
        if let Some(attached) = self.attached.take() {
            let _ = attached.send(());
        }
    }

    /// Why the connection has ended, in the server's words if it sent some.
    pub(crate) fn why(&mut self, ended: &Ended) -> String {
        match (self.error.take(), ended) {
            (Some(said), _) => said,
            (None, Ended::ByPeer { .. }) => "closed by the server".to_owned(),
            (None, Ended::Failed(e)) => e.to_string(),
            (None, Ended::StageFailed(e)) => e.to_string(),
            // Without another thread to move to, a pump ends only with an error.
            (None, other) => format!("{other:?}"),
        }
    }

    /// Passes the frames of a message to the member; input for the realm is added to `inputs`.
    fn handle_message<'i>(&self, subject: &str, message: &'i [u8], inputs: &mut Vec<Input<'i>>) {
        self.port.with(|member, engine, now| {
            let Some(engine) = engine else { return };
            for frame in pack::frames(message) {
                match member.handle_message(now, (subject, frame), engine) {
                    Ok(input) => inputs.extend(input),
                    Err(refusal) => tracing::debug!(
                        "Realm '{}': a message on '{subject}' is no frame of a node: {}",
                        self.port.realm,
                        refusal.name()
                    ),
                }
            }
        });
    }

    fn handle_denial(&mut self, denial: Denial<'_>, text: &str) {
        let denied = match denial {
            Denial::Publish(subject) => Denied::Publish(subject),
            Denial::Subscribe(subject) => Denied::Subscribe(subject),
            Denial::Subscriptions => Denied::Unknown,
        };
        let matters = self.port.with(|member, _, _| member.handle_denied(denied));
        if self.denials.may_say() {
            tracing::warn!("Realm '{}': the NATS server says: {text}", self.port.realm);
        }
        match matters {
            Matters::Event => {}
            Matters::Interest => self.refuses = true,
            Matters::Link => {
                self.is_denied = true;
                self.error = Some(text.to_owned());
            }
        }
    }
}
