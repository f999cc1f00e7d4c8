//! The programs of a router's web services, started as children of the node.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crosstie_router::{Executable, Program, Programs, Running};
use tokio::sync::oneshot;

use crate::place::Place;
use crate::process::{self, Child, Children, Command, Line, Output, Stdin, Streams};
use crate::report;
use crate::workers::container::interpreter;

/// Lets the node's loop start programs: the kernel takes the end of the thread that starts a child for its parent's
/// death, and the loop's thread lives as long as the node.
pub(crate) struct Starter {
    pub(crate) place: Place,
    /// Sends the request to the loop.
    pub(crate) send: Box<dyn Fn(StartProgram) + Send + Sync>,
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starter").finish_non_exhaustive()
    }
}

type Started = io::Result<Box<dyn Running>>;

/// A request to start a program, with its reply.
pub(crate) struct StartProgram {
    title: &'static str,
    command: io::Result<Command>,
    reply: oneshot::Sender<Started>,
}

impl Programs for Starter {
    fn start(&self, program: Program) -> oneshot::Receiver<Started> {
        let (reply, started) = oneshot::channel();
        let order = StartProgram {
            title: program.title,
            command: self.command(program),
            reply,
        };
        // A node that is gone or shutting down drops the reply, which reports that.
        (self.send)(order);
        started
    }

    fn ask(&self, program: Program, within: Duration) -> io::Result<String> {
        let command = self.command(program)?;
        process::output(&self.place.executable, &command, within)
    }

    fn private(&self) -> Option<&Path> {
        self.place.private.as_deref()
    }

    fn loglevel(&self) -> &str {
        &self.place.loglevel
    }
}

impl Starter {
    fn command(&self, program: Program) -> io::Result<Command> {
        let executable = match program.executable {
            Executable::Named(path) => path,
            Executable::Python(configured) => {
                let found = interpreter(configured.as_deref(), &self.place);
                found.map_err(io::Error::other)?
            }
            other => return Err(io::Error::other(format!("{other:?} is not known here"))),
        };
        Ok(Command {
            program: executable,
            arguments: program.arguments,
            directory: program.directory,
            environment: program.environment,
            secrets: Arc::clone(&self.place.secrets),
            more_variables: program.variables,
            cpu_affinity: program.cpu_affinity,
            stdin: Stdin::Null,
            stdout: Output::Lines,
            stderr: Output::Lines,
            streams: Streams {
                stdin: program.stdin.map(Arc::new),
                stdout: program.stdout.map(Arc::new),
            },
        })
    }
}

impl StartProgram {
    /// Starts it as a child of the node, on the thread of the node's loop; does nothing if the requester is gone.
    pub(crate) fn start(self, children: &Children) {
        if self.reply.is_closed() {
            return;
        }
        let title = self.title;
        // Lines arrive when this thread is idle: the child has its id by then.
        let pid = Arc::new(OnceLock::new());
        let pid_of_lines = Arc::clone(&pid);
        let line = move |line: Line| {
            let pid = pid_of_lines.get().copied().unwrap_or_default();
            report::child_line(title, pid, &line);
        };
        let command = self.command;
        let started = command.and_then(|command| children.spawn(&command, line));
        let started = started.map(|child| {
            // The only place that sets it.
            let _ = pid.set(child.id());
            Box::new(RunningChild(child)) as Box<dyn Running>
        });
        // If the requester is gone, dropping the child ends it.
        let _ = self.reply.send(started);
    }
}

struct RunningChild(Child);

impl Running for RunningChild {
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async move { self.0.wait().await.to_string() })
    }

    fn terminate(&self) {
        self.0.terminate();
    }
}
