//! The beginning of a session: HELLO, CHALLENGE and AUTHENTICATE; its subscription.

use crosstie_client::{Authenticator, Challenge};
use crosstie_wamp::{Dict, Message, RequestId, SessionId, SubscribeOptions, Value};

use super::pipe::{Output, Pipe};
use crate::process::WorkerError;

/// A router's final answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Welcome(SessionId),
    /// With the reason of the ABORT.
    Refused(String),
}

impl Pipe {
    /// HELLO and WELCOME, without credentials.
    pub(crate) fn join(&mut self, realm: &str) -> Result<SessionId, WorkerError> {
        self.join_with(realm, &[])
    }

    /// The same with features that every role announces.
    pub(crate) fn join_with(
        &mut self,
        realm: &str,
        features: &[&str],
    ) -> Result<SessionId, WorkerError> {
        let details = vec![roles(features)];
        let unexpected = |message: &Message<'_>, _: &mut Output| {
            Err(WorkerError::unexpected("WELCOME", message))
        };
        match self.introduce(realm, details, unexpected)? {
            Joined::Welcome(session) => Ok(session),
            Joined::Refused(reason) => {
                Err(WorkerError::Refused(format!("realm {realm}: {reason}")))
            }
        }
    }

    /// Joins with the credentials of an authenticator.
    pub(crate) fn log_in(
        &mut self,
        realm: &str,
        authenticator: &dyn Authenticator,
    ) -> Result<Joined, WorkerError> {
        let hello_extra = authenticator.hello_extra();
        let details = details(authenticator, &hello_extra);
        self.introduce(realm, details, |message, output| {
            answer(message, output, authenticator, &hello_extra)
        })
    }

    /// HELLO and its outcome; `between` handles other messages than WELCOME and ABORT.
    fn introduce(
        &mut self,
        realm: &str,
        details: Dict,
        mut between: impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<Joined, WorkerError> {
        self.push(&Message::Hello {
            realm: realm.into(),
            details,
        })?;
        let mut joined = None;
        loop {
            self.flush()?;
            let is_open = self.receive(|message, output| {
                match message {
                    Message::Welcome { session, .. } => joined = Some(Joined::Welcome(*session)),
                    Message::Abort { reason, .. } => {
                        joined = Some(Joined::Refused(reason.to_string()));
                    }
                    other => between(other, output)?,
                }
                Ok(())
            })?;
            match joined {
                Some(joined) => return Ok(joined),
                None if !is_open => return Err(WorkerError::Closed("answering HELLO")),
                None => {}
            }
        }
    }

    /// Subscribes, as the session's first request.
    pub(crate) fn subscribe(&mut self, topic: &str) -> Result<(), WorkerError> {
        self.push(&Message::Subscribe {
            request: RequestId(1),
            options: SubscribeOptions::default(),
            topic: topic.into(),
        })?;
        self.flush()?;
        let received = self.receive(|message, _| match message {
            Message::Subscribed { .. } => Ok(()),
            Message::Error { error, .. } => Err(WorkerError::Refused(format!(
                "to subscribe {topic}: {error}"
            ))),
            Message::Goodbye { reason, .. } => {
                Err(WorkerError::Refused(format!("the session: {reason}")))
            }
            // Another client's publication to the same topic.
            Message::Event { .. } => Ok(()),
            other => Err(WorkerError::unexpected("SUBSCRIBED", other)),
        })?;
        match received {
            true => Ok(()),
            false => Err(WorkerError::Closed("answering SUBSCRIBE")),
        }
    }
}

fn answer(
    message: &Message<'_>,
    output: &mut Output,
    authenticator: &dyn Authenticator,
    hello_extra: &Dict,
) -> Result<(), WorkerError> {
    let Message::Challenge { method, extra } = message else {
        return Err(WorkerError::unexpected("WELCOME", message));
    };
    let challenge = Challenge {
        method: method.to_string(),
        extra: extra.clone(),
        hello_extra: hello_extra.clone(),
    };
    let answer = authenticator.answer(&challenge);
    let answer = answer.map_err(WorkerError::handshake)?;
    output.push(&Message::Authenticate {
        signature: answer.signature.into(),
        extra: answer.extra,
    })
}

/// All roles of a client, with features that each of them announces.
fn roles(features: &[&str]) -> (String, Value) {
    let features = features.iter();
    let features: Dict = features
        .map(|feature| ((*feature).to_owned(), Value::Bool(true)))
        .collect();
    let role = match features.is_empty() {
        true => Dict::new(),
        false => vec![("features".to_owned(), Value::Dict(features))],
    };
    let roles = ["caller", "callee", "publisher", "subscriber"];
    let roles = roles.map(|name| (name.to_owned(), Value::Dict(role.clone())));
    ("roles".to_owned(), Value::Dict(roles.into()))
}

fn details(authenticator: &dyn Authenticator, extra: &Dict) -> Dict {
    let method = Value::from(authenticator.method());
    let mut details = vec![
        roles(&[]),
        ("authmethods".to_owned(), Value::List(vec![method])),
    ];
    if let Some(authid) = authenticator.authid() {
        details.push(("authid".to_owned(), authid.into()));
    }
    if !extra.is_empty() {
        details.push(("authextra".to_owned(), Value::Dict(extra.clone())));
    }
    details
}
