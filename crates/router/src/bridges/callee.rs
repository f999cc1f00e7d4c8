//! Calls as HTTP requests, like Crossbar.io's `RESTCallee`, to configured servers only.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_front::http_client::Answered;
use crosstie_realms::resident::{Invocation, Kept, Registration};
use crosstie_site::request_counts::Outcome;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Payload, RegisterOptions, Serializer, Value};
use crosstie_web::bridge::target::target;
use crosstie_web::bridge::trace;
use crosstie_web::bridge::webhook::written;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::{HeaderMap, Method, Request};
use tokio::task::JoinSet;

use super::Bridge;

/// The arguments of a call, in their positional order.
const NAMES: [&str; 5] = ["method", "url", "body", "headers", "params"];

/// Headers between two ends of a connection, which callers may not set.
const OWN: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Why a call has no result.
enum Failed {
    /// A fault of the caller.
    Invalid(String),
    Server(String),
}

/// Answers calls until the router ends.
pub(super) async fn run(bridge: &Arc<Bridge>, base: &str, procedure: &str, servers: &[String]) {
    let servers: Arc<[String]> = servers.into();
    let base: Arc<str> = base.into();
    loop {
        let resident = bridge.place.awaited().await;
        let options = RegisterOptions::default();
        match resident.register(procedure, options).await {
            Ok(invocations) => serve(bridge, &base, &servers, invocations).await,
            Err(e) => bridge.warn(&format!("cannot register '{procedure}': {e}")),
        }
        resident.over().await;
    }
}

async fn serve(
    bridge: &Arc<Bridge>,
    base: &Arc<str>,
    servers: &Arc<[String]>,
    mut invocations: Registration,
) {
    let mut asking = JoinSet::new();
    loop {
        let invocation = tokio::select! {
            invocation = invocations.next() => invocation,
            Some(_) = asking.join_next(), if !asking.is_empty() => continue,
        };
        let Some(invocation) = invocation else {
            return;
        };
        // The semaphore is never closed.
        let Ok(turn) = Arc::clone(&bridge.requests).acquire_owned().await else {
            return;
        };
        let (bridge, base) = (Arc::clone(bridge), Arc::clone(base));
        let servers = Arc::clone(servers);
        asking.spawn(async move {
            answer(&bridge, &base, &servers, invocation).await;
            drop(turn);
        });
    }
}

async fn answer(bridge: &Bridge, base: &str, servers: &[String], mut invocation: Invocation) {
    let asked = invocation.payload.clone();
    let passthru = invocation.passthru.take();
    let answered = tokio::select! {
        answered = ask(bridge, base, servers, &asked, passthru.as_deref()) => answered,
        // The caller no longer waits.
        () = invocation.interrupted() => return,
    };
    match answered.map(|answered| encoded(result(&answered))) {
        Ok(args) => invocation.answer(json(&args)),
        Err(Failed::Invalid(text)) => {
            let args = encoded(Value::from(text.as_str()));
            invocation.fail("wamp.error.invalid_argument", json(&args));
        }
        Err(Failed::Server(text)) => {
            let args = encoded(Value::from(text.as_str()));
            invocation.fail("wamp.error.runtime_error", json(&args));
        }
    }
}

fn json(args: &[u8]) -> Payload<'_> {
    Payload::new(Serializer::Json, args, &[])
}

fn encoded(argument: Value) -> Vec<u8> {
    let mut args = Vec::new();
    // Text, numbers and lists can always be encoded.
    let _ = codec::encode_value(&Value::List(vec![argument]), Serializer::Json, &mut args);
    args
}

async fn ask(
    bridge: &Bridge,
    base: &str,
    servers: &[String],
    payload: &Kept,
    passthru: Option<&Dict>,
) -> Result<Answered, Failed> {
    let request = match request(base, servers, payload) {
        Ok(mut request) => {
            trace::set(passthru, request.headers_mut());
            request
        }
        Err(text) => {
            bridge.counts.begin().end(Outcome::Refused);
            return Err(Failed::Invalid(text));
        }
    };
    let (answered, counted) = bridge.ask(request).await.map_err(Failed::Server)?;
    counted.end(Outcome::Answered);
    Ok(answered)
}

