//! CGI scripts: one process per request (RFC 3875).
//!
//! A process belongs to its request: it is killed with its children when the client disconnects, when it is silent for
//! too long, and when it runs for too long. The number of processes is bounded, and so is the number of waiting
//! requests.

mod output;
mod script;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{Cgi as Model, ChildEnvironment, Inherit};
use crosstie_transport::PeerAddress;
use crosstie_web::cgi;
use hyper::body::{Body as _, Incoming};
use hyper::{Response, StatusCode};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use self::output::{Output, feed};
use self::script::{Script, Scripts};
use super::answer;
use super::passage::{Progress, Sent};
use super::places::{Place, Places};
use super::{Answering, Asked, Body, Service};
use crate::programs::{Executable, Hosting, Program, Programs, Running};

/// A service of scripts.
pub(crate) struct Cgi {
    scripts: Scripts,
    processor: PathBuf,
    programs: Arc<dyn Programs>,
    environment: ChildEnvironment,
    places: Places,
    timeout: Duration,
    run_timeout: Duration,
}

/// Why a script gave no answer.
pub(super) enum Failure {
    /// The node cannot start it.
    NotStarted(io::Error),
    /// It was silent for too long.
    Silent,
    /// Its output is not a valid answer.
    Bad(String),
}

impl Cgi {
    pub(crate) fn new(model: &Model, directory: &Path, hosting: &Hosting) -> io::Result<Self> {
        let mut environment = hosting.options.environment.clone();
        // Any client can reach a script: by default it gets only the variables that it needs to run.
        if environment.inherit == Inherit::AllButSecrets {
            environment.inherit = Inherit::Usual;
        }
        Ok(Self {
            scripts: Scripts::open(directory.join(&model.directory)),
            processor: processor(&model.processor, directory),
            programs: Arc::clone(hosting.programs()?),
            environment,
            places: Places::new(model.processes_max),
            timeout: model.timeout,
            run_timeout: model.run_timeout,
        })
    }

    async fn respond(&self, asked: Asked) -> Response<Body> {
        let Some(script) = self.scripts.find(&asked.base, &asked.rest) else {
            return answer::not_found();
        };
        // A script needs the length of the body in advance.
        let Some(body_bytes) = asked.request.body().size_hint().exact() else {
            let text = "A request with a body needs a Content-Length here.";
            return answer::page(StatusCode::LENGTH_REQUIRED, "411 Length Required", text);
        };
        let place = match self.places.enter(&asked.connection, self.timeout).await {
            Ok(place) => place,
            Err(full) => return full,
        };
        let file = script.file.clone();
        match self.run(asked, script, body_bytes, place).await {
            Ok(response) => response,
            Err(failure) => failure.answer(&file),
        }
    }

    async fn run(
        &self,
        asked: Asked,
        script: Script,
        body_bytes: u64,
        place: Place,
    ) -> Result<Response<Body>, Failure> {
        let deadline = Instant::now() + self.run_timeout;
        let progress = Progress::new();
        let (stdout_read, stdout_write) = pipe()?;
        let stdin = match body_bytes {
            0 => None,
            _ => Some(pipe()?),
        };
        let (stdin_read, stdin_write) = stdin.unzip();
        let program = self.program(&asked, &script, body_bytes, (stdin_read, stdout_write));
        let running = self.start(program).await?;
        let feeding = match stdin_write {
            Some(pipe) => {
                let body = Sent::new(asked.request.into_body(), progress.clone(), body_bytes);
                Some(feed(body, pipe::Sender::from_owned_fd(pipe)?))
            }
            None => None,
        };
        let stdout = pipe::Receiver::from_owned_fd(stdout_read)?;
        let mut output = Output::new(stdout, running, feeding, place, deadline);
        // While the client is still sending, the script's silence is normal.
        let head = tokio::select! {
            head = output.head() => head?,
            () = progress.until_silent(self.timeout) => return Err(Failure::Silent),
            () = tokio::time::sleep_until(deadline) => return Err(Failure::Silent),
        };
        let mut response = Response::new(output.body(self.timeout));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Ok(response)
    }

    fn program(
        &self,
        asked: &Asked,
        script: &Script,
        body_bytes: u64,
        (stdin, stdout): (Option<OwnedFd>, OwnedFd),
    ) -> Program {
        let request = &asked.request;
        let (server_name, server_port) = asked.server();
        let remote_address = match asked.connection.peer() {
            PeerAddress::Tcp(address) => address.ip().to_canonical().to_string(),
            PeerAddress::Unix(_) => String::new(),
        };
        let told = cgi::Request {
            method: request.method(),
            headers: request.headers(),
            query: request.uri().query().unwrap_or_default(),
            script_name: &script.name,
            script_file: &script.file.to_string_lossy(),
            path_info: &script.path_info,
            server_name,
            server_port,
            remote_address: &remote_address,
            is_secure: asked.is_secure(),
            body_bytes: (body_bytes > 0).then_some(body_bytes),
        };
        let directory = script.file.parent().map(PathBuf::from).unwrap_or_default();
        Program {
            executable: Executable::Named(self.processor.clone()),
            arguments: vec![script.file.clone().into()],
            directory,
            environment: self.environment.clone(),
            variables: told.variables(),
            cpu_affinity: Vec::new(),
            title: "CGI",
            stdin,
            stdout: Some(stdout),
        }
    }

    async fn start(&self, program: Program) -> Result<Box<dyn Running>, Failure> {
        let gone = |_| Err(io::Error::other("the node is gone"));
        let started = self.programs.start(program).await;
        started.unwrap_or_else(gone).map_err(Failure::NotStarted)
    }
}

impl Service for Cgi {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.respond(asked))
    }
}

/// A plain name is searched on `PATH`; a path is relative to the node's directory.
fn processor(named: &str, directory: &Path) -> PathBuf {
    match named.contains('/') {
        true => directory.join(named),
        false => named.into(),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::NotStarted(error)
    }
}

impl Failure {
    fn answer(self, file: &Path) -> Response<Body> {
        let file = file.display();
        let bad = |text| answer::page(StatusCode::BAD_GATEWAY, "502 Bad Gateway", text);
        match self {
            Self::NotStarted(error) => {
                tracing::warn!("CGI script {file} cannot be started: {error}");
                bad("The program behind this address could not be started.")
            }
            Self::Silent => {
                tracing::warn!("CGI script {file} did not answer in time and was ended");
                let text = "The program behind this address did not answer in time.";
                answer::page(StatusCode::GATEWAY_TIMEOUT, "504 Gateway Timeout", text)
            }
            Self::Bad(why) => {
                tracing::warn!("CGI script {file}: {why}");
                bad("The program behind this address did not answer as it should.")
            }
        }
    }
}

/// The source of a request's body.
pub(super) type Input = Sent<Incoming>;
