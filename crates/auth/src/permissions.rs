//! What a user may do in a vhost: three patterns over names of queues and exchanges.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

/// What is asked for. Which method asks for what on which name: RabbitMQ's access control guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Configure,
    Read,
    Write,
}

/// Three patterns, one per kind of access.
#[derive(Clone, Debug)]
pub struct Permissions {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
}

/// A pattern that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pub access: Access,
    pub pattern: String,
    pub reason: String,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// `.*`, which nearly everybody has: no name needs to be looked at.
    Everything,
    Nothing,
    Found(Box<Regex>),
}

impl Permissions {
    /// As RabbitMQ takes them: a pattern may match anywhere in a name, and an empty one allows
    /// nothing.
    pub fn parse(configure: &str, write: &str, read: &str) -> Result<Self, PatternError> {
        Ok(Self {
            configure: Pattern::parse(Access::Configure, configure)?,
            write: Pattern::parse(Access::Write, write)?,
            read: Pattern::parse(Access::Read, read)?,
        })
    }

    /// Of who may do everything.
    pub fn all() -> Self {
        Self {
            configure: Pattern::Everything,
            write: Pattern::Everything,
            read: Pattern::Everything,
        }
    }

    /// As they were given, or as good: for configuring, writing and reading.
    pub fn patterns(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read].map(Pattern::text)
    }

    /// Whether that may be done to the queue or exchange of that name. The default exchange goes by
    /// the name `amq.default` here.
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
            "" | "^$" => return Ok(Self::Nothing),
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
            Self::Nothing => "",
            Self::Found(regex) => regex.as_str(),
        }
    }

    fn allows(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            // A pattern that takes too long on a name does not allow it.
            Self::Found(regex) => regex.is_match(name).unwrap_or(false),
        }
    }
}

/// Names have 255 bytes at most; no sensible pattern comes near. Beyond it a name is refused.
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
