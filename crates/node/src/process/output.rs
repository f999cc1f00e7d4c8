//! Runs a child to its end, and returns its output.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use super::children::{Process, prepare};
use super::command::Command;
use super::orphans;

/// Maximum bytes per stream.
const BYTES_MAX: u64 = 64 << 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Runs a command to its end on this thread, and returns its output; a failure is an error with the child's last line.
/// `executable` is the node's own program.
pub fn output(executable: &Path, command: &Command, within: Duration) -> io::Result<String> {
    let (program, mut process) = prepare(executable, command)?;
    process.env(orphans::VARIABLE, orphans::new_mark());
    let deadline = Instant::now() + within;
    let mut child = orphans::start(&mut process)?;
    let running = Process::of(&child);
    // The output is read after its end, and limited to the size of a pipe.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    while !running.has_ended() && Instant::now() < deadline {
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let is_late = !running.has_ended();
    let ended = running.reap(&mut child);
    let program = program.display();
    if is_late {
        let text = format!("{program} was not done within {} s", within.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    }
    let said = read(stdout)?;
    if ended.is_success() {
        return Ok(said);
    }
    let complaint = read(stderr)?;
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it said nothing").trim();
    Err(io::Error::other(format!("{program}: {ended}: {last}")))
}

/// The contents of a pipe whose writers have gone.
fn read(pipe: Option<impl Read>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
