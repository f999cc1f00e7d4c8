//! Lists of objects: filtered, sorted, in pages, and written while they are sent.

use std::cmp::Ordering;

use fancy_regex::{Regex, RegexBuilder};
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::request::Query;
use crate::row::{self, Columns, Row};

/// Rows of one part of a body: some 200 kB of queues.
const ROWS_MAX: usize = 128;
const PAGE_SIZE: usize = 100;
const PAGE_SIZE_MAX: usize = 500;
/// Bounds a regular expression that looks back.
const BACKTRACKS_MAX: usize = 10_000;

type Fetch<T, V> = Box<dyn Fn(&[T]) -> Vec<Option<V>> + Send>;
type Write<V> = Box<dyn Fn(&V, &mut Row<'_, '_>) + Send>;

/// How a list of `T` is made: each item is a small key, the rest is read when its row is written.
pub(crate) struct Source<T, V> {
    pub(crate) items: Vec<T>,
    /// Reads the present state of some items; `None` for those that are gone.
    pub(crate) fetch: Fetch<T, V>,
    pub(crate) write: Write<V>,
}

impl<T: Clone + Send + 'static> Source<T, T> {
    /// Of items that are complete already.
    pub(crate) fn of(items: Vec<T>, write: impl Fn(&T, &mut Row<'_, '_>) + Send + 'static) -> Self {
        Self {
            items,
            fetch: Box::new(|items| items.iter().cloned().map(Some).collect()),
            write: Box::new(write),
        }
    }
}

/// A page of a list, for a browser.
struct Page {
    number: usize,
    size: usize,
    name: Option<Filter>,
}

enum Filter {
    Part(String),
    Regex(Box<Regex>),
}

impl Filter {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Part(part) => name.to_lowercase().contains(part.as_str()),
            Self::Regex(regex) => regex.is_match(name).unwrap_or(false),
        }
    }
}

impl Page {
    /// The page that a query asks for, if it asks for one.
    fn parse(query: &Query) -> Result<Option<Self>, Answer> {
        let Some(number) = query.get("page") else {
            return Ok(None);
        };
        let invalid = || Answer::bad_request("Pagination parameters are invalid");
        let parse = |text: &str| text.parse::<i64>().map_err(|_| invalid());
        let number = parse(number)?;
        let size = query.get("page_size").map(parse).transpose()?;
        let is_size_right = size.is_none_or(|size| (1..=PAGE_SIZE_MAX as i64).contains(&size));
        if number < 1 || !is_size_right {
            let size = size.map_or_else(|| "undefined".to_owned(), |size| size.to_string());
            let reason =
                format!("Invalid pagination parameters: page number {number}, page size {size}");
            return Err(Answer::error(400, "invalid_pagination_parameters", &reason));
        }
        let name = query.get("name").filter(|name| !name.is_empty());
        let name = name.map(|name| match query.is_true("use_regex") {
            true => RegexBuilder::new(&format!("(?i){name}"))
                .backtrack_limit(BACKTRACKS_MAX)
                .build()
                .map(|regex| Filter::Regex(Box::new(regex)))
                .map_err(|_| invalid()),
            false => Ok(Filter::Part(name.to_lowercase())),
        });
        Ok(Some(Self {
            number: usize::try_from(number).unwrap_or(usize::MAX),
            size: size.map_or(PAGE_SIZE, |size| size as usize),
            name: name.transpose()?,
        }))
    }
}

/// Answers with a list that has no pages, or with the wanted rows of it.
pub(crate) fn list<T: Send + 'static, V: 'static>(query: &Query, source: Source<T, V>) -> Answer {
    let (columns, mut source) = shaped(query, source);
    if let Some(rows) = query.rows {
        source.items.drain(..rows.first.min(source.items.len()));
        source.items.truncate(rows.count_max);
    }
    write(columns, source, b"[".to_vec(), b"]".to_vec())
}

/// Answers with a list, or with a page of it. `name` is what the parameter of that name is compared with.
pub(crate) fn pages<T: Send + 'static, V: 'static>(
    query: &Query,
    mut source: Source<T, V>,
    name: impl Fn(&T) -> String,
) -> Answer {
    let page = match Page::parse(query) {
        Ok(Some(page)) => page,
        Ok(None) => return list(query, source),
        Err(refused) => return refused,
    };
    let total = source.items.len();
    if let Some(filter) = &page.name {
        source.items.retain(|item| filter.matches(&name(item)));
    }
    let filtered = source.items.len();
    let page_count = filtered.div_ceil(page.size);
    if page.number > page_count.max(1) {
        let reason = format!(
            "Page out of range, page: {} page size: {}, len: {filtered}",
            page.number, page.size
        );
        return Answer::error(400, "page_out_of_range", &reason);
    }
    let (columns, mut source) = shaped(query, source);
    let start = (page.number - 1) * page.size;
    source.items.drain(..start.min(filtered));
    source.items.truncate(page.size);
    let count = source.items.len();
    let head = format!("{{\"filtered_count\":{filtered},\"item_count\":{count},\"items\":[");
    let tail = format!(
        "],\"page\":{},\"page_count\":{page_count},\"page_size\":{},\"total_count\":{total}}}",
        page.number, page.size
    );
    write(columns, source, head.into_bytes(), tail.into_bytes())
}

