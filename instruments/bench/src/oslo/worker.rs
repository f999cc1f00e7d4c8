//! The processes of `bench oslo`: a server, and a client that drives it; native ones, or Python's, with the same orders
//! and reports.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::case::Operation;
use super::client::{Client, ClientOrder};
use super::names::Names;
use super::server::{Served, Server, ServerOrder};
use crate::load::{Driven, Load, Window, drive, monotonic_ns};
use crate::process::{WorkerError, instruction, say};

pub(crate) const ROLE: &str = "oslo";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    Client(ClientOrder),
    Server(ServerOrder),
    Python(PythonOrder),
}

/// A process that becomes a Python.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PythonOrder {
    pub(super) program: PathBuf,
    pub(super) script: PathBuf,
    pub(super) argument: PythonArgument,
}

/// The script's order, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PythonArgument {
    pub(super) is_server: bool,
    pub(super) url: String,
    pub(super) names: Names,
    pub(super) operation: Operation,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EndReport {
    /// Connected, declared, consuming: everything before the load.
    Ready,
    Driven(Finding),
    Served(Served),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(super) driven: Driven,
    /// From the first operation to the last answer.
    pub(super) elapsed_ns: u64,
    /// The same of the further operations without a delay: the first hundred are over before anything has settled.
    pub(super) steady: Option<Steady>,
    /// From the process's first contact with the broker until it was ready ...
    pub(super) setup_ns: u64,
    /// ... and the operations that this took, as oslo.messaging connects on first use.
    pub(super) setup_operations: u64,
}

/// Operations after the first ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Steady {
    pub(super) driven: Driven,
    pub(super) elapsed_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Go {
    pub(super) window: Window,
    pub(super) operations_max: u64,
    /// And as many more, separately.
    pub(super) steady_operations: u64,
}

pub(crate) fn work(role: Role) -> Result<(), WorkerError> {
    match role {
        Role::Client(order) => {
            let begun = Instant::now();
            let mut client = Client::open(&order)?;
            let setup_ns = begun.elapsed().as_nanos() as u64;
            say(&EndReport::Ready);
            let Some(go) = instruction::<Go>()? else {
                return Ok(());
            };
            let load = Load {
                outstanding: 1,
                batch: u64::MAX,
                window: go.window,
                operations_max: go.operations_max,
            };
            let first_ns = monotonic_ns();
            let driven = drive(&mut client, &load, &mut |_| {})?;
            let elapsed_ns = monotonic_ns() - first_ns;
            let steady = match go.steady_operations {
                0 => None,
                operations_max => {
                    let load = Load {
                        operations_max,
                        ..load
                    };
                    let first_ns = monotonic_ns();
                    let driven = drive(&mut client, &load, &mut |_| {})?;
                    let elapsed_ns = monotonic_ns() - first_ns;
                    Some(Steady { driven, elapsed_ns })
                }
            };
            client.finish()?;
            say(&EndReport::Driven(Finding {
                driven,
                elapsed_ns,
                steady,
                setup_ns,
                setup_operations: 0,
            }));
            Ok(())
        }
        Role::Server(order) => {
            let server = Server::open(&order)?;
            say(&EndReport::Ready);
            say(&EndReport::Served(server.serve()?));
            Ok(())
        }
        Role::Python(order) => {
            let argument = serde_json::to_string(&order.argument)?;
            let error = Command::new(&order.program)
                .arg(&order.script)
                .arg(argument)
                .exec();
            Err(WorkerError::Connect(
                order.program.display().to_string(),
                error,
            ))
        }
    }
}
