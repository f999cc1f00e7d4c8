//! One handshake, from HELLO to its acceptance or refusal.
//!
//! The methods' modules process the inputs; this module dispatches each input to the step that waits for it.

use std::sync::Arc;

use crosstie_wamp::Dict;

use super::choose::{choose, known_again};
use super::client::Client;
use super::jwt::Jwks;
use super::next::{AtAnswer, AtAuthenticate, AtKey, AtKeys, Authenticate, Next, Outcome};
use super::wampcra::Key;
use super::{Answer, Channel, Given, Hello, Method, Methods, Refusal, Step};

/// A handshake that waits for its next input.
pub struct Handshake {
    client: Client,
    awaited: Awaited,
}

enum Awaited {
    Authenticate(AtAuthenticate),
    /// An authenticator's answer.
    Answer(AtAnswer),
    Key(AtKey),
    /// An issuer's keys.
    Keys(AtKeys),
    /// Nothing: the handshake is over.
    Nothing,
}

impl Handshake {
    /// Handles HELLO. Returns the handshake if more input has to come.
    pub fn begin(
        methods: &Methods,
        hello: Hello<'_>,
        given: &Given,
        channel: &Channel<'_>,
    ) -> (Option<Box<Self>>, Step) {
        if let Some(principal) = known_again(methods, hello, channel) {
            return (None, Step::Accept(Box::new(principal)));
        }
        let method = match choose(methods, hello.authmethods) {
            Ok(method) => method,
            Err(refusal) => return (None, Step::Refuse(refusal)),
        };
        // A HELLO that is answered at once is not stored.
        if method == Method::Anonymous
            && let Some(anonymous) = &methods.anonymous
            && let Some(step) = anonymous.accept(hello, given)
        {
            return (None, step);
        }
        let mut handshake = Box::new(Self {
            client: Client::new(method, hello, given, methods.error_texts),
            awaited: Awaited::Nothing,
        });
        let outcome = methods.begin(&mut handshake.client, channel);
        let step = handshake.take(outcome);
        match step {
            Step::Accept(_) | Step::Refuse(_) => (None, step),
            _ => (Some(handshake), step),
        }
    }

    /// Handles AUTHENTICATE; `None` if it is not due.
    pub fn handle_authenticate(&mut self, signature: &str, extra: &Dict) -> Option<Step> {
        match self.awaited() {
            Awaited::Authenticate(then) => {
                let outcome = then(&mut self.client, Authenticate { signature, extra });
                Some(self.take(outcome))
            }
            other => {
                self.awaited = other;
                None
            }
        }
    }

    /// Handles an authenticator's answer.
    pub fn handle_answer(&mut self, answer: Answer) -> Step {
        let outcome = match self.awaited() {
            Awaited::Answer(then) => answer
                .into_value()
                .and_then(|value| then(&mut self.client, value)),
            _ => Err(Refusal::of_authenticator(
                "unexpected answer of an authenticator".to_owned(),
            )),
        };
        self.take(outcome)
    }

    /// Handles a derived key.
    pub fn handle_key(&mut self, key: Key) -> Step {
        let outcome = match self.awaited() {
            Awaited::Key(then) => then(&mut self.client, key),
            _ => Err(Refusal::of_authenticator("unexpected key".to_owned())),
        };
        self.take(outcome)
    }

    /// Handles an issuer's current keys.
    pub fn handle_keys(&mut self, keys: Arc<Jwks>) -> Step {
        let outcome = match self.awaited() {
            Awaited::Keys(then) => then(&mut self.client, keys),
            _ => Err(Refusal::of_authenticator("unexpected keys".to_owned())),
        };
        self.take(outcome)
    }

    pub fn method(&self) -> Method {
        self.client.method
    }

    /// The authid of HELLO.
    pub fn authid(&self) -> Option<&str> {
        self.client.authid.as_deref()
    }

    /// Approximate size in bytes of the stored HELLO.
    pub fn bytes(&self) -> usize {
        self.client.bytes()
    }

    /// The realm of HELLO.
    pub fn realm(&self) -> &str {
        &self.client.realm
    }

    /// The session id that the client has been sent.
    pub fn session(&self) -> u64 {
        self.client.given.session()
    }

    fn awaited(&mut self) -> Awaited {
        std::mem::replace(&mut self.awaited, Awaited::Nothing)
    }

    fn take(&mut self, outcome: Outcome) -> Step {
        match outcome {
            Ok(Next::Accept(principal)) => Step::Accept(principal),
            Ok(Next::Challenge { extra, then }) => {
                self.awaited = Awaited::Authenticate(then);
                let method = self.client.method;
                Step::Challenge { method, extra }
            }
            Ok(Next::Call { call, then }) => {
                self.awaited = Awaited::Answer(then);
                Step::Call(call)
            }
            Ok(Next::Derive { derivation, then }) => {
                self.awaited = Awaited::Key(then);
                Step::Derive(Box::new(derivation))
            }
            Ok(Next::Fetch { then }) => {
                self.awaited = Awaited::Keys(then);
                Step::Fetch
            }
            Err(refusal) => Step::Refuse(refusal),
        }
    }
}
