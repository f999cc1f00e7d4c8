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
    let bytes = uri.as_bytes();
    let empty = bytes.is_empty()
        || bytes.first() == Some(&b'.')
        || bytes.last() == Some(&b'.')
        || bytes.array_windows().any(|pair| pair == b"..");
    empty.then_some("a component is empty")
}

fn check_characters(uri: &str, rules: UriCheck) -> Option<&'static str> {
    match rules {
        UriCheck::Strict => {
            let strict = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.');
            (!uri.bytes().all(strict))
                .then_some("there is more in it than lower-case letters, digits, '_' and '.'")
        }
        UriCheck::Loose => {
            let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
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

#[cfg(test)]
mod tests {
    use super::UriCheck::{Loose, Strict};
    use super::{check, check_pattern};
    use crate::MatchPolicy::{Exact, Prefix, Wildcard};

    const EMPTY: Option<&str> = Some("a component is empty");
    const HASH: Option<&str> = Some("there is a '#' in it");
    const SPACE: Option<&str> = Some("there is whitespace in it");
    const OTHER: Option<&str> =
        Some("there is more in it than lower-case letters, digits, '_' and '.'");

    #[test]
    fn uris() {
        let rows = [
            ("a", None, None),
            ("com.example.topic_1", None, None),
            ("1.2.3", None, None),
            ("com.Example.topic", None, OTHER),
            ("com.example.topic-1", None, OTHER),
            ("com.exämple.€", None, OTHER),
            ("com.example.topic#", HASH, OTHER),
            ("com.exa mple", SPACE, OTHER),
            ("com.example\n", SPACE, OTHER),
            ("com.exa\u{a0}mple", SPACE, OTHER),
            ("", EMPTY, EMPTY),
            (".", EMPTY, EMPTY),
            (".com", EMPTY, EMPTY),
            ("com.", EMPTY, EMPTY),
            ("com..example", EMPTY, EMPTY),
        ];
        for (uri, loose, strict) in rows {
            assert_eq!(check(uri, Loose), loose, "{uri:?}");
            assert_eq!(check(uri, Strict), strict, "{uri:?}");
            assert_eq!(check_pattern(uri, Exact, Loose), loose, "{uri:?}");
        }
    }

    #[test]
    fn patterns() {
        let rows = [
            ("com.example", None, None),
            ("com.example.", None, None),
            ("com..example", EMPTY, None),
            ("com.example..", EMPTY, None),
            (".com", EMPTY, None),
            (".", EMPTY, None),
            ("...", EMPTY, None),
            ("", None, None),
            ("com.#.example", HASH, HASH),
            ("com. .example", SPACE, SPACE),
        ];
        for (pattern, prefix, wildcard) in rows {
            assert_eq!(check_pattern(pattern, Prefix, Loose), prefix, "{pattern:?}");
            assert_eq!(
                check_pattern(pattern, Wildcard, Loose),
                wildcard,
                "{pattern:?}"
            );
        }
        assert_eq!(check_pattern("com.Example.", Prefix, Strict), OTHER);
        assert_eq!(check_pattern("com.Example.", Wildcard, Strict), OTHER);
    }
}
