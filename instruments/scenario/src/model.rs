//! A file of scenarios, parsed.

use std::fmt;

use crosstie_wamp::Serializer;

use crate::term::Term;

/// One file: a feature of the specification, and what a router that has it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// The file's name, for messages.
    pub file: String,
    pub title: String,
    /// The section that describes it: of the specification, or if it is our own, of this project's text.
    pub section: String,
    /// Whether it is Crosstie's own, and the specification does not have it.
    pub is_own: bool,
    /// What a router announces that has it; nothing for the basic profile.
    pub announced: Vec<Announcement>,
    /// What else the feature needs to be judged, by names of labels that must be given.
    pub needs: Vec<String>,
    /// Why it does not hold where the sessions are on several nodes of a realm.
    pub by_node: Option<String>,
    pub scenarios: Vec<Scenario>,
}

/// A feature in `WELCOME.Details.roles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub role: String,
    pub feature: String,
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.role, self.feature)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub line: usize,
    pub name: String,
    /// Where it is in the specification, if not where its feature is.
    pub section: Option<String>,
    /// Further than those of the feature.
    pub announced: Vec<Announcement>,
    pub needs: Vec<String>,
    /// In the place of what is said of the feature.
    pub by_node: Option<String>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub line: usize,
    pub act: Act,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A connection, without a session.
    Connect {
        who: char,
        serializer: Option<Serializer>,
    },
    /// A connection and a session.
    Join {
        who: char,
        join: Join,
    },
    /// GOODBYE, its answer, and the end of the connection.
    Leave {
        who: char,
    },
    /// The connection's end, without a word.
    Drop {
        who: char,
    },
    Send {
        who: char,
        parts: Vec<Term>,
    },
    /// Bytes in the place of a message.
    Octets {
        who: char,
        bytes: Vec<u8>,
    },
    Expect(Expected),
    /// The router ends the connection.
    Closed {
        who: char,
    },
    /// Nothing has been sent to `who`: the answer to a call of nobody's procedure comes next.
    Nothing {
        who: char,
        request: u64,
    },
    /// What comes to one session in whatever order.
    AnyOrder(Vec<Expected>),
    Either(Vec<Alternative>),
    /// Two values must not be the same, or nothing can be judged here.
    Differ(Term, Term),
}

/// A message that must come, or may.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub line: usize,
    pub who: char,
    pub parts: Vec<Term>,
    /// Whether more may follow.
    pub is_open: bool,
    pub is_optional: bool,
}

/// One of several courses; which one is told by its first message.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Crossbar.io's own, and what the difference is.
    pub crossbar: Option<String>,
    pub steps: Vec<Step>,
}

/// What HELLO says beside the roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// As `callee.call_canceling`.
    pub features: Vec<Announcement>,
    pub serializer: Option<Serializer>,
}
