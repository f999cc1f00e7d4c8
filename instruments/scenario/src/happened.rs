//! What the player has done by others, what becomes of it, and how it ends.

use crosstie_wamp::{Serializer, Value};

use crate::model::Join;
use crate::show::show_value;

/// What whoever has sockets is to do.
#[derive(Debug, PartialEq)]
pub enum Action<'s> {
    /// Then [`Happened::Done`] or [`Happened::NotSpoken`].
    Connect {
        who: char,
        serializer: Option<Serializer>,
    },
    /// Then [`Happened::Joined`], [`Happened::NotSpoken`] or what else came instead.
    Join {
        who: char,
        join: &'s Join,
    },
    /// Then [`Happened::Done`]; also where it could not be sent, since what comes tells.
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

/// What became of an action.
#[derive(Debug, PartialEq)]
pub enum Happened {
    Done,
    /// WELCOME's session and details.
    Joined {
        session: Value,
        details: Value,
    },
    /// There is no such transport or serializer here.
    NotSpoken(String),
    Message(Value),
    /// The router ended the connection.
    Closed,
    /// In words: nothing within its time, something that is no message.
    Else(String),
}

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passes,
    /// As Crossbar.io does it, and how that differs from the specification.
    AsCrossbar(Vec<String>),
    Fails(Failure),
    /// Here it can show nothing, and why.
    Undecided(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub line: usize,
    /// The session that it was about.
    pub who: char,
    pub expected: String,
    pub came: String,
    /// What differs, where a message was compared.
    pub why: String,
}

/// For what is said about it.
pub(crate) fn in_words(happened: &Happened) -> String {
    match happened {
        Happened::Message(message) => show_value(message),
        Happened::Closed => "the end of the connection".to_owned(),
        Happened::Else(text) | Happened::NotSpoken(text) => text.clone(),
        Happened::Done | Happened::Joined { .. } => "nothing".to_owned(),
    }
}
