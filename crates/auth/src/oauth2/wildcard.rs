//! Patterns of scopes: text with `*`, and with `%` for the octets that a scope cannot have.
//!
//! Matching is that of RabbitMQ's plugin, which takes the first occurrence of each part and does not go back: `a*b` does
//! not match `abb`.

/// A pattern over names and routing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wildcard {
    first: Box<[u8]>,
    /// The parts behind each `*`.
    rest: Box<[Box<[u8]>]>,
}

impl Wildcard {
    /// Reads a pattern. `None` for a `%` without two hexadecimal digits: such a pattern matches nothing.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        let mut parts = pattern.split('*').map(decoded);
        let first = parts.next()??;
        let rest = parts.collect::<Option<_>>()?;
        Some(Self { first, rest })
    }

    /// The size of its allocations.
    pub(super) fn bytes(&self) -> usize {
        let parts = self.rest.iter();
        let rest: usize = parts.map(|part| size_of_val(part) + part.len()).sum();
        self.first.len() + rest
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(mut left) = text.as_bytes().strip_prefix(&*self.first) else {
            return false;
        };
        let mut parts = self.rest.iter().peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            match (part.is_empty(), left.is_empty()) {
                (true, _) if is_last => return true,
                (_, true) => return false,
                (true, false) => {}
                (false, false) => match behind(left, part) {
                    Some(behind) => left = behind,
                    None => return false,
                },
            }
        }
        left.is_empty()
    }
}

/// The octets behind the first occurrence of `part`.
fn behind<'t>(text: &'t [u8], part: &[u8]) -> Option<&'t [u8]> {
    let at = text.windows(part.len()).position(|found| found == part)?;
    Some(&text[at + part.len()..])
}

/// The octets of a part: `+` is a space, as in forms.
fn decoded(part: &str) -> Option<Box<[u8]>> {
    let mut octets = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    Some(octets.into())
}
