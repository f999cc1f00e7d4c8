//! A user's permissions in a vhost: three patterns over names of queues and exchanges.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fancy_regex::{Regex, RegexBuilder};

/// The kind of access. RabbitMQ's access control guide lists which method needs which access to which name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Configure,
    Read,
    Write,
}

/// The kind of a name that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    Exchange,
    Queue,
}

/// Decides on each access of a user in a vhost, in the place of patterns.
pub trait Judge: fmt::Debug + Send + Sync {
    /// Whether a queue or exchange of that name may be accessed so.
    fn may(&self, access: Access, kind: ResourceKind, name: &str) -> bool;

    /// Whether a topic exchange may be accessed so with a routing key.
    fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool;

    /// The end of the text of a refusal, if there is more to say than that.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// Three patterns, one per kind of access; or a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
    more: Option<More>,
}

#[derive(Clone, Debug)]
enum More {
    /// Permissions for routing keys of topic exchanges, by exchange: to write and to read.
    Topics(Arc<BTreeMap<Arc<str>, Permissions>>),
    /// The patterns allow nothing.
    Judge(Arc<dyn Judge>),
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

/// A pattern for routing keys with the identifier of one client. One that does not compile allows nothing.
#[derive(Debug)]
pub struct ClientPattern(Option<Regex>);

impl Permissions {
    /// Compiles patterns with RabbitMQ's semantics: a pattern may match anywhere in a name, and an empty one allows the
    /// empty name alone, so that it allows no queue and no exchange.
    pub fn parse(configure: &str, write: &str, read: &str) -> Result<Self, PatternError> {
        Ok(Self {
            configure: Pattern::parse(Access::Configure, configure)?,
            write: Pattern::parse(Access::Write, write)?,
            read: Pattern::parse(Access::Read, read)?,
            more: None,
        })
    }

    /// The permissions of a user that may do everything.
    pub fn all() -> Self {
        Self {
            configure: Pattern::Everything,
            write: Pattern::Everything,
            read: Pattern::Everything,
            more: None,
        }
    }

    /// The permissions of a user that may do nothing.
    pub fn none() -> Self {
        Self {
            configure: Pattern::Nothing,
            write: Pattern::Nothing,
            read: Pattern::Nothing,
            more: None,
        }
    }

    /// The permissions of a user whose accesses are judged one by one.
    pub fn judged_by(judge: Arc<dyn Judge>) -> Self {
        Self {
            more: Some(More::Judge(judge)),
            ..Self::none()
        }
    }

    /// The same patterns, with a judge of routing keys.
    pub fn with_judge(&self, judge: Arc<dyn Judge>) -> Self {
        Self {
            more: Some(More::Judge(judge)),
            ..self.clone()
        }
    }

    /// Whether accesses are judged.
    pub fn are_judged(&self) -> bool {
        matches!(self.more, Some(More::Judge(_)))
    }

    /// The same, with permissions for the routing keys of these topic exchanges. Those of other exchanges need none.
    pub fn with_topics(mut self, topics: BTreeMap<Arc<str>, Self>) -> Self {
        self.more = (!topics.is_empty()).then(|| More::Topics(Arc::new(topics)));
        self
    }

    /// The permissions for routing keys, by exchange, if some have the variable [`CLIENT_ID`].
    pub fn topics_of_clients(&self) -> Option<&Arc<BTreeMap<Arc<str>, Self>>> {
        let Some(More::Topics(topics)) = &self.more else {
            return None;
        };
        let mut patterns = topics.values().flat_map(Self::patterns);
        patterns
            .any(|pattern| pattern.contains(CLIENT_ID))
            .then_some(topics)
    }

    /// The pattern for an access, if it has the variable [`CLIENT_ID`].
    pub fn pattern_of_clients(&self, access: Access) -> Option<&str> {
        let text = self.pattern(access).text();
        text.contains(CLIENT_ID).then_some(text)
    }

    /// Whether a routing key may be accessed so: these are permissions for routing keys.
    pub fn may_key(&self, access: Access, routing_key: &str) -> bool {
        self.pattern(access).allows(routing_key)
    }

    /// Whether some routing keys need a permission.
    pub fn has_topics(&self) -> bool {
        self.more.is_some()
    }

    /// Whether a topic exchange may be accessed so with a routing key.
    pub fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        match &self.more {
            None => true,
            Some(More::Topics(topics)) => topics
                .get(exchange)
                .is_none_or(|of_exchange| of_exchange.pattern(access).allows(routing_key)),
            Some(More::Judge(judge)) => judge.may_topic(access, exchange, routing_key),
        }
    }

    /// The end of the text of a refusal: nothing, or a judge's words.
    pub fn remark(&self) -> String {
        let remark = match &self.more {
            Some(More::Judge(judge)) => judge.remark(),
            _ => None,
        };
        remark.unwrap_or_default()
    }

    /// The patterns as given, or equivalent ones: for configuring, writing and reading.
    pub fn patterns(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read].map(Pattern::text)
    }

    /// Whether a queue or exchange of that name may be accessed so. The name of the default exchange is `amq.default`
    /// here.
    pub fn may(&self, access: Access, kind: ResourceKind, name: &str) -> bool {
        self.pattern(access).allows(name)
            || matches!(&self.more, Some(More::Judge(judge)) if judge.may(access, kind, name))
    }

    fn pattern(&self, access: Access) -> &Pattern {
        match access {
            Access::Configure => &self.configure,
            Access::Read => &self.read,
            Access::Write => &self.write,
        }
    }
}

impl PartialEq for More {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Topics(one), Self::Topics(other)) => one == other,
            (Self::Judge(one), Self::Judge(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for More {}

impl Pattern {
    fn parse(access: Access, pattern: &str) -> Result<Self, PatternError> {
        match pattern {
            "" | "^$" => return Ok(Self::Empty),
            NOTHING => return Ok(Self::Nothing),
            ".*" | "^.*" | ".*$" | "^.*$" => return Ok(Self::Everything),
            _ => {}
        }
        let regex = builder(pattern).build().map_err(|error| PatternError {
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
            Self::Found(regex) => is_match(regex, name),
        }
    }
}

impl ClientPattern {
    /// Compiles a pattern with an identifier as a plain text in the place of [`CLIENT_ID`].
    pub fn new(pattern: &str, client_id: &str) -> Self {
        let text = pattern.replace(CLIENT_ID, &fancy_regex::escape(client_id));
        // Without states that it computes while it matches: it keeps its size, whatever a client sends.
        let compiled = builder(&text).delegate_dfa_size_limit(0).build();
        Self(compiled.ok())
    }

    pub fn allows(&self, routing_key: &str) -> bool {
        let regex = self.0.as_ref();
        regex.is_some_and(|regex| is_match(regex, routing_key))
    }
}

fn builder(pattern: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(pattern);
    builder.backtrack_limit(BACKTRACKS_MAX);
    builder
}

/// A pattern that takes too long on a name does not match it.
fn is_match(regex: &Regex, name: &str) -> bool {
    regex.is_match(name).unwrap_or(false)
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Pattern {}

/// Stands for a client's identifier in a pattern. A client without one may access that text.
pub const CLIENT_ID: &str = r"\{client_id\}";

/// A pattern that matches nothing.
const NOTHING: &str = "(?!)";

/// Bound on backtracking. Names have at most 255 bytes, and no sensible pattern comes near it. Beyond it a name is
/// refused.
const BACKTRACKS_MAX: usize = 100_000;

impl ResourceKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Queue => "queue",
        }
    }
}

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
