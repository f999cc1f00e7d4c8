//! The player's actions, their results, and the outcome.

use crosstie_wamp::{Serializer, Value};

use crate::model::Join;
use crate::show::show_value;

/// An action for the owner of the sockets.
#[derive(Debug, PartialEq)]
pub enum Action<'s> {
    /// Then [`Happened::Done`] or [`Happened::NotSpoken`].
    Connect {
        who: char,
        serializer: Option<Serializer>,
    },
    /// Then [`Happened::Joined`], [`Happened::NotSpoken`] or the message that came instead.
    Join {
        who: char,
        join: &'s Join,
    },
    /// Then [`Happened::Done`]; also if sending failed, since the received messages show that.
    Send {
        who: char,
        message: Value,
    },
    Octets {
        who: char,
        bytes: &'s [u8],
    },
    /// The next message, within its time.
    Receive {
        who: char,
    },
    /// Then [`Happened::Done`].
    Drop {
        who: char,
    },
    Done,
}

/// The result of an action.
#[derive(Debug, PartialEq)]
pub enum Happened {
    Done,
    /// WELCOME's session and details.
    Joined {
        session: Value,
        details: Value,
    },
    /// Such a transport or serializer is not available here.
    NotSpoken(String),
    Message(Value),
    /// The router ended the connection.
    Closed,
    /// In words: no message within the time, or a malformed one.
    Else(String),
}

/// The outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passes,
    /// Like Crossbar.io, with the differences from the specification.
    AsCrossbar(Vec<String>),
    Fails(Failure),
    /// Inconclusive here, with the reason.
    Undecided(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub line: usize,
    /// The session of the failure.
    pub who: char,
    pub expected: String,
    pub came: String,
    /// The difference, if a message was compared.
    pub why: String,
}

/// For messages about it.
pub(crate) fn in_words(happened: &Happened) -> String {
    match happened {
        Happened::Message(message) => show_value(message),
        Happened::Closed => "the end of the connection".to_owned(),
        Happened::Else(text) | Happened::NotSpoken(text) => text.clone(),
        Happened::Done | Happened::Joined { .. } => "nothing".to_owned(),
    }
}
