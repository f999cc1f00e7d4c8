//! The programs that a router's web services ask for, as children of the node like all others.

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

/// Has the node's loop start programs: the kernel takes the end of the thread that starts a child for
/// its parent's death, and the loop's thread lives as long as the node.
pub(crate) struct Starter {
    pub(crate) place: Place,
    /// Has the loop take it up.
    pub(crate) send: Box<dyn Fn(StartProgram) + Send + Sync>,
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starter").finish_non_exhaustive()
    }
}

type Started = io::Result<Box<dyn Running>>;

/// A program that is to be started, and who waits for that.
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
        // A node that is gone or ending drops the reply, which says so.
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
    /// Starts it as a child of the node, on the thread of the node's loop. Nobody may wait for it any more: then
    /// it does not begin.
    pub(crate) fn start(self, children: &Children) {
        if self.reply.is_closed() {
            return;
        }
        let title = self.title;
        // Lines come when this thread is free to listen: the child has its number by then.
        let pid = Arc::new(OnceLock::new());
        let pid_of_lines = Arc::clone(&pid);
        let line = move |line: Line| {
            let pid = pid_of_lines.get().copied().unwrap_or_default();
            report::child_line(title, pid, &line);
        };
        let command = self.command;
        let started = command.and_then(|command| children.spawn(&command, line));
        let started = started.map(|child| {
            // Set here and nowhere else.
            let _ = pid.set(child.id());
            Box::new(RunningChild(child)) as Box<dyn Running>
        });
        // Who has gone meanwhile drops it, which ends it.
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
