//! WSGI applications and Twisted resources in a Python process beside the router. The router speaks HTTP with that
//! process over a Unix socket that only this user can open.
//!
//! ```text
//!  Starting ──ready──▶ Serving ──ended──▶ Down ──after a while, twice as long each time──▶ Starting
//! ```
//!
//! The process reads its definition from its standard input, a socket, and reports there when it serves. When the
//! service closes that socket, the process exits.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crosstie_config::{NativeOptions, WebProgram, WebPython};
use crosstie_transport::PeerAddress;
use crosstie_web::forward::{remove_hop_by_hop, target};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::answer;
use super::backend::{Address, Backend, Bounds};
use super::{Answering, Asked, Body, Service};
use crate::programs::{Executable, Program, Programs, Running};
use crate::services::Grounds;

/// The Python module that hosts them.
const MODULE: &str = "crosstie.web";
/// Maximum time until a process serves.
const START_MAX: Duration = Duration::from_secs(60);
/// A process's time to exit when it is no longer needed.
const END_MAX: Duration = Duration::from_secs(5);
/// The first, and the longest, pause between a process's end and its next start.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// After this run time a process counts as healthy.
const WELL: Duration = Duration::from_secs(60);
/// Maximum size of a process's report that it serves, or why it does not.
const REPORT_BYTES_MAX: u64 = 16 * 1024;

/// A service answered by a Python process.
pub(crate) struct Python {
    backend: Backend,
    state: watch::Receiver<State>,
    timeout: Duration,
    /// Dropped with the service.
    _wanted: oneshot::Sender<()>,
}

/// The state of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Serving,
    /// The process has ended, and will be started again.
    Down,
}

/// The process through all its runs.
struct Host {
    programs: Arc<dyn Programs>,
    options: NativeOptions,
    directory: PathBuf,
    socket: PathBuf,
    title: &'static str,
    /// The name of its application, for the log.
    name: String,
    definition: String,
    state: watch::Sender<State>,
}

impl Python {
    pub(crate) fn new(
        model: &WebPython,
        directory: &Path,
        grounds: &Grounds,
        keeper: &Handle,
    ) -> io::Result<Self> {
        let hosting = &grounds.hosting;
        let programs = hosting.programs()?;
        let without = || io::Error::other("there is no node directory for its socket");
        let private = programs.private().ok_or_else(without)?;
        let (title, name, mut definition) = match &model.program {
            WebProgram::Wsgi { module, object } => (
                "WSGI",
                format!("WSGI application {module}.{object}"),
                json!({"type": "wsgi", "module": module, "object": object}),
            ),
            WebProgram::Resource { class, extra } => (
                "Resource",
                format!("Twisted resource {class}"),
                json!({"type": "resource", "classname": class, "extra": extra}),
            ),
            _ => return Err(io::Error::other("a program of this type is not known here")),
        };
        definition["minthreads"] = model.threads_min.into();
        definition["maxthreads"] = model.threads_max.into();
        let socket = socket(private);
        let bounds = Bounds {
            requests_max: model.requests_max,
            timeout: model.timeout,
            body_bytes_max: model.body_bytes_max,
        };
        let kind = match model.program {
            WebProgram::Wsgi { .. } => "wsgi",
            _ => "resource",
        };
        let counts = grounds.requests.of(kind, &name);
        let (state, state_seen) = watch::channel(State::Starting);
        let (wanted, unwanted) = oneshot::channel();
        let host = Host {
            programs: Arc::clone(programs),
            options: hosting.options.clone(),
            directory: directory.to_owned(),
            socket: socket.clone(),
            title,
            name: name.clone(),
            definition: definition.to_string(),
            state,
        };
        keeper.spawn(host.keep(unwanted));
        Ok(Self {
            backend: Backend::new(Address::Unix(socket), name, bounds, counts),
            state: state_seen,
            timeout: model.timeout,
            _wanted: wanted,
        })
    }

    async fn respond(&self, asked: Asked) -> Response<Body> {
        if !self.is_serving().await {
            let text = "The program behind this address is not running.";
            return answer::page(StatusCode::BAD_GATEWAY, "502 Bad Gateway", text);
        }
        let (server, client) = (server(&asked), client(&asked));
        let mut request = asked.request;
        let target = target(&asked.base, &asked.rest, request.uri().query());
        let authority = request.uri().authority().map(ToString::to_string);
        let headers = request.headers_mut();
        remove_hop_by_hop(headers);
        for (name, value) in [
            ("x-crosstie-base", Some(asked.base)),
            ("x-crosstie-client", client),
            ("x-crosstie-server", Some(server)),
        ] {
            // The router sets these headers, whatever the client sent.
            headers.remove(name);
            let value = value.and_then(|value| HeaderValue::try_from(value).ok());
            if let Some(value) = value {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        // Over HTTP/2 the URL contains the host.
        if let Some(host) = authority.and_then(|host| HeaderValue::try_from(host).ok()) {
            headers.insert(HOST, host);
        }
        self.backend.ask(request, &target, &asked.connection).await
    }

    /// Whether the process serves, after waiting for its start.
    async fn is_serving(&self) -> bool {
        let mut state = self.state.clone();
        let started = state.wait_for(|state| *state != State::Starting);
        let started = tokio::time::timeout(self.timeout, started).await;
        matches!(started, Ok(Ok(state)) if *state == State::Serving)
    }
}

impl Service for Python {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.respond(asked))
    }
}

