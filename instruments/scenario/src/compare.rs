//! Compares received with expected values, and binds labels.

use crosstie_wamp::Value;

use crate::labels::Labels;
use crate::show::{show, show_value};
use crate::term::{Entry, Item, Term, fill_text};

/// Compares `value` with `term`. Labels are bound at their first occurrence; bindings before an error stay.
pub(crate) fn compare(term: &Term, value: &Value, labels: &mut Labels) -> Result<(), String> {
    let differs = || Err(format!("{} instead of {}", show_value(value), show(term)));
    match (term, value) {
        (Term::Any(kind), _) => match kind.takes(value) {
            true => Ok(()),
            false => differs(),
        },
        (Term::Label(name), _) => match labels.value(name) {
            Some(bound) if same(bound, value) => Ok(()),
            Some(bound) => Err(format!(
                "{} instead of {}, which is #{name}",
                show_value(value),
                show_value(bound)
            )),
            None => {
                labels.set(name.clone(), value.clone());
                Ok(())
            }
        },
        (Term::Text(pieces), Value::String(text)) => match fill_text(pieces, labels) {
            Ok(expected) if expected == *text => Ok(()),
            Ok(expected) => Err(format!("{text} instead of {expected}")),
            Err(name) => Err(format!("nothing has bound {name}")),
        },
        (Term::Value(expected), _) if same(expected, value) => Ok(()),
        (Term::List(items), Value::List(values)) => {
            compare_lists(items, values, labels).map_err(|why| format!("in the list: {why}"))
        }
        (Term::Dict { entries, is_open }, Value::Dict(found)) => {
            compare_entries(entries, found, labels)?;
            let is_named = |key: &str| entries.iter().any(|entry| entry.key == key);
            match found.iter().find(|(key, _)| !is_named(key)) {
                Some((key, _)) if !is_open => Err(format!("{key} is there, which is not expected")),
                _ => Ok(()),
            }
        }
        _ => differs(),
    }
}

/// The message as a whole: nothing, or only empty arguments, may follow its last named part.
pub(crate) fn compare_message(
    parts: &[Term],
    is_open: bool,
    message: &[Value],
    labels: &mut Labels,
) -> Result<(), String> {
    for (index, term) in parts.iter().enumerate() {
        let empty = Value::List(Vec::new());
        let value = match message.get(index) {
            Some(value) => value,
            // Absent arguments are equal to empty ones.
            None if term.is_empty() => &empty,
            None => return Err(format!("it ends before {}", show(term))),
        };
        match (term, value) {
            (term, Value::List(values)) if term.is_empty() && values.is_empty() => {}
            _ => compare(term, value, labels)?,
        }
    }
    let mut further = message.iter().skip(parts.len());
    match further.find(|value| !is_nothing(value)) {
        Some(value) if !is_open => Err(format!(
            "{} is behind the expected values",
            show_value(value)
        )),
        _ => Ok(()),
    }
}

impl Term {
    fn is_empty(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Dict { entries, is_open } => entries.is_empty() && !is_open,
            _ => false,
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::List(values) => values.is_empty(),
        Value::Dict(entries) => entries.is_empty(),
        _ => false,
    }
}

fn compare_entries(
    entries: &[Entry],
    found: &[(String, Value)],
    labels: &mut Labels,
) -> Result<(), String> {
    for entry in entries {
        let value = found.iter().find(|(key, _)| *key == entry.key);
        match (&entry.value, value) {
            (Some(term), Some((key, value))) => {
                compare(term, value, labels).map_err(|why| format!("{key}: {why}"))?;
            }
            (Some(_), None) => return Err(format!("{} is not there", entry.key)),
            (None, Some((key, value))) => {
                let value = show_value(value);
                return Err(format!("{key} is there, as {value}, and must not be"));
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Item by item; a `...` takes as few values as let the rest fit. Each one costs a pass over the values, and a line has
/// a bounded number of items.
fn compare_lists(items: &[Item], values: &[Value], labels: &mut Labels) -> Result<(), String> {
    let Some((first, rest)) = items.split_first() else {
        return match values.first() {
            None => Ok(()),
            Some(value) => Err(format!("{} is one too many", show_value(value))),
        };
    };
    match first {
        Item::One(term) => match values.split_first() {
            Some((value, others)) => {
                compare(term, value, labels)?;
                compare_lists(rest, others, labels)
            }
            None => Err(format!("it ends before {}", show(term))),
        },
        Item::Rest => {
            // The next named item is found once, at the first place that fits: no search returns to before it.
            let Some((Item::One(term), after)) = rest.split_first() else {
                return Ok(());
            };
            for (index, value) in values.iter().enumerate() {
                let mut tried = labels.clone();
                if compare(term, value, &mut tried).is_ok() {
                    *labels = tried;
                    return compare_lists(after, &values[index + 1..], labels);
                }
            }
            Err(format!("{} is not in it", show(term)))
        }
    }
}

/// A number is equal as an integer and as a double: JSON does not distinguish them.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(a), Value::Float(b)) | (Value::Float(b), Value::Integer(a)) => {
            *a as f64 == *b
        }
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            let found = |key: &str| b.iter().find(|(name, _)| name == key);
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| found(key).is_some_and(|(_, other)| same(value, other)))
        }
        (a, b) => a == b,
    }
}
