//! The methods by their names.

use std::fmt;

/// A method by which a session says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Anonymous,
    Ticket,
    WampCra,
}

impl Method {
    /// In the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Anonymous, Self::Ticket, Self::WampCra];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// As HELLO and WELCOME have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Ticket => "ticket",
            Self::WampCra => "wampcra",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
