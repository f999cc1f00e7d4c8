//! Sessions of the router's own, which call the procedures that say who others are and what they may do.
//!
//! Such a session is as any other to its realm: what it is sent is framed into a socket. Behind that is no
//! process but a task that reads the answers. Its calls go into the realm directly, from the thread that
//! serves the session which is to be let in.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_auth::wamp::{Answer, Authenticator, Call, Unanswered};
use crosstie_routing::{ClientFeatures, Identity, Question, Role, SessionKey};
use crosstie_transport::{Connection, Outcome as Read, PeerAddress, Protocol, Socket, pump};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Framing, Item, rawsocket};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Dict, Message, MessageType, Payload, RequestId,
    Serializer, Value,
};
use parking_lot::Mutex;

use crate::router_state::RouterState;
use crate::wamp::elsewhere::{Outcome, Slot};
use crate::wamp::end_reason::EndReason;
use crate::wamp::payload_encodings::Source;
use crate::wamp::peer::{Peer, Wire};
use crate::wamp::realm::{NotJoined, SharedRealm};

/// Those of a router, by realm and role.
#[derive(Default)]
pub(crate) struct Authenticators {
    callers: Mutex<HashMap<Place, Arc<Caller>>>,
}

/// A realm, a role in it, and the authid of whoever asks there.
type Place = (String, Arc<str>, &'static str);

/// One such session.
pub(crate) struct Caller {
    realm: Arc<SharedRealm>,
    key: SessionKey,
    connection: Arc<Connection>,
    calls: Mutex<Calls>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Calls {
    request_last: u64,
    waiting: HashMap<u64, Weak<Slot>>,
}

/// A call whose answer somebody waits for. Whoever drops it does so no more.
pub(crate) struct Asked {
    caller: Arc<Caller>,
    request: u64,
}

/// What a realm has done with a message of such a session.
enum Told {
    Handled,
    Refused,
    /// Nothing: the session's role has an authorizer, which is not asked for the router's own.
    Judged,
}

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
        let caller = self.caller(state, &call.authenticator, &call.realm)?;
        let authid = call.authid.as_deref().map_or(Value::Null, Value::from);
        let arguments = Value::List(vec![
            Value::from(call.realm.as_str()),
            authid,
            Value::Dict(call.details.clone()),
        ]);
        let asked = caller.call(&call.authenticator.procedure, &arguments, slot)?;
        limit(state, call.authenticator.timeout, slot);
        Ok(asked)
    }

    /// Asks an authorizer, in the realm of those whom it is asked about.
    pub(crate) fn ask(
        &self,
        state: &RouterState,
        realm: &Arc<SharedRealm>,
        question: &Question,
        arguments: &Value,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let caller = self.caller_in(state, realm, &Role::TRUSTED.into(), AUTHORIZER)?;
        let asked = caller.call(&question.procedure, arguments, slot)?;
        limit(state, Duration::from_millis(question.timeout_ms), slot);
        Ok(asked)
    }

    /// The session that calls it, which is there from the first call on.
    fn caller(
        &self,
        state: &RouterState,
        authenticator: &Authenticator,
        asked_for: &str,
    ) -> Result<Arc<Caller>, Unanswered> {
        let name = authenticator.realm.as_deref().unwrap_or(asked_for);
        let no_realm = || Unanswered::NoSuchRealm {
            realm: name.to_owned(),
        };
        let realm = state.realm(name).ok_or_else(no_realm)?;
        self.caller_in(state, &realm, &authenticator.role, AUTHENTICATOR)
    }

    fn caller_in(
        &self,
        state: &RouterState,
        realm: &Arc<SharedRealm>,
        role: &Arc<str>,
        authid: &'static str,
    ) -> Result<Arc<Caller>, Unanswered> {
        let mut callers = self.callers.lock();
        callers.retain(|_, caller| caller.is_there());
        let key = (realm.name().to_owned(), Arc::clone(role), authid);
        if let Some(caller) = callers.get(&key)
            && Arc::ptr_eq(&caller.realm, realm)
        {
            return Ok(Arc::clone(caller));
        }
        let caller = Caller::join(state, realm, role, authid)?;
        callers.insert(key, Arc::clone(&caller));
        Ok(caller)
    }
}

/// Fills a slot with the end of the patience for its answer.
fn limit(state: &RouterState, timeout: Duration, slot: &Arc<Slot>) {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let nothing = Answer::Unanswered(Unanswered::Timeout { timeout_ms });
    let outcome = Outcome::Answer(nothing);
    state.door.fill_after(timeout, slot, outcome);
}

