//! The bench's own child processes. It starts its executable again, once for each driver, relay
//! and floor; they are told in two arguments where to run and what to do, say what they found in
//! lines of JSON, and die with the process that started them.
//!
//! Every instrument has its own orders and reports. Here is only how they travel, and which role
//! is whose.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crosstie_wamp::Message;
use crosstie_wamp::codec::DecodeError;
use crosstie_wamp::framing::FramingError;
use rustix::process::{Signal, set_parent_process_death_signal, setpgid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::process::place::Place;
use crate::wamp::holder;
use crate::wamp::pipe::PATIENCE;
use crate::{
    accept, amqp, broker, echo, floor, handshake, hostile, link, oslo, pubsub, rpc, stream,
};

/// The hidden subcommand that the command line forwards to [`main`].
pub const SUBCOMMAND: &str = "bench-worker";

/// The role that runs another program in place of a worker.
pub const GUARD: &str = "guard";

/// A role's name, and what does its work with an order.
type Role = (&'static str, fn(&str) -> Result<(), WorkerError>);

/// The role of a module that has `ROLE` and `work`.
macro_rules! role {
    ($($module:ident)::+) => {
        ($($module)::+::ROLE, |order| begin(order, $($module)::+::work))
    };
}

/// Every role.
const ROLES: &[Role] = &[
    role!(accept::client),
    role!(amqp::worker),
    role!(broker::floor),
    role!(echo::worker),
    role!(handshake::worker),
    role!(holder),
    role!(hostile::attacker),
    role!(hostile::witness),
    role!(link::worker),
    role!(oslo::worker),
    role!(pubsub::worker),
    role!(rpc::worker),
    role!(stream::driver),
    role!(stream::floor),
    role!(floor::websocket),
];

/// What a worker says, one line each.
pub trait Said: Serialize + DeserializeOwned + Send + 'static {
    /// It cannot go on. Every report has this as its variant `Failed { why }`.
    fn failed(why: String) -> Self;

    /// Whether its worker has nothing more to say.
    fn is_last(&self) -> bool;
}

/// Why a worker cannot go on.
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
    #[error("the server took leave: {0}")]
    Dismissed(String),
    #[error("the server sent {came} where {expected} was expected")]
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

/// A worker's whole life. `args` is what follows [`SUBCOMMAND`].
pub fn main(args: &[String]) -> ExitCode {
    // Whoever ends the bench, by whatever signal, ends this too.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return fail(&error.to_string());
    }
    // A signal from the terminal is the bench's to take: it ends what it started in good order.
    let _ = setpgid(None, None);
    let [role, place, order @ ..] = args else {
        return fail("a role, a place and an order are expected");
    };
    if let Err(error) = enter(place) {
        return fail(&error.to_string());
    }
    let outcome = match order {
        [program, args @ ..] if role == GUARD => {
            let error = Command::new(program).args(args).exec();
            return fail(&format!("{program}: {error}"));
        }
        [order] => match ROLES.iter().find(|(name, _)| name == role) {
            Some((_, begin)) => begin(order),
            None => return fail(&format!("no worker has the role {role}")),
        },
        _ => return fail("one order is expected"),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

/// One line on standard output. If the bench is gone, so will this process be.
pub(crate) fn say(report: &impl Serialize) {
    let mut line = serde_json::to_string(report).unwrap_or_default();
    line.push('\n');
    let _ = io::stdout().lock().write_all(line.as_bytes());
}

/// What the bench says next on standard input; `None` at its end, which means: finish.
pub(crate) fn instruction<I: DeserializeOwned>() -> Result<Option<I>, WorkerError> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

fn begin<O: DeserializeOwned>(
    order: &str,
    work: impl FnOnce(O) -> Result<(), WorkerError>,
) -> Result<(), WorkerError> {
    work(serde_json::from_str(order)?)
}

fn enter(place: &str) -> Result<(), WorkerError> {
    let place: Place = serde_json::from_str(place)?;
    Ok(place.enter()?)
}

fn fail(why: &str) -> ExitCode {
    /// The one variant that all reports have.
    #[derive(Serialize, Deserialize)]
    enum Report {
        Failed { why: String },
    }
    say(&Report::Failed {
        why: why.to_owned(),
    });
    ExitCode::FAILURE
}
