//! Policies of vhosts: those of the definitions, and what is in force.

use std::sync::Arc;

use crosstie_config::{DefinedPolicy, Definitions, Json, Skipped};
use crosstie_metadata::{Layers, Origin};
use crosstie_queues::policy::{
    Applied, Definition, Policy, PolicyKind, PolicyParts, PolicyValue, is_without_effect,
};

/// The policies that apply to a queue or exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedPolicies {
    pub policy: Option<String>,
    pub operator_policy: Option<String>,
    /// What both set, as a JSON object, without arguments.
    pub definition: Json,
}

/// Adds the policies of definitions to the configuration's entries. Returns those that are refused, with RabbitMQ's
/// text, and the keys that have no effect. Of several policies with one name the last counts.
pub(crate) fn add(layers: &mut Layers, definitions: &Definitions) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for defined in &definitions.policies {
        let (kind, of_kind) = match defined.is_operator {
            true => (PolicyKind::Operator, &mut layers.operator_policies),
            false => (PolicyKind::User, &mut layers.policies),
        };
        let what = what(defined);
        match parse(kind, defined) {
            Ok(policy) => {
                let unused = policy.definition().iter().map(|(key, _)| key);
                let unused = unused.filter(|key| is_without_effect(key));
                skipped.extend(unused.map(|key| Skipped {
                    what: format!("'{key}' of {what}"),
                    why: "it is about the place or form of storage, and has no effect here".into(),
                    is_wider: false,
                }));
                let key = (defined.vhost.as_str().into(), Arc::clone(policy.name()));
                of_kind.push((key, policy, Origin::Configured("amqp.definitions")));
            }
            Err(text) => skipped.push(Skipped {
                what,
                why: on_one_line(&text),
                is_wider: false,
            }),
        }
    }
    skipped
}

fn what(defined: &DefinedPolicy) -> String {
    let kind = match defined.is_operator {
        true => "operator policy",
        false => "policy",
    };
    format!("{kind} '{}' in vhost '{}'", defined.name, defined.vhost)
}

fn parse(kind: PolicyKind, defined: &DefinedPolicy) -> Result<Policy, String> {
    let (priority, apply_to) = (&defined.priority, &defined.apply_to);
    Policy::parse(
        kind,
        PolicyParts {
            name: &defined.name,
            pattern: &value(&defined.pattern),
            definition: &value(&defined.definition),
            priority: priority.as_ref().map(value).as_ref(),
            apply_to: apply_to.as_ref().map(value).as_ref(),
        },
    )
}

/// RabbitMQ's text has a line for each fault, and a heading.
fn on_one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let heading = lines.next().unwrap_or_default();
    let faults: Vec<_> = lines.map(str::trim_start).collect();
    format!("{heading}: {}", faults.join("; "))
}

/// A JSON value as one of a policy.
fn value(json: &Json) -> PolicyValue {
    match json {
        Json::Null => PolicyValue::Null,
        Json::Bool(value) => PolicyValue::Bool(*value),
        Json::Number(number) => match number.as_i128() {
            Some(integer) => PolicyValue::Integer(integer),
            None => PolicyValue::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => PolicyValue::Text(text.clone()),
        Json::Array(items) => PolicyValue::List(items.iter().map(value).collect()),
        Json::Object(entries) => {
            let entries = entries.iter();
            PolicyValue::Map(
                entries
                    .map(|(key, json)| (key.clone(), value(json)))
                    .collect(),
            )
        }
    }
}

/// A policy's value in JSON.
fn to_json(value: &PolicyValue) -> Json {
    match value {
        PolicyValue::Null => Json::Null,
        PolicyValue::Bool(value) => (*value).into(),
        PolicyValue::Integer(integer) => match i64::try_from(*integer) {
            Ok(integer) => integer.into(),
            Err(_) => u64::try_from(*integer).map_or_else(|_| (*integer as f64).into(), Json::from),
        },
        PolicyValue::Float(float) => (*float).into(),
        PolicyValue::Text(text) => text.as_str().into(),
        PolicyValue::List(items) => items.iter().map(to_json).collect(),
        PolicyValue::Map(entries) => {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), to_json(value)))
                .collect()
        }
    }
}

/// A definition as an object.
fn definition_to_json(definition: &Definition) -> Json {
    let entries = definition.iter();
    entries
        .map(|(key, value)| (key.to_string(), to_json(value)))
        .collect()
}

/// What applies to a queue or exchange, for a listing.
pub(super) fn shown(applied: Option<&Applied>) -> AppliedPolicies {
    let name = |policy: Option<&Arc<Policy>>| policy.map(|policy| policy.name().to_string());
    AppliedPolicies {
        policy: name(applied.and_then(Applied::policy)),
        operator_policy: name(applied.and_then(Applied::operator_policy)),
        definition: applied.map_or_else(
            || Json::Object(Default::default()),
            |applied| definition_to_json(applied.definition()),
        ),
    }
}
