//! What commands print: texts, tables and JSON, by the formatters of RabbitMQ.

use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::words::Words;
use crate::list::printable;

/// The outcome of a command.
pub(super) enum Output {
    Nothing,
    Text(String),
    Table(Table),
    /// The text for people, and the value for programs.
    Value(String, Json),
}

/// Rows with titles.
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Json>>,
    /// The output of no rows is nothing; else it is an empty line.
    pub(super) is_stream: bool,
    pub(super) has_header: bool,
}

/// A formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The command's own.
    Own,
    Csv,
    Json,
    Pretty,
    Table,
}

impl Format {
    pub(super) fn of(words: &Words) -> Result<Self, Failure> {
        Ok(match words.option("formatter") {
            None | Some("string") => Self::Own,
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            Some("pretty_table") => Self::Pretty,
            Some("table") => Self::Table,
            Some(other) => {
                return Err(Failure::usage(&format!(
                    "Error: --formatter: expected csv, json, pretty_table, string or table, got {other}"
                )));
            }
        })
    }

    pub(super) fn is_for_machines(self) -> bool {
        matches!(self, Self::Csv | Self::Json)
    }
}

/// Prints a line. A reader that has gone is no failure.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    let said = say!("{text}");
    said.map(drop)
        .map_err(|error| Failure::software(&error.to_string()))
}

/// Prints the outcome as the format asks.
pub(super) fn print(words: &Words, format: Format, output: Output) -> Result<(), Failure> {
    let text = match (output, format) {
        (Output::Nothing, _) => return Ok(()),
        (Output::Text(text), Format::Json) => json!({"message": text}).to_string(),
        (Output::Text(text), _) => text,
        (Output::Value(_, value), Format::Json) => value.to_string(),
        (Output::Value(text, _), _) => text,
        (Output::Table(table), Format::Json) => table.json(),
        (Output::Table(table), Format::Csv) => table.csv(),
        (Output::Table(table), Format::Pretty) => table.pretty(),
        (Output::Table(table), _) if table.rows.is_empty() && table.is_stream => return Ok(()),
        (Output::Table(table), _) => {
            let is_unwanted = words.has("silent") || words.option("table-headers") == Some("false");
            table.plain(table.has_header && !is_unwanted)
        }
    };
    line(&text)
}

impl Table {
    /// Rows of objects: the values of these keys.
    pub(super) fn of(columns: &[&str], rows: &[Json]) -> Self {
        let values = |row: &Json| columns.iter().map(|key| row[*key].clone()).collect();
        Self {
            columns: columns.iter().map(|key| (*key).to_owned()).collect(),
            rows: rows.iter().map(values).collect(),
            is_stream: false,
            has_header: true,
        }
    }

    fn plain(&self, has_header: bool) -> String {
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(cell).collect();
            cells.join("\t")
        });
        let header = (has_header && !self.rows.is_empty()).then(|| self.columns.join("\t"));
        header
            .into_iter()
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn csv(&self) -> String {
        let quoted = |cells: Vec<String>| {
            let cells = cells
                .iter()
                .map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")));
            cells.collect::<Vec<_>>().join(",")
        };
        let mut lines = vec![quoted(self.columns.clone())];
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| quoted(row.iter().map(cell).collect())));
        lines.join("\n")
    }

    fn json(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let pairs = self.columns.iter().cloned().zip(row.iter().cloned());
            Json::Object(pairs.collect()).to_string()
        });
        let rows: Vec<String> = rows.collect();
        format!("[\n{}\n]", rows.join("\n,"))
    }

    /// Lines of the graphics set of VT100, as RabbitMQ has them off a terminal, too.
    fn pretty(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        let width = |index: usize| {
            let cells = rows.iter().map(|row| row[index].chars().count());
            let title = self.columns[index].chars().count();
            cells.max().unwrap_or(0).max(title)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let rule = |left: &str, middle: &str, right: &str| {
            let parts = widths.iter().map(|width| "q".repeat(width + 2));
            let parts = parts.collect::<Vec<_>>().join(middle);
            format!("\x1b(0{left}{parts}{right}\x1b(B")
        };
        let row = |cells: &[String], style: (&str, &str)| {
            let (begin, end) = style;
            let cells = cells.iter().zip(&widths).map(|(cell, width)| {
                let padding = " ".repeat(width - cell.chars().count());
                format!("\x1b(0x\x1b(B {begin}{cell}{end}{padding} ")
            });
            format!("{}\x1b(0x\x1b(B", cells.collect::<String>())
        };
        let mut lines = vec![
            rule("l", "w", "k"),
            row(&self.columns, ("\x1b[1m", "\x1b[0m")),
        ];
        for cells in &rows {
            lines.push(rule("t", "n", "u"));
            lines.push(row(cells, ("", "")));
        }
        lines.push(rule("m", "v", "j"));
        lines.join("\n")
    }
}

/// A value in a row.
pub(super) fn cell(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => printable(text),
        Json::Array(items) => match items.iter().map(argument).collect::<Option<Vec<_>>>() {
            Some(arguments) => format!("[{}]", arguments.join(",")),
            None => {
                let items: Vec<String> = items.iter().map(cell).collect();
                format!("[{}]", items.join(", "))
            }
        },
        value => value.to_string(),
    }
}

/// `{"x-max-length",10}`, of name, type and value.
fn argument(triple: &Json) -> Option<String> {
    match triple.as_array()?.as_slice() {
        [Json::String(name), Json::String(_), value] => {
            Some(format!("{{\"{}\",{value}}}", printable(name)))
        }
        _ => None,
    }
}
