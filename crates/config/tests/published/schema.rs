//! The tables as JSON Schema (draft 2020-12).

use crosstie_config::catalogue::{CONFIG, Fallback, Key, Kind, Rule, Table};
use serde_json::{Map, Value, json};

/// The schema's text. Its objects are sorted by key, as `serde_json` keeps them.
pub(crate) fn schema() -> String {
    let mut definitions = Map::new();
    define(&CONFIG, None, &mut definitions);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration of a Crosstie node",
        "$ref": reference(&CONFIG),
        "$defs": definitions,
    });
    serde_json::to_string_pretty(&schema).expect("a value can be written") + "\n"
}

/// Defines `table` and every table below it; `tag` is the `type` by which it is told apart.
fn define(table: &'static Table, tag: Option<&str>, definitions: &mut Map<String, Value>) {
    let name = name(table);
    if definitions.contains_key(&name) {
        return;
    }
    definitions.insert(name.clone(), Value::Null);
    let mut properties = Map::new();
    for key in table.keys {
        let property = match tag {
            Some(tag) if key.name == "type" => json!({ "const": tag }),
            _ => property(key, definitions),
        };
        properties.insert(key.name.into(), property);
    }
    let required = table.keys.iter();
    let required = required.filter(|key| matches!(key.fallback, Fallback::Required));
    let required: Vec<&str> = required.map(|key| key.name).collect();
    let mut definition = json!({
        "type": "object",
        "title": table.name,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        definition["required"] = json!(required);
    }
    definitions.insert(name, definition);
}

fn property(key: &Key, definitions: &mut Map<String, Value>) -> Value {
    let mut property = kind(&key.kind, definitions);
    if key.environment && !matches!(key.kind, Kind::Text(_)) {
        let variable = json!({
            "type": "string",
            "pattern": "^\\$([A-Za-z_][A-Za-z0-9_]*|\\{[A-Za-z_][A-Za-z0-9_]*\\})$",
        });
        property = json!({ "anyOf": [property, variable] });
    }
    if let Some(reason) = key.inert {
        property["deprecated"] = json!(true);
        property["description"] = json!(format!("No effect: {reason}."));
        return property;
    }
    property["description"] = json!(key.about.replace('`', ""));
    match key.fallback {
        Fallback::Boolean(value) => property["default"] = json!(value),
        Fallback::Integer(value) => property["default"] = json!(value),
        Fallback::Text(value) => property["default"] = json!(value),
        Fallback::Required | Fallback::Words(_) => {}
    }
    property
}

fn kind(of: &Kind, definitions: &mut Map<String, Value>) -> Value {
    match of {
        Kind::Boolean | Kind::Only(..) => json!({ "type": "boolean" }),
        Kind::Always(only, _) => json!({ "const": only }),
        &Kind::Integer { min, max, or_zero } => {
            let mut integer = json!({ "type": "integer", "minimum": min });
            if max != i64::MAX {
                integer["maximum"] = json!(max);
            }
            if or_zero && min > 0 {
                integer = json!({ "anyOf": [{ "const": 0 }, integer] });
            }
            integer
        }
        Kind::Numbers { numbers, .. } => json!({ "enum": numbers }),
        Kind::Text(rule) => text(*rule),
        Kind::OneOf(words) => json!({ "enum": words.words }),
        Kind::List { of, least } => {
            json!({ "type": "array", "items": kind(of, definitions), "minItems": least })
        }
        Kind::OneOrMore(of) => {
            let one = kind(of, definitions);
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Kind::OrNull(of) => json!({ "anyOf": [kind(of, definitions), { "type": "null" }] }),
        Kind::Either(one, other) => {
            json!({ "anyOf": [kind(one, definitions), kind(other, definitions)] })
        }
        Kind::Map { keys, of, .. } => json!({
            "type": "object",
            "propertyNames": text(*keys),
            "additionalProperties": kind(of, definitions),
        }),
        Kind::Json => json!({}),
        Kind::Object(table) => {
            define(table, None, definitions);
            json!({ "$ref": reference(table) })
        }
        Kind::Tagged(tagged) => {
            let variants = tagged.variants.iter().map(|(tag, table)| {
                define(table, Some(tag), definitions);
                json!({ "$ref": reference(table) })
            });
            let variants: Vec<Value> = variants.collect();
            json!({ "oneOf": variants })
        }
    }
}

fn text(rule: Rule) -> Value {
    let mut text = json!({ "type": "string" });
    if let Some(pattern) = rule.pattern() {
        text["pattern"] = json!(pattern);
    }
    text
}

fn reference(table: &Table) -> String {
    format!("#/$defs/{}", name(table))
}

fn name(table: &Table) -> String {
    let words = table.path.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}
