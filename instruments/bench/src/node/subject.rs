//! The subjects: a node of ours, the same directory on a peer, or the native pairs around a router without a node.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::lines::Lines;
use super::original::Original;
use super::processes::{Look, Role};
use crate::error::BenchError;
use crate::frame::instrument;
use crate::load::Stream;
use crate::network::Network;
use crate::process::Place;
use crate::subject::{Case, Endpoint, Router, RouterOptions, Waiting, guarded, own_program};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Crosstie,
    /// Crossbar.io, by its program.
    Crossbar(PathBuf),
    /// The native pairs as plain processes and `crosstie start` as a plain router: the difference is the cost of the
    /// node around them.
    Plain,
}

impl Subject {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Crosstie => "crosstie",
            Self::Crossbar(_) => "crossbar",
            Self::Plain => "floor",
        }
    }
}

impl instrument::Subject for Subject {
    fn name(&self) -> &str {
        self.name()
    }
}

pub(super) struct Start<'a> {
    /// Our program, which also guards every child.
    pub(super) executable: &'a Path,
    pub(super) original: &'a Original,
    /// An empty directory for this round alone.
    pub(super) directory: &'a Path,
    pub(super) python: Option<&'a Path>,
    /// Cores for all processes.
    pub(super) cores: &'a [usize],
    pub(super) network: &'a Network,
}

pub(super) struct Running {
    name: &'static str,
    /// In the order in which they end.
    children: Vec<Child>,
    router: Option<Router>,
    pub(super) lines: Lines,
    pub(super) spawned: Instant,
    /// Transports and their addresses; empty for a router that listens already.
    pub(super) listening: Vec<(String, Endpoint)>,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) took: Duration,
    /// `None` if it had to be killed.
    pub(super) status: Option<ExitStatus>,
    /// Processes that still existed a second later.
    pub(super) left: usize,
}

/// A node that takes longer than this to end is killed.
const END_MAX: Duration = Duration::from_secs(30);
/// Time for the kernel to reap ended processes.
const BURIAL_MAX: Duration = Duration::from_secs(1);

impl Subject {
    pub(super) fn start(&self, with: &Start<'_>) -> Result<Running, BenchError> {
        match self {
            Self::Crosstie => {
                let copied = with.original.copy(with.directory, with.python)?;
                let program = own_program()?;
                let arguments = [
                    "start".into(),
                    "--cbdir".into(),
                    copied.node.into_os_string(),
                ];
                let mut command = guarded(with.executable, &Place::on(with.cores), &program);
                command.args(arguments);
                Running::node(self.name(), command, copied.listening)
            }
            Self::Crossbar(program) => {
                let copied = with.original.copy(with.directory, None)?;
                let mut command = guarded(with.executable, &Place::on(with.cores), program);
                command.args(["start", "--cbdir"]).arg(&copied.node);
                // Its guests' `crosstie` is this node's program.
                command.env("PATH", path_with(&own_program()?)?);
                Running::node(self.name(), command, copied.listening)
            }
            Self::Plain => Running::plain(self.name(), with),
        }
    }
}

impl Running {
    fn node(
        name: &'static str,
        mut command: Command,
        listening: Vec<(String, Endpoint)>,
    ) -> Result<Self, BenchError> {
        // Ours logs to standard error, the peer to both.
        let (reader, writer) = io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let spawned = Instant::now();
        let child = command.spawn().map_err(|error| BenchError::Server {
            name: name.to_owned(),
            why: error.to_string(),
        })?;
        // The command holds the pipe's other ends: dropping it leaves the log's end to the node.
        drop(command);
        let lines = Lines::default();
        lines.listen(reader);
        Ok(Self {
            name,
            children: vec![child],
            router: None,
            lines,
            spawned,
            listening,
        })
    }

    fn plain(name: &'static str, with: &Start<'_>) -> Result<Self, BenchError> {
        let spawned = Instant::now();
        fs::create_dir_all(with.directory)?;
        let options = RouterOptions {
            executable: with.executable.to_owned(),
            threads: Some(with.cores.len()),
            waiting: Waiting::Usual,
            compresses: false,
        };
        let router = Router::start(&options, with.directory, with.network)?;
        let mut running = Self {
            name,
            children: Vec::new(),
            router: Some(router),
            lines: Lines::default(),
            spawned,
            listening: Vec::new(),
        };
        for case in Case::OF_THE_DOCUMENT {
            for end in ["callee", "caller"] {
                running.add_end(end, case, with)?;
            }
        }
        Ok(running)
    }

