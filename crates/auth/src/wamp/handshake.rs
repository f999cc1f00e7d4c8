//! One handshake, from HELLO until it is known whether somebody is let in.

use std::sync::Arc;

use crosstie_wamp::{Dict, Value};

use super::answer::{self, Assigned};
use super::choose::{anonymous, choose};
use super::refusal::{NO_SUCH_ROLE, NOT_AUTHORIZED};
use super::wampcra::{self, Challenge, Key, Secret};
use super::{
    Anonymous, Answer, Authenticator, Call, Cause, ErrorTexts, Given, Hello, Method, Methods,
    Principal, Provider, Refusal, Step, Ticket, WampCra,
};

/// A handshake that waits for its next input.
pub struct Handshake {
    method: Method,
    realm: String,
    authid: Option<String>,
    authrole: Option<String>,
    authextra: Option<Dict>,
    session: u64,
    given: Given,
    awaited: Awaited,
}

enum Awaited {
    /// AUTHENTICATE with a ticket.
    Ticket,
    /// AUTHENTICATE with a signature.
    Signature(Box<Expected>),
    /// What an authenticator says.
    Answer,
    /// A key, for a signature that has come.
    Key {
        expected: Box<Expected>,
        signature: String,
    },
    /// Nothing: it is over.
    Nothing,
}

/// What is to be signed, and who whoever signs it is.
struct Expected {
    challenge: String,
    secret: Option<Secret>,
    is_known: bool,
    principal: Principal,
}

impl Handshake {
    /// Handles HELLO. The handshake is there where more is to come.
    pub fn begin(methods: &Methods, hello: Hello<'_>, given: &Given) -> (Option<Box<Self>>, Step) {
        let method = match choose(methods, hello.authmethods) {
            Ok(method) => method,
            Err(refusal) => return (None, Step::Refuse(refusal)),
        };
        if let (
            Method::Anonymous,
            Some(Anonymous::Static {
                role,
                realm,
                authid,
            }),
        ) = (method, &methods.anonymous)
        {
            return (
                None,
                anonymous(role, realm.as_deref(), authid.as_deref(), hello, given),
            );
        }
        let mut handshake = Box::new(Self {
            method,
            realm: hello.realm.to_owned(),
            authid: hello.authid.map(str::to_owned),
            authrole: hello.authrole.map(str::to_owned),
            authextra: hello.authextra.cloned(),
            session: given.session(),
            given: *given,
            awaited: Awaited::Nothing,
        });
        let step = handshake.handle_hello(methods);
        match step {
            Step::Accept(_) | Step::Refuse(_) => (None, step),
            _ => (Some(handshake), step),
        }
    }

