//! A file of scenarios, parsed.

use std::fmt;

use crosstie_wamp::Serializer;

use crate::term::Term;

/// One file: a feature of the specification, and the behaviour of a router that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// The file's name, for messages.
    pub file: String,
    pub title: String,
    /// The section that describes it: of the specification, or for our own features of this project's text.
    pub section: String,
    /// Whether it is Crosstie's own, and not in the specification.
    pub is_own: bool,
    /// The announcements of a router with it; empty for the basic profile.
    pub announced: Vec<Announcement>,
    /// Other prerequisites of the feature, by names of labels that must be given.
    pub needs: Vec<String>,
    /// The reason why it does not hold if the sessions are on several nodes of a realm.
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
    /// Its section of the specification, if not the feature's.
    pub section: Option<String>,
    /// In addition to the feature's.
    pub announced: Vec<Announcement>,
    pub needs: Vec<String>,
    /// Overrides the feature's.
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
    /// The connection's end, without a GOODBYE.
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
    /// `who` has received nothing: the answer to a call of an unregistered procedure is the next message.
    Nothing {
        who: char,
        request: u64,
    },
    /// Messages to one session in any order.
    AnyOrder(Vec<Expected>),
    Either(Vec<Alternative>),
    /// Two values must differ, or the result is inconclusive.
    Differ(Term, Term),
}

/// A message that must arrive, or may.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub line: usize,
    pub who: char,
    pub parts: Vec<Term>,
    /// Whether more may follow.
    pub is_open: bool,
    pub is_optional: bool,
}

/// One of several courses, which its first message determines.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Crossbar.io's own, with the difference.
    pub crossbar: Option<String>,
    pub steps: Vec<Step>,
}

/// The options of HELLO besides the roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// As `callee.call_canceling`.
    pub features: Vec<Announcement>,
    pub serializer: Option<Serializer>,
}
