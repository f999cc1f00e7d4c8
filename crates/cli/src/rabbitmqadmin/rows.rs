//! Objects as rows: nested ones have columns of their own, with a dot in their names.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::python;

/// Columns, and a row for each object. A cell is `None` for null.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Option<String>>>,
}

/// Columns that come first.
const FIRST: [&str; 7] = [
    "vhost",
    "name",
    "type",
    "source",
    "destination",
    "destination_type",
    "routing_key",
];

impl Rows {
    /// The named columns of these objects, or all down to a depth. An object under the key `json` is one cell.
    pub(super) fn of(objects: &[Json], named: &[String], depth: usize, json: &str) -> Self {
        let depth = if named.is_empty() { depth } else { usize::MAX };
        let cells = objects.iter().map(|object| {
            let mut cells = Vec::new();
            if let Json::Object(fields) = object {
                collect(fields, "", (1, depth), json, &mut cells);
            }
            cells
        });
        let cells: Vec<_> = cells.collect();
        let columns = match named {
            [] => {
                let all = cells.iter().flatten().map(|(column, _)| column.as_str());
                ordered(all.collect())
            }
            named => named.to_vec(),
        };
        let row = |cells: Vec<(String, Option<String>)>| {
            let cell = |column: &String| {
                let mut found = cells.iter().rev();
                let found = found.find(|(name, _)| name == column);
                found.map_or_else(|| Some(String::new()), |(_, cell)| cell.clone())
            };
            columns.iter().map(cell).collect()
        };
        let rows = cells.into_iter().map(row).collect();
        Self { columns, rows }
    }
}

fn collect(
    fields: &Map<String, Json>,
    prefix: &str,
    (depth, depth_max): (usize, usize),
    json: &str,
    cells: &mut Vec<(String, Option<String>)>,
) {
    for (key, value) in fields {
        let column = match prefix {
            "" => key.clone(),
            prefix => format!("{prefix}.{key}"),
        };
        let cell = match value {
            Json::Object(_) if !json.is_empty() && key == json => python::cell(value),
            Json::Object(inner) => {
                if depth < depth_max {
                    collect(inner, &column, (depth + 1, depth_max), json, cells);
                }
                continue;
            }
            Json::Array(items) => Some(list(items, value)),
            value => python::cell(value),
        };
        cells.push((column, cell));
    }
}

/// Texts with spaces between them, or else JSON.
fn list(items: &[Json], value: &Json) -> String {
    let texts: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
    texts.map_or_else(|| python::json(value), |texts| texts.join(" "))
}

fn ordered(columns: BTreeSet<&str>) -> Vec<String> {
    let first = FIRST.into_iter().filter(|column| columns.contains(column));
    let others = columns.iter().filter(|column| !FIRST.contains(column));
    first.chain(others.copied()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(named: &[&str], depth: usize) -> (String, Vec<String>) {
        let objects = [
            json!({"b": {"x": 1, "y": {"z": 2}}, "name": "n", "a": ["p", "q"], "value": {"k": 1}}),
            json!({"a": [1], "c": null, "d": true}),
            json!([]),
        ];
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let Rows { columns, rows } = Rows::of(&objects, &named, depth, "value");
        let shown = |row: Vec<Option<String>>| {
            let cells = row.into_iter();
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "None".to_owned()));
            cells.collect::<Vec<_>>().join("|")
        };
        (columns.join("|"), rows.into_iter().map(shown).collect())
    }

    #[test]
    fn nested_objects_have_columns() {
        let value = r#"{"k": 1}"#;
        let (columns, found) = rows(&[], 1);
        assert_eq!(columns, "name|a|c|d|value");
        assert_eq!(
            found,
            [
                format!("n|p q|||{value}"),
                "|[1]|None|True|".to_owned(),
                "||||".to_owned()
            ]
        );
        let (columns, _) = rows(&[], 2);
        assert_eq!(columns, "name|a|b.x|c|d|value");
        let (columns, found) = rows(&["b.y.z", "none"], 1);
        assert_eq!(columns, "b.y.z|none");
        assert_eq!(found, ["2|", "|", "|"]);
    }
}
