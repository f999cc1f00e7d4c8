//! `crosstie stop`: stops the node of a node directory, or the one on its embedded default in the current one, and
//! waits for its end.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use crosstie_client::{CallError, State, args};
use crosstie_node::directory::{is_held_by, occupant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::embedded::SOCKET;
use crate::management::{self, Place, Target, embedded, locate_if_any};
use crate::wait_for;

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Maximum time for the node to stop.
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    timeout: u32,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let cbdir = match arguments.place.chosen()? {
        None => arguments.place.cbdir().map(Path::to_owned),
        Some(chosen) => match chosen.context.cbdir {
            None => {
                return stop_remote(&arguments.place.target()?, &chosen.name, arguments.timeout);
            }
            cbdir => cbdir,
        },
    };
    // A node on its embedded default occupies no directory.
    let beside = match (&cbdir, arguments.place.socket()) {
        (_, Some(socket)) => match embedded(&std::env::current_dir()?.join(socket)) {
            Some(url) => return stop_embedded(&url, arguments.timeout),
            None => bail!("no node runs at '{}'", socket.display()),
        },
        (Some(_), None) => None,
        (None, None) => embedded(&std::env::current_dir()?.join(SOCKET)),
    };
    let directory = match (locate_if_any(cbdir), &beside) {
        (Ok(Some(directory)), _) => directory,
        (_, Some(url)) => return stop_embedded(url, arguments.timeout),
        (Ok(None), None) => {
            say!(
                "No node runs here: there is no node's directory, and none on its embedded default"
            )?;
            return Ok(ExitCode::from(1));
        }
        (Err(error), None) => return Err(error),
    };
    let place = directory.display();
    let Some(found) = occupant(&directory)? else {
        if let Some(url) = &beside {
            return stop_embedded(url, arguments.timeout);
        }
        say!("No node runs in '{place}'")?;
        return Ok(ExitCode::from(1));
    };
    let pid = found
        .pid
        .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .with_context(|| format!("the node in '{place}' could not write its process id"))?;
    if let Some(number) = found
        .pid
        .filter(|&pid| !found.is_crossbar && !is_held_by(&directory, pid))
    {
        bail!(
            "the node in '{place}' calls itself process {number}, and that is another one here: it is \
             somebody else's, or runs in a container"
        );
    }
    kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot send SIGTERM to the node in '{place}', process {pid}"))?;
    let patience = Instant::now() + Duration::from_secs(arguments.timeout.into());
    // Another process id there is another node's, started meanwhile.
    while occupant(&directory)?.is_some_and(|now| now.pid == found.pid) {
        if Instant::now() >= patience {
            bail!(
                "the node in '{place}', process {pid}, was sent SIGTERM and still runs after {} s",
                arguments.timeout
            );
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    say!("Stopped the node in '{place}', process {pid}")?;
    Ok(ExitCode::SUCCESS)
}

/// Stops the node on its embedded default that has its management realm at `url`.
fn stop_embedded(url: &str, timeout: u32) -> anyhow::Result<ExitCode> {
    wait_for(async {
        // The socket of a killed node still exists.
        let Ok(client) = Target::local(url.to_owned())?.join().await else {
            say!("No node runs here")?;
            return Ok(ExitCode::from(1));
        };
        let told = management::call(&client, "crossbar.get_status", args![]).await?;
        let pid = told["pid"]
            .as_u64()
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
            .context("the node does not say which process it is")?;
        match management::call(&client, "crossbar.shutdown", args![]).await {
            Ok(_) => client.leave().await,
            // A node without clients ends so soon that its answer may be lost with the connection.
            Err(CallError::Disconnected(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if !has_ended_within(pid, timeout)? {
            bail!(
                "the node here, process {pid}, was asked to end and still runs after {timeout} s"
            );
        }
        say!("Stopped the node here, process {pid}")?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Stops the node of a context, which may be on another machine, and waits until its management realm has ended.
fn stop_remote(target: &Target, context: &str, timeout: u32) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let client = target.join_once().await?;
        match management::call(&client, "crossbar.shutdown", args![]).await {
            Ok(_) | Err(CallError::Disconnected(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let mut states = client.state();
        let ended = states.wait_for(|state| matches!(state, State::Ended(_)));
        let limit = Duration::from_secs(timeout.into());
        if tokio::time::timeout(limit, ended).await.is_err() {
            bail!(
                "the node of context '{context}' was asked to end and still answers after {timeout} s"
            );
        }
        say!("Stopped the node of context '{context}'")?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Waits for the end of a process, whether or not its parent has reaped it: the parent may be gone.
pub(crate) fn has_ended_within(pid: Pid, timeout_s: u32) -> anyhow::Result<bool> {
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(true),
        Err(error) => return Err(error).with_context(|| format!("cannot watch process {pid}")),
    };
    let deadline = Instant::now() + Duration::from_secs(timeout_s.into());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).context("the timeout is too long")?;
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut watched, Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the node"),
        }
    }
}