/// A unique path in a private directory, short and of safe characters.
fn socket(private: &Path) -> PathBuf {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    private.join(format!("web{number}.sock"))
}

/// The scheme and the port used by the client: `https 8080`.
fn server(asked: &Asked) -> String {
    let scheme = if asked.is_secure() { "https" } else { "http" };
    let (_, port) = asked.server();
    format!("{scheme} {port}")
}

/// The client's address: `127.0.0.1 4711`.
fn client(asked: &Asked) -> Option<String> {
    match asked.connection.peer() {
        PeerAddress::Tcp(address) => {
            let (ip, port) = (address.ip().to_canonical(), address.port());
            Some(format!("{ip} {port}"))
        }
        PeerAddress::Unix(_) => None,
    }
}

impl Host {
    /// Runs the process until the service is dropped.
    async fn keep(self, mut unwanted: oneshot::Receiver<()>) {
        let mut pause = PAUSE_MIN;
        loop {
            let _ = self.state.send(State::Starting);
            let began = Instant::now();
            let why = tokio::select! {
                why = self.run() => why,
                // Dropping the run ends the process.
                _ = &mut unwanted => break,
            };
            let _ = self.state.send(State::Down);
            if began.elapsed() >= WELL {
                pause = PAUSE_MIN;
            }
            tracing::error!(
                "{}: {why}; restarting in {} ms",
                self.name,
                pause.as_millis()
            );
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = &mut unwanted => break,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let _ = std::fs::remove_file(&self.socket);
    }

    /// One run of the process. Returns the reason of its end.
    async fn run(&self) -> String {
        let (line, running) = match self.start().await {
            Ok(started) => started,
            Err(error) => return format!("cannot be started: {error}"),
        };
        let mut ending = Ending {
            line: Some(line),
            running: Some(running),
        };
        let (Some(line), Some(running)) = (&mut ending.line, &mut ending.running) else {
            return String::new();
        };
        let reported = tokio::select! {
            reported = self.report(line) => reported,
            how = running.ended() => return format!("ended with {how} before it served"),
            () = tokio::time::sleep(START_MAX) => Err(io::ErrorKind::TimedOut.into()),
        };
        match reported {
            Ok(text) if text == "ready" => {}
            Ok(text) => return text,
            Err(error) => return format!("did not begin to serve: {error}"),
        }
        tracing::info!("{} is served", self.name);
        let _ = self.state.send(State::Serving);
        format!("ended with {}", running.ended().await)
    }

    async fn start(&self) -> io::Result<(UnixStream, Box<dyn Running>)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        // A leftover of an earlier run.
        let _ = std::fs::remove_file(&self.socket);
        let started = self.programs.start(self.program(theirs.into())).await;
        let gone = |_| Err(io::Error::other("the node is gone"));
        Ok((ours, started.unwrap_or_else(gone)?))
    }

    fn program(&self, line: OwnedFd) -> Program {
        let options = &self.options;
        let mut arguments: Vec<OsString> = ["-u", "-m", MODULE].map(Into::into).into();
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        option("--socket", self.socket.clone().into());
        option("--directory", self.directory.clone().into());
        option("--loglevel", self.programs.loglevel().into());
        for path in &options.pythonpath {
            option("--pythonpath", self.directory.join(path).into());
        }
        Program {
            executable: Executable::Python(options.python.clone()),
            arguments,
            directory: self.directory.clone(),
            environment: options.environment.clone(),
            variables: Vec::new(),
            cpu_affinity: options.cpu_affinity.clone(),
            title: self.title,
            stdin: Some(line),
            stdout: None,
        }
    }

    /// Sends the definition, and returns the process's report.
    async fn report(&self, line: &mut UnixStream) -> io::Result<String> {
        let text = format!("{}\n", self.definition);
        line.write_all(text.as_bytes()).await?;
        let mut said = String::new();
        let mut line = BufReader::new(line).take(REPORT_BYTES_MAX);
        match line.read_line(&mut said).await? {
            0 => std::future::pending().await,
            _ => Ok(said.trim_end().to_owned()),
        }
    }
}

/// Ends a process: closes its socket, and kills it after a timeout.
struct Ending {
    line: Option<UnixStream>,
    running: Option<Box<dyn Running>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // The process exits at the end of this stream.
        self.line = None;
        let (Some(mut running), Ok(here)) = (self.running.take(), Handle::try_current()) else {
            return;
        };
        here.spawn(async move {
            let _ = tokio::time::timeout(END_MAX, running.ended()).await;
        });
    }
}