/// Sorts a list as the query asks.
fn shaped<T, V>(query: &Query, mut source: Source<T, V>) -> (Columns, Source<T, V>) {
    let columns = Columns::parse(query.get("columns").unwrap_or_default());
    if let Some(sort) = query.get("sort").filter(|sort| !sort.is_empty()) {
        let path: Vec<String> = sort.split('.').map(str::to_owned).collect();
        source = sorted(source, &path);
        if query.is_true("sort_reverse") {
            source.items.reverse();
        }
    }
    (columns, source)
}

fn sorted<T, V>(mut source: Source<T, V>, path: &[String]) -> Source<T, V> {
    let columns = Columns::one(path);
    let mut keys = Vec::with_capacity(source.items.len());
    let mut row = Vec::new();
    for part in source.items.chunks(ROWS_MAX) {
        for found in (source.fetch)(part) {
            row.clear();
            if let Some(found) = found {
                row::object(&mut row, &columns, |row| (source.write)(&found, row));
            }
            let value = serde_json::from_slice::<Json>(&row).unwrap_or_default();
            let value = path.iter().try_fold(&value, |value, name| value.get(name));
            keys.push(Rank::of(value));
        }
    }
    let mut items: Vec<_> = keys.into_iter().zip(source.items).collect();
    // Equal ones stay in the order of their names.
    items.sort_by(|(a, _), (b, _)| a.compare(b));
    source.items = items.into_iter().map(|(_, item)| item).collect();
    source
}

