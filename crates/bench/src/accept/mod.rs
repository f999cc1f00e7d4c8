//! `bench accept`: connections opened in batches and held, as the source document's
//! `EchoServerTest` does it; then one byte echoed on each of them.
//!
//! ```text
//!   bench ── a batch, shared out ──▶ clients, from 127.0.0.2, 127.0.0.3, … ════▶ workers of one port
//!         ◀─ created, established, latencies ─┘
//! ```
//!
//! One process has neither descriptors nor ports enough, so there are several on both sides.

pub mod client;
mod clients;
mod limits;
mod options;
mod present;
mod run;
mod subjects;

pub use options::{AcceptOptions, Hold};

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde_json::json;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::machine::placement::allowed_cores;
use crate::network::Network;
use crate::process::directory;
use crate::report::json::{Frame, Row, write};
use crate::report::table::thousands;
use crate::stream::address::socket;
use crate::stream::local::{ports_per_address, sources};
use crate::subject::case::Socket;
use crate::subject::target::Endpoint;

use limits::Limits;
use run::Found;
use subjects::Subject;

/// What `bench accept` found, as it stands in the JSON frame.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptReport {
    pub rows: Vec<Row>,
}

impl AcceptReport {
    /// Whether every connection was there, stayed, and echoed.
    pub fn is_valid(&self) -> bool {
        self.rows.iter().all(|row| row.valid)
    }
}

/// Measures, printing its progress to standard output, and writes the JSON file if one was asked
/// for, whatever came of it.
pub fn accept(options: AcceptOptions) -> Result<AcceptReport, BenchError> {
    let bench = Bench::new(options)?;
    let mut out = io::stdout();
    let mut found = Vec::new();
    let outcome = bench.measure_all(&mut out, &mut found);
    if !found.is_empty() {
        present::print(&mut out, &bench, &found)?;
    }
    let rows: Vec<Row> = found
        .iter()
        .map(|found| present::row(&bench, found))
        .collect();
    if let Some(path) = &bench.options.json {
        let frame = Frame {
            bench: "accept",
            version: &bench.options.build.version,
            commit: &bench.options.build.commit,
            machine: &bench.machine,
            settings: bench.settings(),
            results: rows.clone(),
        };
        write(path, &frame)?;
    }
    outcome?;
    Ok(AcceptReport { rows })
}

/// The options, made definite.
struct Bench {
    options: AcceptOptions,
    machine: Machine,
    executable: PathBuf,
    /// Sockets live here.
    directory: tempfile::TempDir,
    network: Network,
    allowed: Vec<usize>,
    limits: Limits,
    workers: usize,
    clients: usize,
}

impl Bench {
    fn new(options: AcceptOptions) -> Result<Self, BenchError> {
        options.check()?;
        if options.connect.is_some() {
            options.network.check_foreign_server()?;
        }
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        let unix = options
            .connect
            .as_ref()
            .is_some_and(|address| socket(&address.0) == Socket::Unix);
        let ports = if unix {
            usize::MAX
        } else {
            ports_per_address()
        };
        let limits = Limits::here(ports);
        let connections = options.connections;
        let workers = options
            .workers
            .unwrap_or_else(|| limits.workers(connections));
        let clients = options
            .clients
            .unwrap_or_else(|| limits.clients(connections));
        limits.check("client process(es)", "--clients", clients, connections)?;
        if options.connect.is_none() {
            limits.check("worker(s) of the testee", "--workers", workers, connections)?;
        }
        if options.network.link.is_some() {
            limits.check_link(connections)?;
        }
        Ok(Self {
            machine: Machine::now(),
            executable,
            directory,
            network,
            allowed: allowed_cores()?,
            limits,
            workers,
            clients,
            options,
        })
    }

    fn measure_all(&self, out: &mut impl Write, found: &mut Vec<Found>) -> Result<(), BenchError> {
        let subject = match &self.options.connect {
            Some(address) => subjects::stranger(self, address)?,
            None => subjects::testee(self)?,
        };
        found.push(self.measure(out, &subject, self.options.hold)?);
        drop(subject);
        if self.options.floor && !self.options.stop.is_wished() {
            let floor = subjects::floor(self)?;
            found.push(self.measure(out, &floor, None)?);
        }
        Ok(())
    }

    fn measure(
        &self,
        out: &mut impl Write,
        subject: &Subject,
        hold: Option<Hold>,
    ) -> Result<Found, BenchError> {
        let sources = self.sources(&subject.endpoint)?;
        client::probe(&subject.endpoint, &sources)
            .map_err(|why| BenchError::Options(format!("{}: {why}", subject.name)))?;
        writeln!(
            out,
            "{}: {}, {} client process(es){}, {} descriptors per process",
            subject.name,
            subject.describe(),
            self.clients,
            match sources.first() {
                Some(_) => format!(" from {}", present::listed(&sources)),
                None => String::new(),
            },
            thousands(self.limits.descriptors as f64),
        )?;
        run::run(self, subject, &sources, hold, out)
    }

    /// One address for each client, as far as this machine has them.
    fn sources(&self, server: &Endpoint) -> Result<Vec<Ipv4Addr>, BenchError> {
        let sources = sources(&self.network, server, self.clients);
        let ports = self.limits.ports.saturating_mul(sources.len().max(1));
        match self.options.connections <= ports {
            true => Ok(sources),
            false => Err(BenchError::Options(format!(
                "{} connections are more than the {} ports that this machine has to {server}: \
                 widen net.ipv4.ip_local_port_range (sysctl), or open fewer",
                thousands(self.options.connections as f64),
                thousands(ports as f64),
            ))),
        }
    }

    fn settings(&self) -> serde_json::Value {
        let options = &self.options;
        json!({
            "connections": options.connections,
            "batch": options.batch,
            "delay_ms": options.delay.as_secs_f64() * 1e3,
            "workers": options.connect.is_none().then_some(self.workers),
            "client_processes": self.clients,
            "descriptors_per_process": self.limits.descriptors,
            "network": self.network.description(),
        })
    }
}
