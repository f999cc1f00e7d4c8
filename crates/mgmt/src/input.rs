//! The body of a request: a JSON object, whose values are checked one by one.

use crosstie_amqp::TableBuf;
use crosstie_broker::arguments::from_json;
use serde_json::{Map, Value as Json};

use crate::answer::Answer;

/// The object of a body.
#[derive(Debug)]
pub(crate) struct Input(Map<String, Json>);

impl Input {
    /// Nothing, and `null`, are an object without keys.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Answer> {
        let not_json = || Answer::bad_request("not_json");
        let text = std::str::from_utf8(body).map_err(|_| not_json())?;
        if text.trim().is_empty() {
            return Ok(Self(Map::new()));
        }
        let parsed = serde_json::from_str(text);
        match parsed.or_else(|_| serde_json::from_str(&without_trailing_commas(text))) {
            Ok(Json::Object(map)) => Ok(Self(map)),
            Ok(Json::Null) => Ok(Self(Map::new())),
            Ok(Json::String(_)) => Err(Answer::bad_request(
                "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?",
            )),
            _ => Err(not_json()),
        }
    }

    /// Checks that these keys are there. One text names all that are missing.
    pub(crate) fn require(&self, names: &[&str]) -> Result<(), Answer> {
        let missing = names.iter().filter(|name| !self.0.contains_key(**name));
        let missing: Vec<String> = missing
            .map(|name| format!("{{key_missing,{name}}}"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        // Erlang's printer breaks long lines.
        let separator = if missing.len() > 3 { ",\n " } else { "," };
        let text = format!("[{}]", missing.join(separator));
        Err(Answer::bad_request(&text))
    }

    pub(crate) fn into_json(self) -> Json {
        Json::Object(self.0)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// A boolean, or its text; false if there is none.
    pub(crate) fn boolean(&self, name: &str) -> Result<bool, Answer> {
        match self.get(name) {
            None | Some(Json::Bool(false)) => Ok(false),
            Some(Json::Bool(true)) => Ok(true),
            Some(Json::String(text)) if text == "true" => Ok(true),
            Some(Json::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(Answer::bad_request(&format!(
                "not_boolean: {}",
                shown(other)
            ))),
        }
    }

    /// A whole number, or its text.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Answer> {
        let found = match self.get(name) {
            None => return Ok(None),
            Some(Json::String(text)) => text.parse().ok(),
            Some(value) => value.as_i64(),
        };
        let shown = || shown(self.get(name).unwrap_or(&Json::Null));
        let refused = || Answer::bad_request(&format!("not_integer: {}", shown()));
        found.map(Some).ok_or_else(refused)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Answer> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => {
                let text = format!("{name}: expected a text, got {}", shown(other));
                Err(Answer::bad_request(&text))
            }
        }
    }

    /// A table. An empty list counts as an empty table, as clients in PHP send it.
    pub(crate) fn arguments(&self, name: &str) -> Result<TableBuf, Answer> {
        match self.get(name) {
            None => Ok(TableBuf::new()),
            Some(value) => table(name, value),
        }
    }
}

/// The table of an object.
pub(crate) fn table(name: &str, value: &Json) -> Result<TableBuf, Answer> {
    match value {
        Json::Object(map) if has_null(value) => {
            debug_assert!(!map.is_empty());
            Err(Answer::bad_request("null_not_allowed"))
        }
        Json::Object(map) => {
            if let Some(long) = map.keys().find(|name| name.len() > 255) {
                let text = format!(
                    "{name}: expected names of at most 255 octets, got {}",
                    long.len()
                );
                return Err(Answer::bad_request(&text));
            }
            let fields: Vec<(String, Json)> = map.clone().into_iter().collect();
            Ok(from_json(&fields))
        }
        Json::Array(list) if list.is_empty() => Ok(TableBuf::new()),
        other => {
            let text = format!("{name}: expected an object, got {}", shown(other));
            Err(Answer::bad_request(&text))
        }
    }
}

fn has_null(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(list) => list.iter().any(has_null),
        Json::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

/// A value in an error, cut to a few words.
fn shown(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let end = text.floor_char_boundary(100);
    match end < text.len() {
        true => format!("{}...", &text[..end]),
        false => text,
    }
}

/// RabbitMQ takes a comma before a closing brace.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_in_text, mut is_escaped) = (false, false);
    for c in text.chars() {
        if is_in_text {
            is_in_text = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
        } else {
            is_in_text = c == '"';
            if c == '}' {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
            }
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Body;

    fn reason(answer: Answer) -> String {
        let Body::Whole(bytes) = answer.body else {
            panic!("comes in parts");
        };
        let json: Json = serde_json::from_slice(&bytes).expect("is JSON");
        json["reason"].as_str().expect("is text").to_owned()
    }

    #[test]
    fn bodies_are_objects() {
        for body in ["", "  ", "null", "{}", "{\"a\":1,}", "{\"a\":\",}\" , }"] {
            assert!(Input::parse(body.as_bytes()).is_ok(), "{body}");
        }
        let deep = "[".repeat(100_000);
        for (body, expected) in [
            ("[1]", "not_json"),
            ("{", "not_json"),
            ("5", "not_json"),
            (deep.as_str(), "not_json"),
            (
                "\"{}\"",
                "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?",
            ),
        ] {
            let refused = Input::parse(body.as_bytes()).map(|_| ()).map_err(reason);
            assert_eq!(refused, Err(expected.to_owned()), "{:.20}", body);
        }
    }

    #[test]
    fn values_are_converted() {
        let input = Input::parse(br#"{"a":"true","b":true,"c":"yes","d":"5","e":"x","f":5}"#);
        let input = input.expect("is an object");
        assert_eq!(input.boolean("a").map_err(reason), Ok(true));
        assert_eq!(input.boolean("b").map_err(reason), Ok(true));
        assert_eq!(input.boolean("z").map_err(reason), Ok(false));
        assert_eq!(
            input.boolean("c").map_err(reason),
            Err("not_boolean: yes".to_owned())
        );
        assert_eq!(input.integer("d").map_err(reason), Ok(Some(5)));
        assert_eq!(input.integer("f").map_err(reason), Ok(Some(5)));
        assert_eq!(
            input.integer("e").map_err(reason),
            Err("not_integer: x".to_owned())
        );
    }

    #[test]
    fn missing_keys_are_named_together() {
        let input = Input::parse(b"{\"b\":1}").expect("is an object");
        let missing = |names: &[&str]| input.require(names).map_err(reason);
        assert_eq!(missing(&["b"]), Ok(()));
        let few = "[{key_missing,a},{key_missing,c}]";
        assert_eq!(missing(&["a", "b", "c"]), Err(few.to_owned()));
        let many = "[{key_missing,a},\n {key_missing,c},\n {key_missing,d},\n {key_missing,e}]";
        assert_eq!(missing(&["a", "c", "d", "e"]), Err(many.to_owned()));
    }

    #[test]
    fn arguments_are_tables() {
        let input = br#"{"a":{"x":1},"b":[],"c":5,"d":{"x":[null]}}"#;
        let input = Input::parse(input).expect("is an object");
        assert!(
            input
                .arguments("a")
                .is_ok_and(|table| !table.as_table().is_empty())
        );
        assert!(
            input
                .arguments("b")
                .is_ok_and(|table| table.as_table().is_empty())
        );
        assert!(input.arguments("z").is_ok());
        let refused = |name| input.arguments(name).map(drop).map_err(reason);
        assert_eq!(refused("c"), Err("c: expected an object, got 5".to_owned()));
        assert_eq!(refused("d"), Err("null_not_allowed".to_owned()));
    }
}
