//! The handshake of a session: HELLO and the check of credentials, until the session joins its realm or is refused.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::cookie::Remembered;
use crosstie_auth::wamp::{
    Answer, Call, Certificate, Channel, Handshake, Hello, Method, Methods, Provider, Refusal,
    Resumption, Step, dict_bytes,
};
use crosstie_front::report::Refused;
use crosstie_front::watch::WatchKey;
use crosstie_routing::{ClientFeatures, error};
use crosstie_wamp::{Dict, Message, SessionId};

use crate::certificate;
use crate::challenged::Challenged;
use crate::door;
use crate::elsewhere::{Outcome, Slot};
use crate::entrance::Entrance;
use crate::farewell::Farewell;
use crate::hosted;
use crate::origin;
use crate::pending_handshake::{Look, Pending, Waits, Wishes, given, refused};
use crate::rate::Halt;
use crate::session::{Session, Stage, State};

/// Bytes of a pending handshake and its watch entry, beside up to twice the length of HELLO.
const HELD_BYTES: usize = 2_048;

impl Session {
    pub(super) fn handle_hello(&mut self, realm: &str, details: &Dict) -> ControlFlow<()> {
        if self.entrance.is_stopping() {
            let Farewell { reason, text } = Farewell::SHUTDOWN;
            return self.turn_back(&Refused {
                place: realm,
                ..Refused::new(reason, text)
            });
        }
        match ClientFeatures::from_hello(details) {
            Ok(features) => self.begin_handshake(realm, details, features),
            Err(e) => self.abort(error::PROTOCOL_VIOLATION, &e.to_string()),
        }
    }

    /// Begins the handshake of a client that has said these details, in HELLO or in another protocol's words.
    pub fn begin_handshake(
        &mut self,
        realm: &str,
        details: &Dict,
        features: ClientFeatures,
    ) -> ControlFlow<()> {
        let hello = match Hello::read(realm, details) {
            Ok(hello) => hello,
            Err(e) => return self.abort(error::PROTOCOL_VIOLATION, &e.to_string()),
        };
        let resumption = match Resumption::read(details) {
            Ok(resumption) => resumption,
            Err(e) => return self.abort(error::PROTOCOL_VIOLATION, &e.to_string()),
        };
        let authid = hello.authid.unwrap_or_default();
        let failed = |text| Refused {
            who: authid,
            place: realm,
            ..Refused::new(AUTHENTICATION_FAILED, text)
        };
        let Some(given) = given() else {
            return self.refuse(&failed("the system has no randomness"));
        };
        let methods = self.auth.now();
        let certificate = self.certificate(&methods);
        let remembered = self.remembered(hello);
        let channel = self.channel(&methods, certificate.as_ref(), remembered.as_ref());
        let (handshake, step) = Handshake::begin(&methods, hello, &given, &channel);
        let Some(handshake) = handshake else {
            return match step {
                Step::Accept(principal) => {
                    self.join(*principal, (features, resumption), None, &methods)
                }
                Step::Refuse(refusal) => {
                    self.note_refused(&refusal, (authid, None), realm, None);
                    self.refuse(&refused(&refusal, authid, realm, None))
                }
                _ => self.refuse(&failed("a handshake ended early")),
            };
        };
        self.begin_pending(handshake, methods, (features, resumption), step)
    }

