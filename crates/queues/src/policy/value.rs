//! A policy's values, and their text in RabbitMQ's messages: an Erlang term as `~p` prints it.

use std::fmt::{self, Write};

/// A JSON value of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyValue {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    /// By key, in any order.
    Map(Vec<(String, Self)>),
}

impl PolicyValue {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// As an Erlang term, on lines of at most [`LINE_MAX`] characters if it can be broken. `column` is the length of the
    /// text before it on its line. Long terms are cut.
    pub(super) fn term(&self, column: usize) -> String {
        let mut text = String::new();
        Term::Value(self).write(column, &mut text);
        cut(text)
    }
}

/// A list of pairs as an Erlang term.
pub(super) fn pairs_term(pairs: &[(&str, &PolicyValue)]) -> String {
    let pairs = pairs.iter().map(|(key, value)| {
        let pair = vec![Term::Text(key), Term::Value(value)];
        Term::Compound("{", pair, "}")
    });
    let mut text = String::new();
    Term::Compound("[", pairs.collect(), "]").write(0, &mut text);
    cut(text)
}

/// A text and a number as an Erlang tuple.
pub(super) fn reason_term(text: &str, number: usize, column: usize) -> String {
    let parts = vec![Term::Quoted(text), Term::Number(number)];
    let mut out = String::new();
    Term::Compound("{", parts, "}").write(column, &mut out);
    out
}

/// Longest line that Erlang does not break.
const LINE_MAX: usize = 78;

/// Bytes of a term in a message, at most: a client chooses the value.
const TERM_BYTES_MAX: usize = 4096;

fn cut(mut text: String) -> String {
    if text.len() > TERM_BYTES_MAX {
        let end = (0..=TERM_BYTES_MAX)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
    }
    text
}

enum Term<'a> {
    Value(&'a PolicyValue),
    /// A binary.
    Text(&'a str),
    /// A list of characters.
    Quoted(&'a str),
    Number(usize),
    Compound(&'static str, Vec<Self>, &'static str),
    /// A key and a value of a map.
    Entry(&'a str, &'a PolicyValue),
}

impl Term<'_> {
    fn write(&self, column: usize, out: &mut String) {
        let flat = self.flat();
        if column + flat.chars().count() <= LINE_MAX {
            out.push_str(&flat);
            return;
        }
        match self {
            Self::Value(PolicyValue::List(items)) if characters(items).is_none() => {
                let items = items.iter().map(Term::Value).collect();
                Term::Compound("[", items, "]").write_broken(column, out);
            }
            Self::Value(PolicyValue::Map(entries)) => {
                let entries = sorted(entries).into_iter();
                let entries = entries
                    .map(|(key, value)| Term::Entry(key, value))
                    .collect();
                Term::Compound("#{", entries, "}").write_broken(column, out);
            }
            Self::Compound(..) => self.write_broken(column, out),
            Self::Entry(key, value) => {
                let within = column + 4;
                let _ = write!(out, "{} =>\n{:within$}", Term::Text(key).flat(), "");
                Term::Value(value).write(within, out);
            }
            _ => out.push_str(&flat),
        }
    }

    /// Simple items share lines, others have one of their own.
    fn write_broken(&self, column: usize, out: &mut String) {
        let Self::Compound(open, items, close) = self else {
            return;
        };
        out.push_str(open);
        let within = column + open.len();
        let mut at = within;
        for (index, item) in items.iter().enumerate() {
            let is_last = index + 1 == items.len();
            let width = item.flat().chars().count();
            let is_simple = item.is_simple();
            if index > 0 {
                out.push(',');
                at += 1;
                let is_short = is_simple && at + width + usize::from(is_last) < LINE_MAX;
                if !is_short || !items[index - 1].is_simple() {
                    let _ = write!(out, "\n{:within$}", "");
                    at = within;
                }
            }
            item.write(at, out);
            at += width;
        }
        out.push_str(close);
    }

    fn is_simple(&self) -> bool {
        match self {
            Self::Value(PolicyValue::List(items)) => characters(items).is_some(),
            Self::Value(PolicyValue::Map(_)) | Self::Compound(..) | Self::Entry(..) => false,
            _ => true,
        }
    }

    /// On one line.
    fn flat(&self) -> String {
        match self {
            Self::Value(PolicyValue::Null) => "null".to_owned(),
            Self::Value(PolicyValue::Bool(value)) => value.to_string(),
            Self::Value(PolicyValue::Integer(value)) => value.to_string(),
            Self::Value(PolicyValue::Float(value)) => float(*value),
            Self::Value(PolicyValue::Text(text)) => binary(text),
            Self::Text(text) => binary(text),
            Self::Value(PolicyValue::List(items)) => match characters(items) {
                Some(text) => quoted(&text),
                None => joined("[", items.iter().map(Term::Value), "]"),
            },
            Self::Value(PolicyValue::Map(entries)) => {
                let entries = sorted(entries).into_iter();
                joined(
                    "#{",
                    entries.map(|(key, value)| Term::Entry(key, value)),
                    "}",
                )
            }
            Self::Quoted(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Compound(open, items, close) => {
                let items = items.iter().map(Term::flat);
                format!("{open}{}{close}", items.collect::<Vec<_>>().join(","))
            }
            Self::Entry(key, value) => {
                format!("{} => {}", binary(key), Term::Value(value).flat())
            }
        }
    }
}

fn joined<'a>(open: &str, items: impl Iterator<Item = Term<'a>>, close: &str) -> String {
    let items: Vec<_> = items.map(|item| item.flat()).collect();
    format!("{open}{}{close}", items.join(","))
}

fn sorted(entries: &[(String, PolicyValue)]) -> Vec<(&str, &PolicyValue)> {
    let mut entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, value)).collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

