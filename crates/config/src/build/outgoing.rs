//! Crossbar.io's component classes that send HTTP requests. The router runs them itself.

use std::time::Duration;

use super::Builder;
use crate::model::{
    Component, ComponentKind, Forwarding, Json, MatchPolicy, OutgoingBridge, OutgoingKind,
};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

const FORWARDER: [&str; 2] = [
    "crossbar.bridge.rest.MessageForwarder",
    "crossbar.bridge.rest.subscriber.MessageForwarder",
];
const CALLEE: [&str; 2] = [
    "crossbar.bridge.rest.RESTCallee",
    "crossbar.bridge.rest.callee.RESTCallee",
];

/// Crosstie's own keys of both classes.
const OWN: [&str; 4] = [
    "timeout",
    "requests_max",
    "answer_bytes_max",
    "ca_certificates",
];
const FORWARDER_KEYS: [&str; 4] = ["subscriptions", "method", "expectedcode", "debug"];
const CALLEE_KEYS: [&str; 3] = ["baseurl", "procedure", "servers"];

impl Builder<'_> {
    /// Removes these components from a router's and returns them.
    pub(super) fn outgoing(
        &mut self,
        worker: View<'_>,
        components: &mut Vec<Component>,
    ) -> Vec<OutgoingBridge> {
        let mut bridges = Vec::new();
        let mut objects = worker.objects("components");
        components.retain(|component| {
            let object = objects.next();
            if !component.is_outgoing() {
                return true;
            }
            let is_forwarder = component.is_one_of(&FORWARDER);
            let extra = &component.definition["extra"];
            match bridge(component, is_forwarder, extra) {
                Ok(bridge) => bridges.push(bridge),
                Err(message) => {
                    let at = object.map_or(worker.span, |object| object.span_of("extra"));
                    self.problems.push(Problem::error(at, message));
                }
            }
            false
        });
        bridges
    }
}

impl Component {
    /// Whether the router runs the component itself.
    pub(super) fn is_outgoing(&self) -> bool {
        self.is_one_of(&FORWARDER) || self.is_one_of(&CALLEE)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        matches!(&self.kind, ComponentKind::Class { classname } if names.contains(&classname.as_str()))
    }
}

fn bridge(
    component: &Component,
    is_forwarder: bool,
    extra: &Json,
) -> Result<OutgoingBridge, String> {
    let keys: &[&str] = match is_forwarder {
        true => &FORWARDER_KEYS,
        false => &CALLEE_KEYS,
    };
    let object = extra.as_object().ok_or("\"extra\" must be a dictionary")?;
    for key in object.keys() {
        if !keys.contains(&key.as_str()) && !OWN.contains(&key.as_str()) {
            let known = [keys, &OWN].concat().join(", ");
            let key = quoted(key);
            return Err(format!(
                "unknown key {key} in \"extra\"; known here: {known}"
            ));
        }
    }
    let number = |key: &str, fallback: u64, max: u64| match &extra[key] {
        Json::Null => Ok(fallback),
        value => match value.as_u64() {
            Some(number) if (1..=max).contains(&number) => Ok(number),
            _ => Err(format!("\"{key}\" must be an integer between 1 and {max}")),
        },
    };
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let kind = match is_forwarder {
        true => forwarder(extra)?,
        false => callee(extra)?,
    };
    Ok(OutgoingBridge {
        id: component.id.clone(),
        realm: component.realm.clone(),
        role: component
            .role
            .clone()
            .unwrap_or_else(|| "anonymous".to_owned()),
        kind,
        timeout: Duration::from_secs(number("timeout", 30, 3_600)?),
        requests_max: size(number("requests_max", 16, 1_024)?),
        answer_bytes_max: size(number("answer_bytes_max", 1 << 20, 1 << 24)?),
        ca_certificates: files(extra)?,
    })
}

/// The files of authorities.
fn files(extra: &Json) -> Result<Vec<String>, String> {
    let expected = "\"ca_certificates\" must be a list of files";
    match &extra["ca_certificates"] {
        Json::Null => Ok(Vec::new()),
        files => files
            .as_array()
            .ok_or(expected)?
            .iter()
            .map(|file| {
                let file = file.as_str().filter(|file| !file.is_empty());
                file.map(str::to_owned).ok_or_else(|| expected.to_owned())
            })
            .collect(),
    }
}

fn forwarder(extra: &Json) -> Result<OutgoingKind, String> {
    let subscriptions = extra["subscriptions"].as_array();
    let subscriptions = subscriptions.ok_or("\"subscriptions\" must be a list")?;
    let method = match &extra["method"] {
        Json::Null => "POST",
        value => value.as_str().ok_or("\"method\" must be text")?,
    };
    let expected_code = match &extra["expectedcode"] {
        Json::Null => None,
        value => {
            let code = value.as_u64().and_then(|code| u16::try_from(code).ok());
            let code = code.filter(|code| (100..1_000).contains(code));
            Some(code.ok_or("\"expectedcode\" must be a status of HTTP")?)
        }
    };
    Ok(OutgoingKind::Forwarder {
        subscriptions: subscriptions
            .iter()
            .map(forwarding)
            .collect::<Result<_, _>>()?,
        method: method.to_owned(),
        expected_code,
    })
}

fn forwarding(subscription: &Json) -> Result<Forwarding, String> {
    let object = subscription.as_object();
    let object = object.ok_or("each of \"subscriptions\" must be a dictionary")?;
    if let Some(key) = object
        .keys()
        .find(|key| !["topic", "url", "match"].contains(&key.as_str()))
    {
        let key = quoted(key);
        return Err(format!(
            "unknown key {key} in \"subscriptions\"; known here: topic, url, match"
        ));
    }
    let match_policy = match subscription["match"].as_str() {
        None if subscription["match"].is_null() => MatchPolicy::Exact,
        Some("exact") => MatchPolicy::Exact,
        Some("prefix") => MatchPolicy::Prefix,
        Some("wildcard") => MatchPolicy::Wildcard,
        _ => return Err("\"match\" must be exact, prefix or wildcard".to_owned()),
    };
    Ok(Forwarding {
        topic: text(subscription, "topic")?,
        url: url(subscription, "url")?,
        match_policy,
    })
}

fn callee(extra: &Json) -> Result<OutgoingKind, String> {
    let servers = match &extra["servers"] {
        Json::Null => Vec::new(),
        servers => {
            let all = servers.as_array().ok_or("\"servers\" must be a list")?;
            let all = all.iter().map(|server| is_url(server.as_str(), "servers"));
            all.collect::<Result<_, _>>()?
        }
    };
    Ok(OutgoingKind::Callee {
        base_url: url(extra, "baseurl")?,
        procedure: text(extra, "procedure")?,
        servers,
    })
}

fn text(object: &Json, key: &str) -> Result<String, String> {
    let text = object[key].as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| format!("\"{key}\" must be text"))?;
    Ok(text.to_owned())
}

fn url(object: &Json, key: &str) -> Result<String, String> {
    is_url(object[key].as_str(), key)
}

fn is_url(text: Option<&str>, key: &str) -> Result<String, String> {
    let is_one = |text: &&str| {
        let rest = text.strip_prefix("http://");
        let rest = rest.or_else(|| text.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    };
    let url = text.filter(is_one);
    let url =
        url.ok_or_else(|| format!("\"{key}\" must begin with http:// or https:// and a host"))?;
    Ok(url.to_owned())
}
