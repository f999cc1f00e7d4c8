//! `wamp.reflect.…` and `wamp.reflection.…`: definitions of procedures, topics and errors by sessions.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{MatchPolicy, Serializer, Value};

use super::arguments::{Arguments, invalid};
use crate::authz::{Action, Asker, Subject};
use crate::context::{is_own_procedure, none_left, reserved_uri};
use crate::events::{ON_DEFINE, ON_UNDEFINE};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::reflection::{Kind, Reflection, Undefined};
use crate::{Outbox, Realm, Time};

/// Cost to remove a definition.
const STEPS_PER_DEFINITION: u32 = 8;

/// The procedures.
#[derive(Clone, Copy)]
pub(super) enum Reflected {
    Define,
    Undefine,
    /// Describes the kind in the arguments, or all kinds.
    Describe,
    DescribeOne(Kind),
    List(Kind),
}

impl<H> Realm<H> {
    pub(super) fn reflect(
        &mut self,
        now: Time,
        from: SessionIndex,
        what: Reflected,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        if self.reflection.has_nodes {
            let text = "definitions are not kept in a realm of several nodes";
            return Err(Fault::new(error::NO_SUCH_PROCEDURE, text));
        }
        match what {
            Reflected::Define => self.define(now, from, arguments, out),
            Reflected::Undefine => {
                let kind = kind(arguments)?.unwrap_or(Kind::Procedure);
                let uri = arguments.text("uri")?;
                let undefined = self.reflection.undefine(from, kind, uri);
                let was_defined = undefined.is_some();
                if let Some(undefined) = undefined {
                    self.note_undefined(from, undefined, out);
                }
                Ok(Value::Bool(was_defined))
            }
            Reflected::Describe => {
                let uri = arguments.text("uri")?;
                if let Some(kind) = kind(arguments)? {
                    return Ok(self.described(now, from, kind, uri));
                }
                let kinds = Kind::ALL.into_iter();
                let described = kinds.filter_map(|kind| {
                    let description = self.described(now, from, kind, uri);
                    (description != Value::Null).then(|| (kind.name().to_owned(), description))
                });
                Ok(Value::Dict(described.collect()))
            }
            Reflected::DescribeOne(kind) => {
                Ok(self.described(now, from, kind, arguments.text("uri")?))
            }
            Reflected::List(kind) => {
                let uris = self.reflection.uris(kind);
                let seen = uris.filter(|uri| self.may_see(now, from, kind, uri));
                let list = seen.map(Value::from).collect();
                self.steps = self.steps.saturating_add(self.reflection.len() as u32);
                Ok(Value::List(list))
            }
        }
    }

    fn define(
        &mut self,
        now: Time,
        from: SessionIndex,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        let kind = kind(arguments)?.unwrap_or(Kind::Procedure);
        let uri = arguments.text("uri")?;
        let Some(description) = arguments.get("description") else {
            return Err(invalid("description: expected a value, found nothing"));
        };
        let mut written = Vec::new();
        codec::encode_value(description, Serializer::Cbor, &mut written)
            .map_err(|error| invalid(format!("description: {error}")))?;
        let written = written.into_boxed_slice();
        let action = match kind {
            Kind::Procedure => Action::Register,
            Kind::Topic | Kind::Error => Action::Publish,
        };
        let (has, bytes) = self.reflection.held(from, kind, uri);
        let all = self.reflection.len();
        let (_, _, mut context) = self.split(now, out);
        context.check_uri(action, uri)?;
        if is_own_procedure(uri) && kind != Kind::Error {
            return Err(reserved_uri(action, uri));
        }
        if kind != Kind::Error {
            let subject = Subject {
                action,
                uri,
                match_policy: MatchPolicy::Exact,
            };
            context.authorize_besides(from, &subject)?;
        }
        let limits = &context.config.limits;
        if has >= limits.definitions_max {
            let text = format!("a session may have {} definitions", limits.definitions_max);
            return Err(Fault::new(error::DEFINITIONS_MAX, text));
        }
        let bytes = bytes + Reflection::weight(uri, &written);
        if bytes > limits.definitions_bytes_max {
            let text = format!(
                "a session's definitions may have {} bytes; with this one they would have {bytes}",
                limits.definitions_bytes_max
            );
            return Err(Fault::new(error::DEFINITIONS_BYTES_MAX, text));
        }
        let realm_max = limits.realm_definitions_max;
        if !context.may_have_more(has, all, realm_max) {
            let fault = none_left(error::REALM_DEFINITIONS_MAX, "definitions", realm_max);
            return Err(fault);
        }
        let before = self.reflection.bytes_of(from);
        let is_new = self.reflection.define(from, kind, uri, written);
        let delta = self.reflection.bytes_of(from) as isize - before as isize;
        out.hold(&self.sessions[from].handle, delta);
        self.tell(ON_DEFINE, from, kind, uri);
        Ok(Value::Bool(is_new))
    }