impl Caller {
    fn join(
        state: &RouterState,
        realm: &Arc<SharedRealm>,
        role: &Arc<str>,
        authid: &'static str,
    ) -> Result<Arc<Self>, Unanswered> {
        let lost = |text: String| Unanswered::Lost { text };
        let (own, other) = ends().map_err(|e| lost(e.to_string()))?;
        let open = |socket| Arc::new(Connection::new(socket, None, Arc::clone(&state.limits)));
        let (connection, reader) = (open(own), open(other));
        let peer = Peer {
            connection: Arc::clone(&connection),
            wire: Wire {
                serializer: SERIALIZER,
                framing: Framing::RawSocket,
                message_bytes_max: ANSWER_BYTES_MAX as u32,
            },
        };
        let identity = Identity {
            authid: authid.into(),
            authrole: Arc::clone(role),
            authmethod: "internal".into(),
            authprovider: "static".into(),
        };
        // It is nobody's session, and the meta API does not speak of it.
        let joined = realm.join(
            peer,
            identity,
            ClientFeatures::default(),
            (None, &Dict::new()),
            |_| false,
        );
        let key = joined.map_err(|e| match e {
            NotJoined::Stopped => Unanswered::NoSuchRealm {
                realm: realm.name().to_owned(),
            },
            NotJoined::Refused(crosstie_routing::JoinError::NoSuchRole { authrole }) => {
                Unanswered::NoSuchRole {
                    realm: realm.name().to_owned(),
                    role: authrole,
                }
            }
            NotJoined::Refused(e) => lost(e.to_string()),
        })?;
        let caller = Arc::new(Self {
            realm: Arc::clone(realm),
            key,
            connection,
            calls: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let reading = Arc::clone(&caller);
        state.door.keeper().spawn(async move {
            let mut answers = Answers {
                frames: rawsocket::Decoder::new(ANSWER_BYTES_MAX),
                caller: reading,
            };
            pump(&reader, &mut answers).await;
            answers.caller.end();
            reader.close();
        });
        Ok(caller)
    }

    fn is_there(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.realm.has(self.key)
    }

    fn call(
        self: &Arc<Self>,
        procedure: &str,
        arguments: &Value,
        slot: &Arc<Slot>,
    ) -> Result<Asked, Unanswered> {
        let lost = |text: String| Unanswered::Lost { text };
        let mut args = Vec::new();
        codec::encode_value(arguments, SERIALIZER, &mut args).map_err(|e| lost(e.to_string()))?;
        // From one lock to the other: the realm wants ids in the order in which they are drawn.
        let mut calls = self.calls.lock();
        calls.request_last += 1;
        let request = calls.request_last;
        calls.waiting.insert(request, Arc::downgrade(slot));
        let message = Message::Call {
            request: RequestId(request),
            options: CallOptions::default(),
            procedure: procedure.into(),
            payload: Payload {
                serializer: SERIALIZER,
                args: &args,
                kwargs: &[],
            },
        };
        let handled = self.tell(&message);
        drop(calls);
        let asked = Asked {
            caller: Arc::clone(self),
            request,
        };
        match handled {
            Told::Handled if self.is_there() => Ok(asked),
            Told::Judged => Err(lost(
                "whoever asks has a role with an authorizer".to_owned(),
            )),
            Told::Handled | Told::Refused => Err(lost("its realm was stopped".to_owned())),
        }
    }

    /// Hands a message of this session to its realm.
    fn tell(&self, message: &Message<'_>) -> Told {
        let source = Source {
            connection: &self.connection,
            bytes: None,
        };
        let handled = self.realm.handle(Instant::now(), self.key, message, source);
        match (handled.outcome, handled.asked) {
            (Ok(()), None) => Told::Handled,
            (Ok(()), Some(_)) => Told::Judged,
            (Err(_), _) => Told::Refused,
        }
    }

    fn answer(&self, request: RequestId, answer: Answer) {
        let slot = self.calls.lock().waiting.remove(&request.0);
        if let Some(slot) = slot.and_then(|slot| slot.upgrade()) {
            slot.fill(Outcome::Answer(answer));
        }
    }

    /// Nothing more comes, and nothing is asked any more.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.realm.leave(self.key, EndReason::Closed);
        self.connection.close();
        let waiting = std::mem::take(&mut self.calls.lock().waiting);
        for slot in waiting.into_values().filter_map(|slot| slot.upgrade()) {
            let text = "its realm was stopped".to_owned();
            slot.fill(Outcome::Answer(Answer::Unanswered(Unanswered::Lost {
                text,
            })));
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let is_open = self.caller.calls.lock().waiting.remove(&self.request);
        if is_open.is_some() {
            self.caller.tell(&Message::Cancel {
                request: RequestId(self.request),
                options: CancelOptions {
                    mode: CancelMode::KillNoWait,
                },
            });
        }
    }
}

/// What the realm sends to such a session.
struct Answers {
    frames: rawsocket::Decoder,
    caller: Arc<Caller>,
}

impl Protocol for Answers {
    fn handle_input(&mut self, input: &mut [u8]) -> Read {
        let mut consumed = 0;
        loop {
            // Nobody but this router writes there.
            let Ok(step) = self.frames.next(&mut input[consumed..]) else {
                return Read::Close;
            };
            if step.consumed == 0 {
                let wanted = step.wanted;
                return Read::Continue { consumed, wanted };
            }
            if let Some(Item::Message { bytes, .. }) = step.item
                && !self.caller.handle_message(bytes)
            {
                return Read::Close;
            }
            consumed += step.consumed;
        }
    }
}

impl Caller {
    /// Handles what the realm says; whether more is to come.
    fn handle_message(&self, bytes: &[u8]) -> bool {
        match codec::decode(SERIALIZER, bytes, &Limits::default()) {
            Ok(Message::Result {
                request, payload, ..
            }) => {
                let value = first(&payload).unwrap_or(Value::Null);
                self.answer(request, Answer::Value(value));
            }
            Ok(Message::Error {
                request_type: MessageType::Call,
                request,
                error,
                payload,
                ..
            }) => {
                let uri = error.into_owned();
                let text = first(&payload).map(text).unwrap_or_default();
                self.answer(request, Answer::Error { uri, text });
            }
            Ok(Message::Goodbye { .. } | Message::Abort { .. }) | Err(_) => return false,
            Ok(_) => {}
        }
        true
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

/// Two ends of one socket.
fn ends() -> io::Result<(Socket, Socket)> {
    let (own, other) = UnixStream::pair()?;
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let socket = |end: UnixStream| Socket::new(end.into(), PeerAddress::Unix(None));
    Ok((socket(own), socket(other)))
}
