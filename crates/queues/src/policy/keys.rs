//! The keys of policies: which there are, their values, and the types of queues that know them.

use super::PolicyKind;
use super::value::PolicyValue;
use crate::topology::{QueueKind, age_ms};

/// A key of policies.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Whether operator policies may have it, and the smaller one of two values holds.
    pub(super) is_limit: bool,
    /// Types of queues that do not know it: a policy with it does not apply to them.
    pub(super) unknown_to: &'static [QueueKind],
    group: Group,
}

/// RabbitMQ checks the values of one group after the other, and reports the first wrong one.
#[derive(Clone, Copy)]
enum Group {
    Place,
    Ordinary(fn(&PolicyValue) -> bool, &'static str),
    /// Mirrored classic queues: their keys depend on each other.
    Mirrors,
}

const CLASSIC: QueueKind = QueueKind::Classic;
const QUORUM: QueueKind = QueueKind::Quorum;
const STREAM: QueueKind = QueueKind::Stream;

/// By name. RabbitMQ 3.10 does not have `consumer-timeout`; its name and text are those of 3.12.
const KEYS: &[Key] = &[
    key("alternate-exchange", text, "alternate exchange name", &[]),
    key("consumer-timeout", natural, "consumer timeout", &[]),
    key(
        "dead-letter-exchange",
        text,
        "dead letter exchange name",
        &[STREAM],
    ),
    key(
        "dead-letter-routing-key",
        text,
        "dead letter routing key",
        &[STREAM],
    ),
    key(
        "dead-letter-strategy",
        |value| is_one_of(value, &["at-most-once", "at-least-once"]),
        "dead letter strategy",
        &[CLASSIC, STREAM],
    ),
    limit(
        "delivery-limit",
        natural,
        "delivery limit",
        &[CLASSIC, STREAM],
    ),
    limit("expires", positive, "queue expiry", &[STREAM]),
    mirrors("ha-mode", &[QUORUM, STREAM]),
    mirrors("ha-params", &[QUORUM, STREAM]),
    mirrors("ha-promote-on-failure", &[QUORUM, STREAM]),
    mirrors("ha-promote-on-shutdown", &[QUORUM, STREAM]),
    mirrors("ha-sync-batch-size", &[]),
    mirrors("ha-sync-mode", &[QUORUM, STREAM]),
    key(
        "initial-cluster-size",
        natural,
        "cluster size",
        &[CLASSIC, QUORUM],
    ),
    key(
        "max-age",
        |value| value.as_text().is_some_and(|text| age_ms(text).is_some()),
        "max age",
        &[CLASSIC, QUORUM],
    ),
    limit(
        "max-in-memory-bytes",
        natural,
        "maximum memory in bytes",
        &[STREAM],
    ),
    limit(
        "max-in-memory-length",
        natural,
        "maximum memory in bytes",
        &[STREAM],
    ),
    limit("max-length", natural, "maximum length", &[STREAM]),
    limit("max-length-bytes", natural, "maximum length in bytes", &[]),
    limit("message-ttl", natural, "message TTL", &[STREAM]),
    key(
        "overflow",
        |value| {
            is_one_of(
                value,
                &["drop-head", "reject-publish", "reject-publish-dlx"],
            )
        },
        "overflow value",
        &[STREAM],
    ),
    key(
        "queue-leader-locator",
        |value| {
            is_one_of(
                value,
                &["client-local", "balanced", "random", "least-leaders"],
            )
        },
        "queue leader locator value",
        &[CLASSIC],
    ),
    Key {
        name: "queue-master-locator",
        is_limit: false,
        unknown_to: &[QUORUM, STREAM],
        group: Group::Place,
    },
    key(
        "queue-mode",
        |value| is_one_of(value, &["default", "lazy"]),
        "queue-mode value",
        &[QUORUM, STREAM],
    ),
    key(
        "queue-version",
        |value| matches!(value.as_integer(), Some(1 | 2)),
        "queue-version value",
        &[],
    ),
    key(
        "stream-max-segment-size-bytes",
        |value| matches!(value.as_integer(), Some(0..=3_000_000_000)),
        "segment size",
        &[CLASSIC, QUORUM],
    ),
];

/// The key of that name, if policies of that kind have it.
pub(super) fn find(kind: PolicyKind, name: &str) -> Option<&'static Key> {
    let found = KEYS.binary_search_by_key(&name, |key| key.name).ok()?;
    let key = &KEYS[found];
    (kind == PolicyKind::User || key.is_limit).then_some(key)
}

/// Keys that are checked and listed, and have no effect here: they are about the place or form of storage.
pub fn is_without_effect(key: &str) -> bool {
    key.starts_with("ha-")
        || key.starts_with("max-in-memory-")
        || [
            "initial-cluster-size",
            "queue-leader-locator",
            "queue-master-locator",
            "queue-mode",
            "queue-version",
        ]
        .contains(&key)
}

