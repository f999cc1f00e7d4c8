//! JSON objects, written field by field: a field that the client did not request costs nothing.

use serde_json::Value as Json;

/// The fields that a client requests (`columns=a,b.c`); without any all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    paths: Vec<Vec<String>>,
}

impl Columns {
    /// Reads the value of the parameter.
    pub(crate) fn parse(text: &str) -> Self {
        let paths = text.split(',').filter(|path| !path.is_empty());
        Self {
            paths: paths
                .map(|path| path.split('.').map(str::to_owned).collect())
                .collect(),
        }
    }

    /// One field.
    pub(crate) fn one(path: &[String]) -> Self {
        Self {
            paths: vec![path.to_vec()],
        }
    }
}

/// The part of the columns below an object.
#[derive(Clone, Debug)]
enum Wanted<'c> {
    All,
    Paths(Vec<&'c [String]>),
}

impl<'c> Wanted<'c> {
    /// The wanted part of an object.
    fn below(&self, name: &str) -> Self {
        let Self::Paths(paths) = self else {
            return Self::All;
        };
        let named = paths
            .iter()
            .filter(|path| path.first().is_some_and(|first| first == name));
        let below: Vec<&'c [String]> = named.map(|path| &path[1..]).collect();
        match below.iter().any(|path| path.is_empty()) {
            true => Self::All,
            false => Self::Paths(below),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Paths(paths) => paths
                .iter()
                .any(|path| path.first().is_some_and(|first| first == name)),
        }
    }
}

/// Writes an object. Without a single requested field it is `[]`, as in RabbitMQ.
pub(crate) fn object(out: &mut Vec<u8>, columns: &Columns, write: impl FnOnce(&mut Row<'_, '_>)) {
    let wanted = match columns.paths.is_empty() {
        true => Wanted::All,
        false => Wanted::Paths(columns.paths.iter().map(Vec::as_slice).collect()),
    };
    written(out, wanted, write);
}

/// Writes an object with all of its fields.
pub(crate) fn whole(out: &mut Vec<u8>, write: impl FnOnce(&mut Row<'_, '_>)) {
    written(out, Wanted::All, write);
}

fn written<'c>(
    out: &mut Vec<u8>,
    wanted: Wanted<'c>,
    write: impl FnOnce(&mut Row<'_, 'c>),
) -> bool {
    let start = out.len();
    let is_pruned = matches!(wanted, Wanted::Paths(_));
    let mut row = Row {
        out,
        wanted,
        is_empty: true,
    };
    write(&mut row);
    let is_empty = row.is_empty;
    match (is_empty, is_pruned) {
        (true, true) => out.extend_from_slice(b"[]"),
        (true, false) => out.extend_from_slice(b"{}"),
        (false, _) => out.push(b'}'),
    }
    debug_assert!(out.len() > start);
    !is_empty
}

/// An object that is being written.
pub(crate) struct Row<'o, 'c> {
    out: &'o mut Vec<u8>,
    wanted: Wanted<'c>,
    is_empty: bool,
}

impl<'c> Row<'_, 'c> {
    /// Whether the client wants this field: for values that are costly to find.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.wanted.has(name)
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        if let Some(out) = self.field(name) {
            quote(value, out);
        }
    }

    /// A text, or null.
    pub(crate) fn text_or_null(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    pub(crate) fn int(&mut self, name: &str, value: impl TryInto<i64>) {
        if let Some(out) = self.field(name) {
            let value = value.try_into().unwrap_or(i64::MAX);
            out.extend_from_slice(value.to_string().as_bytes());
        }
    }

    pub(crate) fn float(&mut self, name: &str, value: f64) {
        if let Some(out) = self.field(name) {
            json(&Json::from(value), out);
        }
    }

    pub(crate) fn boolean(&mut self, name: &str, value: bool) {
        if let Some(out) = self.field(name) {
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
    }

    pub(crate) fn null(&mut self, name: &str) {
        if let Some(out) = self.field(name) {
            out.extend_from_slice(b"null");
        }
    }

    /// Any value. A part of it that columns name is the whole of it.
    pub(crate) fn json(&mut self, name: &str, value: &Json) {
        if let Some(out) = self.field(name) {
            json(value, out);
        }
    }

    /// An object that is there as a whole or not at all.
    pub(crate) fn nested(&mut self, name: &str, write: impl FnOnce(&mut Row<'_, '_>)) {
        if let Some(out) = self.field(name) {
            whole(out, write);
        }
    }

    /// An object of which columns may name a part.
    pub(crate) fn pruned(&mut self, name: &str, write: impl FnOnce(&mut Row<'_, 'c>)) {
        if self.wanted.has(name) {
            let below = self.wanted.below(name);
            self.begin(name);
            written(self.out, below, write);
        }
    }

    /// A list of objects.
    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&T, &mut Row<'_, '_>),
    ) {
        if let Some(out) = self.field(name) {
            out.push(b'[');
            for (number, item) in items.into_iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                whole(out, |row| write(&item, row));
            }
            out.push(b']');
        }
    }

    /// A list of texts.
    pub(crate) fn texts<'t>(&mut self, name: &str, items: impl IntoIterator<Item = &'t str>) {
        if let Some(out) = self.field(name) {
            out.push(b'[');
            for (number, item) in items.into_iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                quote(item, out);
            }
            out.push(b']');
        }
    }

    fn field(&mut self, name: &str) -> Option<&mut Vec<u8>> {
        if !self.wanted.has(name) {
            return None;
        }
        self.begin(name);
        Some(self.out)
    }

    fn begin(&mut self, name: &str) {
        self.out.push(if self.is_empty { b'{' } else { b',' });
        self.is_empty = false;
        quote(name, self.out);
        self.out.push(b':');
    }
}

/// Appends a text with its quotes.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    if text.as_bytes().iter().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    json(&Json::from(text), out);
}

/// Appends any value.
pub(crate) fn json(value: &Json, out: &mut Vec<u8>) {
    // A vector takes all that is written.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(columns: &str) -> String {
        let mut out = Vec::new();
        object(&mut out, &Columns::parse(columns), |row| {
            row.text("name", "q\"\n");
            row.int("messages", 5_usize);
            row.json("arguments", &serde_json::json!({"x": [1]}));
            row.objects("consumers", [1, 2], |tag, row| row.int("tag", *tag));
            row.pruned("stats", |row| {
                row.int("publish", 1);
                row.pruned("details", |row| row.float("rate", 0.0));
            });
        });
        String::from_utf8(out).expect("is text")
    }

    #[test]
    fn columns_select_fields() {
        for (columns, expected) in [
            (
                "",
                r#"{"name":"q\"\n","messages":5,"arguments":{"x":[1]},"consumers":[{"tag":1},{"tag":2}],"stats":{"publish":1,"details":{"rate":0.0}}}"#,
            ),
            (
                "stats.details.rate",
                r#"{"stats":{"details":{"rate":0.0}}}"#,
            ),
            (
                "stats,stats.publish",
                r#"{"stats":{"publish":1,"details":{"rate":0.0}}}"#,
            ),
            ("stats.nope", r#"{"stats":[]}"#),
            ("messages,unknown", r#"{"messages":5}"#),
            // Objects that RabbitMQ does not look into come whole.
            ("arguments.x", r#"{"arguments":{"x":[1]}}"#),
            ("nope", "[]"),
        ] {
            assert_eq!(written(columns), expected, "columns={columns}");
        }
    }
}