    /// The properties of the connection that this session's methods may use.
    fn channel<'c>(
        &'c self,
        methods: &Methods,
        certificate: Option<&'c Certificate>,
        remembered: Option<&'c Remembered>,
    ) -> Channel<'c> {
        // Computed only for a method that needs it.
        let is_bound = methods.has(Method::Cryptosign);
        Channel {
            is_tls: self.entrance.listening.tls.is_some(),
            tls_exporter: is_bound
                .then(|| self.peer.connection.tls_exporter())
                .flatten(),
            certificate,
            remembered,
            own_key: self.entrance.realms.key.as_ref(),
        }
    }

    /// The client's certificate, if a method needs it.
    fn certificate(&self, methods: &Methods) -> Option<Certificate> {
        let is_looked_at = methods.has(Method::Tls);
        let shown = is_looked_at.then(|| self.peer.connection.peer_certificate());
        certificate::read(&shown.flatten()?)
    }

    /// Starts to wait for the client, unless the maximum of pending handshakes is reached.
    fn begin_pending(
        &mut self,
        handshake: Box<Handshake>,
        methods: Arc<Methods>,
        wishes: Wishes,
        step: Step,
    ) -> ControlFlow<()> {
        let door = &self.entrance.realms.door;
        let Some(place) = door.enter() else {
            let text = format!(
                "the router has reached its maximum of {} pending handshakes",
                door.pending_max()
            );
            return self.refuse(&Refused {
                who: handshake.authid().unwrap_or_default(),
                place: handshake.realm(),
                method: handshake.method().name(),
                ..Refused::new("crosstie.error.handshakes_pending_max", &text)
            });
        };
        let bytes = HELD_BYTES + 2 * handshake.bytes();
        let held_bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        self.peer.connection.hold(held_bytes);
        let pending = Box::new(Pending {
            handshake,
            methods,
            wishes,
            waits: Waits::Authenticate,
            credentials: None,
            waited: Duration::ZERO,
            _place: place,
            held_bytes,
        });
        match step {
            // No credentials have been checked yet.
            Step::Challenge { .. } => self.take_step(pending, step),
            step => self.look(pending, Look::Hello(Box::new(step))),
        }
    }

    /// Handles AUTHENTICATE; `None` if none is due.
    pub(super) fn handle_authenticate(
        &mut self,
        signature: &str,
        extra: &Dict,
    ) -> Option<ControlFlow<()>> {
        let mut pending = self.state.take_pending()?;
        let authid = pending.handshake.authid().unwrap_or_default();
        // Other methods sign a different challenge each time.
        let secret = (pending.handshake.method() == Method::Ticket).then_some(signature);
        let door = &self.entrance.realms.door;
        let guess = door.guess(&self.peer.connection, authid, secret);
        pending.credentials = guess.credentials;
        if !door.may_look(guess) {
            let bytes = signature.len() + dict_bytes(extra);
            let more_bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
            pending.held_bytes = pending.held_bytes.saturating_add(more_bytes);
            self.peer.connection.hold(more_bytes);
            let look = Look::Authenticate {
                signature: signature.to_owned(),
                extra: extra.clone(),
            };
            return Some(self.look(pending, look));
        }
        let step = pending.handshake.handle_authenticate(signature, extra);
        let Some(step) = step else {
            self.end_pending(&pending);
            return None;
        };
        Some(self.take_step(pending, step))
    }

    /// Continues with an outcome. Without one, the peer has gone.
    pub fn handle_elsewhere(&mut self) -> ControlFlow<()> {
        match self.halt {
            Halt::No => {}
            Halt::Judged => return self.handle_verdict(),
            Halt::Slowed => return self.end_pause(),
        }
        let Some(mut pending) = self.state.take_pending() else {
            return ControlFlow::Continue(());
        };
        let handshake = &mut pending.handshake;
        let step = match &pending.waits {
            Waits::Authenticate => None,
            Waits::Answer { slot, .. } => match slot.take() {
                Some(Outcome::Answer(answer)) => Some(handshake.handle_answer(answer)),
                _ => None,
            },
            Waits::Key { slot } => match slot.take() {
                Some(Outcome::Key(key)) => Some(handshake.handle_key(key)),
                _ => None,
            },
            Waits::Keys { slot } => match slot.take() {
                Some(Outcome::Keys(keys)) => Some(handshake.handle_keys(keys)),
                _ => None,
            },
            Waits::Refusal { slot, refusal } => match slot.take() {
                Some(Outcome::Elapsed) => {
                    let refusal = refusal.clone();
                    self.end_pending(&pending);
                    return self.refuse(&pending.refused(&refusal));
                }
                _ => None,
            },
            Waits::Place { slot, .. } => match slot.take() {
                Some(Outcome::Elapsed) => return self.look_again(pending),
                _ => None,
            },
        };
        pending.waits = Waits::Authenticate;
        let Some(step) = step else {
            self.end_pending(&pending);
            return ControlFlow::Break(());
        };
        if self.entrance.is_stopping() {
            self.end_pending(&pending);
            let Farewell { reason, text } = Farewell::SHUTDOWN;
            return self.turn_back(&Refused {
                who: pending.handshake.authid().unwrap_or_default(),
                place: pending.handshake.realm(),
                method: pending.handshake.method().name(),
                ..Refused::new(reason, text)
            });
        }
        self.take_step(pending, step)
    }

    /// Executes a step of the handshake.
    pub(super) fn take_step(&mut self, mut pending: Box<Pending>, step: Step) -> ControlFlow<()> {
        match step {
            Step::Accept(principal) => {
                if let Some(refusal) = self.revoked_meanwhile(&pending, &principal) {
                    return self.turn_away(pending, refusal);
                }
                self.note_right(&pending);
                self.end_pending(&pending);
                let id = SessionId(pending.handshake.session());
                self.join(*principal, pending.wishes, Some(id), &pending.methods)
            }
            Step::Challenge { method, extra } => {
                self.send(&Message::Challenge {
                    method: method.name().into(),
                    extra,
                });
                pending.waits = Waits::Authenticate;
                self.state = State::Closed(Some(pending));
                ControlFlow::Continue(())
            }
            Step::Call(call) => self.call(pending, *call),
            Step::Derive(derivation) => {
                let slot = Slot::new(&self.peer.connection);
                let door = &self.entrance.realms.door;
                door.fill_with(&slot, move || Outcome::Key(derivation.derive()));
                pending.waits = Waits::Key { slot };
                self.wait(pending)
            }
            Step::Fetch => {
                let slot = Slot::new(&self.peer.connection);
                if let Some(keys) = self.auth.want_keys(&slot) {
                    self.peer.connection.resume_reading();
                    let step = pending.handshake.handle_keys(keys);
                    return self.take_step(pending, step);
                }
                pending.waits = Waits::Keys { slot };
                self.wait(pending)
            }
            Step::Refuse(refusal) => self.turn_away(pending, refusal),
        }
    }

    fn call(&mut self, mut pending: Box<Pending>, mut call: Call) -> ControlFlow<()> {
        let transport = origin::transport(&self.peer, self.entrance.listening.tls.is_some());
        call.details.insert(0, ("transport".to_owned(), transport));
        let slot = Slot::new(&self.peer.connection);
        let router = &self.entrance.realms;
        let asked: Result<Box<dyn Send>, _> = match call.authenticator.authprovider {
            Provider::Function => Ok(Box::new(hosted::call(router, call, &slot))),
            _ => {
                let asked = router.authenticators.call(router, &call, &slot);
                asked.map(|asked| Box::new(asked) as _)
            }
        };
        match asked {
            Ok(_asked) => {
                pending.waits = Waits::Answer { slot, _asked };
                self.wait(pending)
            }
            Err(unanswered) => {
                self.peer.connection.resume_reading();
                let answer = Answer::Unanswered(unanswered);
                let step = pending.handshake.handle_answer(answer);
                self.take_step(pending, step)
            }
        }
    }

    pub(crate) fn wait(&mut self, pending: Box<Pending>) -> ControlFlow<()> {
        self.state = State::Closed(Some(pending));
        ControlFlow::Continue(())
    }

    /// Refuses a client: at once, or after a delay if it made a wrong guess after others.
    pub(super) fn turn_away(
        &mut self,
        mut pending: Box<Pending>,
        refusal: Refusal,
    ) -> ControlFlow<()> {
        let handshake = &pending.handshake;
        let authid = handshake.authid().unwrap_or_default();
        let (realm, method) = (handshake.realm(), Some(handshake.method()));
        let delay = self.note_refused(&refusal, (authid, pending.credentials), realm, method);
        let delay = delay.saturating_sub(pending.waited);
        if delay.is_zero() {
            self.end_pending(&pending);
            return self.refuse(&pending.refused(&refusal));
        }
        let slot = Slot::new(&self.peer.connection);
        let door = &self.entrance.realms.door;
        door.fill_after(delay, &slot, Outcome::Elapsed);
        pending.waits = Waits::Refusal { slot, refusal };
        self.wait(pending)
    }

    /// Counts a refused client. Returns the delay of its answer.
    pub(super) fn note_refused(
        &self,
        refusal: &Refusal,
        (authid, credentials): (&str, Option<u64>),
        realm: &str,
        method: Option<Method>,
    ) -> Duration {
        self.entrance.realms.door.note_refused(&door::Refused {
            connection: &self.peer.connection,
            cause: refusal.cause,
            reason: &refusal.reason,
            authid,
            credentials,
            realm,
            method,
        })
    }

    /// Tells the watch the stage of a session that has not joined.
    #[cold]
    pub fn note_stage(&self, key: WatchKey, before: Stage, stage: Stage) {
        let Entrance {
            listening, realms, ..
        } = &*self.entrance;
        match (before, stage, &self.state) {
            (_, Stage::Asked, State::Closed(Some(pending))) => {
                let handshake = &pending.handshake;
                let authid = handshake.authid().unwrap_or_default();
                let (peer, method) = (self.peer.clone(), handshake.method());
                let door = &realms.door;
                let client = Challenged::new(peer, authid, handshake.realm(), method, door);
                let within = realms.challenge_timeout;
                listening
                    .watch
                    .asked(key, Box::new(client), within, listening.handshake_timeout);
            }
            (Stage::Asked, ..) => listening.watch.going_on(key),
            // The next session gets the same time limit as the first.
            _ => listening.watch.opening(key, listening.handshake_timeout),
        }
    }

    pub(super) fn end_pending(&self, pending: &Pending) {
        self.peer.connection.hold(-pending.held_bytes);
    }
}

const AUTHENTICATION_FAILED: &str = "wamp.error.authentication_failed";
