//! One span: what a node has done with one message.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::context::Context;

/// A span. Its texts are cut, so that peers cannot make it large.
#[derive(Clone, Debug)]
pub struct Span {
    pub(crate) context: Context,
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Nanoseconds since 1970.
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    pub(crate) failure: Option<String>,
}

/// Why something has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// One of few: an error's URI, a reply code.
    pub kind: &'a str,
    pub why: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(u64),
}

/// Maximum length of a text in bytes.
const TEXT_BYTES_MAX: usize = 256;

impl<'a> Failure<'a> {
    /// An error that is known by its URI.
    pub fn of_uri(uri: &'a str) -> Self {
        Self {
            kind: uri,
            why: uri,
        }
    }
}

impl Span {
    pub(crate) fn new(context: Context, verb: &str, subject: &str) -> Self {
        Self {
            context,
            id: fresh_id(),
            name: format!("{verb} {}", cut(subject)),
            begun: now(),
            ended: 0,
            attributes: Vec::with_capacity(4),
            failure: None,
        }
    }

    /// The span with a text of that name.
    #[must_use]
    pub fn with_text(mut self, name: &'static str, text: &str) -> Self {
        let text = Attribute::Text(cut(text).to_owned());
        self.attributes.push((name, text));
        self
    }

    /// The span with a number of that name.
    #[must_use]
    pub fn with_number(mut self, name: &'static str, number: u64) -> Self {
        self.attributes.push((name, Attribute::Number(number)));
        self
    }

    /// The span of something that has failed.
    #[must_use]
    pub fn failed(self, failure: Failure<'_>) -> Self {
        let mut span = self.with_text("error.type", failure.kind);
        span.failure = Some(cut(failure.why).to_owned());
        span
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// An id that no other span of this trace is likely to have: the n-th number behind a random one, mixed (SplitMix64).
fn fresh_id() -> u64 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU64::new(getrandom::u64().unwrap_or_else(|_| now())));
    let state = next.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // 0 is no id.
    (mixed ^ mixed >> 31).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const CONTEXT: Context = Context {
        trace: 1,
        parent: 2,
    };

    #[test]
    fn texts_are_cut() {
        let long = "é".repeat(1000);
        let span = Span::new(CONTEXT, "call", &long)
            .with_text("why", &long)
            .failed(Failure::of_uri(&long));
        assert!(span.name.len() < 300, "{}", span.name.len());
        assert_eq!(span.failure.as_ref().map(String::len), Some(256));
        let text = Attribute::Text("é".repeat(128));
        assert_eq!(
            span.attributes,
            [("why", text.clone()), ("error.type", text)]
        );
    }

    #[test]
    fn ids_differ() {
        let ids: HashSet<u64> = (0..10_000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
