//! A JSON object with what an entry is to be.

use serde_json::{Map, Value as Json};

use crate::Refusal;

/// An object.
pub(crate) struct Body<'b>(&'b Map<String, Json>);

impl<'b> Body<'b> {
    pub(crate) fn of(json: &'b Json) -> Result<Self, Refusal> {
        match json {
            Json::Object(object) => Ok(Self(object)),
            _ => Err(Refusal::invalid("not_json")),
        }
    }

    /// Refuses a body without one of the keys, in RabbitMQ's words.
    pub(crate) fn require(&self, keys: &[&str]) -> Result<(), Refusal> {
        let missing: Vec<_> = keys
            .iter()
            .filter(|key| !self.0.contains_key(**key))
            .map(|key| format!("{{key_missing,{key}}}"))
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => {
                // RabbitMQ's printer breaks longer lists.
                let between = if missing.len() > 3 { ",\n " } else { "," };
                Err(Refusal::invalid(format!("[{}]", missing.join(between))))
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'b Json> {
        self.0.get(key)
    }

    /// A text; `None` if it is absent or null.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'b str>, Refusal> {
        match self.0.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(unexpected(key, "a text", other)),
        }
    }

    /// `true`, `false`, or one of these as a text; `None` if it is absent or null.
    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, Refusal> {
        match self.0.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Bool(value)) => Ok(Some(*value)),
            Some(Json::String(text)) if text == "true" => Ok(Some(true)),
            Some(Json::String(text)) if text == "false" => Ok(Some(false)),
            Some(other) => Err(Refusal::invalid(format!("not_boolean: {other}"))),
        }
    }

    /// A list of texts, or a text with commas; `None` if it is absent or null.
    pub(crate) fn words(&self, key: &str) -> Result<Option<Vec<String>>, Refusal> {
        match self.0.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => {
                let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
                Ok(Some(words.map(str::to_owned).collect()))
            }
            Some(found @ Json::Array(items)) => {
                let words = items.iter().map(|item| item.as_str().map(str::to_owned));
                let words: Option<Vec<_>> = words.collect();
                let words = words.ok_or_else(|| unexpected(key, "a list of texts", found))?;
                Ok(Some(words))
            }
            Some(other) => Err(unexpected(key, "a list of texts", other)),
        }
    }
}

/// Refuses a value of a wrong type, to which RabbitMQ answers 500.
fn unexpected(key: &str, expected: &str, found: &Json) -> Refusal {
    let mut found = found.to_string();
    if let Some((cut, _)) = found.char_indices().nth(FOUND_CHARACTERS_MAX) {
        found.truncate(cut);
        found.push('…');
    }
    Refusal::invalid(format!("{key}: expected {expected}, got {found}"))
}

/// Characters of a wrong value that an error repeats.
const FOUND_CHARACTERS_MAX: usize = 100;

/// A value in Erlang's notation, as RabbitMQ's errors have it.
pub(crate) fn erlang(json: &Json) -> String {
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => format!("<<\"{text}\">>"),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(erlang).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| format!("<<\"{key}\">> => {}", erlang(value)))
                .collect();
            format!("#{{{}}}", entries.join(","))
        }
    }
}