    /// The latest definition of it, or null.
    fn described(&self, now: Time, from: SessionIndex, kind: Kind, uri: &str) -> Value {
        let description = self.reflection.describe(kind, uri);
        let seen = description.filter(|_| self.may_see(now, from, kind, uri));
        let value =
            seen.map(|bytes| codec::decode_value(Serializer::Cbor, bytes, &Limits::default()));
        value.and_then(Result::ok).unwrap_or(Value::Null)
    }

    /// Whether a session may use a procedure or topic. No authorizer is asked: a list would take one question per
    /// entry.
    fn may_see(&self, now: Time, from: SessionIndex, kind: Kind, uri: &str) -> bool {
        let actions = match kind {
            Kind::Procedure => [Action::Call, Action::Register],
            Kind::Topic => [Action::Subscribe, Action::Publish],
            Kind::Error => return true,
        };
        let session = &self.sessions[from];
        let asker = Asker {
            key: self.sessions.key(from),
            id: session.id,
            identity: &session.identity,
        };
        actions.into_iter().any(|action| {
            let subject = Subject {
                action,
                uri,
                match_policy: MatchPolicy::Exact,
            };
            self.roles.may(now, session.role, &asker, &subject)
        })
    }

    /// Removes definitions of a session that has left, for that many steps; returns whether there were any.
    pub(crate) fn undefine_some(
        &mut self,
        from: SessionIndex,
        steps_max: u32,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let mut was_any = false;
        for _ in 0..steps_max.div_ceil(STEPS_PER_DEFINITION) {
            let Some(undefined) = self.reflection.undefine_next(from) else {
                break;
            };
            was_any = true;
            self.steps = self.steps.saturating_add(STEPS_PER_DEFINITION);
            self.note_undefined(from, undefined, out);
        }
        was_any
    }

    fn note_undefined(
        &mut self,
        from: SessionIndex,
        undefined: Undefined,
        out: &mut dyn Outbox<H>,
    ) {
        out.hold(&self.sessions[from].handle, -(undefined.bytes as isize));
        if undefined.is_gone {
            self.tell(ON_UNDEFINE, from, undefined.kind, &undefined.uri);
        }
    }

    fn tell(&mut self, topic: &'static str, from: SessionIndex, kind: Kind, uri: &str) {
        if self.events.is_watched() {
            let session = self.sessions[from].id.0;
            let arguments = vec![
                Value::from(session),
                Value::from(kind.name()),
                Value::from(uri),
            ];
            self.events.add(topic, arguments);
        }
    }
}

/// The kind in the arguments, if given.
fn kind(arguments: &Arguments) -> Result<Option<Kind>, Fault> {
    let Some(name) = arguments.optional_text("kind")? else {
        return Ok(None);
    };
    let kind = Kind::from_name(name).map(Some);
    kind.ok_or_else(|| invalid("kind: expected procedure, topic or error"))
}
