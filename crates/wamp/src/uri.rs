//! URI grammar (WAMP basic profile, "URIs").

use crate::MatchPolicy;

/// How much of the grammar is demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UriCheck {
    /// No whitespace, no `#`, no empty components.
    #[default]
    Loose,
    /// Components of lower-case letters, digits and underscores only.
    Strict,
}

/// Whether `uri` may name a procedure, topic or error; `None` when it may, else the reason.
pub fn check(uri: &str, rules: UriCheck) -> Option<&'static str> {
    check_characters(uri, rules).or_else(|| check_components(uri))
}

/// Whether `pattern` may be registered or subscribed with `policy`; `None` when it may.
///
/// The empty components of a wildcard pattern match any one component. A prefix may end anywhere,
/// also behind a dot; the empty prefix and the wildcard of one empty component are allowed, as
/// they are by the specification's grammar.
pub fn check_pattern(pattern: &str, policy: MatchPolicy, rules: UriCheck) -> Option<&'static str> {
    match policy {
        MatchPolicy::Exact => check(pattern, rules),
        MatchPolicy::Prefix => check_characters(pattern, rules).or_else(|| {
            let whole = pattern.strip_suffix('.').unwrap_or(pattern);
            if pattern.is_empty() {
                None
            } else {
                check_components(whole)
            }
        }),
        MatchPolicy::Wildcard => check_characters(pattern, rules),
    }
}

fn check_components(uri: &str) -> Option<&'static str> {
    let octets = uri.as_bytes();
    let empty = octets.is_empty()
        || octets.first() == Some(&b'.')
        || octets.last() == Some(&b'.')
        || octets.array_windows().any(|pair| pair == b"..");
    empty.then_some("a component is empty")
}

fn check_characters(uri: &str, rules: UriCheck) -> Option<&'static str> {
    match rules {
        UriCheck::Strict => {
            let strict = |octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.');
            (!uri.bytes().all(strict))
                .then_some("there is more in it than lower-case letters, digits, '_' and '.'")
        }
        UriCheck::Loose => {
            let plain = |octet: u8| octet.is_ascii_graphic() && octet != b'#';
            if uri.bytes().all(plain) {
                return None;
            }
            if uri.contains('#') {
                return Some("there is a '#' in it");
            }
            uri.contains(char::is_whitespace)
                .then_some("there is whitespace in it")
        }
    }
}
