//! The tables as the reference in the documentation (Markdown).

use std::fmt::Write as _;

use crosstie_config::catalogue::refused::{KEYS, Place, VALUES};
use crosstie_config::catalogue::{CONFIG, Fallback, Key, Kind, Rule, Table};

pub(crate) fn reference() -> String {
    let mut tables = Vec::new();
    collect(&CONFIG, None, &mut tables);
    let mut out = String::new();
    for (table, tag) in &tables {
        table_of(&mut out, table, *tag);
    }
    out.push_str("\n## Taken without effect\n\n");
    out.push_str("Crossbar.io's keys that change nothing here. Each is warned about.\n\n");
    out.push_str("| where | key | why it has no effect |\n|---|---|---|\n");
    for (table, _) in &tables {
        for key in table.keys {
            if let Some(reason) = key.inert {
                let _ = writeln!(out, "| `{}` | `{}` | {reason} |", table.path, key.name);
            }
        }
    }
    out.push_str("\n## Not taken\n\n");
    out.push_str("What Crossbar.io knows and Crosstie refuses, with the reason it gives. ");
    out.push_str("Everything else that is not in the tables above is an unknown key.\n\n");
    out.push_str("| where | key, or value | state | why |\n|---|---|---|---|\n");
    refused(&mut out, KEYS, "");
    refused(&mut out, VALUES, "the value ");
    out
}

/// The `type` by which a table is told from others at its place.
type Tag = Option<&'static str>;

/// Every table once, each before those below it.
fn collect(table: &'static Table, tag: Tag, tables: &mut Vec<(&'static Table, Tag)>) {
    if tables.iter().any(|(known, _)| known.path == table.path) {
        return;
    }
    tables.push((table, tag));
    for key in table.keys {
        below(&key.kind, tables);
    }
}

fn below(kind: &Kind, tables: &mut Vec<(&'static Table, Tag)>) {
    match kind {
        Kind::Object(table) => collect(table, None, tables),
        Kind::Tagged(tagged) => {
            for (tag, table) in tagged.variants {
                collect(table, Some(tag), tables);
            }
        }
        Kind::List { of, .. } | Kind::OneOrMore(of) | Kind::Map { of, .. } => below(of, tables),
        Kind::Either(one, other) => {
            below(one, tables);
            below(other, tables);
        }
        _ => {}
    }
}

fn table_of(out: &mut String, table: &Table, tag: Tag) {
    let _ = writeln!(out, "\n### `{}`: {}\n", table.path, table.name);
    if table.keys.is_empty() {
        out.push_str("It takes no keys.\n");
        return;
    }
    out.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in table.keys.iter().filter(|key| key.inert.is_none()) {
        let own = if key.own { " ⁺" } else { "" };
        let environment = if key.environment {
            " or `$VARIABLE`"
        } else {
            ""
        };
        let value = match tag {
            Some(tag) if key.name == "type" => format!("`{tag}`"),
            _ => value(&key.kind),
        };
        let _ = writeln!(
            out,
            "| `{}`{own} | {value}{environment} | {} | {}{} |",
            key.name,
            fallback(key),
            key.about,
            always(&key.kind),
        );
    }
}

fn value(kind: &Kind) -> String {
    match kind {
        Kind::Boolean | Kind::Only(..) => "boolean".into(),
        Kind::Always(only, _) => format!("`{only}`"),
        &Kind::Integer { min, max, or_zero } => {
            let or_zero = if or_zero && min > 0 { "0 or " } else { "" };
            if max == i64::MAX {
                format!("{or_zero}{min} and more")
            } else {
                format!("{or_zero}{} to {}", grouped(min), grouped(max))
            }
        }
        Kind::Numbers { numbers, .. } => {
            let numbers: Vec<String> = numbers.iter().map(|n| format!("`{n}`")).collect();
            numbers.join(" or ")
        }
        Kind::Text(Rule::Any | Rule::NotEmpty | Rule::NoNul) => "text".into(),
        Kind::Text(rule) => rule.words().into(),
        Kind::OneOf(words) => {
            let words: Vec<String> = words.words.iter().map(|w| format!("`{w}`")).collect();
            words.join(", ")
        }
        Kind::List { of, .. } => format!("list of: {}", value(of)),
        Kind::OneOrMore(of) => format!("one or a list of: {}", value(of)),
        Kind::OrNull(of) => format!("{}, or `null`", value(of)),
        Kind::Either(one, other) => format!("{}, or {}", value(one), value(other)),
        Kind::Map {
            keys: Rule::WebPath,
            of,
            ..
        } => format!("by path: {}", value(of)),
        Kind::Map {
            of,
            environment: true,
            ..
        } => format!("by name: {} or `$VARIABLE`", value(of)),
        Kind::Map { of, .. } => format!("by name: {}", value(of)),
        Kind::Json => "anything".into(),
        Kind::Object(table) => format!("`{}`", table.path),
        Kind::Tagged(tagged) => {
            let tables = tagged.variants.iter();
            let tables: Vec<String> = tables.map(|(_, t)| format!("`{}`", t.path)).collect();
            tables.join(", ")
        }
    }
}

fn fallback(key: &Key) -> String {
    match key.fallback {
        Fallback::Required => "**must be given**".into(),
        Fallback::Boolean(value) => format!("`{value}`"),
        Fallback::Integer(value) => grouped(value),
        Fallback::Text(value) => format!("`{value}`"),
        Fallback::Words(words) => words.into(),
    }
}

fn always(kind: &Kind) -> String {
    match kind {
        Kind::Always(only, why) => format!(" Only `{only}`: {why}."),
        Kind::Only(only, why) => format!(" `{}` is warned of: {why}.", !only),
        _ => String::new(),
    }
}

/// `16,777,216`, as people read it.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn refused(out: &mut String, places: &[Place], what: &str) {
    for place in places {
        for refused in place.refused {
            let (state, why) = (refused.when.words(), refused.why);
            let _ = writeln!(
                out,
                "| `{}` | {what}`{}` | {state} | {why} |",
                place.path, refused.name
            );
        }
    }
}
