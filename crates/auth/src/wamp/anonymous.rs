//! Sessions without credentials.

use std::sync::Arc;

use super::client::Client;
use super::next::Next;
use super::{Authenticator, Cause, Given, Hello, Method, Principal, Provider, Refusal, Step};

/// The principal of a session without credentials.
#[derive(Clone, Debug, PartialEq)]
pub enum Anonymous {
    Static {
        role: Arc<str>,
        /// The only realm that these sessions may join; `None` allows any.
        realm: Option<String>,
        /// `None` gives each session a fresh one.
        authid: Option<String>,
    },
    Dynamic(Authenticator),
}

impl Anonymous {
    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        match self {
            Self::Static { .. } => None,
            Self::Dynamic(authenticator) => Some(authenticator),
        }
    }

    /// The outcome of a HELLO that needs no authenticator.
    pub(super) fn accept(&self, hello: Hello<'_>, given: &Given) -> Option<Step> {
        let Self::Static {
            role,
            realm: only,
            authid,
        } = self
        else {
            return None;
        };
        let realm = match (hello.realm, only) {
            ("", Some(only)) => only,
            (realm, _) => realm,
        };
        if only.as_ref().is_some_and(|only| only != realm) {
            let text = format!("anonymous sessions may not join realm {:?}", hello.realm);
            let reason = "wamp.error.authorization_denied";
            let refusal = Refusal::new(reason, text, Cause::RealmNotAllowed);
            return Some(Step::Refuse(refusal));
        }
        Some(Step::Accept(Box::new(Principal {
            realm: realm.to_owned(),
            authid: authid.clone().unwrap_or_else(|| given.authid()),
            authrole: Arc::clone(role),
            authmethod: Method::Anonymous,
            authprovider: Provider::Static,
            authextra: hello.authextra.cloned().unwrap_or_default(),
        })))
    }

    /// Calls the authenticator.
    pub(super) fn begin(authenticator: &Authenticator, client: &mut Client) -> Next {
        client.authid = Some(client.given.authid());
        Next::ask(client, authenticator, None)
    }
}
