//! The client of a handshake: the parts of HELLO that every method needs.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::answer::Assigned;
use super::refusal::{NO_SUCH_ROLE, NOT_AUTHORIZED};
use super::{
    Authenticator, Call, Cause, ErrorTexts, Given, Hello, Method, Principal, Provider, Refusal,
};

/// The parts of a HELLO that are kept during its handshake.
pub(super) struct Client {
    pub(super) method: Method,
    pub(super) realm: String,
    pub(super) authid: Option<String>,
    pub(super) authrole: Option<String>,
    pub(super) authextra: Option<Dict>,
    pub(super) given: Given,
    pub(super) error_texts: ErrorTexts,
}

impl Client {
    pub(super) fn new(
        method: Method,
        hello: Hello<'_>,
        given: &Given,
        error_texts: ErrorTexts,
    ) -> Self {
        Self {
            method,
            realm: hello.realm.to_owned(),
            authid: hello.authid.map(str::to_owned),
            authrole: hello.authrole.map(str::to_owned),
            authextra: hello.authextra.cloned(),
            given: *given,
            error_texts,
        }
    }

    /// Approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = [
            Some(&self.realm),
            self.authid.as_ref(),
            self.authrole.as_ref(),
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        texts + self.authextra.as_ref().map_or(0, dict_bytes)
    }

    /// The authid, for methods that require one.
    pub(super) fn need_authid(&self) -> Result<&str, Refusal> {
        self.authid.as_deref().ok_or_else(|| {
            let method = self.method;
            let text =
                format!("HELLO.Details.authid: expected text, which authmethod {method} needs");
            Refusal::new(NOT_AUTHORIZED, text, Cause::NoAuthid)
        })
    }

    /// Refuses an unknown authid before any challenge if the error texts are Crossbar.io's, as Crossbar.io does.
    pub(super) fn check_known(&self, is_known: bool) -> Result<(), Refusal> {
        if is_known || self.error_texts == ErrorTexts::Neutral {
            return Ok(());
        }
        let authid = self.authid.as_deref().unwrap_or_default();
        let crossbar = format!("no principal with authid \"{authid}\" exists");
        Err(self.refusal(Cause::UnknownPrincipal, &crossbar))
    }

    /// The refusal of wrong credentials, with Crossbar.io's text if these are configured.
    pub(super) fn refusal(&self, cause: Cause, crossbar: &str) -> Refusal {
        let words = (self.error_texts == ErrorTexts::Crossbar).then(|| crossbar.to_owned());
        Refusal::of_credentials(cause, words)
    }

    /// Builds the principal. Assigned properties precede those that the client asks for.
    pub(super) fn assign(
        &self,
        assigned: Assigned,
        default_role: Option<&Arc<str>>,
        authprovider: Provider,
    ) -> Result<Principal, Refusal> {
        let Some(authid) = assigned.authid.or_else(|| self.authid.clone()) else {
            let text = "no authid assigned".to_owned();
            let reason = "wamp.error.no_such_principal";
            return Err(Refusal::new(reason, text, Cause::NoAuthid));
        };
        let Some(authrole) = assigned.role.or_else(|| default_role.cloned()) else {
            let text = "no authrole assigned".to_owned();
            return Err(Refusal::new(NO_SUCH_ROLE, text, Cause::NoSuchRole));
        };
        Ok(Principal {
            realm: assigned.realm.unwrap_or_else(|| self.realm.clone()),
            authid,
            authrole,
            authmethod: self.method,
            authprovider,
            authextra: assigned.extra,
        })
    }

    /// The call of an authenticator.
    pub(super) fn call(&self, authenticator: &Authenticator, ticket: Option<&str>) -> Call {
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let extra = self.authextra.clone();
        let mut details = vec![
            ("session".to_owned(), Value::from(self.given.session())),
            ("authmethod".to_owned(), Value::from(self.method.name())),
            (
                "authextra".to_owned(),
                extra.map_or(Value::Null, Value::Dict),
            ),
            ("authid".to_owned(), text(self.authid.as_deref())),
            ("authrole".to_owned(), text(self.authrole.as_deref())),
        ];
        if ticket.is_some() {
            details.push(("ticket".to_owned(), text(ticket)));
        }
        Call {
            authenticator: authenticator.clone(),
            realm: self.realm.clone(),
            authid: self.authid.clone(),
            details,
        }
    }
}

/// Approximate size in bytes of a dictionary in memory.
pub fn dict_bytes(dict: &Dict) -> usize {
    let entries = dict.iter();
    entries
        .map(|(key, value)| size_of::<(String, Value)>() + key.len() + value_bytes(value))
        .sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Binary(bytes) => bytes.len(),
        Value::List(values) => {
            let values = values.iter().map(|v| size_of::<Value>() + value_bytes(v));
            values.sum()
        }
        Value::Dict(dict) => dict_bytes(dict),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => 0,
    }
}
