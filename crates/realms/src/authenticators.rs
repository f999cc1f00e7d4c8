//! The router's own sessions that call authenticators and authorizers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{Answer, Authenticator, Call, Unanswered};
use crosstie_routing::{Identity, Question, Role};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{CallOptions, Message, Payload, Serializer, Value};
use parking_lot::Mutex;

use crate::elsewhere::{Outcome, Slot};
use crate::realms::Realms;
use crate::resident::{Asked, Manner, Reply, Resident, Rooms};

/// These sessions of a router, by realm and role.
#[derive(Default)]
pub(crate) struct Authenticators {
    callers: Mutex<HashMap<Place, Arc<Resident>>>,
}

/// A realm, a role in it, and the authid of the calling session.
type Place = (String, Arc<str>, &'static str);

const AUTHENTICATOR: &str = "crosstie.authenticator";
const AUTHORIZER: &str = "crosstie.authorizer";

/// Maximum size of an answer. A longer one becomes an error for the caller.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

const SERIALIZER: Serializer = Serializer::Cbor;

impl Authenticators {
    /// Calls an authenticator. `slot` gets the answer, or the timeout.
    pub(crate) fn call(
        &self,
        state: &Realms,
        call: &Call,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let asked = self.call_then(state, call, filling(slot))?;
        limit(state, call.authenticator.timeout, slot);
        Ok(asked)
    }

    /// The same, with a callback. The caller handles the timeout.
    pub(crate) fn call_then(
        &self,
        state: &Realms,
        call: &Call,
        then: impl FnOnce(Answer) + Send + 'static,
    ) -> Result<Asked, Unanswered> {
        let Authenticator {
            procedure, role, ..
        } = &call.authenticator;
        let realm = call.authenticator.realm.as_deref().unwrap_or(&call.realm);
        let caller = self.caller(state, realm, role, AUTHENTICATOR)?;
        let authid = call.authid.as_deref().map_or(Value::Null, Value::from);
        let arguments = Value::List(vec![
            named(&call.realm),
            authid,
            Value::Dict(call.details.clone()),
        ]);
        ask(&caller, procedure, &arguments, then)
    }

    /// Calls an authorizer, in the realm of the session to be judged. The caller handles the timeout.
    pub(crate) fn ask(
        &self,
        state: &Realms,
        realm: &str,
        question: &Question,
        arguments: &Value,
        then: impl FnOnce(Answer) + Send + 'static,
    ) -> Result<Asked, Unanswered> {
        let caller = self.caller(state, realm, &Role::TRUSTED.into(), AUTHORIZER)?;
        ask(&caller, &question.procedure, arguments, then)
    }

    /// The same; `slot` gets the answer, or the timeout.
    pub(crate) fn ask_in_time(
        &self,
        state: &Realms,
        realm: &str,
        question: &Question,
        arguments: &Value,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let asked = self.ask(state, realm, question, arguments, filling(slot))?;
        limit(state, Duration::from_millis(question.timeout_ms), slot);
        Ok(asked)
    }

    /// The calling session, created with the first call.
    fn caller(
        &self,
        state: &Realms,
        realm: &str,
        role: &Arc<str>,
        authid: &'static str,
    ) -> Result<Arc<Resident>, Unanswered> {
        let room = state.room(realm).ok_or_else(|| Unanswered::NoSuchRealm {
            realm: realm.to_owned(),
        })?;
        let mut callers = self.callers.lock();
        callers.retain(|_, caller| !caller.is_over());
        let key = (realm.to_owned(), Arc::clone(role), authid);
        if let Some(caller) = callers.get(&key)
            && caller.is_in(room.number())
        {
            return Ok(Arc::clone(caller));
        }
        let identity = Identity::new(authid, Arc::clone(role), "internal", "static");
        let manner = Manner {
            identity,
            is_shown: false,
            serializer: SERIALIZER,
            message_bytes_max: ANSWER_BYTES_MAX,
            is_judged: false,
            runtime: state.door.keeper().clone(),
        };
        let caller = Resident::join(room, &state.bounds.limits, &manner)?;
        callers.insert(key, Arc::clone(&caller));
        Ok(caller)
    }
}

/// A realm's name, or null for none, as in Crossbar.io.
fn named(realm: &str) -> Value {
    match realm {
        "" => Value::Null,
        realm => Value::from(realm),
    }
}

/// Puts an answer into a slot.
fn filling(slot: &Arc<Slot>) -> impl FnOnce(Answer) + Send + 'static {
    let slot = Arc::downgrade(slot);
    move |answer| {
        if let Some(slot) = slot.upgrade() {
            slot.fill(Outcome::Answer(answer));
        }
    }
}

/// Fills a slot with a timeout after the authenticator's time limit.
fn limit(state: &Realms, timeout: Duration, slot: &Arc<Slot>) {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let nothing = Answer::Unanswered(Unanswered::Timeout { timeout_ms });
    let outcome = Outcome::Answer(nothing);
    state.door.fill_after(timeout, slot, outcome);
}

fn ask(
    caller: &Arc<Resident>,
    procedure: &str,
    arguments: &Value,
    then: impl FnOnce(Answer) + Send + 'static,
) -> Result<Asked, Unanswered> {
    let lost = |text: String| Unanswered::Lost { text };
    let mut args = Vec::new();
    codec::encode_value(arguments, SERIALIZER, &mut args).map_err(|e| lost(e.to_string()))?;
    let then = Box::new(move |reply: Reply<'_>| then(answer(reply)));
    let asked = caller.ask(then, |request| Message::Call {
        request,
        options: CallOptions::default(),
        procedure: procedure.into(),
        payload: Payload::new(SERIALIZER, &args, &[]),
    });
    asked.map_err(|untaken| lost(untaken.text()))
}

fn answer(reply: Reply<'_>) -> Answer {
    match reply {
        Reply::Result(payload) => Answer::Value(first(&payload).unwrap_or(Value::Null)),
        Reply::Error { uri, payload } => Answer::Error {
            uri: uri.to_owned(),
            text: first(&payload).map(text).unwrap_or_default(),
        },
        Reply::Lost(text) => Answer::Unanswered(Unanswered::Lost {
            text: text.to_owned(),
        }),
        _ => Answer::Unanswered(Unanswered::Lost {
            text: "the answer does not match the request".to_owned(),
        }),
    }
}

/// The first argument.
fn first(payload: &Payload<'_>) -> Option<Value> {
    let arguments = codec::decode_value(payload.serializer, payload.args, &Limits::default());
    match arguments {
        Ok(Value::List(arguments)) => arguments.into_iter().next(),
        _ => None,
    }
}

/// A value as text for the client.
fn text(value: Value) -> String {
    if let Value::String(text) = value {
        return text;
    }
    let mut json = Vec::new();
    let written = codec::encode_value(&value, Serializer::Json, &mut json);
    let text = written.ok().and_then(|()| String::from_utf8(json).ok());
    text.unwrap_or_default()
}