/// Checks the values of known keys, which are sorted. The error is RabbitMQ's text.
pub(super) fn check(known: &[(&'static Key, &PolicyValue)]) -> Result<(), String> {
    for (_, value) in known
        .iter()
        .filter(|(key, _)| matches!(key.group, Group::Place))
    {
        if !is_one_of(value, &["min-masters", "client-local", "random"]) {
            return Err(format!("{value} invalid queue-master-locator value"));
        }
    }
    for (key, value) in known {
        if let Group::Ordinary(is_valid, what) = key.group
            && !is_valid(value)
        {
            return Err(format!("{value} is not a valid {what}"));
        }
    }
    let mirrors = known
        .iter()
        .filter(|(key, _)| matches!(key.group, Group::Mirrors));
    let mirrors: Vec<_> = mirrors.map(|(key, value)| (key.name, *value)).collect();
    match mirrors.is_empty() {
        true => Ok(()),
        false => check_mirrors(|name| {
            let mut found = mirrors.iter().filter(|(key, _)| *key == name);
            found.next().map(|(_, value)| *value)
        }),
    }
}

fn check_mirrors<'v>(find: impl Fn(&str) -> Option<&'v PolicyValue>) -> Result<(), String> {
    let Some(mode) = find("ha-mode") else {
        return Err(
            "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
                .to_owned(),
        );
    };
    let parameters = find("ha-params");
    let given = parameters.map_or_else(|| "none".to_owned(), PolicyValue::to_string);
    match (mode.as_text(), parameters) {
        (Some("all"), None) => {}
        (Some("all"), Some(_)) => {
            return Err("ha-mode=\"all\" does not take parameters".to_owned());
        }
        (Some("exactly"), Some(PolicyValue::Integer(1..))) => {}
        (Some("exactly"), _) => {
            return Err(format!(
                "ha-mode=\"exactly\" takes an integer, {given} given"
            ));
        }
        (Some("nodes"), Some(PolicyValue::List(nodes))) if nodes.is_empty() => {
            return Err("ha-mode=\"nodes\" list must be non-empty".to_owned());
        }
        (Some("nodes"), Some(PolicyValue::List(nodes))) => {
            let wrong = nodes.iter().filter(|node| node.as_text().is_none());
            let wrong: Vec<_> = wrong.cloned().collect();
            if !wrong.is_empty() {
                return Err(format!(
                    "ha-mode=\"nodes\" takes a list of strings, {} was not a string",
                    PolicyValue::List(wrong)
                ));
            }
        }
        (Some("nodes"), _) => {
            return Err(format!("ha-mode=\"nodes\" takes a list, {given} given"));
        }
        _ => return Err(format!("{mode} is not a valid ha-mode value")),
    }
    if let Some(mode) = find("ha-sync-mode")
        && !is_one_of(mode, &["automatic", "manual"])
    {
        let text = format!("ha-sync-mode must be \"manual\" or \"automatic\", got {mode}");
        return Err(text);
    }
    if let Some(size) = find("ha-sync-batch-size")
        && !positive(size)
    {
        let text = format!("ha-sync-batch-size takes an integer greater than 0, {size} given");
        return Err(text);
    }
    for name in ["ha-promote-on-shutdown", "ha-promote-on-failure"] {
        if let Some(value) = find(name)
            && !is_one_of(value, &["always", "when-synced"])
        {
            return Err(format!(
                "{name} must be \"always\" or \"when-synced\", got {value}"
            ));
        }
    }
    Ok(())
}

const fn key(
    name: &'static str,
    is_valid: fn(&PolicyValue) -> bool,
    what: &'static str,
    unknown_to: &'static [QueueKind],
) -> Key {
    Key {
        name,
        is_limit: false,
        unknown_to,
        group: Group::Ordinary(is_valid, what),
    }
}

const fn limit(
    name: &'static str,
    is_valid: fn(&PolicyValue) -> bool,
    what: &'static str,
    unknown_to: &'static [QueueKind],
) -> Key {
    Key {
        is_limit: true,
        ..key(name, is_valid, what, unknown_to)
    }
}

const fn mirrors(name: &'static str, unknown_to: &'static [QueueKind]) -> Key {
    Key {
        name,
        is_limit: false,
        unknown_to,
        group: Group::Mirrors,
    }
}

fn text(value: &PolicyValue) -> bool {
    value.as_text().is_some()
}

fn natural(value: &PolicyValue) -> bool {
    matches!(value.as_integer(), Some(0..))
}

fn positive(value: &PolicyValue) -> bool {
    matches!(value.as_integer(), Some(1..))
}

fn is_one_of(value: &PolicyValue, known: &[&str]) -> bool {
    value.as_text().is_some_and(|text| known.contains(&text))
}
