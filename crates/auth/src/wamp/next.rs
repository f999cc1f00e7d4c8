//! What follows from an input of a handshake, and who goes on with the one after it.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::answer;
use super::client::Client;
use super::jwt::Jwks;
use super::wampcra::Key;
use super::{Authenticator, Call, Derivation, Principal, Refusal};

/// What a method's part of a handshake comes to with one input.
pub(super) type Outcome = Result<Next, Refusal>;

/// What is to be done next. All that is yet to come has in it what is done with the input that it leads to.
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

    /// CHALLENGE goes out, and `then` is given AUTHENTICATE.
    pub(super) fn challenge(
        extra: Dict,
        then: impl for<'a> FnOnce(&mut Client, Authenticate<'a>) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Challenge {
            extra,
            then: Box::new(then),
        }
    }

    /// An authenticator is called, and `then` is given what it has answered with.
    pub(super) fn call(
        call: Call,
        then: impl FnOnce(&mut Client, Value) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Call {
            call: Box::new(call),
            then: Box::new(then),
        }
    }

    /// An authenticator is called that says all there is to say about the client.
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

    /// A key is derived, and given to `then`.
    pub(super) fn derive(
        derivation: Derivation,
        then: impl FnOnce(&mut Client, Key) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Derive {
            derivation,
            then: Box::new(then),
        }
    }

    /// The issuer's keys are fetched, unless they were just now, and given to `then`.
    pub(super) fn fetch(
        then: impl FnOnce(&mut Client, Arc<Jwks>) -> Outcome + Send + 'static,
    ) -> Self {
        Self::Fetch {
            then: Box::new(then),
        }
    }
}
