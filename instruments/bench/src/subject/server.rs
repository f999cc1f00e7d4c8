//! Servers under test, ours or foreign ones: started like a user's, and ended with the bench in any case.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crosstie_terminal::companion::{SERVER, find};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::error::BenchError;
use crate::load::Stream;
use crate::process::{GUARD, Place, SUBCOMMAND};
use crate::subject::Endpoint;

/// `program` at a place, so that it dies with the bench; its own arguments are still to be added.
pub(crate) fn guarded(executable: &Path, place: &Place, program: &Path) -> Command {
    let mut command = Command::new(executable);
    command
        .args([SUBCOMMAND, GUARD])
        .arg(serde_json::to_string(place).unwrap_or_default())
        .arg(program);
    command
}

/// The server that is measured unless a URL names another: `crosstie` beside this program, or on PATH.
pub(crate) fn own_program() -> Result<PathBuf, BenchError> {
    find(SERVER).map_err(|missing| BenchError::Server {
        name: SERVER.to_owned(),
        why: missing.to_string(),
    })
}

/// A server's first process; ended when this is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    name: String,
    log: Option<PathBuf>,
}

impl ServerProcess {
    /// The command determines its standard error.
    pub(crate) fn spawn(mut command: Command, name: impl Into<String>) -> Result<Self, BenchError> {
        let name = name.into();
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => Ok(Self {
                child,
                name,
                log: None,
            }),
            Err(error) => Err(BenchError::Server {
                name,
                why: error.to_string(),
            }),
        }
    }

    /// Its standard error goes to a file, which is needed only if it does not start.
    pub(crate) fn spawn_logged(
        mut command: Command,
        name: impl Into<String>,
        log: PathBuf,
    ) -> Result<Self, BenchError> {
        command.stderr(fs::File::create(&log)?);
        let mut process = Self::spawn(command, name)?;
        process.log = Some(log);
        Ok(process)
    }

    /// A node of Crossbar.io's form in a directory of its own, until all its addresses accept.
    pub(crate) fn start_node(
        mut command: Command,
        name: &str,
        node: &NodeDirectory<'_>,
        endpoints: impl IntoIterator<Item = Endpoint>,
    ) -> Result<Self, BenchError> {
        fs::create_dir_all(node.directory)?;
        let config = serde_json::to_vec_pretty(&node.config).map_err(io::Error::from)?;
        fs::write(node.directory.join("config.json"), config)?;
        command.args(["start", "--cbdir"]).arg(node.directory);
        command.args(node.options);
        let mut process = Self::spawn_logged(command, name, node.directory.join("log"))?;
        for endpoint in endpoints {
            process.wait_until_it_accepts(&endpoint, node.patience)?;
        }
        Ok(process)
    }

    /// Waits for a connection to succeed.
    pub(crate) fn wait_until_it_accepts(
        &mut self,
        endpoint: &Endpoint,
        patience: Duration,
    ) -> Result<(), BenchError> {
        self.wait_until(patience, || match Stream::connect(endpoint) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{endpoint}: {error}")),
        })
    }

    /// Waits until it is ready; the error of a failed start quotes its last output.
    pub(crate) fn wait_until<T>(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut() -> Result<T, String>,
    ) -> Result<T, BenchError> {
        let begun = Instant::now();
        loop {
            let error = match ready() {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            let mut why = match self.child.try_wait()? {
                Some(status) => format!("it ended before it listened ({status})"),
                None if begun.elapsed() > patience => {
                    format!("{error}, for {} s", patience.as_secs())
                }
                None => {
                    // Short against a start, whether that takes milliseconds or seconds.
                    let pause = (begun.elapsed() / 100).max(Duration::from_micros(100));
                    std::thread::sleep(pause);
                    continue;
                }
            };
            if let Some(log) = &self.log {
                why += &format!("; its last words: {}", last_words(log));
            }
            let name = self.name.clone();
            return Err(BenchError::Server { name, why });
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// The parameters of a node's start.
pub(crate) struct NodeDirectory<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) config: Value,
    /// Of its `start`.
    pub(crate) options: &'a [&'a str],
    pub(crate) patience: Duration,
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed())
            && self.is_alive()
        {
            let _ = kill_process(process, Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(10);
            while self.is_alive() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
