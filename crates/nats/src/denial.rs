//! A server's errors that deny a client a permission and keep the connection open.

/// The denied permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial<'t> {
    /// Publishing on that subject: the message is lost.
    Publish(&'t str),
    /// Receiving messages that match: the subscription does not exist.
    Subscribe(&'t str),
    /// One more subscription; the server does not say which.
    Subscriptions,
}

impl<'t> Denial<'t> {
    /// Reads the text of an error; `None` if it is another error.
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

/// Older servers wrote these words in other cases.
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