    fn add_end(&mut self, end: &str, case: Case, with: &Start<'_>) -> Result<(), BenchError> {
        let Some(router) = &self.router else {
            return Ok(());
        };
        let target = router.listening.target(case);
        let url = match (&target.endpoint, case.transport.is_websocket()) {
            (Endpoint::Unix(path), false) => format!("rs+unix:{}", path.display()),
            (Endpoint::Unix(path), true) => {
                format!("ws+unix:{}:{}", path.display(), target.resource)
            }
            (Endpoint::Tcp(address), false) => format!("rs://{address}"),
            (Endpoint::Tcp(address), true) => format!("ws://{address}{}", target.resource),
        };
        let mut command = guarded(with.executable, &Place::on(with.cores), with.executable);
        let procedure = format!("com.example.{case}.echo");
        command.args(["roundtrip", end, "--url", &url, "--procedure", &procedure]);
        command.args(["--serializer", case.serializer.name()]);
        if end == "caller" {
            command.args(["--name", &case.document_prefix()]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(output) = child.stdout.take() {
            self.lines.listen(output);
        }
        // Callers end before their callees, and both before the router.
        self.children.insert(0, child);
        Ok(())
    }

    /// The processes that were started; the others descend from them.
    pub(super) fn roots(&self) -> Vec<(u32, Option<Role>)> {
        let router = self.router.iter().map(|router| router.process.id());
        let router = router.map(|id| (id, Some(Role::Router)));
        let child = |child: &Child| {
            let is_node = self.router.is_none();
            (child.id(), is_node.then_some(Role::Controller))
        };
        router.chain(self.children.iter().map(child)).collect()
    }

    /// When each transport accepted its first connection, since the start.
    pub(super) fn accepted(
        &mut self,
        patience: Duration,
    ) -> Result<Vec<(String, Duration)>, BenchError> {
        let mut left = self.listening.clone();
        let mut accepted = Vec::new();
        while !left.is_empty() {
            left.retain(|(id, endpoint)| {
                let refused = Stream::connect(endpoint).is_err();
                if !refused {
                    accepted.push((id.clone(), self.spawned.elapsed()));
                }
                refused
            });
            self.check_alive("before it listened")?;
            if let Some((id, endpoint)) = left.first()
                && self.spawned.elapsed() > patience
            {
                let seconds = patience.as_secs();
                return Err(self.fault(format!(
                    "{id} at {endpoint}: nothing listened for {seconds} s"
                )));
            }
            // Short against the few milliseconds of a start, long against a connection's cost.
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(accepted)
    }

    /// Checks that all started processes still run.
    pub(super) fn check_alive(&mut self, when: &str) -> Result<(), BenchError> {
        let mut ended = None;
        for child in &mut self.children {
            ended = ended.or(child.try_wait()?);
        }
        match ended {
            Some(status) => Err(self.fault(format!("it ended {when} ({status})"))),
            None => Ok(()),
        }
    }

    /// `why`, with the subject's last lines.
    pub(super) fn fault(&self, why: String) -> BenchError {
        let words = self.lines.last_words();
        let why = match words.is_empty() {
            true => why,
            false => format!("{why}; its last words: {words}"),
        };
        BenchError::Server {
            name: self.name.to_owned(),
            why,
        }
    }

    /// Sends SIGINT, like Ctrl-C, and waits for the end.
    pub(super) fn end(mut self) -> io::Result<Ended> {
        let seen = Look::at(&self.roots());
        let begun = Instant::now();
        let mut status = None;
        for mut child in std::mem::take(&mut self.children) {
            signal(child.id(), Signal::INT);
            status = ended_within(&mut child, END_MAX)?;
            if status.is_none() {
                child.kill()?;
                child.wait()?;
            }
        }
        let took = begun.elapsed();
        self.router = None;
        let deadline = Instant::now() + BURIAL_MAX;
        let mut left = seen.left();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            left = seen.left();
        }
        for process in &left {
            signal(*process, Signal::KILL);
        }
        let left = left.len();
        Ok(Ended { took, status, left })
    }
}

impl Drop for Running {
    /// Kills processes that did not end in order, with all their descendants.
    fn drop(&mut self) {
        if self.children.is_empty() {
            return;
        }
        let seen = Look::at(&self.roots());
        for child in &mut self.children {
            signal(child.id(), Signal::TERM);
        }
        for child in &mut self.children {
            if !matches!(ended_within(child, Duration::from_secs(10)), Ok(Some(_))) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        for process in seen.left() {
            signal(process, Signal::KILL);
        }
    }
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process.cast_signed()) {
        // An ended one needs no signal.
        let _ = kill_process(process, signal);
    }
}

fn ended_within(child: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + longest;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > deadline {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// `PATH` with the program's own directory before all others.
fn path_with(executable: &Path) -> Result<std::ffi::OsString, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = executable.parent().map(Path::to_owned);
    let all = own.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(all).map_err(|error| BenchError::Options(format!("PATH: {error}")))
}
