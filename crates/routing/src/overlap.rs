//! Whether two patterns have a URI in common.

use crosstie_wamp::MatchPolicy;

/// Whether some URI matches both. Each side is a pattern or, with the exact policy, one URI.
pub(crate) fn overlap(one: (MatchPolicy, &str), other: (MatchPolicy, &str)) -> bool {
    match (one, other) {
        ((MatchPolicy::Prefix, one), (MatchPolicy::Prefix, other)) => {
            one.starts_with(other) || other.starts_with(one)
        }
        ((MatchPolicy::Prefix, prefix), (_, components))
        | ((_, components), (MatchPolicy::Prefix, prefix)) => begins_with(components, prefix),
        ((_, one), (_, other)) => {
            let same =
                |(one, other): (&str, &str)| one.is_empty() || other.is_empty() || one == other;
            one.split('.').count() == other.split('.').count()
                && one.split('.').zip(other.split('.')).all(same)
        }
    }
}

/// Whether a URI matches a pattern.
pub(crate) fn matches(policy: MatchPolicy, pattern: &str, uri: &str) -> bool {
    match policy {
        MatchPolicy::Exact => uri == pattern,
        MatchPolicy::Prefix => uri.starts_with(pattern),
        MatchPolicy::Wildcard => fits(pattern, uri),
    }
}

/// Whether a URI matches a wildcard pattern.
pub(crate) fn fits(pattern: &str, uri: &str) -> bool {
    let mut parts = pattern.split('.');
    let mut components = uri.split('.');
    loop {
        match (parts.next(), components.next()) {
            (None, None) => return true,
            (Some(part), Some(component)) if part.is_empty() || part == component => {}
            _ => return false,
        }
    }
}

/// The beginning that all URIs matching a pattern have in common.
pub(crate) fn common_beginning(policy: MatchPolicy, pattern: &str) -> &str {
    if policy != MatchPolicy::Wildcard {
        return pattern;
    }
    if pattern.starts_with('.') {
        return "";
    }
    // Up to and including the dot before the first empty component.
    pattern.find("..").map_or(pattern, |at| &pattern[..=at])
}

/// Whether some URI that matches `components` (empty ones match anything) begins with `prefix`.
fn begins_with(components: &str, prefix: &str) -> bool {
    let mut components = components.split('.');
    let mut parts = prefix.split('.').peekable();
    while let Some(part) = parts.next() {
        let Some(component) = components.next() else {
            return false;
        };
        let is_last = parts.peek().is_none();
        let fits = component.is_empty()
            || if is_last {
                component.starts_with(part)
            } else {
                component == part
            };
        if !fits {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const E: MatchPolicy = MatchPolicy::Exact;
    const P: MatchPolicy = MatchPolicy::Prefix;
    const W: MatchPolicy = MatchPolicy::Wildcard;

    #[test]
    fn patterns_overlap_when_a_uri_matches_both() {
        for (one, other, expected) in [
            ((P, "com."), (P, "com.app."), true),
            ((P, "com.ap"), (P, "com.app."), true),
            ((P, "com."), (P, "org."), false),
            ((P, ""), (E, "com.app"), true),
            ((P, "com.a"), (E, "com.app"), true),
            ((P, "com.app.x"), (E, "com.app"), false),
            ((P, "com.app"), (W, "com..x"), true),
            ((P, "com.app.x"), (W, "com..x"), true),
            ((P, "com.app.y"), (W, "com..x"), false),
            ((P, "com.app.x.y"), (W, "com..x"), false),
            ((P, "org."), (W, "com..x"), false),
            ((W, "com..x"), (W, ".app."), true),
            ((W, "com..x"), (W, "..y"), false),
            ((W, "com..x"), (W, "com."), false),
            ((W, "com..x"), (E, "com.app.x"), true),
            ((W, "com..x"), (E, "com.app.y"), false),
            ((E, "com.app"), (E, "com.app"), true),
        ] {
            assert_eq!(overlap(one, other), expected, "{one:?} {other:?}");
            assert_eq!(overlap(other, one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn beginnings_end_before_the_first_wildcard() {
        for (policy, pattern, expected) in [
            (P, "com.app", "com.app"),
            (W, "com..x", "com."),
            (W, "com.app.", "com.app."),
            (W, ".app", ""),
            (W, "com.app", "com.app"),
        ] {
            assert_eq!(common_beginning(policy, pattern), expected, "{pattern}");
        }
    }
}
