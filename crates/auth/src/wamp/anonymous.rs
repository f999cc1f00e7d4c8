//! Sessions that prove nothing.

use std::sync::Arc;

use super::client::Client;
use super::next::Next;
use super::{Authenticator, Cause, Given, Hello, Method, Principal, Provider, Refusal, Step};

/// What a session that proves nothing becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Anonymous {
    Static {
        role: Arc<str>,
        /// The only realm such sessions may join; any where not said.
        realm: Option<String>,
        /// A fresh one per session where not said.
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

    /// What becomes of a HELLO where nobody has to be asked.
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

    /// Has somebody asked.
    pub(super) fn begin(authenticator: &Authenticator, client: &mut Client) -> Next {
        client.authid = Some(client.given.authid());
        Next::ask(client, authenticator, None)
    }
}
