//! NATS servers for nodes: one in memory, one with storage, or three with storage on disks.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::BenchError;
use crate::load::free_address;
use crate::peer::crossbar::find_on_path;
use crate::process::Place;
use crate::subject::{Endpoint, ServerProcess, guarded};

/// The options of the start.
pub(crate) struct Starting<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) executable: &'a Path,
    pub(crate) place: &'a Place,
    pub(crate) program: &'a Path,
}

/// A running server, and its address for nodes.
pub(crate) struct NatsServer {
    pub(crate) address: SocketAddr,
    /// The address of its monitoring, if it has storage.
    pub(crate) monitor: Option<SocketAddr>,
    pub(crate) process: ServerProcess,
}

/// With the settings of docs/fabric.md.
const SETTINGS: &str = "max_payload: 8MB\nmax_control_line: 32KB\nmax_pending: 256MB\n\
    ping_interval: \"5s\"\nno_fast_producer_stall: true\n";
const PATIENCE: Duration = Duration::from_secs(60);

/// The given program, or the one on PATH.
pub(crate) fn program(named: Option<&PathBuf>) -> Result<PathBuf, BenchError> {
    let found = named.cloned();
    found
        .or_else(|| find_on_path("nats-server"))
        .ok_or_else(|| {
            let why = "nats-server is not found: have it on PATH, or name it with --nats-server; \
                   go install github.com/nats-io/nats-server/v2@v2.15.3";
            BenchError::Options(why.to_owned())
        })
}

/// One server without storage.
pub(crate) fn start_one(starting: &Starting<'_>) -> Result<NatsServer, BenchError> {
    let address = free_address()?;
    start(starting, address, None, "")
}

/// One that stores to files, and leaves flushing to the system.
pub(crate) fn start_one_with_storage(starting: &Starting<'_>) -> Result<NatsServer, BenchError> {
    let store = starting.directory.join("jetstream");
    let more = format!("jetstream {{ store_dir: \"{}\" }}\n", store.display());
    start(starting, free_address()?, None, &more)
}

/// Three, each of which syncs to its disk before it acknowledges.
pub(crate) fn start_three(starting: &Starting<'_>) -> Result<Vec<NatsServer>, BenchError> {
    let mut routes = Vec::new();
    for _ in 0..3 {
        routes.push(free_address()?);
    }
    let urls: Vec<String> = routes.iter().map(|at| format!("\"nats://{at}\"")).collect();
    let urls = urls.join(", ");
    let mut servers = Vec::new();
    for (at, route) in routes.iter().enumerate() {
        let monitor = free_address()?;
        let store = starting.directory.join(format!("jetstream-{at}"));
        let store = store.display();
        let more = format!(
            "server_name: \"s{at}\"\nhttp: \"{monitor}\"\n\
             jetstream {{ store_dir: \"{store}\", sync_interval: always }}\n\
             cluster {{ name: \"bench\", listen: \"{route}\", routes: [{urls}] }}\n"
        );
        servers.push(start(starting, free_address()?, Some(monitor), &more)?);
    }
    Ok(servers)
}

fn start(
    starting: &Starting<'_>,
    address: SocketAddr,
    monitor: Option<SocketAddr>,
    more: &str,
) -> Result<NatsServer, BenchError> {
    let name = format!("nats-{}.conf", address.port());
    let file = starting.directory.join(name);
    fs::write(&file, format!("listen: \"{address}\"\n{SETTINGS}{more}"))?;
    let mut command = guarded(starting.executable, starting.place, starting.program);
    command.arg("-c").arg(&file);
    let log = file.with_extension("log");
    let mut process = ServerProcess::spawn_logged(command, "nats-server", log)?;
    process.wait_until_it_accepts(&Endpoint::Tcp(address), PATIENCE)?;
    Ok(NatsServer {
        address,
        monitor,
        process,
    })
}
