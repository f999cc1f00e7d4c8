//! The authentication methods by name.

use std::fmt;

/// An authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Anonymous,
    Ticket,
    WampCra,
    /// SCRAM under Crossbar.io's and Autobahn's name.
    Scram,
    /// SCRAM under the specification's name.
    WampScram,
    Cryptosign,
    /// A JSON Web Token.
    Jwt,
    /// A certificate.
    Tls,
}

impl Method {
    /// In the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Anonymous,
        Self::Ticket,
        Self::WampCra,
        Self::Scram,
        Self::WampScram,
        Self::Cryptosign,
        Self::Jwt,
        Self::Tls,
    ];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// As in HELLO and WELCOME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Ticket => "ticket",
            Self::WampCra => "wampcra",
            Self::Scram => "scram",
            Self::WampScram => "wamp-scram",
            Self::Cryptosign => "cryptosign",
            Self::Jwt => "jwt",
            Self::Tls => "tls",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
