//! Servers under test, ours or somebody else's: started the way a user would, and ended with the
//! bench however that ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::load::Stream;
use crate::process::{GUARD, Place, SUBCOMMAND};
use crate::subject::Endpoint;

/// `program` at a place, bound to die with the bench; its own arguments are still to be added.
pub(crate) fn guarded(executable: &Path, place: &Place, program: &Path) -> Command {
    let mut command = Command::new(executable);
    command
        .args([SUBCOMMAND, GUARD])
        .arg(serde_json::to_string(place).unwrap_or_default())
        .arg(program);
    command
}

/// A server's first process; ended when this is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    name: String,
}

impl ServerProcess {
    /// Where its standard error goes is the command's own affair.
    pub(crate) fn spawn(mut command: Command, name: impl Into<String>) -> Result<Self, BenchError> {
        let name = name.into();
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => Ok(Self { child, name }),
            Err(error) => Err(BenchError::Server {
                name,
                why: error.to_string(),
            }),
        }
    }

    /// Waits for a connection to succeed.
    pub(crate) fn wait_until_it_accepts(
        &mut self,
        endpoint: &Endpoint,
        patience: Duration,
    ) -> Result<(), BenchError> {
        let deadline = Instant::now() + patience;
        let fail = |name: &str, why| {
            let name = name.to_owned();
            Err(BenchError::Server { name, why })
        };
        loop {
            let Err(error) = Stream::connect(endpoint) else {
                return Ok(());
            };
            if let Some(status) = self.child.try_wait()? {
                return fail(
                    &self.name,
                    format!("it ended before it listened ({status})"),
                );
            }
            if Instant::now() > deadline {
                let seconds = patience.as_secs();
                return fail(&self.name, format!("{endpoint} for {seconds} s: {error}"));
            }
            // Short against the few milliseconds of a start, long against a connection's cost.
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
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
