//! Lists as aligned tables.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use serde_json::Value as Json;

use super::lists::{Column, Show};

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The rows below the titles of their columns.
pub(crate) fn of(columns: &[Column], rows: &[Json]) -> String {
    let has_content = |column: &&Column| {
        let is_full = |row| !cell(column, row).content().is_empty();
        !column.is_optional || rows.iter().any(is_full)
    };
    let columns: Vec<&Column> = columns.iter().filter(has_content).collect();
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| column.title));
    for row in rows {
        table.add_row(columns.iter().map(|column| cell(column, row)));
    }
    let text = table.trim_fmt();
    // The table's invisible frame leaves a blank before each line.
    let lines = text
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

fn cell(column: &Column, row: &Json) -> Cell {
    match column.value {
        Show::Text(key) => Cell::new(printable(row[key].as_str().unwrap_or_default())),
        Show::Number(key) => {
            let number = row[key].as_u64().map(|number| number.to_string());
            Cell::new(number.unwrap_or_default()).set_alignment(CellAlignment::Right)
        }
        Show::Flags(keys) => {
            let set = keys.iter().filter(|key| row[**key] == true);
            let words: Vec<String> = set.map(|key| key.replace('_', "-")).collect();
            Cell::new(words.join(" "))
        }
        Show::Json(key) => match &row[key] {
            Json::Null => Cell::new(""),
            value => Cell::new(printable(&value.to_string())),
        },
        Show::Words(key) => {
            let words = row[key].as_array().into_iter().flatten();
            let words: Vec<_> = words.filter_map(Json::as_str).collect();
            Cell::new(printable(&words.join(" ")))
        }
        Show::Arguments(key) => match row[key].as_object() {
            Some(arguments) if !arguments.is_empty() => Cell::new(printable(&row[key].to_string())),
            _ => Cell::new(""),
        },
    }
}

/// Clients choose names: these must not move a terminal's cursor or break a line.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lists::{EXCHANGES, QUEUES};
    use super::*;

    #[test]
    fn columns_are_aligned_and_names_are_harmless() {
        let rows = [
            json!({"vhost": "/", "name": "a\u{1b}[2J\nb", "type": "quorum", "messages_ready": 5, "messages_unacked": 0,
                "consumers": 12, "bytes": 4096, "durable": true, "exclusive": false,
                "auto_delete": true, "arguments": {"x-expires": 5}, "policy": "cap", "operator_policy": null,
                "effective_policy_definition": {"max-length": 5}}),
            json!({"vhost": "nova", "name": "conductor", "type": "classic", "messages_ready": 1234,
                "messages_unacked": 1, "consumers": 0, "bytes": 0, "durable": false,
                "exclusive": false, "auto_delete": false, "arguments": {}}),
        ];
        let text = of(QUEUES.columns, &rows);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let (rule, [titles, first, second]) = (lines[1], [lines[0], lines[2], lines[3]]);
        assert!(rule.chars().all(|c| c == '─'), "{rule}");
        assert_eq!(
            [titles, first, second],
            [
                "vhost   queue           type      ready   unacked   consumers   bytes   \
                 features              arguments         policy   effective policy",
                "/       a\\u{1b}[2J\\nb   quorum        5         0          12    4096   \
                 durable auto-delete   {\"x-expires\":5}   cap      {\"max-length\":5}",
                "nova    conductor       classic    1234         1           0       0",
            ]
        );
        assert_eq!(of(EXCHANGES.columns, &[]).lines().count(), 2);
    }
}
