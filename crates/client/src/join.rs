//! Joining: from a URL to a session.

use crosstie_wamp::{Dict, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authenticator::{AuthenticateError, Challenge};
use crate::config::Config;
use crate::dial::dial;
use crate::error::{ConnectError, Disconnected};
use crate::handshake::{Wire, shake_hands};
use crate::incoming::{Malformed, Received};
use crate::session::{Effect, Violation};
use crate::shared::ClientSession;
use crate::welcome::Welcome;

/// A connection with a session on it.
pub(crate) struct Joined {
    pub(crate) wire: Wire,
    pub(crate) session: ClientSession,
    pub(crate) welcome: Welcome,
}

/// Dials, negotiates and joins, within the configured time.
pub(crate) async fn join(config: &Config) -> Result<Joined, ConnectError> {
    let joining = async {
        let stream = dial(config).await?;
        let wire = shake_hands(stream, config).await?;
        open(wire, config).await
    };
    match tokio::time::timeout(config.connect_timeout, joining).await {
        Ok(joined) => joined,
        Err(_) => Err(ConnectError::TimedOut {
            endpoint: config.endpoint.to_string(),
            after: config.connect_timeout,
        }),
    }
}

/// The meaning of a message before the session exists.
enum Step {
    Joined(Welcome),
    Challenged { method: String, extra: Dict },
    Failed(ConnectError),
}

async fn open(mut wire: Wire, config: &Config) -> Result<Joined, ConnectError> {
    let lost = |cause| ConnectError::Lost {
        endpoint: config.endpoint.to_string(),
        cause,
    };
    let mut session = ClientSession::new();
    // It would take a HELLO that no router accepts.
    let unsendable = |error: crate::error::Unsendable| ConnectError::Handshake {
        endpoint: config.endpoint.to_string(),
        reason: error.to_string(),
    };
    let hello_extra = config.authenticator.hello_extra();
    let mut expected = Dict::new();
    session
        .hello(
            &config.realm,
            hello_details(config, &hello_extra),
            &mut wire.outgoing,
        )
        .map_err(unsendable)?;
    loop {
        write_out(&mut wire)
            .await
            .map_err(|error| lost(Disconnected::Broken(error.into())))?;
        match next_step(&mut wire, &mut session, config).await? {
            Step::Joined(welcome) => {
                check_proof(&welcome, &expected)?;
                return Ok(Joined {
                    wire,
                    session,
                    welcome,
                });
            }
            Step::Failed(error) => return Err(error),
            Step::Challenged { method, extra } => {
                let challenge = Challenge {
                    method,
                    extra,
                    hello_extra: hello_extra.clone(),
                };
                let answer = config.authenticator.answer(&challenge)?;
                expected = answer.welcome_extra;
                session
                    .authenticate(&answer.signature, answer.extra, &mut wire.outgoing)
                    .map_err(unsendable)?;
            }
        }
    }
}

/// The first effect. The router sends nothing more until it is answered; bytes behind its WELCOME stay in the buffer.
async fn next_step(
    wire: &mut Wire,
    session: &mut ClientSession,
    config: &Config,
) -> Result<Step, ConnectError> {
    let lost = |cause| ConnectError::Lost {
        endpoint: config.endpoint.to_string(),
        cause,
    };
    loop {
        let read = wire.stream.read_buf(wire.incoming.space()).await;
        match read {
            Ok(0) => return Err(lost(Disconnected::Closed { reason: None })),
            Ok(_) => {}
            Err(error) => return Err(lost(Disconnected::Broken(error.into()))),
        }
        let outgoing = &mut wire.outgoing;
        let received = wire.incoming.next(|received| match received {
            Received::Message(message) => {
                let effect = session.handle(message, outgoing)?;
                Ok(Some(step(effect, config)))
            }
            Received::Ping(payload) => {
                outgoing.pong(payload);
                Ok(None)
            }
            Received::Pong => Ok(None),
            Received::Close { reason, .. } => Ok(Some(Step::Failed(lost(Disconnected::Closed {
                reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            })))),
        });
        match received {
            Ok(None) => {}
            Ok(Some(step)) => return Ok(step),
            Err(Broken(reason)) => return Err(lost(Disconnected::Protocol(reason))),
        }
    }
}

fn step<W, I>(effect: Effect<'_, W, I>, config: &Config) -> Step {
    match effect {
        Effect::Joined { session, details } => Step::Joined(Welcome::new(session, details, config)),
        Effect::Challenged { method, extra } => Step::Challenged { method, extra },
        Effect::Aborted(error) => Step::Failed(ConnectError::Aborted {
            realm: config.realm.clone(),
            error,
        }),
        // While joining, a session has no other effects.
        _ => Step::Failed(ConnectError::Lost {
            endpoint: config.endpoint.to_string(),
            cause: Disconnected::Protocol("a message before WELCOME".to_owned()),
        }),
    }
}

struct Broken(String);

impl From<Malformed> for Broken {
    fn from(error: Malformed) -> Self {
        Self(error.reason)
    }
}

impl From<Violation> for Broken {
    fn from(error: Violation) -> Self {
        Self(error.to_string())
    }
}

fn hello_details(config: &Config, extra: &Dict) -> Dict {
    let authenticator = &*config.authenticator;
    let mut details = vec![
        (
            "agent".to_owned(),
            Value::from(concat!("crosstie-client/", env!("CARGO_PKG_VERSION"))),
        ),
        (
            "authmethods".to_owned(),
            Value::List(vec![authenticator.method().into()]),
        ),
    ];
    if let Some(authid) = authenticator.authid() {
        details.push(("authid".to_owned(), authid.into()));
    }
    if !extra.is_empty() {
        details.push(("authextra".to_owned(), Value::Dict(extra.clone())));
    }
    details
}

/// Checks the router's proof: a router that does not know the client's credentials can still send WELCOME.
fn check_proof(welcome: &Welcome, expected: &Dict) -> Result<(), AuthenticateError> {
    let said = |key: &String| welcome.authextra.iter().find(|(name, _)| name == key);
    let is_missing = |(key, value): &&(String, Value)| said(key).is_none_or(|(_, v)| v != value);
    match expected.iter().find(is_missing) {
        None => Ok(()),
        Some((key, _)) => Err(AuthenticateError {
            method: welcome.authmethod.clone().unwrap_or_default(),
            reason: format!("the router's own proof, WELCOME.Details.authextra.{key}, is wrong"),
        }),
    }
}

async fn write_out(wire: &mut Wire) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    wire.outgoing.take(&mut bytes);
    wire.stream.write_all(&bytes).await?;
    wire.stream.flush().await
}
