//! Policies as entries: their JSON, which `crosstie_queues` checks.

use crosstie_queues::policy::{Definition, Policy, PolicyKind, PolicyParts, PolicyValue};
use serde_json::{Map, Number, Value as Json, json};

use crate::Refusal;
use crate::body::Body;

/// Checks a policy.
pub(crate) fn parse(kind: PolicyKind, name: &str, json: &Json) -> Result<Policy, Refusal> {
    let body = Body::of(json)?;
    body.require(&["pattern", "definition"])?;
    let value = |key| body.get(key).map(policy_value);
    let [pattern, definition, priority, apply_to] =
        ["pattern", "definition", "priority", "apply-to"].map(value);
    let parts = PolicyParts {
        name,
        pattern: pattern.as_ref().unwrap_or(&PolicyValue::Null),
        definition: definition.as_ref().unwrap_or(&PolicyValue::Null),
        priority: priority.as_ref(),
        apply_to: apply_to.as_ref(),
    };
    Policy::parse(kind, parts).map_err(Refusal::invalid)
}

/// The keys of a policy beside its vhost and name, in the order of the HTTP API.
pub(crate) fn to_json(policy: &Policy) -> Map<String, Json> {
    let json = json!({
        "pattern": policy.pattern(),
        "apply-to": policy.apply_to().name(),
        "definition": definition_to_json(policy.definition()),
        "priority": value_to_json(policy.priority()),
    });
    match json {
        Json::Object(json) => json,
        _ => Map::new(),
    }
}

/// A definition as an object.
pub fn definition_to_json(definition: &Definition) -> Json {
    let entries = definition.iter();
    let entries = entries.map(|(key, value)| (key.to_string(), value_to_json(value)));
    Json::Object(entries.collect())
}

/// A JSON value as one of a policy.
pub fn policy_value(json: &Json) -> PolicyValue {
    match json {
        Json::Null => PolicyValue::Null,
        Json::Bool(value) => PolicyValue::Bool(*value),
        Json::Number(number) => match number.as_i128() {
            Some(integer) => PolicyValue::Integer(integer),
            None => PolicyValue::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => PolicyValue::Text(text.clone()),
        Json::Array(items) => PolicyValue::List(items.iter().map(policy_value).collect()),
        Json::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), policy_value(value)));
            PolicyValue::Map(entries.collect())
        }
    }
}

fn value_to_json(value: &PolicyValue) -> Json {
    match value {
        PolicyValue::Null => Json::Null,
        PolicyValue::Bool(value) => (*value).into(),
        PolicyValue::Integer(integer) => Number::from_i128(*integer).map_or(Json::Null, Json::from),
        PolicyValue::Float(float) => (*float).into(),
        PolicyValue::Text(text) => text.as_str().into(),
        PolicyValue::List(items) => items.iter().map(value_to_json).collect(),
        PolicyValue::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), value_to_json(value)));
            Json::Object(entries.collect())
        }
    }
}
