//! netserver as a peer. It supports only tests that netperf has arranged with it over a control connection, so here
//! netperf is the driver, and its own figures are used.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::case::{Case, Mode, Test};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::process::Place;
use crate::subject::{Endpoint, ServerProcess, Socket, guarded};

/// Its name in tables.
pub(super) const NAME: &str = "netserver";

/// How to install it.
pub(super) const INSTALLATION: &str = "netperf and netserver are not on PATH. They are not in Debian \
    main: apt install netperf with the section non-free, or from source: git clone \
    https://github.com/HewlettPackard/netperf && cd netperf && ./autogen.sh && CFLAGS='-O2 \
    -fcommon -Wno-implicit-function-declaration' ./configure --enable-unixdomain && make install";

/// Additional time of a test for its control connection.
const SPARE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(super) struct Netperf {
    netperf: PathBuf,
    netserver: PathBuf,
}

impl Netperf {
    /// On `PATH`, if both are there.
    pub(super) fn find() -> Option<Self> {
        Some(Self {
            netperf: on_path("netperf")?,
            netserver: on_path("netserver")?,
        })
    }

    /// Whether netserver supports this case.
    pub(super) fn serves(case: &Case) -> bool {
        let discards = case.test != Test::Stream || case.mode == Mode::Discard;
        case.socket == Socket::Tcp && discards
    }

    pub(super) fn start(
        &self,
        executable: &Path,
        place: &Place,
        address: SocketAddr,
    ) -> Result<ServerProcess, BenchError> {
        let mut command = guarded(executable, place, &self.netserver);
        command
            // In the foreground, and without its log.
            .args(["-D", "-N", "-L", &address.ip().to_string()])
            .args(["-p", &address.port().to_string()])
            .stderr(Stdio::null());
        let mut server = ServerProcess::spawn(command, "netserver")?;
        server.wait_until_it_accepts(&Endpoint::Tcp(address), Duration::from_secs(10))?;
        Ok(server)
    }

    /// Runs one test, of whole seconds as in netperf.
    pub(super) fn run(&self, round: &Round<'_>) -> Result<Figures, String> {
        let mut command = guarded(round.executable, round.place, &self.netperf);
        let test = format!("TCP_{}", round.case.test.name());
        let seconds = round.measured.as_secs_f64().ceil().max(1.0);
        let size = match round.case.test.is_transactional() {
            true => ["-r".to_owned(), round.request_bytes.to_string()],
            false => ["-m".to_owned(), round.send_bytes.to_string()],
        };
        command
            .args(["-H", &round.address.ip().to_string()])
            .args(["-p", &round.address.port().to_string()])
            .args(["-t", &test, "-l", &format!("{seconds:.0}"), "-P", "0", "--"])
            .args(size)
            .args(["-k", "THROUGHPUT,ELAPSED_TIME,LSS_SIZE_END,LSR_SIZE_END"]);
        let output = output(command, Duration::from_secs_f64(seconds) + SPARE)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix('=')?.trim().parse::<f64>().ok()
        };
        let Some(per_s) = value("THROUGHPUT").filter(|_| output.status.success()) else {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().chain(text.lines()).next().unwrap_or("nothing");
            return Err(format!("netperf ended with {}: {said}", output.status));
        };
        Ok(Figures::new()
            .with(super::goals::figure(round.case.test), per_s)
            .with_known("elapsed_s", value("ELAPSED_TIME"))
            .with_known("send_buffer_bytes", value("LSS_SIZE_END"))
            .with_known("receive_buffer_bytes", value("LSR_SIZE_END")))
    }
}

/// A program's output, if it ends in time. It must not write more than a pipe holds.
fn output(mut command: Command, longest: Duration) -> Result<Output, String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let why = |error: io::Error| error.to_string();
    let mut child = command.spawn().map_err(why)?;
    let deadline = Instant::now() + longest;
    while child.try_wait().map_err(why)?.is_none() {
        if Instant::now() > deadline {
            child.kill().map_err(why)?;
            child.wait().map_err(why)?;
            return Err(format!(
                "netperf has not ended within {} s; netserver does not answer it",
                longest.as_secs()
            ));
        }
        // Rare against the measurement meanwhile, short against its seconds.
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().map_err(why)
}

/// One test of netperf's.
pub(super) struct Round<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) case: Case,
    pub(super) address: SocketAddr,
    pub(super) measured: Duration,
    pub(super) request_bytes: usize,
    pub(super) send_bytes: usize,
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}
