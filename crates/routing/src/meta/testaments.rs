//! `wamp.session.add_testament` and `flush_testaments`: publications for the time when the caller has left.

use crosstie_wamp::{Dict, Message, Value};

use super::arguments::{Arguments, invalid};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::testaments::{Scope, Testament};
use crate::{Outbox, Realm, Time};

/// Options without meaning in a testament: no session waits for an answer, and the publisher has left.
const MEANINGLESS: [&str; 2] = ["acknowledge", "exclude_me"];

impl<H> Realm<H> {
    /// Adds a testament of the caller; returns the id that its publication will have.
    pub(super) fn add_testament(
        &mut self,
        now: Time,
        from: SessionIndex,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        let scope = scope(arguments)?;
        let topic = arguments.text("topic")?;
        let options = options(arguments)?;
        let payload = payload(arguments, &options)?;
        let id = self.random.publication_id();
        let serializer = arguments.serializer();
        let testament = Testament::new(id, options, topic, payload, serializer).map_err(invalid)?;
        let (broker, _, mut context) = self.split(now, out);
        if let Ok(Message::Publish {
            options,
            topic,
            payload,
            ..
        }) = testament.message()
        {
            broker.judge_testament(&mut context, from, &options, &topic, payload)?;
        }
        let limits = &context.config.limits;
        let session = &mut context.sessions[from];
        let testaments = session.rare.as_deref().map(|rare| &rare.testaments);
        let (count, bytes) = testaments.map_or((0, 0), |all| (all.len(), all.bytes()));
        if count >= limits.testaments_max {
            let text = format!("a session may have {} testaments", limits.testaments_max);
            return Err(Fault::new(error::TESTAMENTS_MAX, text));
        }
        if bytes + testament.bytes() > limits.testaments_bytes_max {
            let text = format!(
                "a session's testaments may have {} bytes; with this one they would have {}",
                limits.testaments_bytes_max,
                bytes + testament.bytes()
            );
            return Err(Fault::new(error::TESTAMENTS_BYTES_MAX, text));
        }
        let held = testament.bytes();
        let rare = session.rare.get_or_insert_default();
        rare.testaments.add(scope, testament);
        context.hold(from, held as isize);
        if !self.custody.holders.is_empty() {
            self.entrust(now, from, scope, out);
        }
        Ok(Value::from(id.0))
    }

    /// Removes the caller's testaments of one scope; returns how many.
    pub(super) fn flush_testaments(
        &mut self,
        from: SessionIndex,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        let scope = scope(arguments)?;
        let session = &mut self.sessions[from];
        let Some(rare) = &mut session.rare else {
            return Ok(Value::from(0));
        };
        let (flushed, bytes) = rare.testaments.flush(scope);
        session.tidy();
        let id = session.id.0;
        out.hold(&session.handle, -(bytes as isize));
        self.release(id, &flushed, out);
        Ok(Value::from(flushed.len() as u64))
    }
}

/// In Crossbar.io's words.
fn scope(arguments: &Arguments) -> Result<Scope, Fault> {
    let name = arguments.optional_text("scope")?.unwrap_or("destroyed");
    Scope::from_name(name).ok_or_else(|| {
        Fault::new(
            error::TESTAMENT_ERROR,
            "scope must be destroyed or detached",
        )
    })
}

fn options(arguments: &Arguments) -> Result<Dict, Fault> {
    let options = arguments.optional_dict("publish_options")?;
    let given = options.into_iter().flatten();
    let meant = given.filter(|(key, _)| !MEANINGLESS.contains(&&**key));
    Ok(meant.cloned().collect())
}

/// The arguments of the PUBLISH, if there are any.
fn payload(arguments: &Arguments, options: &Dict) -> Result<Vec<Value>, Fault> {
    let kwargs = arguments.optional_dict("kwargs")?.cloned();
    let kwargs = kwargs.filter(|kwargs| !kwargs.is_empty());
    // Encoded arguments are one text or binary value instead of a list.
    let is_encoded = options.iter().any(|(key, _)| key == "enc_algo");
    let args = match arguments.get("args") {
        Some(value @ (Value::String(_) | Value::Binary(_))) if is_encoded => Some(value.clone()),
        _ => arguments.optional_list("args")?.cloned().map(Value::List),
    };
    Ok(match (args, kwargs) {
        (None, None) => Vec::new(),
        (Some(Value::List(args)), None) if args.is_empty() => Vec::new(),
        (Some(args), None) => vec![args],
        (args, Some(kwargs)) => {
            let none = || Value::List(Vec::new());
            vec![args.unwrap_or_else(none), Value::Dict(kwargs)]
        }
    })
}
