//! How a session begins: as somebody, with HELLO, CHALLENGE and AUTHENTICATE; its subscription.

use crosstie_client::{Authenticator, Challenge};
use crosstie_wamp::{Dict, Message, RequestId, SessionId, SubscribeOptions, Value};

use super::pipe::{Output, Pipe};
use crate::process::WorkerError;

/// What a router says in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Welcome(SessionId),
    /// With the reason that ABORT gives.
    Refused(String),
}

impl Pipe {
    /// Joins with the credentials of an authenticator.
    pub(crate) fn log_in(
        &mut self,
        realm: &str,
        authenticator: &dyn Authenticator,
    ) -> Result<Joined, WorkerError> {
        let hello_extra = authenticator.hello_extra();
        self.push(&Message::Hello {
            realm: realm.into(),
            details: details(authenticator, &hello_extra),
        })?;
        let mut joined = None;
        while joined.is_none() {
            self.flush()?;
            let is_open = self.receive(|message, output| {
                joined = step(message, output, authenticator, &hello_extra)?;
                Ok(())
            })?;
            if !is_open && joined.is_none() {
                return Err(WorkerError::Closed("answering HELLO"));
            }
        }
        joined.ok_or(WorkerError::Closed("answering HELLO"))
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
            // Somebody else's publication to the same topic.
            Message::Event { .. } => Ok(()),
            other => Err(WorkerError::unexpected("SUBSCRIBED", other)),
        })?;
        match received {
            true => Ok(()),
            false => Err(WorkerError::Closed("answering SUBSCRIBE")),
        }
    }
}

fn step(
    message: &Message<'_>,
    output: &mut Output,
    authenticator: &dyn Authenticator,
    hello_extra: &Dict,
) -> Result<Option<Joined>, WorkerError> {
    match message {
        Message::Welcome { session, .. } => Ok(Some(Joined::Welcome(*session))),
        Message::Abort { reason, .. } => Ok(Some(Joined::Refused(reason.to_string()))),
        Message::Challenge { method, extra } => {
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
            })?;
            Ok(None)
        }
        other => Err(WorkerError::unexpected("WELCOME", other)),
    }
}

fn details(authenticator: &dyn Authenticator, extra: &Dict) -> Dict {
    let roles = ["caller", "callee", "publisher", "subscriber"];
    let roles = roles.map(|name| (name.to_owned(), Value::Dict(Dict::new())));
    let method = Value::from(authenticator.method());
    let mut details = vec![
        ("roles".to_owned(), Value::Dict(roles.into())),
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
