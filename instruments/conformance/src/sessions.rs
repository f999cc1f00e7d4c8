//! The sessions of one scenario: carries out the player's actions, and returns the results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crosstie_client::{Authenticator, Challenge, Endpoint};
use crosstie_scenario::{Action, Announcement, Happened, Join};
use crosstie_wamp::{Dict, MessageType, Serializer, Value};
use rustls::ClientConfig;

use crate::connection::{Connection, Speech, Trouble};
use crate::stream::Stream;
use crate::transcript::Transcript;

/// The address of the router and the credentials, the same for all scenarios.
pub(crate) struct Router {
    /// One, or the nodes of one realm: the sessions A, B, C … are on them in turn.
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) realm: String,
    pub(crate) serializer: Serializer,
    pub(crate) batched: bool,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// The longest wait for a message, by default.
    pub(crate) patience: Duration,
}

impl Router {
    pub(crate) fn open(
        &self,
        endpoint: &Endpoint,
        serializer: Option<Serializer>,
    ) -> Result<Connection, Trouble> {
        let host = endpoint.http_host();
        let speech = Speech {
            transport: &endpoint.transport,
            host: &host,
            serializer: serializer.unwrap_or(self.serializer),
            batched: self.batched,
        };
        let stream = Stream::connect(&endpoint.address, self.tls.as_ref(), self.patience);
        let stream = stream.map_err(Trouble::Unreachable)?;
        Connection::open(stream, &speech, self.patience)
    }

    /// Whether one of its nodes accepts connections no longer. A restarting one gets a moment.
    pub(crate) fn is_gone(&self) -> bool {
        let is_gone = |endpoint: &Endpoint| {
            (0..GONE_ATTEMPTS).all(|attempt| {
                thread::sleep(GONE_PAUSE * attempt);
                Stream::connect(&endpoint.address, None, self.patience).is_err()
            })
        };
        self.endpoints.iter().any(is_gone)
    }

    /// The address for this session.
    fn endpoint_of(&self, who: char) -> &Endpoint {
        let number = (u32::from(who).saturating_sub(u32::from('A'))) as usize;
        &self.endpoints[number % self.endpoints.len()]
    }

    /// HELLO to WELCOME, with the given credentials.
    pub(crate) fn join(
        &self,
        connection: &mut Connection,
        join: &Join,
        patience: Duration,
        mut note: impl FnMut(bool, &Value),
    ) -> Happened {
        let hello_extra = self.authenticator.hello_extra();
        let mut message = self.hello(join, &hello_extra);
        loop {
            note(true, &message);
            if let Err(trouble) = connection.send(&message) {
                return happened(Err(trouble));
            }
            let came = match connection.receive(patience) {
                Ok(came) => came,
                Err(trouble) => return happened(Err(trouble)),
            };
            note(false, &came);
            let Value::List(parts) = &came else {
                return Happened::Message(came);
            };
            let kind = parts.first().and_then(Value::as_u64);
            match (kind.and_then(MessageType::from_code), parts.as_slice()) {
                (Some(MessageType::Welcome), [_, session, details @ Value::Dict(_)]) => {
                    return Happened::Joined {
                        session: session.clone(),
                        details: details.clone(),
                    };
                }
                (Some(MessageType::Challenge), [_, Value::String(method), Value::Dict(extra)]) => {
                    let challenge = Challenge {
                        method: method.clone(),
                        extra: extra.clone(),
                        hello_extra: hello_extra.clone(),
                    };
                    let answer = match self.authenticator.answer(&challenge) {
                        Ok(answer) => answer,
                        Err(error) => return Happened::Else(error.to_string()),
                    };
                    message = Value::List(vec![
                        Value::from(MessageType::Authenticate.code()),
                        Value::String(answer.signature),
                        Value::Dict(answer.extra),
                    ]);
                }
                _ => return Happened::Message(came),
            }
        }
    }

    fn hello(&self, join: &Join, hello_extra: &Dict) -> Value {
        let roles = ["publisher", "subscriber", "caller", "callee"];
        let roles = roles.map(|role| (role.to_owned(), announced(role, &join.features)));
        let method = Value::from(self.authenticator.method());
        let mut details = vec![("roles".to_owned(), Value::Dict(roles.into()))];
        if self.authenticator.method() != "anonymous" {
            details.push(("authmethods".to_owned(), Value::List(vec![method])));
        }
        if let Some(authid) = self.authenticator.authid() {
            details.push(("authid".to_owned(), authid.into()));
        }
        if !hello_extra.is_empty() {
            let extra = Value::Dict(hello_extra.clone());
            details.push(("authextra".to_owned(), extra));
        }
        Value::List(vec![
            Value::from(MessageType::Hello.code()),
            Value::from(self.realm.as_str()),
            Value::Dict(details),
        ])
    }
}