/// The request for a call.
fn request(base: &str, servers: &[String], payload: &Kept) -> Result<Request<Bytes>, String> {
    let said = arguments(payload)?;
    let given = |name: &str| {
        let found = said.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != Value::Null)
    };
    let text = |name: &str| match given(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("\"{name}\" must be text")),
    };
    let method = text("method")?.ok_or("\"method\" is missing")?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
    let none = Dict::new();
    let dict = |name: &str| match given(name) {
        None => Ok(&none),
        Some(Value::Dict(dict)) => Ok(dict),
        Some(_) => Err(format!("\"{name}\" must be a dict")),
    };
    let params = dict("params")?.iter();
    let params = params.map(|(name, value)| match value {
        Value::String(text) => Ok((name.as_str(), text.as_str())),
        _ => Err("each of \"params\" must be text"),
    });
    let params: Vec<_> = params.collect::<Result<_, _>>()?;
    let url = text("url")?.unwrap_or_default();
    let uri = target(base, servers, url, params.into_iter()).map_err(|e| e.to_string())?;
    let body = text("body")?.unwrap_or_default();
    let mut request = Request::new(Bytes::copy_from_slice(body.as_bytes()));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers(dict("headers")?)?;
    Ok(request)
}

/// The arguments of a call, by name.
fn arguments(payload: &Kept) -> Result<Dict, String> {
    let limits = Limits { depth_max: 512 };
    let read = |bytes: &Bytes| match bytes.is_empty() {
        true => Ok(Value::Null),
        false => codec::decode_value(payload.serializer, bytes, &limits).map_err(|e| e.to_string()),
    };
    let mut said = Dict::new();
    if let Value::List(values) = read(&payload.args)? {
        if values.len() > NAMES.len() {
            return Err(format!("expected at most {} arguments", NAMES.len()));
        }
        said.extend(NAMES.iter().map(|name| (*name).to_owned()).zip(values));
    }
    if let Value::Dict(values) = read(&payload.kwargs)? {
        for (name, value) in values {
            if !NAMES.contains(&name.as_str()) || said.iter().any(|(known, _)| *known == name) {
                return Err(format!(
                    "\"{name}\" is unexpected; known here: {}",
                    NAMES.join(", ")
                ));
            }
            said.push((name, value));
        }
    }
    Ok(said)
}

/// Headers by name: a text, or a list of texts for each.
fn headers(said: &Dict) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in said {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| e.to_string())?;
        if OWN.contains(&name) {
            return Err(format!("the header \"{name}\" is not for a caller to say"));
        }
        let values = match value {
            Value::List(values) => values.as_slice(),
            single => std::slice::from_ref(single),
        };
        for value in values {
            let text = value
                .as_str()
                .ok_or("each of \"headers\" must be text, or a list of it")?;
            let value = HeaderValue::from_str(text).map_err(|e| e.to_string())?;
            let added = headers.try_append(&name, value);
            added.map_err(|_| "there are too many headers")?;
        }
    }
    Ok(headers)
}

/// The result: `code`, `content` and `headers`.
fn result(answered: &Answered) -> Value {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::String(bytes.iter().copied().map(char::from).collect()),
    };
    let headers = answered.headers.keys().map(|name| {
        let values = answered.headers.get_all(name).iter();
        let values = values.map(|value| text(value.as_bytes())).collect();
        (written(name.as_str()), Value::List(values))
    });
    Value::Dict(vec![
        (
            "code".to_owned(),
            Value::from(u64::from(answered.status.as_u16())),
        ),
        ("content".to_owned(), text(&answered.body)),
        ("headers".to_owned(), Value::Dict(headers.collect())),
    ])
}
