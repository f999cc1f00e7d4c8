//! The tables as the reference in the documentation (Markdown).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crosstie_config::catalogue::refused::{KEYS, Place, VALUES};
use crosstie_config::catalogue::{CONFIG, Effect, Fallback, Key, Kind, Rule, Table};
use crosstie_config::effects;

use crate::pages::{CROSSBAR, FORMER, INDEX, PAGES, Page, anchor, page_of};

/// The generated parts of all pages, by file name.
pub(crate) fn reference() -> Vec<(&'static str, String)> {
    let tables = tables();
    let mut pages = vec![("README.md", list_of_pages())];
    for (file, letters) in INDEX {
        pages.push((*file, index(&tables, letters)));
    }
    for page in PAGES {
        let mut out = String::new();
        for (table, tag) in tables.iter().filter(|(table, _)| has(page, table)) {
            table_of(&mut out, table, *tag, page);
        }
        pages.push((page.file, out));
    }
    pages.push((CROSSBAR, crossbar(&tables)));
    pages
}

/// The table of the former sections of the one page, each with the anchor that it had.
pub(crate) fn former_sections() -> String {
    let mut out = String::from("\n");
    for (heading, place) in FORMER {
        former(&mut out, heading, heading, place);
    }
    for (table, _) in tables() {
        let heading = format!("{}: {}", table.path, table.name);
        former(
            &mut out,
            &heading,
            &format!("`{}`", table.path),
            &place(table),
        );
    }
    out
}

fn former(out: &mut String, heading: &str, text: &str, place: &str) {
    let anchor = anchor(heading);
    let _ = writeln!(
        out,
        "- <a id=\"{anchor}\"></a>[{text}](configuration/{place})"
    );
}

fn has(page: &Page, table: &Table) -> bool {
    page_of(table.path).file == page.file
}

fn place(table: &Table) -> String {
    format!("{}#{}", page_of(table.path).file, anchor(table.path))
}

fn list_of_pages() -> String {
    let mut out = String::from("\n| page | contents |\n|---|---|\n");
    for Page {
        file, title, about, ..
    } in PAGES
    {
        let _ = writeln!(out, "| [{title}]({file}) | {about} |");
    }
    let _ = writeln!(
        out,
        "| [Keys of Crossbar.io]({CROSSBAR}) | Keys that change nothing here, and keys that are refused, with the reasons. |"
    );
    out.push_str("| Index of keys: [A to L](keys.md), [M to Z](keys-m-z.md) | Every key, with links to its tables. |\n");
    out
}

/// Places of one page that the index names one by one; with more it names the page.
const PLACES_MAX: usize = 2;