/// Number of attempts before a router that refuses connections counts as gone, after 0, 250 and 500 ms.
const GONE_ATTEMPTS: u32 = 3;
const GONE_PAUSE: Duration = Duration::from_millis(250);

/// A client's announcement of one of its roles.
fn announced(role: &str, features: &[Announcement]) -> Value {
    let of_role = features.iter().filter(|one| one.role == role);
    let features: Dict = of_role
        .map(|one| (one.feature.clone(), Value::Bool(true)))
        .collect();
    match features.is_empty() {
        true => Value::Dict(Dict::new()),
        false => Value::Dict(vec![("features".to_owned(), Value::Dict(features))]),
    }
}

/// The connections of a scenario.
pub(crate) struct Sessions<'r> {
    router: &'r Router,
    connections: BTreeMap<char, Connection>,
    /// The longest wait for a message.
    patience: Duration,
    end: Instant,
    pub(crate) transcript: Transcript,
    /// Whether a connection ended or was refused.
    pub(crate) has_lost_one: bool,
}

impl<'r> Sessions<'r> {
    /// For a scenario that has to be done by `end`.
    pub(crate) fn new(router: &'r Router, patience: Duration, end: Instant) -> Self {
        Self {
            router,
            connections: BTreeMap::new(),
            patience,
            end,
            transcript: Transcript::default(),
            has_lost_one: false,
        }
    }

    pub(crate) fn act(&mut self, action: Action<'_>) -> Happened {
        match action {
            Action::Done => Happened::Done,
            Action::Connect { who, serializer } => match self.open(who, serializer) {
                Ok(()) => Happened::Done,
                Err(trouble) => happened(Err(trouble)),
            },
            Action::Join { who, join } => self.join(who, join),
            Action::Send { who, message } => {
                self.transcript.sent(who, &message);
                self.with(who, |connection| connection.send(&message))
            }
            Action::Octets { who, bytes } => {
                let shown = format!("sends {} bytes that are no message", bytes.len());
                self.transcript.note(who, &shown);
                self.with(who, |connection| connection.send_octets(bytes))
            }
            Action::Receive { who } => self.receive(who),
            Action::Drop { who } => {
                self.connections.remove(&who);
                Happened::Done
            }
        }
    }

    fn open(&mut self, who: char, serializer: Option<Serializer>) -> Result<(), Trouble> {
        let opened = self.router.open(self.router.endpoint_of(who), serializer);
        self.has_lost_one |= opened.is_err();
        let connection = opened?;
        self.connections.insert(who, connection);
        Ok(())
    }

    fn join(&mut self, who: char, join: &Join) -> Happened {
        if let Err(trouble) = self.open(who, join.serializer) {
            return happened(Err(trouble));
        }
        let patience = self.patience();
        let Some(connection) = self.connections.get_mut(&who) else {
            return Happened::Closed;
        };
        let transcript = &mut self.transcript;
        let joined = self.router.join(
            connection,
            join,
            patience,
            |is_sent, message| match is_sent {
                true => transcript.sent(who, message),
                false => transcript.came(who, message),
            },
        );
        self.has_lost_one |= matches!(joined, Happened::Closed);
        joined
    }

    /// A failed send shows in the received messages, or in their absence.
    fn with(
        &mut self,
        who: char,
        act: impl FnOnce(&mut Connection) -> Result<(), Trouble>,
    ) -> Happened {
        if let Some(connection) = self.connections.get_mut(&who)
            && let Err(trouble) = act(connection)
        {
            self.transcript
                .note(who, &format!("could not send: {trouble}"));
        }
        Happened::Done
    }

    fn receive(&mut self, who: char) -> Happened {
        let patience = self.patience();
        let Some(connection) = self.connections.get_mut(&who) else {
            return Happened::Closed;
        };
        let received = connection.receive(patience);
        match &received {
            Ok(message) => self.transcript.came(who, message),
            Err(trouble) => self.transcript.note(who, &trouble.to_string()),
        }
        self.has_lost_one |= matches!(received, Err(Trouble::Closed | Trouble::Io(_)));
        happened(received)
    }

    /// Its rest, within the scenario's time.
    fn patience(&self) -> Duration {
        let left = self.end.saturating_duration_since(Instant::now());
        self.patience.min(left)
    }
}

pub(crate) fn happened(received: Result<Value, Trouble>) -> Happened {
    match received {
        Ok(message) => Happened::Message(message),
        Err(Trouble::Closed) => Happened::Closed,
        Err(Trouble::NotSpoken(why)) => Happened::NotSpoken(why),
        Err(trouble) => Happened::Else(trouble.to_string()),
    }
}