    /// Handles AUTHENTICATE; `None` if it is not due.
    pub fn handle_authenticate(&mut self, methods: &Methods, signature: &str) -> Option<Step> {
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Ticket => Some(self.handle_ticket(methods, signature)),
            Awaited::Signature(expected) => {
                Some(self.handle_signature(methods, expected, signature))
            }
            other => {
                self.awaited = other;
                None
            }
        }
    }

    /// Handles what an authenticator has said.
    pub fn handle_answer(&mut self, methods: &Methods, answer: Answer) -> Step {
        let Awaited::Answer = std::mem::replace(&mut self.awaited, Awaited::Nothing) else {
            return Step::Refuse(Refusal::of_authenticator("nobody was asked".to_owned()));
        };
        let step = match self.method {
            Method::WampCra => self.challenge_dynamic(methods, answer),
            Method::Anonymous | Method::Ticket => self.accept_dynamic(methods, answer),
        };
        step.unwrap_or_else(Step::Refuse)
    }

    /// Handles a key that was derived.
    pub fn handle_key(&mut self, methods: &Methods, key: &Key) -> Step {
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Key {
                expected,
                signature,
            } => {
                let is_right = key.verify(&expected.challenge, &signature);
                self.conclude(methods, *expected, is_right)
            }
            _ => Step::Refuse(Refusal::of_authenticator("no key was asked for".to_owned())),
        }
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// Who the client says that it is.
    pub fn authid(&self) -> Option<&str> {
        self.authid.as_deref()
    }

    /// Bytes of what is kept of HELLO, about.
    pub fn bytes(&self) -> usize {
        let texts = [
            Some(&self.realm),
            self.authid.as_ref(),
            self.authrole.as_ref(),
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        texts + self.authextra.as_ref().map_or(0, dict_bytes)
    }

    /// The realm that it asks for.
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// The id that was told as the session's.
    pub fn session(&self) -> u64 {
        self.session
    }

    fn handle_hello(&mut self, methods: &Methods) -> Step {
        match self.method {
            Method::Anonymous => {
                self.authid = Some(self.given.authid());
                self.call(methods, None)
            }
            Method::Ticket => self.challenge_ticket(methods),
            Method::WampCra => self.challenge_static(methods),
        }
    }

    fn challenge_ticket(&mut self, methods: &Methods) -> Step {
        if let Some(Ticket::Static { principals, .. }) = &methods.ticket {
            let Some(authid) = &self.authid else {
                return no_authid(self.method);
            };
            if methods.error_texts == ErrorTexts::Crossbar && !principals.has(authid) {
                return unknown(methods, authid);
            }
        }
        self.awaited = Awaited::Ticket;
        Step::Challenge {
            method: self.method,
            extra: Dict::new(),
        }
    }

    fn handle_ticket(&mut self, methods: &Methods, ticket: &str) -> Step {
        let Some(Ticket::Static {
            principals,
            default_role,
        }) = &methods.ticket
        else {
            return self.call(methods, Some(ticket));
        };
        let authid = self.authid.clone().unwrap_or_default();
        let Some(role) = principals.verify(&authid, ticket) else {
            let cause = match principals.has(&authid) {
                true => Cause::WrongTicket,
                false => Cause::UnknownPrincipal,
            };
            let crossbar = "ticket in static WAMP-Ticket authentication is invalid";
            return Step::Refuse(Refusal::of_credentials(cause, words(methods, crossbar)));
        };
        let assigned = Assigned {
            role: role.clone(),
            extra: self.authextra.take().unwrap_or_default(),
            ..Assigned::default()
        };
        let principal = self.assign(assigned, default_role.as_ref(), Provider::Static);
        principal.map_or_else(Step::Refuse, |p| Step::Accept(Box::new(p)))
    }

    fn challenge_static(&mut self, methods: &Methods) -> Step {
        let Some(WampCra::Static {
            users,
            default_role,
        }) = &methods.wampcra
        else {
            return self.call(methods, None);
        };
        let Some(authid) = self.authid.clone() else {
            return no_authid(self.method);
        };
        let known = users.find(&authid);
        if methods.error_texts == ErrorTexts::Crossbar && known.is_none() {
            return unknown(methods, &authid);
        }
        // It is made for whoever is known, too, and takes as long.
        let decoy = users.decoy(&authid);
        let user: Option<&wampcra::User> = known.or(decoy.as_ref());
        let assigned = Assigned {
            role: user.and_then(|user| user.role.clone()),
            ..Assigned::default()
        };
        let principal = match self.assign(assigned, default_role.as_ref(), Provider::Static) {
            Ok(principal) => principal,
            Err(refusal) => return Step::Refuse(refusal),
        };
        let secret = user.map(|user| user.secret.clone());
        self.challenge(principal, secret, known.is_some())
    }

    fn challenge_dynamic(&mut self, methods: &Methods, answer: Answer) -> Result<Step, Refusal> {
        let value = answer.into_value()?;
        let assigned = answer::principal(&value)?;
        let secret = answer::secret(&value)?;
        let default_role = self
            .authenticator(methods)
            .and_then(|a| a.default_role.as_ref());
        let principal = self.assign(assigned, default_role, Provider::Dynamic)?;
        Ok(self.challenge(principal, Some(secret), true))
    }

    fn challenge(&mut self, principal: Principal, secret: Option<Secret>, is_known: bool) -> Step {
        let challenge = Challenge {
            authid: &principal.authid,
            authrole: &principal.authrole,
            authprovider: principal.authprovider.name(),
            session: self.session,
            nonce: &self.given.nonce(),
            timestamp: &self.given.timestamp(),
        };
        let challenge = challenge.to_string();
        let mut extra = vec![("challenge".to_owned(), Value::from(challenge.as_str()))];
        if let Some(secret) = &secret {
            secret.tell(&mut extra);
        }
        self.awaited = Awaited::Signature(Box::new(Expected {
            challenge,
            secret,
            is_known,
            principal,
        }));
        Step::Challenge {
            method: self.method,
            extra,
        }
    }

    fn handle_signature(
        &mut self,
        methods: &Methods,
        expected: Box<Expected>,
        signature: &str,
    ) -> Step {
        let secret = expected.secret.as_ref();
        let is_right = secret.is_some_and(|s| s.verify(&expected.challenge, signature));
        match secret.and_then(Secret::derivation) {
            Some(derivation) if !is_right => {
                self.awaited = Awaited::Key {
                    expected,
                    signature: signature.to_owned(),
                };
                Step::Derive(Box::new(derivation))
            }
            _ => self.conclude(methods, *expected, is_right),
        }
    }

    /// Nothing is left to be looked at but the outcome.
    fn conclude(&self, methods: &Methods, expected: Expected, is_right: bool) -> Step {
        if is_right && expected.is_known {
            return Step::Accept(Box::new(expected.principal));
        }
        let cause = match expected.is_known {
            true => Cause::WrongSignature,
            false => Cause::UnknownPrincipal,
        };
        let crossbar = "WAMP-CRA client signature is invalid";
        Step::Refuse(Refusal::of_credentials(cause, words(methods, crossbar)))
    }

    fn accept_dynamic(&self, methods: &Methods, answer: Answer) -> Result<Step, Refusal> {
        let assigned = answer::principal(&answer.into_value()?)?;
        let default_role = self
            .authenticator(methods)
            .and_then(|a| a.default_role.as_ref());
        let principal = self.assign(assigned, default_role, Provider::Dynamic)?;
        Ok(Step::Accept(Box::new(principal)))
    }

    /// Has the method's authenticator called.
    fn call(&mut self, methods: &Methods, ticket: Option<&str>) -> Step {
        let Some(authenticator) = self.authenticator(methods).cloned() else {
            return Step::Refuse(Refusal::of_authenticator("there is none".to_owned()));
        };
        self.awaited = Awaited::Answer;
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let extra = self.authextra.clone();
        let mut details = vec![
            ("session".to_owned(), Value::from(self.session)),
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
        Step::Call(Box::new(Call {
            authenticator,
            realm: self.realm.clone(),
            authid: self.authid.clone(),
            details,
        }))
    }

    fn authenticator<'m>(&self, methods: &'m Methods) -> Option<&'m Authenticator> {
        match self.method {
            Method::Anonymous => match &methods.anonymous {
                Some(Anonymous::Dynamic(authenticator)) => Some(authenticator),
                _ => None,
            },
            Method::Ticket => match &methods.ticket {
                Some(Ticket::Dynamic(authenticator)) => Some(authenticator),
                _ => None,
            },
            Method::WampCra => match &methods.wampcra {
                Some(WampCra::Dynamic(authenticator)) => Some(authenticator),
                _ => None,
            },
        }
    }

    /// What was assigned goes before what the client asks for.
    fn assign(
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
}

/// Crossbar.io's words, where they are asked for.
fn words(methods: &Methods, crossbar: &str) -> Option<String> {
    (methods.error_texts == ErrorTexts::Crossbar).then(|| crossbar.to_owned())
}

fn unknown(methods: &Methods, authid: &str) -> Step {
    let crossbar = format!("no principal with authid \"{authid}\" exists");
    let words = words(methods, &crossbar);
    Step::Refuse(Refusal::of_credentials(Cause::UnknownPrincipal, words))
}

fn no_authid(method: Method) -> Step {
    let text = format!("HELLO.Details.authid: expected text, which authmethod {method} needs");
    Step::Refuse(Refusal::new(NOT_AUTHORIZED, text, Cause::NoAuthid))
}

fn dict_bytes(dict: &Dict) -> usize {
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
