//! The cases: a method, and the other clients at work.

use std::fmt;
use std::str::FromStr;

use crate::subject::ParseError;

use super::credentials::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    name: &'static str,
    method: Method,
    beside: Beside,
}

/// The clients besides those that join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nobody,
    /// Clients that try wrong tickets, one after the other.
    Guessers,
    /// Clients that log in with tickets of which the router stores Argon2 hashes.
    Hashed,
    /// A subscriber of `wamp.session.on_join`.
    Observer,
}

impl Case {
    pub(super) const ALL: [Self; 8] = [
        Self::of("anonymous", Method::Anonymous, Beside::Nobody),
        Self::of("ticket", Method::Ticket, Beside::Nobody),
        Self::of("wampcra", Method::WampCra, Beside::Nobody),
        Self::of("scram", Method::Scram, Beside::Nobody),
        Self::of("cryptosign", Method::Cryptosign, Beside::Nobody),
        Self::of("ticket-guessers", Method::Ticket, Beside::Guessers),
        Self::of("wampcra-hashed", Method::WampCra, Beside::Hashed),
        Self::of("anonymous-observed", Method::Anonymous, Beside::Observer),
    ];

    const fn of(name: &'static str, method: Method, beside: Beside) -> Self {
        Self {
            name,
            method,
            beside,
        }
    }

    pub(super) fn method(self) -> Method {
        self.method
    }

    pub(super) fn beside(self) -> Beside {
        self.beside
    }

    /// The same without other clients.
    pub(super) fn alone(self) -> Option<Self> {
        let is_alone = |case: &Self| case.method == self.method && case.beside == Beside::Nobody;
        Self::ALL.into_iter().find(is_alone)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Case {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|case| case.name == text);
        found.ok_or_else(|| {
            ParseError::new(
                text,
                "anonymous, ticket, wampcra, scram, cryptosign, ticket-guessers, wampcra-hashed or anonymous-observed",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_reference() {
        for case in Case::ALL {
            let alone = case.alone().expect("a case without other clients");
            assert_eq!(alone.to_string(), case.method.name());
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        assert!("tickets".parse::<Case>().is_err());
    }
}
