//! Procedures that show the messages of one session or AMQP connection. A trace ends if it is not read, so that it never
//! outlives its reader by much.

use std::sync::Arc;
use std::time::Duration;

use crosstie_config::Json;
use crosstie_router::{NotTraced, Trace, TraceOptions};
use serde_json::json;
use tracing::info;

use super::router::router;
use super::{Procedure, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 4] = [
    now("crossbar.worker..trace_router_session", trace_session),
    now("crossbar.worker..trace_amqp_connection", trace_connection),
    now("crossbar.read_trace", read),
    now("crossbar.end_trace", end),
];

/// The default and the maximum of each bound.
const MESSAGES: (u64, u64) = (1_000, 1_000_000);
const BYTES: (u64, u64) = (1 << 20, 1 << 30);
const SECONDS: (u64, u64) = (60, 3_600);

fn trace_session(node: &mut Node, call: &Call) -> Answer {
    let id: u64 = call.required(0, "session")?;
    begin(node, call, &format!("session {id}"), |router, options| {
        router.trace_session(id, options)
    })
}

fn trace_connection(node: &mut Node, call: &Call) -> Answer {
    let number: u64 = call.required(0, "connection")?;
    let what = format!("AMQP connection {number}");
    begin(node, call, &what, |router, options| {
        router.trace_connection(number, options)
    })
}

fn begin(
    node: &mut Node,
    call: &Call,
    what: &str,
    begin: impl FnOnce(&crosstie_router::Router, TraceOptions) -> Result<Arc<Trace>, NotTraced>,
) -> Answer {
    let options = TraceOptions {
        messages_max: bound(call, 1, "messages", MESSAGES)?,
        bytes_max: bound(call, 2, "bytes", BYTES)?,
        within: Duration::from_secs(bound(call, 3, "seconds", SECONDS)?),
        has_payload: call.optional(4, "payload")?.unwrap_or(false),
    };
    if !node.traces.has_room() {
        let text = "16 traces are running; end one of them, or try again later";
        return Err(errors::already_running(text));
    }
    let begun = begin(&router(node, call)?.router, options);
    let trace = begun.map_err(|refused| match refused {
        NotTraced::NoSuch(text) => errors::no_such_object(&text),
        NotTraced::Refused(text) => errors::already_running(&text),
    })?;
    let number = node.traces.add(trace);
    info!("Router '{}': trace {number} of {what} begun", call.worker);
    Ok(json!({ "trace": number }))
}

fn bound(
    call: &Call,
    index: usize,
    name: &str,
    (default, max): (u64, u64),
) -> Result<u64, Refusal> {
    let given: Option<u64> = call.optional(index, name)?;
    match given.unwrap_or(default) {
        value if (1..=max).contains(&value) => Ok(value),
        value => Err(errors::invalid_argument(&format!(
            "argument {index}, '{name}': expected 1 to {max}, got {value}"
        ))),
    }
}

fn read(node: &mut Node, call: &Call) -> Answer {
    let number: u64 = call.required(0, "trace")?;
    let part = node.traces.read(number);
    let part = part.ok_or_else(|| no_such_trace(number))?;
    Ok(json!({ "lines": part.lines, "ended": part.ended, "missing": part.missing }))
}

fn end(node: &mut Node, call: &Call) -> Answer {
    let number: u64 = call.required(0, "trace")?;
    match node.traces.end(number) {
        true => Ok(Json::Null),
        false => Err(no_such_trace(number)),
    }
}

fn no_such_trace(number: u64) -> Refusal {
    errors::no_such_object(&format!("there is no trace {number}"))
}
