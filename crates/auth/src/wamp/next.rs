//! The continuation of a handshake: the step that follows an input, and the handler of the next input.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::answer;
use super::client::Client;
use super::jwt::Jwks;
use super::wampcra::Key;
use super::{Authenticator, Call, Derivation, Principal, Refusal};

/// The outcome of one input in a method's part of a handshake.
pub(super) type Outcome = Result<Next, Refusal>;

/// The next step. Each pending step carries the handler of the input that it leads to.
pub(super) enum Next {
    Accept(Box<Principal>),
    Challenge { extra: Dict, then: AtAuthenticate },
    Call { call: Box<Call>, then: AtAnswer },
    Derive { derivation: Derivation, then: AtKey },
    Fetch { then: AtKeys },
}

/// AUTHENTICATE.
#[derive(Clone, Copy)]
pub(super) struct Authenticate<'a> {
    pub(super) signature: &'a str,
    pub(super) extra: &'a Dict,
}

pub(super) type AtAuthenticate =
    Box<dyn for<'a> FnOnce(&mut Client, Authenticate<'a>) -> Outcome + Send>;
pub(super) type AtAnswer = Box<dyn FnOnce(&mut Client, Value) -> Outcome + Send>;
pub(super) type AtKeys = Box<dyn FnOnce(&mut Client, Arc<Jwks>) -> Outcome + Send>;
pub(super) type AtKey = Box<dyn FnOnce(&mut Client, Key) -> Outcome + Send>;

impl Next {
    pub(super) fn accept(principal: Principal) -> Self {
        Self::Accept(Box::new(principal))
    }

    /// Sends CHALLENGE; `then` handles AUTHENTICATE.
    pub(super) fn challenge(
        extra: Dict,
        then: impl for<'a> FnOnce(&mut Client, Authenticate<'a>) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Challenge {
            extra,
            then: Box::new(then),
        }
    }

    /// Calls an authenticator; `then` handles its answer.
    pub(super) fn call(
        call: Call,
        then: impl FnOnce(&mut Client, Value) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Call {
            call: Box::new(call),
            then: Box::new(then),
        }
    }

    /// Calls an authenticator whose answer alone decides on the client.
    pub(super) fn ask(
        client: &Client,
        authenticator: &Authenticator,
        ticket: Option<&str>,
    ) -> Self {
        let default_role = authenticator.default_role.clone();
        let provider = authenticator.authprovider;
        Self::call(client.call(authenticator, ticket), move |client, value| {
            let assigned = answer::principal(&value)?;
            let principal = client.assign(assigned, default_role.as_ref(), provider)?;
            Ok(Self::accept(principal))
        })
    }

    /// Derives a key for `then`.
    pub(super) fn derive(
        derivation: Derivation,
        then: impl FnOnce(&mut Client, Key) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Derive {
            derivation,
            then: Box::new(then),
        }
    }

    /// Fetches the issuer's keys for `then`, unless they were fetched just now.
    pub(super) fn fetch(
        then: impl FnOnce(&mut Client, Arc<Jwks>) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Fetch {
            then: Box::new(then),
        }
    }
}
