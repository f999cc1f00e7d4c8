//! The roles of the bench's processes: a table of all, and the dispatch from the command line to one of them. Only the
//! command line's entry uses this; a driver knows its own order and reports.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, set_parent_process_death_signal, setpgid};
use serde::de::DeserializeOwned;

use crate::process::{GUARD, LastWord, Place, WorkerError, say};
use crate::wamp::holder;
use crate::{
    accept, amqp, broker, echo, floor, handshake, hostile, http, join, mqtt, network, oslo, pubsub,
    rpc, stream,
};

pub use crate::process::worker::SUBCOMMAND;

/// A role's name, and its function of an order.
type Role = (&'static str, fn(&str) -> Result<(), WorkerError>);

/// The role of a module that has `ROLE` and `work`.
macro_rules! role {
    ($($module:ident)::+) => {
        ($($module)::+::ROLE, |order| begin(order, $($module)::+::work))
    };
}

const ROLES: &[Role] = &[
    role!(accept::client),
    role!(amqp::worker),
    role!(broker::depth),
    role!(broker::floor),
    role!(echo::worker),
    role!(handshake::worker),
    role!(holder),
    role!(hostile::attacker),
    role!(hostile::witness),
    role!(http::driver),
    role!(join::driver),
    role!(mqtt::floor),
    role!(mqtt::worker),
    role!(network::link),
    role!(oslo::worker),
    role!(pubsub::worker),
    role!(rpc::worker),
    role!(stream::driver),
    role!(stream::floor),
    role!(floor::websocket),
];

/// A worker's main function. `args` are the arguments after [`SUBCOMMAND`].
pub fn main(args: &[String]) -> ExitCode {
    // Any end of the bench, by any signal, ends this process too.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return fail(&error.to_string());
    }
    // A signal from the terminal is for the bench: it ends its processes in order.
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
        Ok(()) => {
            say(&LastWord::Finished);
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error.to_string()),
    }
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
    say(&LastWord::Failed {
        why: why.to_owned(),
    });
    ExitCode::FAILURE
}
