//! netserver as a peer. It takes part only in tests that netperf has arranged with it over a
//! control connection, so here netperf is the driver, and its own figures are taken.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::case::{Case, Mode, Test};
use crate::case::Socket;
use crate::error::BenchError;
use crate::figures::Figures;
use crate::place::Place;
use crate::server::{ServerProcess, guarded};
use crate::target::Endpoint;

/// Its name in tables.
pub(super) const NAME: &str = "netserver";

/// How to get it where it is absent.
pub(super) const INSTALLATION: &str = "netperf and netserver are not on PATH. They are not in Debian \
    main: apt install netperf with the section non-free, or from source: git clone \
    https://github.com/HewlettPackard/netperf && cd netperf && ./autogen.sh && CFLAGS='-O2 \
    -fcommon -Wno-implicit-function-declaration' ./configure --enable-unixdomain && make install";

/// Both programs, found.
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

    /// Whether netserver takes part in this case.
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

    /// Runs one test, of whole seconds as netperf has them.
    pub(super) fn run(&self, round: &Round<'_>) -> Result<Figures, String> {
        let mut command = guarded(round.executable, round.place, &self.netperf);
        let test = format!("TCP_{}", round.case.test.name());
        let seconds = round.measured.as_secs_f64().ceil().max(1.0);
        let size = match round.case.test.is_transactional() {
            true => ["-r".to_owned(), round.request_octets.to_string()],
            false => ["-m".to_owned(), round.send_octets.to_string()],
        };
        command
            .args(["-H", &round.address.ip().to_string()])
            .args(["-p", &round.address.port().to_string()])
            .args(["-t", &test, "-l", &format!("{seconds:.0}"), "-P", "0", "--"])
            .args(size)
            .args(["-k", "THROUGHPUT,ELAPSED_TIME,LSS_SIZE_END,LSR_SIZE_END"]);
        let output = command.output().map_err(|error| error.to_string())?;
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

/// One test of netperf's.
pub(super) struct Round<'a> {
    pub(super) executable: &'a Path,
    pub(super) place: &'a Place,
    pub(super) case: Case,
    pub(super) address: SocketAddr,
    pub(super) measured: Duration,
    pub(super) request_octets: usize,
    pub(super) send_octets: usize,
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}
