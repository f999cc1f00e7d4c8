//! `crosstie upgrade`: another program takes over from a running node.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use crosstie_client::args;
use crosstie_terminal::duration::duration;

use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Have a new program take over from a running node, and wait until it serves.
///
/// The node starts the program with its own arguments, and passes the listening sockets on. Connections wait in their
/// queues and are not refused. The routers move to the new process, their clients reconnect to it, and the former
/// process ends. Containers and guests start anew when that has ended. If the new program fails at any step, the node
/// goes on as before, and the exit code is 1.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The new program; by default the one that runs this command.
    #[arg(value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Time over which the clients of routers without a store leave, in slices. For routers with one, the time for open
    /// calls to be answered; new connections wait meanwhile.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    over: Duration,
    /// Time for each step of the new program: to read its configuration, to listen, and to open the stores.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let program = match arguments.program {
        Some(program) => program,
        None => std::env::current_exe().context("cannot find the path of this program")?,
    };
    let program = std::path::absolute(&program)
        .with_context(|| format!("cannot find '{}'", program.display()))?;
    let program = program
        .to_str()
        .with_context(|| format!("the path '{}' is not UTF-8", program.display()))?;
    let target = arguments.place.target()?;
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let (over, timeout) = (ms(arguments.over), ms(arguments.timeout));
    wait_for(async {
        let realm = ManagementRealm::join(&target, None).await?;
        let answer = realm
            .call_for_long("crossbar.upgrade", args![program, over, timeout])
            .await;
        realm.leave().await;
        match answer {
            Ok(told) => {
                say!("Upgraded; process {} serves", told["pid"])?;
                Ok(ExitCode::SUCCESS)
            }
            Err(refused) => Refused::told(refused),
        }
    })
}
