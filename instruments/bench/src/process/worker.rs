//! The messages between a bench and its child processes. The bench starts its executable again, once for each driver,
//! relay and floor. Two arguments hold the child's place and its order; it reports in lines of JSON.
//!
//! Every instrument has its own orders and reports. This module has their transport, and the common ones; the mapping
//! of roles is a table that no driver knows.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use crosstie_wamp::Message;
use crosstie_wamp::codec::DecodeError;
use crosstie_wamp::framing::FramingError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::subject::Endpoint;

/// The hidden subcommand of a worker.
pub const SUBCOMMAND: &str = "bench-worker";

/// The role that runs another program in place of a worker.
pub(crate) const GUARD: &str = "guard";

/// How long a server may take for one answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The same for a login: a server that derives a key for each of many clients makes them wait for one another.
pub(crate) const LOGIN_PATIENCE: Duration = Duration::from_secs(60);

/// The last line of every worker, after its reports.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LastWord {
    Finished,
    Failed { why: String },
}

/// The report of a server of the bench's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) endpoint: Endpoint,
}

/// The reports of a driver that runs one window after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Driver<F> {
    /// It waits for its window.
    Ready,
    Found(F),
}

impl<F> Driver<F> {
    pub(crate) fn ready(self) -> Result<(), Self> {
        match self {
            Self::Ready => Ok(()),
            other => Err(other),
        }
    }

    pub(crate) fn found(self) -> Result<F, Self> {
        match self {
            Self::Found(found) => Ok(found),
            other => Err(other),
        }
    }
}

/// The reason why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the order is not readable: {0}")]
    Order(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}: {1}")]
    Connect(String, io::Error),
    #[error("handshake: {0}")]
    Handshake(String),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("the server closed the connection instead of {0}")]
    Closed(&'static str),
    #[error("the server refused {0}")]
    Refused(String),
    #[error("the server said goodbye: {0}")]
    Dismissed(String),
    #[error("the server sent {came}, expected {expected}")]
    Unexpected {
        expected: &'static str,
        came: &'static str,
    },
    #[error("the router's framing: {0}")]
    Framing(#[from] FramingError),
    #[error("the router's message: {0}")]
    Decode(#[from] DecodeError),
    #[error("the broker's frame: {0}")]
    Frame(#[from] crosstie_amqp::FrameError),
    #[error("the broker's method: {0}")]
    Method(#[from] crosstie_amqp::MethodError),
    #[error("a message could not be written: {0}")]
    Encode(String),
}

impl WorkerError {
    pub(crate) fn unexpected(expected: &'static str, came: &Message<'_>) -> Self {
        Self::Unexpected {
            expected,
            came: came.kind().name(),
        }
    }

    pub(crate) fn handshake(error: impl ToString) -> Self {
        Self::Handshake(error.to_string())
    }
}

/// Prints one line on standard output. If the bench is gone, this process ends too.
pub(crate) fn say(report: &impl Serialize) {
    let mut line = serde_json::to_string(report).unwrap_or_default();
    line.push('\n');
    let _ = io::stdout().lock().write_all(line.as_bytes());
}

/// The bench's next instruction on standard input; `None` at its end, which means: finish.
pub(crate) fn instruction<I: DeserializeOwned>() -> Result<Option<I>, WorkerError> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
