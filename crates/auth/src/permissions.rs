//! A user's permissions in a vhost: three patterns over names of queues and exchanges.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fancy_regex::{Regex, RegexBuilder};

/// The kind of access. RabbitMQ's access control guide lists which method needs which access to which name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Configure,
    Read,
    Write,
}

/// Three patterns, one per kind of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
    /// Permissions for routing keys of topic exchanges, by exchange: to write and to read.
    topics: Option<Arc<BTreeMap<Arc<str>, Self>>>,
}

/// A pattern that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pub access: Access,
    pub pattern: String,
    pub reason: String,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// `.*`, by far the most common pattern: no name is matched.
    Everything,
    Nothing,
    /// The empty name alone: a routing key may be empty, a name is not.
    Empty,
    Found(Box<Regex>),
}

impl Permissions {
    /// Compiles patterns with RabbitMQ's semantics: a pattern may match anywhere in a name, and an empty one allows the
    /// empty name alone, so that it allows no queue and no exchange.
    pub fn parse(configure: &str, write: &str, read: &str) -> Result<Self, PatternError> {
        Ok(Self {
            configure: Pattern::parse(Access::Configure, configure)?,
            write: Pattern::parse(Access::Write, write)?,
            read: Pattern::parse(Access::Read, read)?,
            topics: None,
        })
    }

    /// The permissions of a user that may do everything.
    pub fn all() -> Self {
        Self {
            configure: Pattern::Everything,
            write: Pattern::Everything,
            read: Pattern::Everything,
            topics: None,
        }
    }

    /// The permissions of a user that may do nothing.
    pub fn none() -> Self {
        Self {
            configure: Pattern::Nothing,
            write: Pattern::Nothing,
            read: Pattern::Nothing,
            topics: None,
        }
    }

    /// The same, with permissions for the routing keys of these topic exchanges. Those of other exchanges need none.
    pub fn with_topics(mut self, topics: BTreeMap<Arc<str>, Self>) -> Self {
        self.topics = (!topics.is_empty()).then(|| Arc::new(topics));
        self
    }

    /// Whether some routing keys need a permission.
    pub fn has_topics(&self) -> bool {
        self.topics.is_some()
    }

    /// Whether a topic exchange may be accessed so with a routing key.
    pub fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        let topics = self.topics.as_ref();
        let of_exchange = topics.and_then(|topics| topics.get(exchange));
        of_exchange.is_none_or(|of_exchange| of_exchange.may(access, routing_key))
    }

    /// The patterns as given, or equivalent ones: for configuring, writing and reading.
    pub fn patterns(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read].map(Pattern::text)
    }

    /// Whether a queue or exchange of that name may be accessed so. The name of the default exchange is `amq.default`
    /// here.
    pub fn may(&self, access: Access, name: &str) -> bool {
        let pattern = match access {
            Access::Configure => &self.configure,
            Access::Read => &self.read,
            Access::Write => &self.write,
        };
        pattern.allows(name)
    }
}

impl Pattern {
    fn parse(access: Access, pattern: &str) -> Result<Self, PatternError> {
        match pattern {
            "" | "^$" => return Ok(Self::Empty),
            NOTHING => return Ok(Self::Nothing),
            ".*" | "^.*" | ".*$" | "^.*$" => return Ok(Self::Everything),
            _ => {}
        }
        let regex = RegexBuilder::new(pattern)
            .backtrack_limit(BACKTRACKS_MAX)
            .build()
            .map_err(|error| PatternError {
                access,
                pattern: pattern.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Self::Found(Box::new(regex)))
    }

    fn text(&self) -> &str {
        match self {
            Self::Everything => ".*",
            Self::Nothing => NOTHING,
            Self::Empty => "",
            Self::Found(regex) => regex.as_str(),
        }
    }

    fn allows(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Empty => name.is_empty(),
            // A pattern that takes too long on a name does not allow it.
            Self::Found(regex) => regex.is_match(name).unwrap_or(false),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Pattern {}

/// A pattern that matches nothing.
const NOTHING: &str = "(?!)";

/// Bound on backtracking. Names have at most 255 bytes, and no sensible pattern comes near it. Beyond it a name is
/// refused.
const BACKTRACKS_MAX: usize = 100_000;

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configure => "configure",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the pattern {:?} for {} cannot be read: {}",
            self.pattern, self.access, self.reason
        )
    }
}

impl std::error::Error for PatternError {}
