//! Guests: any executable as a child process.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_config::{GuestInput, GuestOutput, GuestWorker};
use tracing::warn;

use crate::event::{Event, Events};
use crate::place::Place;
use crate::process::{Command, Output, Stdin, Streams, Watch};

/// Delay between attempts to watch directories, doubled each time.
const BETWEEN_TRIES_FIRST: Duration = Duration::from_millis(250);
const BETWEEN_TRIES_MISSING_MAX: Duration = Duration::from_secs(2);
const BETWEEN_TRIES_MAX: Duration = Duration::from_secs(60);

/// The command of a guest.
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
        secrets: Arc::clone(&place.secrets),
        more_variables: Vec::new(),
        cpu_affinity: guest.cpu_affinity.clone(),
        stdin: stdin(&guest.stdin),
        stdout: output(guest.stdout),
        stderr: output(guest.stderr),
        streams: Streams::default(),
    }
}

/// The directories whose changes restart it.
pub(crate) fn watched(guest: &GuestWorker, place: &Place) -> Vec<PathBuf> {
    let directories = guest.watch.iter().flat_map(|watch| &watch.directories);
    directories
        .map(|directory| place.directory.join(directory))
        .collect()
}

/// Sends each change since the guest's start to the node's loop, forever.
pub(crate) async fn tell_changes(
    worker: String,
    directories: Vec<PathBuf>,
    began: SystemTime,
    events: Events,
) {
    let tell = |first: PathBuf| {
        let worker = worker.clone();
        events.send(Event::FilesChanged { worker, first }).is_ok()
    };
    let (mut watch, mut missed) = begin_watch(&worker, &directories, Some(began)).await;
    loop {
        // Changes before the watch began count, too.
        if missed.take().is_some_and(|directory| !tell(directory)) {
            return;
        }
        let paths = match watch.changed().await {
            Ok(paths) => paths,
            Err(error) => {
                warn!("Guest '{worker}': watching its directories: {error}");
                tokio::time::sleep(BETWEEN_TRIES_MAX).await;
                Vec::new()
            }
        };
        // The next watch begins before this change is reported, so that no change in between is lost.
        if is_to_be_renewed(&paths, &directories) {
            (watch, _) = begin_watch(&worker, &directories, None).await;
        }
        let first = paths.into_iter().next();
        if !tell(first.unwrap_or_else(|| directories[0].clone())) {
            return;
        }
    }
}

/// Whether one of the directories itself may be gone: another may have replaced it.
fn is_to_be_renewed(changed: &[PathBuf], directories: &[PathBuf]) -> bool {
    /// Far fewer than a watch reports at once: then these are all changes.
    const CERTAINLY_ALL: usize = 8;
    changed.is_empty()
        || changed.len() > CERTAINLY_ALL
        || changed.iter().any(|path| directories.contains(path))
}

/// Begins to watch once the directories exist. Also returns one of them if that took several attempts, or a path that
/// has changed since. Walking through the directories may take a while, and is not done on the node's one thread.
async fn begin_watch(
    worker: &str,
    directories: &[PathBuf],
    since: Option<SystemTime>,
) -> (Watch, Option<PathBuf>) {
    let mut pause = BETWEEN_TRIES_FIRST;
    let mut missed = None;
    loop {
        let tried = directories.to_vec();
        let watch = tokio::task::spawn_blocking(move || {
            let watch = Watch::new(&tried)?;
            let changed = since.and_then(|since| watch.changed_since(since));
            Ok((watch, changed))
        });
        let watch = watch.await;
        let error = match watch.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok((watch, changed)) => return (watch, missed.or(changed)),
            Err(error) => error,
        };
        if missed.is_none() {
            warn!("Guest '{worker}': {error}; trying again until it can be watched");
            missed = directories.first().cloned();
        }
        tokio::time::sleep(pause).await;
        // Detecting that it is missing costs next to nothing.
        let longest = match error.kind() {
            io::ErrorKind::NotFound => BETWEEN_TRIES_MISSING_MAX,
            _ => BETWEEN_TRIES_MAX,
        };
        pause = (pause * 2).min(longest);
    }
}

fn stdin(input: &GuestInput) -> Stdin {
    match input {
        GuestInput::Json { value, close } => Stdin::Text {
            bytes: value.to_string().into_bytes(),
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
