//! The parts of an HTTP request that the API reads: the path's segments, the query, some headers.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub method: String,
    /// As the client sent it, from the first slash on.
    pub path: String,
    /// As the client sent it, without the question mark; empty if there is none.
    pub query: String,
    pub headers: Headers,
}

/// Headers with a meaning for the API.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    pub accept: Option<String>,
    pub authorization: Option<String>,
    pub content_type: Option<String>,
    pub host: Option<String>,
    pub origin: Option<String>,
    /// `Access-Control-Request-Headers`: what a page of another site would send.
    pub requested_headers: Option<String>,
    pub sec_fetch_site: Option<String>,
    /// `X-Reason`: why a connection is closed.
    pub reason: Option<String>,
}

/// The parameters of a query; a later one of the same name replaces an earlier one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    parameters: BTreeMap<String, String>,
    /// The only rows of a list that are wanted. No query of a client names these.
    pub(crate) rows: Option<Rows>,
}

/// A part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub first: usize,
    pub count_max: usize,
}

impl Query {
    /// Parameters that are no text are left out.
    pub(crate) fn parse(text: &str) -> Self {
        Self {
            parameters: pairs(text).collect(),
            rows: None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// All values of a parameter of that name in a query, in their order.
    pub(crate) fn all(text: &str, name: &str) -> Vec<String> {
        let pairs = pairs(text).filter(|(found, _)| found == name);
        pairs.map(|(_, value)| value).collect()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| decoded(&text.replace('+', " "));
        Some((decode(name)?, decode(value)?))
    })
}

/// The segments of a path, each decoded once; a trailing slash is dropped. `None`: an escape that is none, or no UTF-8.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').map(decoded).collect()
}

/// Decodes the escapes of a text once.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// Characters beside letters and digits that need no escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encodes a text as a segment of a path.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Encodes a text as a form does, as `properties_key` has it: a space is `+`, a tilde `%7E`.
pub(crate) fn form_encoded(text: &str) -> String {
    encoded(text).replace("%20", "+").replace('~', "%7E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_once() {
        let some = |segments: &[&str]| {
            let owned = segments.iter().map(|segment| (*segment).to_owned());
            Some(owned.collect::<Vec<_>>())
        };
        for (path, expected) in [
            (
                "/api/queues/%2F/a%252Fb",
                some(&["api", "queues", "/", "a%2Fb"]),
            ),
            ("/api/queues/", some(&["api", "queues"])),
            (
                "/api/bindings/v//q/x",
                some(&["api", "bindings", "v", "", "q", "x"]),
            ),
            ("/api/a+b", some(&["api", "a+b"])),
            ("/api/%zz", None),
            ("/api/%ff", None),
            ("/api/%4", None),
        ] {
            assert_eq!(segments(path), expected, "{path}");
        }
    }

    #[test]
    fn queries_are_forms() {
        let query = Query::parse("name=a+b%2Bc&use_regex=true&x&page=");
        assert_eq!(query.get("name"), Some("a b+c"));
        assert!(query.is_true("use_regex"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("page"), Some(""));
        assert_eq!(query.get("y"), None);
    }

    #[test]
    fn keys_of_bindings_are_encoded_as_forms() {
        assert_eq!(form_encoded("a.**b c~%"), "a.%2A%2Ab+c%7E%25");
    }
}
