//! The formats of lists.

use serde_json::Value as Json;

use super::failure::Failure;
use super::options::Options;
use super::python;
use super::rows::Rows;

/// Objects as text, without the last end of a line; `None` prints nothing.
pub(super) fn formatted(
    body: &str,
    columns: &[String],
    json: &str,
    options: &Options,
) -> Result<Option<String>, Failure> {
    if options.format == "raw_json" {
        return Ok(Some(body.to_owned()));
    }
    let no_json = |_| Failure::died("The answer is no JSON");
    let objects: Json = serde_json::from_str(body).map_err(no_json)?;
    let write: fn(&Rows, bool) -> Option<String> = match options.format.as_str() {
        "pretty_json" => return Ok(Some(python::pretty(&objects))),
        "tsv" => tsv,
        "long" => |rows: &Rows, _| Some(long(rows)),
        "table" => |rows: &Rows, _| Some(table(rows)),
        "kvp" => |rows: &Rows, _| Some(kvp(rows)),
        "bash" => |rows: &Rows, _| bash(rows),
        other => return Err(Failure::usage(&format!("Format {other} not recognised"))),
    };
    let objects = objects.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = Rows::of(objects, columns, options.depth.unwrap_or(1), json);
    Ok(match rows.rows.is_empty() {
        true => options.is_verbose.then(|| "No items".to_owned()),
        false => write(&rows, options.is_verbose),
    })
}

/// Null is empty.
fn or_empty(cell: Option<&str>) -> &str {
    cell.unwrap_or_default()
}

/// Null is Python's.
fn or_none(cell: Option<&str>) -> &str {
    cell.unwrap_or("None")
}

fn tsv(rows: &Rows, has_head: bool) -> Option<String> {
    let head = has_head.then(|| rows.columns.join("\t"));
    let lines = rows.rows.iter().map(|row| {
        let cells: Vec<&str> = row.iter().map(|cell| or_empty(cell.as_deref())).collect();
        cells.join("\t")
    });
    let lines: Vec<String> = head.into_iter().chain(lines).collect();
    Some(lines.join("\n"))
}

fn long(rows: &Rows) -> String {
    let widths = rows.columns.iter().map(|column| column.chars().count());
    let width = widths.max().unwrap_or(0);
    let rule = format!("\n{}\n", "-".repeat(80));
    let mut text = rule.clone();
    for row in &rows.rows {
        for (column, cell) in rows.columns.iter().zip(row) {
            text.push_str(&format!("\n{column:>width$}: {}", or_none(cell.as_deref())));
        }
        text.push('\n');
        text.push_str(&rule);
    }
    text
}

fn table(rows: &Rows) -> String {
    let widths: Vec<usize> = rows
        .columns
        .iter()
        .enumerate()
        .map(|(number, column)| {
            let cells = rows.rows.iter().map(|row| or_empty(row[number].as_deref()));
            let all = cells.chain([column.as_str()]);
            all.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let bars = widths
        .iter()
        .map(|width| format!("{}+", "-".repeat(width + 2)));
    let bar = format!("+{}", bars.collect::<String>());
    let line = |cells: Vec<String>| format!("|{}|", cells.join("|"));
    let head = rows.columns.iter().zip(&widths);
    let head = head.map(|(column, width)| {
        let free = width - column.chars().count();
        let (before, behind) = (spaces(free / 2), spaces(free.div_ceil(2)));
        format!(" {before}{column}{behind} ")
    });
    let mut lines = vec![bar.clone(), line(head.collect()), bar.clone()];
    for row in &rows.rows {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| {
            let cell = or_empty(cell.as_deref());
            let behind = spaces(width - cell.chars().count());
            format!(" {cell}{behind} ")
        });
        lines.push(line(cells.collect()));
    }
    lines.push(bar);
    lines.join("\n")
}

/// A cell may have more characters than `format!` pads to.
fn spaces(count: usize) -> String {
    " ".repeat(count)
}

fn kvp(rows: &Rows) -> String {
    let line = |row: &Vec<Option<String>>| {
        let pairs = rows.columns.iter().zip(row);
        let pairs =
            pairs.map(|(column, cell)| format!("{column}=\"{}\"", or_none(cell.as_deref())));
        pairs.collect::<Vec<_>>().join(" ")
    };
    rows.rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The names alone.
fn bash(rows: &Rows) -> Option<String> {
    let number = rows.columns.iter().position(|column| column == "name")?;
    let names = rows.rows.iter().map(|row| or_empty(row[number].as_deref()));
    Some(names.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmqadmin::known::Given;

    fn shown(words: &str, body: &str) -> Option<String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let given = Given::parse(&words).expect("options");
        let options = Options::resolve(&given).expect("they hold");
        formatted(body, &[], "", &options).expect("it is written")
    }

    const BODY: &str = r#"[{"name": "a", "n": 5}, {"name": "bcde", "n": null}]"#;

    #[test]
    fn each_format_has_its_lines() {
        let rule = "-".repeat(80);
        for (words, expected) in [
            ("-f raw_json", BODY.to_owned()),
            ("-f tsv", "name\tn\na\t5\nbcde\t".to_owned()),
            ("-q -f tsv", "a\t5\nbcde\t".to_owned()),
            (
                "-f long",
                format!("\n{rule}\n\nname: a\n   n: 5\n\n{rule}\n\nname: bcde\n   n: None\n\n{rule}\n"),
            ),
            (
                "-f table",
                "+------+---+\n| name | n |\n+------+---+\n| a    | 5 |\n| bcde |   |\n+------+---+".to_owned(),
            ),
            ("-f kvp", "name=\"a\" n=\"5\"\nname=\"bcde\" n=\"None\"".to_owned()),
            ("-f bash", "a bcde".to_owned()),
        ] {
            assert_eq!(shown(words, BODY), Some(expected), "{words}");
        }
    }

    #[test]
    fn a_long_payload_is_printed_whole() {
        let payload = "x".repeat(70_000);
        let body = format!(r#"[{{"payload": "{payload}"}}, {{"payload": "y"}}]"#);
        let shown = shown("-f table", &body).expect("rows");
        let lines: Vec<_> = shown.lines().map(str::len).collect();
        assert_eq!(lines, [70_004; 6]);
        assert!(shown.contains(&payload));
    }

    #[test]
    fn an_empty_list_is_told() {
        assert_eq!(shown("", "[]").as_deref(), Some("No items"));
        assert_eq!(shown("-q", "[]"), None);
        assert_eq!(shown("-q -f raw_json", "[]").as_deref(), Some("[]"));
        assert_eq!(shown("-f bash", "[{\"a\": 1}]"), None);
    }
}