/// The keys that begin with `letters`, each with links to its tables.
fn index(tables: &[(&'static Table, Tag)], letters: &RangeInclusive<char>) -> String {
    let mut keys: BTreeMap<&str, Vec<&'static Table>> = BTreeMap::new();
    for (table, _) in tables {
        for key in table.keys.iter().filter(|key| key.inert.is_none()) {
            keys.entry(key.name).or_default().push(table);
        }
    }
    let mut out = String::from("\n");
    keys.retain(|key, _| key.starts_with(|first| letters.contains(&first)));
    for (key, tables) in keys {
        let mut places = Vec::new();
        for page in PAGES {
            let here: Vec<_> = tables.iter().filter(|table| has(page, table)).collect();
            if here.len() > PLACES_MAX {
                places.push(format!(
                    "[{}]({}): {} tables",
                    page.title,
                    page.file,
                    here.len()
                ));
                continue;
            }
            places.extend(
                here.iter()
                    .map(|table| format!("[`{}`]({})", table.path, place(table))),
            );
        }
        let _ = writeln!(out, "- `{key}`: {}", places.join("; "));
    }
    out
}

fn crossbar(tables: &[(&'static Table, Tag)]) -> String {
    let mut out = String::from("\n## Taken without effect\n\n");
    out.push_str("Crossbar.io's keys that change nothing here. Each causes a warning.\n\n");
    out.push_str("| where | key | why it has no effect |\n|---|---|---|\n");
    for (table, _) in tables {
        for key in table.keys {
            if let Some(reason) = key.inert {
                let _ = writeln!(out, "| `{}` | `{}` | {reason} |", table.path, key.name);
            }
        }
    }
    out.push_str("\n## Not taken\n\n");
    out.push_str(
        "Keys and values of Crossbar.io that Crosstie refuses, with the reason it gives. ",
    );
    out.push_str("Every other key that is in no table of this reference is an unknown key.\n\n");
    out.push_str("| where | key, or value | state | why |\n|---|---|---|---|\n");
    refused(&mut out, KEYS, "");
    refused(&mut out, VALUES, "the value ");
    out
}

/// `PATH KEY` of every key that has an effect.
pub(crate) fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    for (table, _) in tables() {
        let named = table.keys.iter().filter(|key| key.inert.is_none());
        keys.extend(named.map(|key| format!("{} {}", table.path, key.name)));
    }
    keys
}

/// Every table once, with the `type` that tells it from others at its place.
pub(crate) fn tables() -> Vec<(&'static Table, Tag)> {
    let mut tables = Vec::new();
    collect(&CONFIG, None, &mut tables);
    tables
}

/// The `type` that tells a table from others at its place.
pub(crate) type Tag = Option<&'static str>;

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

fn table_of(out: &mut String, table: &Table, tag: Tag, page: &Page) {
    let _ = writeln!(out, "\n## `{}`\n", table.path);
    if table.keys.is_empty() {
        let _ = writeln!(
            out,
            "Error messages say \"{}\". It takes no keys.",
            table.name
        );
        return;
    }
    let _ = writeln!(
        out,
        "Error messages say \"{}\". {}\n",
        table.name,
        on_reload(table)
    );
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
            _ => value(&key.kind, page),
        };
        let _ = writeln!(
            out,
            "| `{}`{own} | {value}{environment} | {} | {}{} |",
            key.name,
            fallback(key).replace("](", "](../"),
            key.about.replace("](", "](../"),
            always(&key.kind),
        );
    }
}

/// What a reload does with changed keys of the table: with most of them, and then with the others.
fn on_reload(table: &Table) -> String {
    let effects = effects();
    let mut groups: BTreeMap<BTreeSet<Option<Effect>>, Vec<&str>> = BTreeMap::new();
    let keys = table.keys.iter().filter(|key| key.inert.is_none());
    for key in keys.filter(|key| key.name != "type") {
        if let Some(of_key) = effects.get(&(table.path, key.name)) {
            groups.entry(of_key.clone()).or_default().push(key.name);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, keys)| std::cmp::Reverse(keys.len()));
    let Some((most, _)) = groups.first() else {
        return String::new();
    };
    let mut text = format!("A change {}.", effect(most));
    for (of_keys, keys) in &groups[1..] {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let _ = write!(text, " {}: {}.", keys.join(", "), effect(of_keys));
    }
    text
}

/// Several effects: those of the places that have the table.
fn effect(effects: &BTreeSet<Option<Effect>>) -> String {
    let words = effects.iter().flatten().map(|effect| match effect {
        Effect::AtOnce => "applies at once",
        Effect::NewSessions => "applies to new sessions",
        Effect::Restart => "needs a restart",
    });
    let words: Vec<&str> = words.collect();
    match &words[..] {
        [only] => (*only).to_owned(),
        several => format!("{}, by the place", several.join(" or ")),
    }
}

fn value(kind: &Kind, page: &Page) -> String {
    match kind {
        Kind::Boolean | Kind::Only(..) => "boolean".into(),
        Kind::Always(only, _) => format!("`{only}`"),
        &Kind::Integer { min, max, or_zero } => {
            let or_zero = if or_zero && min > 0 { "0 or " } else { "" };
            if max == i64::MAX {
                format!("{or_zero}{} and more", grouped(min))
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
        Kind::List { of, .. } => format!("list of: {}", value(of, page)),
        Kind::OneOrMore(of) => format!("one or a list of: {}", value(of, page)),
        Kind::OrNull(of) => format!("{}, or `null`", value(of, page)),
        Kind::Either(one, other) => format!("{}, or {}", value(one, page), value(other, page)),
        Kind::Map {
            keys: Rule::WebPath,
            of,
            ..
        } => format!("by path: {}", value(of, page)),
        Kind::Map {
            of,
            environment: true,
            ..
        } => format!("by name: {} or `$VARIABLE`", value(of, page)),
        Kind::Map { of, .. } => format!("by name: {}", value(of, page)),
        Kind::Json => "anything".into(),
        Kind::Object(table) => link(table, page),
        Kind::Tagged(tagged) => {
            let tables = tagged.variants.iter();
            let tables: Vec<String> = tables.map(|(_, table)| link(table, page)).collect();
            tables.join(", ")
        }
    }
}

/// The table's path with a link to it, from `page`.
fn link(table: &Table, page: &Page) -> String {
    let file = if has(page, table) {
        ""
    } else {
        page_of(table.path).file
    };
    format!("[`{}`]({file}#{})", table.path, anchor(table.path))
}

fn fallback(key: &Key) -> String {
    match key.fallback {
        Fallback::Required => "**required**".into(),
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
