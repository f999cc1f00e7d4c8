//! Values in the notation of Python, which scripts read.

use serde_json::{Map, Value as Json};

/// A value in a cell; `None` is Python's, which no text is.
pub(super) fn cell(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::Bool(true) => Some("True".to_owned()),
        Json::Bool(false) => Some("False".to_owned()),
        Json::Number(number) => Some(self::number(number)),
        Json::String(text) => Some(text.clone()),
        Json::Array(_) | Json::Object(_) => Some(json(value)),
    }
}

/// JSON in one line, with spaces behind commas and colons, and other characters than ASCII escaped.
pub(super) fn json(value: &Json) -> String {
    let mut out = String::new();
    write(value, None, &mut out);
    out
}

/// JSON in lines that are indented by two spaces, with sorted keys.
pub(super) fn pretty(value: &Json) -> String {
    let mut out = String::new();
    write(value, Some(0), &mut out);
    out
}

/// `indent` is `None` for one line.
fn write(value: &Json, indent: Option<usize>, out: &mut String) {
    match value {
        Json::Array(items) => {
            let items = items.iter().map(|item| (None, item));
            write_all(items.collect(), ['[', ']'], indent, out);
        }
        Json::Object(fields) => write_all(ordered(fields, indent), ['{', '}'], indent, out),
        Json::String(text) => write_text(text, indent.is_none(), out),
        Json::Number(number) => out.push_str(&self::number(number)),
        Json::Null | Json::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn ordered(fields: &Map<String, Json>, indent: Option<usize>) -> Vec<(Option<&str>, &Json)> {
    let fields = fields.iter();
    let mut fields: Vec<_> = fields
        .map(|(key, value)| (Some(key.as_str()), value))
        .collect();
    if indent.is_some() {
        fields.sort_by_key(|(key, _)| *key);
    }
    fields
}

fn write_all(
    items: Vec<(Option<&str>, &Json)>,
    [open, close]: [char; 2],
    indent: Option<usize>,
    out: &mut String,
) {
    out.push(open);
    let inner = indent.map(|indent| indent + 2);
    let line = |indent: usize| format!("\n{:indent$}", "");
    let is_empty = items.is_empty();
    for (number, (key, value)) in items.into_iter().enumerate() {
        if number > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        if let Some(inner) = inner {
            out.push_str(&line(inner));
        }
        if let Some(key) = key {
            write_text(key, indent.is_none(), out);
            out.push_str(": ");
        }
        write(value, inner, out);
    }
    if let (Some(indent), false) = (indent, is_empty) {
        out.push_str(&line(indent));
    }
    out.push(close);
}

fn write_text(text: &str, is_ascii: bool, out: &mut String) {
    let quoted = Json::from(text).to_string();
    for character in quoted.chars() {
        match character {
            character if is_ascii && !character.is_ascii() => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            character => out.push(character),
        }
    }
}

fn number(number: &serde_json::Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    let text = format!("{float:?}");
    // Rust has 1e20 and 1e-7, Python 1e+20 and 1e-07.
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or_default();
            format!(
                "{digits}e{}{:02}",
                if exponent < 0 { '-' } else { '+' },
                exponent.abs()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_python() {
        for (value, expected) in [
            (json!(true), Some("True")),
            (json!(null), None),
            (json!(0.0), Some("0.0")),
            (json!(1e20), Some("1e+20")),
            (json!(1.5e-7), Some("1.5e-07")),
            (json!(7), Some("7")),
            (json!("é"), Some("é")),
            (
                json!([{"b": 1, "a": [null]}, "é🐇"]),
                Some(r#"[{"b": 1, "a": [null]}, "\u00e9\ud83d\udc07"]"#),
            ),
        ] {
            assert_eq!(cell(&value).as_deref(), expected);
        }
    }

    #[test]
    fn pretty_json_is_sorted() {
        let value = json!([{"b": {}, "a": [1, "é"]}, []]);
        let expected =
            "[\n  {\n    \"a\": [\n      1,\n      \"é\"\n    ],\n    \"b\": {}\n  },\n  []\n]";
        assert_eq!(pretty(&value), expected);
    }
}
