//! Guests: any executable as a child process.

use std::path::PathBuf;
use std::time::Duration;

use crosstie_config::{GuestInput, GuestOutput, GuestWorker};

use crate::event::{Event, Events};
use crate::place::Place;
use crate::process::{Command, Output, Stdin, Watch};

/// The command that a guest is.
pub(crate) fn command(guest: &GuestWorker, place: &Place) -> Command {
    let directory = match &guest.workdir {
        Some(workdir) => place.directory.join(workdir),
        None => place.directory.clone(),
    };
    Command {
        program: guest.executable.clone().into(),
        arguments: guest.arguments.iter().map(Into::into).collect(),
        directory,
        environment: guest.environment.clone(),
        more_variables: Vec::new(),
        cpu_affinity: guest.cpu_affinity.clone(),
        stdin: stdin(&guest.stdin),
        stdout: output(guest.stdout),
        stderr: output(guest.stderr),
    }
}

/// The directories whose changes restart it.
pub(crate) fn watched(guest: &GuestWorker, place: &Place) -> Vec<PathBuf> {
    let directories = guest.watch.iter().flat_map(|watch| &watch.directories);
    directories
        .map(|directory| place.directory.join(directory))
        .collect()
}

/// Tells the node's loop of each change, for ever.
pub(crate) async fn tell_changes(worker: String, directories: Vec<PathBuf>, events: Events) {
    loop {
        // After each change anew: a directory may have been put in another's place.
        let mut watch = watch(&worker, &directories).await;
        match watch.changed().await {
            Ok(paths) => {
                let first = paths.into_iter().next().unwrap_or_default();
                let worker = worker.clone();
                if events.send(Event::FilesChanged { worker, first }).is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!("Guest '{worker}': watching its directories: {error}"),
        }
    }
}

/// Begins to watch, as soon as the directories are there.
async fn watch(worker: &str, directories: &[PathBuf]) -> Watch {
    const BETWEEN_TRIES: Duration = Duration::from_secs(1);
    let mut is_said = false;
    loop {
        match Watch::new(directories) {
            Ok(watch) => return watch,
            Err(error) if !is_said => {
                tracing::warn!("Guest '{worker}': {error}; trying again each second");
                is_said = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}

fn stdin(input: &GuestInput) -> Stdin {
    match input {
        GuestInput::Json { value, close } => Stdin::Text {
            octets: value.to_string().into_bytes(),
            close: *close,
        },
        _ => Stdin::Null,
    }
}

fn output(output: GuestOutput) -> Output {
    match output {
        GuestOutput::Log => Output::Lines,
        GuestOutput::Drop => Output::Drop,
        _ => Output::Null,
    }
}
