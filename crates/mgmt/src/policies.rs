//! The policies that apply to a queue or an exchange.

use crosstie_queues::policy::{Applied, Definition, PolicyValue};
use serde_json::{Map, Value as Json};

use crate::row::Row;

/// Writes the names and the merged definition, as a queue has them.
pub(crate) fn write_of_queue(applied: Option<&Applied>, row: &mut Row<'_, '_>) {
    let policy = applied.and_then(Applied::policy);
    row.text_or_null("policy", policy.map(|policy| &**policy.name()));
    let operator = applied.and_then(Applied::operator_policy);
    row.text_or_null("operator_policy", operator.map(|policy| &**policy.name()));
    let definition = applied.map(|applied| about(applied.definition()));
    let definition = definition.unwrap_or_else(|| Json::Object(Map::new()));
    row.json("effective_policy_definition", &definition);
}

/// A definition as an object.
pub(crate) fn about(definition: &Definition) -> Json {
    let fields = definition.iter();
    let fields = fields.map(|(key, value)| (key.to_string(), value_of(value)));
    Json::Object(fields.collect())
}

fn value_of(value: &PolicyValue) -> Json {
    match value {
        PolicyValue::Null => Json::Null,
        PolicyValue::Bool(value) => (*value).into(),
        PolicyValue::Integer(value) => match i64::try_from(*value) {
            Ok(value) => value.into(),
            Err(_) => (*value as f64).into(),
        },
        PolicyValue::Float(value) => (*value).into(),
        PolicyValue::Text(text) => text.as_str().into(),
        PolicyValue::List(items) => items.iter().map(value_of).collect(),
        PolicyValue::Map(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, value)| (key.clone(), value_of(value)))
                .collect()
        }
    }
}
