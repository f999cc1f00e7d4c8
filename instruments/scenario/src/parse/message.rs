//! A line's message: its name and its parts, or a list.

use crosstie_wamp::{MessageType, Value};

use crate::term::{Item, Kind, Term};
use crate::words::{Words, beginning};

/// A message that a session sends.
pub(super) fn sent(text: &str) -> Result<Vec<Term>, String> {
    let parts = parts(text)?;
    let mut wild = None;
    for part in &parts {
        part.visit(&mut |term| match term {
            Term::Any(kind) => wild = Some(format!("*{}", kind.name())),
            Term::List(items) if items.contains(&Item::Rest) => wild = Some("...".to_owned()),
            Term::Dict { is_open: true, .. } => wild = Some("...".to_owned()),
            Term::Dict { entries, .. } if entries.iter().any(|entry| entry.value.is_none()) => {
                wild = Some("!".to_owned());
            }
            _ => {}
        });
    }
    match wild {
        Some(wild) => Err(format!(
            "expected values in a sent message; {wild} is for received ones"
        )),
        None => Ok(parts),
    }
}

/// A message that a session receives, and whether more may follow.
pub(super) fn expected(text: &str) -> Result<(Vec<Term>, bool), String> {
    let mut parts = parts(text)?;
    let is_open = parts.len() > 1 && parts.last() == Some(&Term::Any(Kind::Anything));
    if is_open {
        parts.pop();
    }
    for (index, part) in parts.iter_mut().enumerate() {
        if index < head_length(text) {
            open(part);
        }
    }
    Ok((parts, is_open))
}

/// A dictionary of a message's head names only required entries: a router may add others.
fn open(part: &mut Term) {
    if let Term::Dict { is_open, entries } = part {
        *is_open = true;
        for entry in entries {
            if let Some(value) = &mut entry.value {
                open(value);
            }
        }
    }
}

/// Parts before a message's arguments.
fn head_length(text: &str) -> usize {
    match text.split_whitespace().next() {
        Some("ERROR") => 5,
        Some("EVENT" | "INVOCATION") => 4,
        Some("RESULT") => 3,
        Some("ABORT" | "GOODBYE") => 3,
        _ => usize::MAX,
    }
}

fn parts(text: &str) -> Result<Vec<Term>, String> {
    let mut words = Words::new(text);
    if text.starts_with('[') {
        let Term::List(items) = words.term()? else {
            return Err("expected a list".to_owned());
        };
        let parts = items.into_iter().map(|item| match item {
            Item::One(term) => Ok(term),
            Item::Rest => Err("expected no ... in a message as it stands".to_owned()),
        });
        return match words.is_done() {
            true => parts.collect(),
            false => Err(format!(
                "expected nothing behind the list, found {:?}",
                beginning(words.rest())
            )),
        };
    }
    let name = words.word().unwrap_or("");
    let mut parts = vec![code(name)?];
    if name == "ERROR" {
        parts.push(code(words.word().unwrap_or(""))?);
    }
    while !words.is_done() {
        parts.push(words.term()?);
    }
    Ok(parts)
}

fn code(name: &str) -> Result<Term, String> {
    let known = MessageType::ALL
        .into_iter()
        .find(|kind| kind.name() == name);
    match known {
        Some(kind) => Ok(Term::Value(Value::Integer(kind.code().into()))),
        None => Err(format!(
            "expected a message's name such as SUBSCRIBE, or a list, found {:?}",
            beginning(name)
        )),
    }
}
