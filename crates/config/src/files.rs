//! Files that a configuration names and a node reads when it starts, and cores that it names. What the
//! files hold, and which cores there are, is not the configuration's to judge; its user can say
//! where they are named.

use crosstie_auth::wamp::Methods;

use crate::model::{Amqp, Tls};
use crate::tree::Span;

/// Files that are read together, or cores, and where the configuration says so.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFiles {
    pub span: Span,
    pub files: Files,
}

/// The purpose of a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Files {
    /// Of a listener.
    Tls(Tls),
    /// The definitions at `path`, which join what the worker has.
    Definitions { path: String, amqp: Box<Amqp> },
    /// Those with principals, of a transport with these methods.
    Principals {
        methods: Box<Methods>,
        /// The roles of the worker's realms; none where these are not known.
        roles: Option<Vec<String>>,
    },
    /// A directory that a web service is of, which starts with it.
    Directory(String),
    /// A file that a web service is of, which starts with it.
    File(String),
    /// The socket of a Unix endpoint, whose path is short.
    Socket(String),
    /// No files: the cores that a worker is to run on, by the kernel's numbers.
    Cores(Vec<usize>),
}
