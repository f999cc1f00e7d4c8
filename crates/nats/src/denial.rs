//! What a server says when it lets a client not do something, and goes on.

/// What a user may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial<'t> {
    /// Send to that subject: the message is lost.
    Publish(&'t str),
    /// Be sent what matches: the subscription is none.
    Subscribe(&'t str),
    /// Have one more subscription, of which it is not said which one.
    Subscriptions,
}

impl<'t> Denial<'t> {
    /// Reads the text of an error; `None` where it is about something else.
    pub fn read(error: &'t str) -> Option<Self> {
        if error.eq_ignore_ascii_case("maximum subscriptions exceeded") {
            return Some(Self::Subscriptions);
        }
        let rest = without_prefix(error, "permissions violation for ")?;
        let (what, rest) = rest.split_once(" to ")?;
        let (subject, _) = rest.strip_prefix('"')?.split_once('"')?;
        match what {
            what if what.eq_ignore_ascii_case("publish") => Some(Self::Publish(subject)),
            what if what.eq_ignore_ascii_case("subscription") => Some(Self::Subscribe(subject)),
            _ => None,
        }
    }
}

/// Servers wrote some of these words in other cases before.
fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (begin, rest) = text.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_told_from_other_errors() {
        for (text, expected) in [
            (
                r#"Permissions Violation for Publish to "W1.a.e.com""#,
                Some(Denial::Publish("W1.a.e.com")),
            ),
            (
                r#"permissions violation for subscription to "W1.a.>" using queue "q""#,
                Some(Denial::Subscribe("W1.a.>")),
            ),
            (
                "maximum subscriptions exceeded",
                Some(Denial::Subscriptions),
            ),
            ("Authorization Violation", None),
            ("Permissions Violation", None),
            (r#"Permissions Violation for Publish to "x"#, None),
            ("", None),
        ] {
            assert_eq!(Denial::read(text), expected, "{text}");
        }
    }
}
