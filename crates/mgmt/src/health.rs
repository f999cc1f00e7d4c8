//! Health checks.

use std::time::Duration;

use crosstie_broker::{Alarm, Resource};
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::node;
use crate::route::Check;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn check(call: &Call<'_>, check: &Check<'_>) -> Answer {
    match *check {
        Check::Alarms { is_local } => alarms(call, is_local),
        Check::Vhosts => vhosts(call),
        Check::Port(port) => self::port(call, port),
        Check::Protocol(protocol) => self::protocol(call, protocol),
        Check::Certificates(within, unit) => certificates(call, within, unit),
        Check::Critical => Answer::json(&json!({"status": "ok", "reason": "single node cluster"})),
        Check::Node(asked) => match asked.is_none_or(|asked| asked == node::name(call.api)) {
            true => whole_node(call),
            false => Answer::not_found(),
        },
    }
}

pub(crate) fn ok() -> Answer {
    Answer::json(&json!({"status": "ok"}))
}

fn failed(reason: &str, details: &[(&str, Json)]) -> Answer {
    let mut body = json!({"status": "failed", "reason": reason});
    for (name, value) in details {
        body[*name] = value.clone();
    }
    Answer::json(&body).with_status(503)
}

const MEMORY: &str = "memory";
const DISK: &str = "disk space";

/// The alarms that block publishers, by RabbitMQ's names of what is short.
pub(crate) fn resources(call: &Call<'_>) -> Vec<&'static str> {
    let alarms = call.api.operators.alarms();
    let resources = alarms.iter().filter_map(|alarm| match alarm {
        Alarm::MemoryFull { .. }
        | Alarm::Raised {
            resource: Resource::Memory,
        } => Some(MEMORY),
        Alarm::DiskLow { .. } | Alarm::StoreFailing { .. } | Alarm::Raised { .. } => Some(DISK),
        _ => None,
    });
    let mut resources: Vec<_> = resources.collect();
    // One alarm for each, whatever its reasons.
    resources.sort_unstable();
    resources.dedup();
    resources
}

fn alarms(call: &Call<'_>, is_local: bool) -> Answer {
    let found = resources(call);
    if found.is_empty() {
        return ok();
    }
    let node = node::name(call.api);
    let found = found
        .iter()
        .map(|resource| json!({"node": node, "resource": resource}));
    let reason = match is_local {
        true => "There are alarms in effect on the node",
        false => "There are alarms in effect in the cluster",
    };
    failed(reason, &[("alarms", found.collect())])
}

/// A replicated vhost of which no node is the owner is down.
fn vhosts(call: &Call<'_>) -> Answer {
    let replicated = call.api.operators.replicated().into_iter();
    let down = replicated.filter(|vhost| vhost.owner.is_none());
    let down: Vec<Json> = down.map(|vhost| vhost.name.into()).collect();
    match down.is_empty() {
        true => ok(),
        false => failed(
            "Some virtual hosts are down",
            &[("virtual-hosts", down.into())],
        ),
    }
}

fn port(call: &Call<'_>, port: &str) -> Answer {
    let Ok(port) = port.parse::<u16>() else {
        return Answer::bad_request("Invalid port");
    };
    let listeners = call.api.surroundings.listeners();
    let ports: Vec<u16> = listeners.iter().map(|listener| listener.port).collect();
    match ports.contains(&port) {
        true => Answer::json(&json!({"status": "ok", "port": port})),
        false => {
            let details = [("missing", json!(port)), ("ports", json!(ports))];
            failed("No active listener", &details)
        }
    }
}

fn protocol(call: &Call<'_>, asked: &str) -> Answer {
    let listeners = call.api.surroundings.listeners();
    let protocols: Vec<&str> = listeners.iter().map(|listener| listener.protocol).collect();
    let meant = match asked.to_ascii_lowercase().as_str() {
        "amqp091" | "amqp" => "amqp",
        "amqps" | "amqp/ssl" => "amqp/ssl",
        "management" => "http",
        _ => asked,
    };
    match protocols.contains(&meant) {
        true => Answer::json(&json!({"status": "ok", "protocol": asked})),
        false => {
            let details = [("missing", json!(asked)), ("protocols", json!(protocols))];
            failed("No active listener", &details)
        }
    }
}

fn certificates(call: &Call<'_>, within: &str, unit: &str) -> Answer {
    let days = match unit {
        "days" => 1,
        "weeks" => 7,
        "months" => 30,
        "years" => 365,
        _ => {
            let reason = "Time unit not recognised. Supported units: days, weeks, months, years.";
            return Answer::bad_request(reason);
        }
    };
    let Ok(count) = within.parse::<u32>() else {
        return Answer::bad_request("Invalid expiration value.");
    };
    let within = DAY * days * count.min(10_000);
    match call.api.surroundings.certificate_expires() {
        Some((listener, left)) if left < within => {
            let expired = json!([{"node": node::name(call.api), "protocol": listener}]);
            failed("Certificates expiring", &[("expired", expired)])
        }
        _ => ok(),
    }
}

fn whole_node(call: &Call<'_>) -> Answer {
    let found = resources(call);
    if found.is_empty() {
        return ok();
    }
    let node = node::name(call.api);
    let alarms = found.iter().map(|resource| {
        let resource = if *resource == "memory" {
            "memory"
        } else {
            "disk"
        };
        format!("{{resource_limit,{resource},{node}}}")
    });
    let alarms: Vec<String> = alarms.collect();
    let reason = format!("resource alarm(s) in effect:[{}]", alarms.join(","));
    Answer::json(&json!({"status": "failed", "reason": reason}))
}
