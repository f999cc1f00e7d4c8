//! The bench's own child processes. It starts its executable again, once for each relay, caller,
//! callee and holder of idle sessions; they are told what to do in one argument, say what they
//! found in lines of JSON, and die with the process that started them.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread;

use crosstie_wamp::Message;
use crosstie_wamp::codec::DecodeError;
use crosstie_wamp::framing::FramingError;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::callee::Callee;
use crate::caller::{Caller, PairOrder};
use crate::drive::{Driven, Exchange, Load, Traffic, Window, drive};
use crate::floor::{self, FloorCaller, FloorOrder};
use crate::holder::{self, HolderOrder};
use crate::pipe::PATIENCE;
use crate::placement::bind_this_thread;
use crate::relay::{RelayOrder, serve_round};
use crate::socket::Listener;
use crate::target::Endpoint;

/// The hidden subcommand that the command line forwards to [`main`].
pub const SUBCOMMAND: &str = "bench-worker";

/// The argument after [`SUBCOMMAND`] that runs another program in place of a worker.
pub const GUARD: &str = "guard";

/// One worker's task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Where to run.
    pub cores: Vec<usize>,
    pub role: Role,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    Relay(RelayOrder),
    Caller(PairOrder, LoadOrder),
    Callee(PairOrder),
    FloorCaller(FloorOrder, LoadOrder),
    FloorCallee(FloorOrder),
    Holder(HolderOrder),
}

/// A caller's load; its window comes later, with [`Instruction::Go`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOrder {
    pub outstanding: usize,
    pub batch: u64,
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Connected, joined, registered, listening: whatever comes before the load.
    Ready { endpoint: Option<Endpoint> },
    /// One batch of the document's.
    Batch { average_ms: f64 },
    /// A caller's findings.
    Driven(Driven),
    /// A callee's findings.
    Served(Traffic),
    /// This many sessions are held now.
    Holding { sessions: usize },
    /// It cannot go on.
    Failed { why: String },
}

impl Report {
    /// Whether its worker has nothing more to say.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Driven(_) | Self::Served(_) | Self::Failed { .. }
        )
    }
}

/// What a worker is told on its standard input; the input's end means: finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Instruction {
    /// To a caller: begin.
    Go(Window),
    /// To a holder: open more, up to this many.
    Hold { sessions: usize },
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
    #[error("the router closed the connection instead of {0}")]
    Closed(&'static str),
    #[error("the router refused {0}")]
    Refused(String),
    #[error("the router sent {came} where {expected} was expected")]
    Unexpected {
        expected: &'static str,
        came: &'static str,
    },
    #[error("the router's framing: {0}")]
    Framing(#[from] FramingError),
    #[error("the router's message: {0}")]
    Decode(#[from] DecodeError),
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
    if let [guard, program, args @ ..] = args
        && guard == GUARD
    {
        let error = Command::new(program).args(args).exec();
        return fail(&format!("{program}: {error}"));
    }
    let [order] = args else {
        return fail("one argument is expected: the order");
    };
    match serde_json::from_str(order)
        .map_err(WorkerError::Order)
        .and_then(work)
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(why: &str) -> ExitCode {
    say(&Report::Failed {
        why: why.to_owned(),
    });
    ExitCode::FAILURE
}

fn work(order: Order) -> Result<(), WorkerError> {
    bind_this_thread(&order.cores)?;
    match order.role {
        Role::Relay(order) => {
            let (listener, endpoint) = Listener::bind(&order.endpoint)?;
            say(&Report::Ready {
                endpoint: Some(endpoint),
            });
            loop {
                serve_round(&listener, &order)?;
            }
        }
        Role::Caller(order, load) => {
            let mut caller = Caller::join(&order)?;
            let driven = drive_when_told(&mut caller, load)?;
            // What was measured stands, however the router takes the farewell.
            let _ = caller.leave();
            say(&Report::Driven(driven));
            Ok(())
        }
        Role::Callee(order) => {
            let callee = Callee::register(&order)?;
            at_the_end_of_input(callee.leaver()?);
            say(&Report::Ready { endpoint: None });
            say(&Report::Served(callee.serve()?));
            Ok(())
        }
        Role::FloorCaller(order, load) => {
            let stream = order.connect(true)?;
            stream.limit_waiting(Some(PATIENCE))?;
            let driven = drive_when_told(&mut FloorCaller::new(stream, order.lengths), load)?;
            say(&Report::Driven(driven));
            Ok(())
        }
        Role::FloorCallee(order) => {
            let stream = order.connect(false)?;
            let leaving = stream.try_clone()?;
            at_the_end_of_input(move || leaving.shut_down());
            say(&Report::Ready { endpoint: None });
            say(&Report::Served(floor::callee(&stream, order.lengths)?));
            Ok(())
        }
        Role::Holder(order) => holder::hold(&order),
    }
}

fn drive_when_told(exchange: &mut impl Exchange, load: LoadOrder) -> Result<Driven, WorkerError> {
    say(&Report::Ready { endpoint: None });
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let Instruction::Go(window) = serde_json::from_str(&line)? else {
        return Err(WorkerError::Unexpected {
            expected: "Go",
            came: "another instruction",
        });
    };
    let load = Load {
        outstanding: load.outstanding,
        batch: load.batch,
        window,
        operations_max: u64::MAX,
    };
    drive(exchange, &load, &mut |report| say(&report))
}

/// Runs `leave` on a thread of its own when the bench closes this worker's standard input.
fn at_the_end_of_input(leave: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
        }
        leave();
    });
}

/// One line on standard output. If the bench is gone, so will this process be.
pub(crate) fn say(report: &Report) {
    let mut line = serde_json::to_string(report).unwrap_or_default();
    line.push('\n');
    let _ = io::stdout().lock().write_all(line.as_bytes());
}
