//! The router's own sessions that call the procedures which say who others are and what they may do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{Answer, Authenticator, Call, Unanswered};
use crosstie_routing::{Identity, Question, Role};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{CallOptions, Message, Payload, Serializer, Value};
use parking_lot::Mutex;

use crate::router_state::RouterState;
use crate::wamp::elsewhere::{Outcome, Slot};
use crate::wamp::resident::{Asked, Manner, Reply, Resident, Rooms};

/// Those of a router, by realm and role.
#[derive(Default)]
pub(crate) struct Authenticators {
    callers: Mutex<HashMap<Place, Arc<Resident>>>,
}

/// A realm, a role in it, and the authid of whoever asks there.
type Place = (String, Arc<str>, &'static str);

const AUTHENTICATOR: &str = "crosstie.authenticator";
const AUTHORIZER: &str = "crosstie.authorizer";

/// The longest answer: beyond, its caller is told so in its place.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

const SERIALIZER: Serializer = Serializer::Cbor;

impl Authenticators {
    /// Calls an authenticator. What it says, or that it says nothing in time, will be in `slot`.
    pub(crate) fn call(
        &self,
        state: &RouterState,
        call: &Call,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let asked = self.call_then(state, call, filling(slot))?;
        limit(state, call.authenticator.timeout, slot);
        Ok(asked)
    }

    /// The same. How long it may take, whoever calls sees to.
    pub(crate) fn call_then(
        &self,
        state: &RouterState,
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

    /// Asks an authorizer, in the realm of those whom it is asked about. How long it may take, whoever asks
    /// sees to.
    pub(crate) fn ask(
        &self,
        state: &RouterState,
        realm: &str,
        question: &Question,
        arguments: &Value,
        then: impl FnOnce(Answer) + Send + 'static,
    ) -> Result<Asked, Unanswered> {
        let caller = self.caller(state, realm, &Role::TRUSTED.into(), AUTHORIZER)?;
        ask(&caller, &question.procedure, arguments, then)
    }

    /// The same; what it says, or that it says nothing in time, will be in `slot`.
    pub(crate) fn ask_in_time(
        &self,
        state: &RouterState,
        realm: &str,
        question: &Question,
        arguments: &Value,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let asked = self.ask(state, realm, question, arguments, filling(slot))?;
        limit(state, Duration::from_millis(question.timeout_ms), slot);
        Ok(asked)
    }

    /// The session that calls, which is there from the first call on.
    fn caller(
        &self,
        state: &RouterState,
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
        let identity = Identity {
            authid: authid.into(),
            authrole: Arc::clone(role),
            authmethod: "internal".into(),
            authprovider: "static".into(),
        };
        let manner = Manner {
            identity,
            is_shown: false,
            serializer: SERIALIZER,
            message_bytes_max: ANSWER_BYTES_MAX,
            is_judged: false,
            runtime: state.door.keeper().clone(),
        };
        let caller = Resident::join(room, &state.limits, &manner)?;
        callers.insert(key, Arc::clone(&caller));
        Ok(caller)
    }
}

/// A realm's name; null for none, as Crossbar.io's authenticators are told.
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

/// Fills a slot with the end of the patience for its answer.
fn limit(state: &RouterState, timeout: Duration, slot: &Arc<Slot>) {
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
        payload: Payload {
            serializer: SERIALIZER,
            args: &args,
            kwargs: &[],
        },
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
            text: "it was answered something else".to_owned(),
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

/// In words for the client.
fn text(value: Value) -> String {
    if let Value::String(text) = value {
        return text;
    }
    let mut json = Vec::new();
    let written = codec::encode_value(&value, Serializer::Json, &mut json);
    let text = written.ok().and_then(|()| String::from_utf8(json).ok());
    text.unwrap_or_default()
}
