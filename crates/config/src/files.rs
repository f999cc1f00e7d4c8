//! Files that a configuration names and a node reads at start, and cores that a configuration names. The
//! configuration does not check their content or existence; its user does, and reports the place.

use crosstie_auth::wamp::Methods;

use crate::model::{Amqp, Tls};
use crate::tree::Span;

/// Files that are read together, or cores, with the place that names them.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFiles {
    pub span: Span,
    pub files: Files,
}

/// The purpose of a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Files {
    /// TLS files of a listener.
    Tls(Tls),
    /// The definitions at `path`, which are merged into the worker's broker.
    Definitions { path: String, amqp: Box<Amqp> },
    /// Files of principals, of a transport with these methods.
    Principals {
        methods: Box<Methods>,
        /// The roles of the worker's realms, if they are known.
        roles: Option<Vec<String>>,
    },
    /// The directory of a web service, which does not start without it.
    Directory(String),
    /// The file of a web service, which does not start without it.
    File(String),
    /// The socket of a Unix endpoint; its path has a maximum length.
    Socket(String),
    /// The credentials of a NATS user: a key, which others shall not read.
    NatsCredentials(String),
    /// Cores of a worker, by the kernel's numbers.
    Cores(Vec<usize>),
}
