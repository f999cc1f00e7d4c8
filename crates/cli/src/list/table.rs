//! Rows below the titles of their columns, aligned.

use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr as _;

use super::column::{Column, Show, When};

/// Between two columns.
const GAP: &str = "   ";

/// A table that gets its rows in parts. A later part may have wider columns, and never narrower ones.
pub(super) struct Table<'a> {
    columns: Vec<&'a Column>,
    widths: Vec<usize>,
}

/// The rows, with the titles.
pub(crate) fn table(columns: &[Column], rows: &[Json]) -> String {
    let mut table = Table::new(shown(columns, rows));
    let lines = table.lines(rows);
    let [titles, rule] = table.head();
    [titles, rule]
        .into_iter()
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The columns to show if none are selected.
pub(super) fn shown<'a>(columns: &'a [Column], rows: &[Json]) -> Vec<&'a Column> {
    let is_shown = |column: &&Column| match column.when {
        When::Always => true,
        When::IfFilled => rows.iter().any(|row| !cell(column, row).is_empty()),
        When::Selected => false,
    };
    columns.iter().filter(is_shown).collect()
}

impl<'a> Table<'a> {
    pub(super) fn new(columns: Vec<&'a Column>) -> Self {
        let widths = columns.iter().map(|column| column.title.width()).collect();
        Self { columns, widths }
    }

    /// The lines of some rows.
    pub(super) fn lines(&mut self, rows: &[Json]) -> Vec<String> {
        let cells = rows.iter().map(|row| {
            let cells = self.columns.iter().map(|column| cell(column, row));
            cells.collect::<Vec<_>>()
        });
        let cells: Vec<_> = cells.collect();
        for row in &cells {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        cells.iter().map(|row| self.line(row, true)).collect()
    }

    /// The titles and the rule below them, as wide as the rows until now.
    pub(super) fn head(&self) -> [String; 2] {
        let titles: Vec<_> = self.columns.iter().map(|c| c.title.to_owned()).collect();
        let gaps = GAP.len() * self.widths.len().saturating_sub(1);
        let width = self.widths.iter().sum::<usize>() + gaps;
        [self.line(&titles, false), "─".repeat(width)]
    }

    fn line(&self, cells: &[String], aligns_numbers: bool) -> String {
        let mut line = String::new();
        for ((column, cell), width) in self.columns.iter().zip(cells).zip(&self.widths) {
            let blanks = " ".repeat(width - cell.width());
            let is_right = aligns_numbers && matches!(column.value, Show::Number(_));
            let [left, right] = if is_right {
                [&blanks, cell]
            } else {
                [cell, &blanks]
            };
            line += left;
            line += right;
            line += GAP;
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn cell(column: &Column, row: &Json) -> String {
    match column.value {
        Show::Text(key) => printable(row[key].as_str().unwrap_or_default()),
        Show::Number(key) => match &row[key] {
            Json::Number(number) => number.to_string(),
            _ => String::new(),
        },
        Show::Flags(keys) => {
            let set = keys.iter().filter(|key| row[**key] == true);
            let words: Vec<String> = set.map(|key| key.replace('_', "-")).collect();
            words.join(" ")
        }
        Show::Json(key) => match &row[key] {
            Json::Null => String::new(),
            value => printable(&value.to_string()),
        },
        Show::Words(key) => {
            let words = row[key].as_array().into_iter().flatten();
            let words: Vec<_> = words.filter_map(Json::as_str).collect();
            printable(&words.join(" "))
        }
        Show::Arguments(key) => match row[key].as_object() {
            Some(arguments) if !arguments.is_empty() => printable(&row[key].to_string()),
            _ => String::new(),
        },
    }
}

/// Clients choose names: these must not move a terminal's cursor, break a line, or reverse the direction of a line.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() || is_direction(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// The text of a JSON value, in which no character of a string controls a terminal.
pub(crate) fn harmless(json: String) -> String {
    let is_harmful = |c: char| c.is_control() || is_direction(c);
    if !json.contains(is_harmful) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_harmful(c) {
            // None of them needs two units.
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}

/// Whether a character changes the direction of others, by which a name may look like another one.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::column::column;

    #[test]
    fn json_controls_no_terminal() {
        let value = json!({"a\u{9b}": "\u{1b}\u{202e}é"});
        let text = harmless(value.to_string());
        assert_eq!(text, r#"{"a\u009b":"\u001b\u202eé"}"#);
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
    }

    #[test]
    fn wide_characters_are_aligned_and_no_name_turns_a_line() {
        let columns = [
            column("queue", Show::Text("name")),
            column("n", Show::Number("n")),
        ];
        let rows = [
            json!({"name": "日本語", "n": 1}),
            json!({"name": "\u{202e}x", "n": 22}),
        ];
        let text = table(&columns, &rows);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["日本語       1", "\\u{202e}x   22"]);
    }
}