/// A list of printable characters is a text to Erlang.
fn characters(items: &[PolicyValue]) -> Option<String> {
    let characters = items.iter().map(|item| {
        let byte = u8::try_from(item.as_integer()?).ok()?;
        is_printable(byte).then_some(char::from(byte))
    });
    characters
        .collect::<Option<String>>()
        .filter(|text| !text.is_empty())
}

/// Erlang prints the bytes of a text one by one, as characters of ISO 8859-1.
fn binary(text: &str) -> String {
    if text.is_empty() {
        return "<<>>".to_owned();
    }
    if text.bytes().all(is_printable) {
        return format!("<<{}>>", quoted(text));
    }
    let bytes: Vec<_> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("<<{}>>", bytes.join(","))
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | 160.. | 8..=13 | 27)
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The shorter of the forms with and without an exponent.
fn float(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let text = format!("{:e}", value.abs());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (len, point) = (digits.len() as i32, exponent + 1);
    let exponent = exponent.to_string();
    let exponent_cost = exponent.len() as i32 + 1 + if len == 1 { 2 } else { 1 };
    let with_exponent = || match digits.split_at(1) {
        (first, "") => format!("{sign}{first}.0e{exponent}"),
        (first, more) => format!("{sign}{first}.{more}e{exponent}"),
    };
    match point {
        _ if value == 0.0 => format!("{sign}0.0"),
        0 => format!("{sign}0.{digits}"),
        ..0 if 2 - point <= exponent_cost => {
            format!(
                "{sign}0.{}{digits}",
                "0".repeat(point.unsigned_abs() as usize)
            )
        }
        ..0 => with_exponent(),
        _ if point < len => {
            let (whole, part) = digits.split_at(point as usize);
            format!("{sign}{whole}.{part}")
        }
        _ if point - len + 2 <= exponent_cost => {
            format!("{sign}{digits}{}.0", "0".repeat((point - len) as usize))
        }
        _ => with_exponent(),
    }
}

impl fmt::Display for PolicyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.term(0))
    }
}

impl From<&str> for PolicyValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for PolicyValue {
    fn from(integer: i64) -> Self {
        Self::Integer(integer.into())
    }
}
