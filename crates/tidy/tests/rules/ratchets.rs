//! Numbers that may only fall: what STYLE.md asks for in points 7 and 15, and old code does not do everywhere.
//!
//! A change that makes one of them smaller lowers its constant here, so that it stays so.

use crosstie_tidy::{Source, members, sources};

/// A function beyond this does more than one thing, or holds a table that could be a constant.
const FUNCTION_LINES: usize = 70;
/// How many functions are longer, tests among them.
const LONG_FUNCTIONS_MAX: usize = 10;

/// How many files are the largest ones, and the lines that they may have together. Tests may be long tables.
const LARGEST_FILES: usize = 10;
const LARGEST_LINES_MAX: usize = 5_079;

/// How far a number may be below its bound before the bound has to follow.
const SLACK_FUNCTIONS: usize = 5;
const SLACK_LINES: usize = 300;

fn all() -> Vec<Source> {
    members()
        .iter()
        .flat_map(|member| sources(&member.folder))
        .collect()
}

#[test]
fn long_functions_become_fewer() {
    let mut found = Vec::new();
    for source in all() {
        for (name, line, length) in functions(&source.text) {
            if length > FUNCTION_LINES {
                found.push(format!("{length} lines: {name}, {}:{line}", source.path));
            }
        }
    }
    found.sort_by_key(|text| text.split(' ').next().and_then(|n| n.parse::<usize>().ok()));
    let list = found.join("\n");
    holds(
        "functions of more than 70 lines",
        found.len(),
        LONG_FUNCTIONS_MAX,
        SLACK_FUNCTIONS,
        &list,
    );
}

#[test]
fn the_largest_files_become_smaller() {
    let of_code = all()
        .into_iter()
        .filter(|source| source.path.contains("/src/"));
    let mut lengths: Vec<_> = of_code
        .map(|source| (source.text.lines().count(), source.path))
        .collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths.truncate(LARGEST_FILES);
    let list: Vec<_> = lengths
        .iter()
        .map(|(lines, path)| format!("{lines} lines: {path}"))
        .collect();
    holds(
        "lines of the ten largest files",
        lengths.iter().map(|(lines, _)| lines).sum(),
        LARGEST_LINES_MAX,
        SLACK_LINES,
        &list.join("\n"),
    );
}

fn holds(what: &str, found: usize, bound: usize, slack: usize, list: &str) {
    assert!(
        found <= bound,
        "{what}: {found}, and {bound} are the most that there may be:\n{list}"
    );
    assert!(
        found + slack >= bound,
        "{what}: only {found}; lower the bound in this file from {bound} to that"
    );
}

/// Each function with its name, its first line and the number of its lines. rustfmt puts the brace that ends one
/// below the beginning of its first line.
fn functions(text: &str) -> Vec<(&str, usize, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &&str| line.trim_start() == "}" && line.len() == indent + 1;
        // One without a body, or on one line.
        let is_whole = line.ends_with(';') || line.ends_with('}');
        let length = match is_whole {
            true => 1,
            false => lines[number..].iter().position(is_end).unwrap_or(0) + 1,
        };
        found.push((name, number + 1, length));
    }
    found
}

/// The name of the function that begins in this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_modifier = |word: &str| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub")
    };
    if !before.split_whitespace().all(is_modifier) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then(|| &after[..end])
}

#[test]
fn functions_are_found_with_their_lines() {
    let text = "fn one() {}\n\npub(crate) const fn two(\n    a: u8,\n) -> u8 {\n    a\n}\n\nimpl X {\n    async fn three() {\n        if true {\n        }\n    }\n}\n// fn no()\n";
    let expected = [("one", 1, 1), ("two", 3, 5), ("three", 10, 4)];
    assert_eq!(functions(text), expected);
}
