//! Messages that need an authorizer's verdict.
//!
//! ```text
//!   message ─► realm: needs a verdict ─► question ─► a call by a session of the router's own
//!      │                                                │ (reading from the connection is paused)
//!      └─ the same message with its verdict ◄─ slot ◄───┘
//! ```
//!
//! While one of a session's messages is judged, the session handles no later one, so that the order is kept. The same
//! holds while the session waits for [exceeding its rate](super::rate).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosstie_auth::wamp::Answer;
use crosstie_config::UnreadableValues;
use crosstie_front::counters::{Counter, counters};
use crosstie_routing::{Question, SessionKey, Verdict};
use crosstie_wamp::{Dict, Value, codec};

use crate::elsewhere::{Outcome, Slot};
use crate::handled::Handled;
use crate::judged::{Judging, Kept};
use crate::origin;
use crate::payload_encodings::Source;
use crate::peer::Peer;
use crate::question;
use crate::rate::Halt;
use crate::realm::SharedRealm;
use crate::resident::Asked;
use crate::session::{Session, State};
use crate::unreadable;

/// Charges bytes to a peer's account.
fn hold(peer: &Peer, bytes: usize) {
    let delta = isize::try_from(bytes).unwrap_or(isize::MAX);
    peer.connection.hold(delta);
}

fn release(peer: &Peer, bytes: usize) {
    let delta = isize::try_from(bytes).unwrap_or(isize::MAX);
    peer.connection.hold(-delta);
}

impl Session {
    /// Asks an authorizer about a message.
    #[cold]
    pub(super) fn ask(
        &mut self,
        bytes: &[u8],
        source: Option<&Bytes>,
        question: Question,
    ) -> ControlFlow<()> {
        let message = Kept::of(bytes, source);
        self.ask_again(message, question, false)
    }

    fn ask_again(&mut self, message: Kept, question: Question, is_short: bool) -> ControlFlow<()> {
        let State::Joined { realm, key } = &self.state else {
            return ControlFlow::Continue(());
        };
        let (realm, key) = (Arc::clone(realm), *key);
        let slot = Slot::new(&self.peer.connection);
        counters().count(Counter::AuthorizersAsked);
        match self.call_authorizer(&realm, key, &message, &question, is_short, &slot) {
            Ok(asked) => {
                hold(&self.peer, message.held());
                let judging = Judging {
                    message,
                    question,
                    slot,
                    is_short,
                    asked: Box::new(asked),
                };
                realm.judged.insert(key, judging);
                self.halt = Halt::Judged;
                ControlFlow::Continue(())
            }
            Err(verdict) => {
                self.peer.connection.resume_reading();
                self.handle_judged(&realm, key, &message, question, verdict)
            }
        }
    }

    fn call_authorizer(
        &self,
        realm: &Arc<SharedRealm>,
        key: SessionKey,
        message: &Kept,
        question: &Question,
        is_short: bool,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Verdict> {
        if realm.waits_for_itself(key) {
            return Err(question::unavailable(question::WAITS_FOR_ITSELF));
        }
        let transport = origin::transport(&self.peer, self.entrance.listening.tls.is_some());
        let extra = realm.judged.extra(key);
        let options = (!is_short).then(|| question::options(&self.peer, message.bytes()));
        let arguments = question::arguments(question, extra.as_deref(), transport, options);
        let router = &self.entrance.realms;
        let asked =
            router
                .authenticators
                .ask_in_time(router, realm.name(), question, &arguments, slot);
        asked.map_err(question::unanswered)
    }

    /// Continues with a judged message. Without a verdict, the session was removed or its peer has gone.
    #[cold]
    pub(super) fn handle_verdict(&mut self) -> ControlFlow<()> {
        self.halt = Halt::No;
        let State::Joined { realm, key } = &self.state else {
            return ControlFlow::Continue(());
        };
        let (realm, key) = (Arc::clone(realm), *key);
        let judging = realm.judged.take(key);
        let Some(judging) = judging else {
            return ControlFlow::Continue(());
        };
        let Judging {
            message,
            question,
            slot,
            is_short,
            asked,
        } = judging;
        release(&self.peer, message.held());
        let answer = slot.take();
        drop(asked);
        match answer {
            Some(Outcome::Answer(answer)) => {
                if !is_short && question::takes_no_options(&answer) {
                    return self.ask_again(message, question, true);
                }
                if let Answer::Unanswered(_) | Answer::Error { .. } = answer {
                    realm.log.authorizer_failed(&question.procedure, &answer);
                }
                let verdict = question::verdict(answer);
                self.handle_judged(&realm, key, &message, question, verdict)
            }
            _ if realm.has(key) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn handle_judged(
        &mut self,
        realm: &Arc<SharedRealm>,
        key: SessionKey,
        kept: &Kept,
        question: Question,
        verdict: Verdict,
    ) -> ControlFlow<()> {
        let serializer = self.peer.wire.serializer;
        let mut is_doubtful = false;
        let limits = &self.entrance.decoding;
        let decoded = codec::decode_to_pass_on(serializer, kept.bytes(), limits, &mut is_doubtful);
        let Ok(message) = decoded else {
            // It was decodable when it arrived.
            return ControlFlow::Continue(());
        };
        let converted = match realm.unreadable_values {
            UnreadableValues::Convert if is_doubtful => {
                unreadable::converted(&message).unwrap_or_default()
            }
            _ => None,
        };
        let replaced = converted
            .as_ref()
            .map(|it| message.with_payload(it.payload()));
        let message = replaced.as_ref().unwrap_or(&message);
        let source = Source {
            connection: &self.peer.connection,
            bytes: kept.source(),
            len: kept.bytes().len(),
        };
        let judged = (question, verdict);
        let handled = realm.handle_judged(Instant::now(), key, message, source, judged);
        self.handle_routed(handled, kept.bytes(), kept.source())
    }

    /// The session leaves.
    pub(super) fn forget_judged(&self, realm: &SharedRealm, key: SessionKey) {
        release(&self.peer, realm.judged.forget(key));
    }

    /// Keeps the `authextra` of a session that may be judged.
    pub(super) fn keep_extra(&self, realm: &SharedRealm, key: SessionKey, extra: Dict) {
        let mut bytes = Vec::new();
        let written = codec::encode_value(&Value::Dict(extra), question::SERIALIZER, &mut bytes);
        if written.is_ok() {
            hold(&self.peer, realm.judged.keep_extra(key, bytes));
        }
    }

    /// Continues after the realm has handled a message.
    #[inline]
    pub(super) fn handle_routed(
        &mut self,
        handled: Handled,
        bytes: &[u8],
        source: Option<&Bytes>,
    ) -> ControlFlow<()> {
        self.add_steps(handled.steps);
        if let Some(slow) = handled.slow {
            self.hold_back(slow);
        }
        match handled.asked {
            None => self.handled(handled.outcome),
            Some(question) => self.ask(bytes, source, *question),
        }
    }
}
