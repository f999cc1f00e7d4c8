//! Messages and values in the form of scenarios, for reports.

use std::fmt::Write;

use crosstie_wamp::{MessageType, Value};

use crate::term::{Item, Piece, Term};

/// Maximum length of one shown value, in characters.
const SHOWN_MAX: usize = 600;

/// An expectation in its written form.
pub fn show(term: &Term) -> String {
    let mut text = String::new();
    write_term(term, &mut text);
    text
}

/// A value; a list that is a message, with its name.
pub fn show_value(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::List(parts) => match message_name(parts) {
            Some(name) => {
                text.push_str(name);
                for (index, part) in parts.iter().enumerate().skip(1) {
                    text.push(' ');
                    match request_name(name, index, part) {
                        Some(name) => text.push_str(name),
                        None => write_value(part, &mut text),
                    }
                }
            }
            None => write_value(value, &mut text),
        },
        _ => write_value(value, &mut text),
    }
    if text.chars().count() > SHOWN_MAX {
        text = text.chars().take(SHOWN_MAX).collect();
        text.push('…');
    }
    text
}

/// An expectation in the form of its line.
pub(crate) fn written(parts: &[Term], is_open: bool) -> String {
    let mut words = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let is_kind = index == 0
            || index == 1 && parts[0] == Term::Value(Value::from(MessageType::Error.code()));
        let kind = match part {
            Term::Value(value) if is_kind => value.as_u64().and_then(MessageType::from_code),
            _ => None,
        };
        words.push(kind.map_or_else(|| show(part), |kind| kind.name().to_owned()));
    }
    if is_open {
        words.push("*".to_owned());
    }
    words.join(" ")
}

fn message_name(parts: &[Value]) -> Option<&'static str> {
    let kind = MessageType::from_code(parts.first()?.as_u64()?)?;
    (parts.len() > 1).then(|| kind.name())
}

/// The request that an ERROR answers.
fn request_name(message: &str, index: usize, part: &Value) -> Option<&'static str> {
    let is_request = message == "ERROR" && index == 1;
    let kind = MessageType::from_code(part.as_u64().filter(|_| is_request)?)?;
    Some(kind.name())
}

fn write_term(term: &Term, out: &mut String) {
    match term {
        Term::Any(kind) => out.extend(["*", kind.name()]),
        Term::Label(name) => out.extend(["#", name]),
        Term::Text(pieces) => {
            for piece in pieces {
                match piece {
                    Piece::Plain(plain) => out.push_str(plain),
                    Piece::Label(name) => out.extend(["#", name]),
                }
            }
        }
        Term::Value(value) => write_value(value, out),
        Term::List(items) => {
            write_list(out, items, |item, out| match item {
                Item::One(term) => write_term(term, out),
                Item::Rest => out.push_str("..."),
            });
        }
        Term::Dict { entries, .. } => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                match &entry.value {
                    Some(value) => {
                        out.extend([entry.key.as_str(), "="]);
                        write_term(value, out);
                    }
                    None => out.extend(["!", entry.key.as_str()]),
                }
            }
            out.push('}');
        }
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Integer(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => {
            let _ = write!(out, "{number:?}");
        }
        Value::String(text) if is_plain(text) => out.push_str(text),
        Value::String(text) => {
            let _ = write!(out, "{text:?}");
        }
        Value::Binary(bytes) => {
            out.push_str("0x");
            for byte in bytes.iter().take(SHOWN_MAX) {
                let _ = write!(out, "{byte:02x}");
            }
        }
        Value::List(values) => write_list(out, values, write_value),
        Value::Dict(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.extend([key.as_str(), "="]);
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

fn write_list<T>(out: &mut String, items: &[T], mut write: impl FnMut(&T, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
    out.push(']');
}

/// Whether text needs no quotation marks.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/' | '+');
    let like_another = matches!(text, "" | "-" | "true" | "false" | "null");
    text.chars().all(is_word)
        && !like_another
        && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
        && !text.starts_with("..")
}