/// The place of a value in Erlang's order of terms: absent, numbers, atoms, maps, lists, texts.
enum Rank {
    Absent,
    Number(f64),
    Atom(&'static str),
    Map(String),
    List(String),
    Text(String),
}

impl Rank {
    fn of(value: Option<&Json>) -> Self {
        match value {
            None => Self::Absent,
            Some(Json::Number(number)) => Self::Number(number.as_f64().unwrap_or_default()),
            Some(Json::Null) => Self::Atom("null"),
            Some(Json::Bool(true)) => Self::Atom("true"),
            Some(Json::Bool(false)) => Self::Atom("false"),
            Some(map @ Json::Object(_)) => Self::Map(map.to_string()),
            Some(list @ Json::Array(_)) => Self::List(list.to_string()),
            Some(Json::String(text)) => Self::Text(text.clone()),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Number(_) => 1,
            Self::Atom(_) => 2,
            Self::Map(_) => 3,
            Self::List(_) => 4,
            Self::Text(_) => 5,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Atom(a), Self::Atom(b)) => a.cmp(b),
            (Self::Map(a), Self::Map(b))
            | (Self::List(a), Self::List(b))
            | (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (a, b) => a.kind().cmp(&b.kind()),
        }
    }
}

/// Writes a short list at once, and a long one in parts.
fn write<T: Send + 'static, V: 'static>(
    columns: Columns,
    source: Source<T, V>,
    head: Vec<u8>,
    tail: Vec<u8>,
) -> Answer {
    let Source {
        items,
        fetch,
        write,
    } = source;
    let is_short = items.len() <= ROWS_MAX;
    let mut parts = Parts {
        items: items.into_iter(),
        fetch,
        write,
        columns,
        next: head,
        is_first: true,
        tail: Some(tail),
    };
    match is_short {
        true => {
            let mut bytes = parts.next().unwrap_or_default();
            for part in parts {
                bytes.extend(part);
            }
            Answer::of_bytes(bytes)
        }
        false => Answer::of_parts(parts),
    }
}

/// The parts of a list's body.
struct Parts<T, V> {
    items: std::vec::IntoIter<T>,
    fetch: Fetch<T, V>,
    write: Write<V>,
    columns: Columns,
    /// What the next part begins with.
    next: Vec<u8>,
    is_first: bool,
    /// `None` after the last part.
    tail: Option<Vec<u8>>,
}

impl<T, V> Iterator for Parts<T, V> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let tail = self.tail.take()?;
        let mut out = std::mem::take(&mut self.next);
        let part: Vec<T> = self.items.by_ref().take(ROWS_MAX).collect();
        for found in (self.fetch)(&part).into_iter().flatten() {
            if !std::mem::take(&mut self.is_first) {
                out.push(b',');
            }
            row::object(&mut out, &self.columns, |row| (self.write)(&found, row));
        }
        match self.items.len() {
            0 => out.extend(tail),
            _ => self.tail = Some(tail),
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Body;
    use crate::request::Rows;

    fn body(answer: Answer) -> (u16, String) {
        let bytes = match answer.body {
            Body::Whole(bytes) => bytes,
            Body::Parts(parts) => parts.flatten().collect(),
        };
        (answer.status, String::from_utf8(bytes).expect("is text"))
    }

    fn asked(query: &str) -> (u16, String) {
        asked_for(&Query::parse(query))
    }

    fn asked_for(query: &Query) -> (u16, String) {
        let names = ["a1", "B2", "b3", "c4", "gone"];
        let source = Source {
            items: names.to_vec(),
            fetch: Box::new(|names: &[&str]| {
                let found = names.iter().map(|name| (*name != "gone").then_some(*name));
                found.collect()
            }),
            write: Box::new(|name: &&str, row: &mut Row<'_, '_>| {
                row.text("name", name);
                if *name != "b3" {
                    row.int("size", 10 - name.as_bytes()[1] as i64 + 48);
                }
            }),
        };
        body(pages(query, source, |name| (*name).to_owned()))
    }

    #[test]
    fn lists_are_sorted_and_pruned() {
        for (query, expected) in [
            (
                "columns=name",
                r#"[{"name":"a1"},{"name":"B2"},{"name":"b3"},{"name":"c4"}]"#,
            ),
            (
                "columns=name&sort=size",
                r#"[{"name":"b3"},{"name":"c4"},{"name":"B2"},{"name":"a1"}]"#,
            ),
            (
                "columns=name&sort=size&sort_reverse=true",
                r#"[{"name":"a1"},{"name":"B2"},{"name":"c4"},{"name":"b3"}]"#,
            ),
            (
                "columns=size&page_size=2",
                r#"[{"size":9},{"size":8},[],{"size":6}]"#,
            ),
        ] {
            assert_eq!(asked(query), (200, expected.to_owned()), "{query}");
        }
    }

    /// A page has its own bound, so that those after the first rows are not empty.
    #[test]
    fn wanted_rows_are_those_of_a_list_without_pages() {
        for (query, expected) in [
            ("columns=name", r#"[{"name":"B2"}]"#),
            (
                "columns=name&page=2&page_size=2",
                r#""items":[{"name":"b3"},{"name":"c4"}]"#,
            ),
        ] {
            let mut wanted = Query::parse(query);
            wanted.rows = Some(Rows {
                first: 1,
                count_max: 1,
            });
            let (status, text) = asked_for(&wanted);
            assert_eq!(status, 200, "{query}");
            assert!(text.contains(expected), "{query}: {text}");
        }
    }

    #[test]
    fn pages_have_counts() {
        for (query, status, expected) in [
            (
                "page=1&page_size=1&name=b&columns=name",
                200,
                r#"{"filtered_count":2,"item_count":1,"items":[{"name":"B2"}],"page":1,"page_count":2,"page_size":1,"total_count":5}"#,
            ),
            (
                "page=1&name=^b&use_regex=true&columns=name",
                200,
                r#"{"filtered_count":2,"item_count":2,"items":[{"name":"B2"},{"name":"b3"}],"page":1,"page_count":1,"page_size":100,"total_count":5}"#,
            ),
            (
                "page=1&name=zz",
                200,
                r#"{"filtered_count":0,"item_count":0,"items":[],"page":1,"page_count":0,"page_size":100,"total_count":5}"#,
            ),
            (
                "page=9&page_size=2",
                400,
                r#"{"error":"page_out_of_range","reason":"Page out of range, page: 9 page size: 2, len: 5"}"#,
            ),
            (
                "page=0",
                400,
                r#"{"error":"invalid_pagination_parameters","reason":"Invalid pagination parameters: page number 0, page size undefined"}"#,
            ),
            (
                "page=1&page_size=501",
                400,
                r#"{"error":"invalid_pagination_parameters","reason":"Invalid pagination parameters: page number 1, page size 501"}"#,
            ),
            (
                "page=1&name=(&use_regex=true",
                400,
                r#"{"error":"bad_request","reason":"Pagination parameters are invalid"}"#,
            ),
            (
                "page=",
                400,
                r#"{"error":"bad_request","reason":"Pagination parameters are invalid"}"#,
            ),
        ] {
            assert_eq!(asked(query), (status, expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn long_lists_come_in_parts() {
        let items: Vec<usize> = (0..3 * ROWS_MAX + 1).collect();
        let source = Source::of(items, |number, row| row.int("n", *number));
        let answer = list(&Query::default(), source);
        let Body::Parts(parts) = answer.body else {
            panic!("comes at once");
        };
        let parts: Vec<Vec<u8>> = parts.collect();
        assert_eq!(parts.len(), 4);
        let all: Json = serde_json::from_slice(&parts.concat()).expect("is JSON");
        assert_eq!(all.as_array().map(Vec::len), Some(3 * ROWS_MAX + 1));
    }
}
