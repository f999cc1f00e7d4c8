//! `bench accept`: connections opened in batches and held, as in the source document's `EchoServerTest`; then one byte
//! echoed on each of them.
//!
//! ```text
//!   bench ── a batch, divided ──▶ clients, from 127.0.0.2, 127.0.0.3, … ════▶ workers of one port
//!         ◀─ created, established, latencies ─┘
//! ```
//!
//! One process has neither enough descriptors nor enough ports, so there are several on both sides.

pub(crate) mod client;
mod clients;
mod limits;
mod options;
mod run;
mod subjects;

pub use options::AcceptOptions;
use options::Hold;

use std::io;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Fault, Figures, Round, Series};
use crate::frame::{
    self, Bound, Column, Common, FLOOR, Goal, Host, Instrument, OWN, Section, Site, Stage,
    instrument,
};
use crate::machine::Placement;
use crate::report::table::{bytes, number, thousands};
use crate::stream::address::{Address, socket};
use crate::stream::local::{ports_per_address, sources};
use crate::subject::{Endpoint, Socket};

use limits::Limits;

/// The output of the source document's client, on a notebook with Windows 7.
mod document {
    pub(super) const ELAPSED_MS: f64 = 47_545.0;
    pub(super) const HARDWARE: &str = "a notebook with Windows 7";
}

/// Measures, prints progress to standard output, and writes the results file if requested, in any outcome.
pub fn accept(options: AcceptOptions, host: Host) -> Result<bool, BenchError> {
    let options = options.on(host)?;
    frame::run::run(Accept {
        options,
        limits: Limits::here(usize::MAX),
        workers: 0,
        clients: 0,
    })
}

struct Accept {
    options: AcceptOptions,
    limits: Limits,
    workers: usize,
    clients: usize,
}

/// The server that holds the connections. It runs for its own round alone: two servers would share the machine's memory
/// and ports.
enum Holder {
    Stranger(String, Address),
    Testee,
    Floor,
}

impl instrument::Subject for Holder {
    fn name(&self) -> &str {
        match self {
            Self::Stranger(name, _) => name,
            Self::Testee => OWN,
            Self::Floor => FLOOR,
        }
    }
}

struct Plan<'a> {
    site: &'a Site,
    options: &'a AcceptOptions,
    workers: usize,
    clients: usize,
}

impl Accept {
    fn hold(&self, site: &Site, holder: &Holder) -> Result<Round, BenchError> {
        let plan = Plan {
            site,
            options: &self.options,
            workers: self.workers,
            clients: self.clients,
        };
        let (subject, hold) = match holder {
            Holder::Stranger(_, address) => {
                (subjects::stranger(&plan, address)?, self.options.hold)
            }
            Holder::Testee => (subjects::testee(&plan)?, self.options.hold),
            Holder::Floor => (subjects::floor(&plan)?, None),
        };
        let sources = self.probe(site, &subject.endpoint)?;
        site.say(&format!(
            "{}: {}, {} client process(es){}, {} descriptors per process",
            subject.name,
            subject.describe(),
            self.clients,
            match sources.first() {
                Some(_) => format!(" from {}", listed(&sources)),
                None => String::new(),
            },
            thousands(self.limits.descriptors as f64),
        ));
        run::run(&plan, &subject, &sources, hold, &mut io::stdout())
    }

    /// The clients' addresses, if the server listens.
    fn probe(&self, site: &Site, server: &Endpoint) -> Result<Vec<Ipv4Addr>, BenchError> {
        let sources = self.sources(site, server)?;
        client::probe(server, &sources)
            .map_err(|why| BenchError::Options(format!("{server}: {why}")))?;
        Ok(sources)
    }

    /// One address for each client, as far as this machine has them.
    fn sources(&self, site: &Site, server: &Endpoint) -> Result<Vec<Ipv4Addr>, BenchError> {
        let sources = sources(&site.network, server, self.clients);
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

    /// Refuses more than processes can hold here, and sets their number.
    fn count(&mut self) -> Result<(), BenchError> {
        let options = &self.options;
        let url = options.server.url.as_ref();
        let ports = match url.is_some_and(|address| socket(&address.0) == Socket::Unix) {
            true => usize::MAX,
            false => ports_per_address(),
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
        if url.is_none() {
            limits.check("worker(s) of the testee", "--workers", workers, connections)?;
        }
        if options.common.network.link.is_some() {
            limits.check_link(connections)?;
        }
        (self.limits, self.workers, self.clients) = (limits, workers, clients);
        Ok(())
    }
}

impl Instrument for Accept {
    const NAME: &'static str = "accept";
    // Held connections do not compete for cores: they are spread over all.
    const PLACEMENTS: &'static [Placement] = &[Placement::Free];
    const IS_PLACED: bool = false;
    const IS_SINGLE: bool = true;
    const SPEAKS: bool = true;

    type Case = &'static str;
    type Subject = Holder;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.count()?;
        match &self.options.server.url {
            Some(address) => self
                .probe(site, &site.network.reach(&address.0)?)
                .map(|_| ()),
            None => Ok(()),
        }
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        json!({
            "connections": options.connections,
            "batch": options.batch,
            "delay_ms": options.delay.as_secs_f64() * 1e3,
            "workers": options.server.url.is_none().then_some(self.workers),
            "client_processes": self.clients,
            "descriptors_per_process": self.limits.descriptors,
        })
    }

    fn cases(&self) -> Result<Vec<&'static str>, BenchError> {
        Ok(vec![Self::NAME])
    }

    fn subjects(&mut self, _: &Stage<'_>, _: &&'static str) -> Result<Vec<Holder>, BenchError> {
        let own = match &self.options.server.url {
            Some(address) => Holder::Stranger(Address::of(&address.0), address.clone()),
            None => Holder::Testee,
        };
        let floor = self.options.floor.then_some(Holder::Floor);
        Ok([own].into_iter().chain(floor).collect())
    }

    fn round(&mut self, stage: &Stage<'_>, _: &&'static str, holder: &mut Holder) -> Round {
        self.hold(stage.site, holder).map_err(Fault::end)?
    }

    fn comparisons(&self, _: &Site, _: &Section<&'static str>, _: &Series) -> Figures {
        let is_the_documents = self.options.is_the_documents();
        let elapsed_ms = is_the_documents.then_some(document::ELAPSED_MS);
        Figures::new().with_known("document_elapsed_ms", elapsed_ms)
    }

    fn columns(&self, _: &&'static str) -> Vec<Column> {
        vec![
            Column::median("established", "established", thousands),
            Column::median("failed", "failed", thousands),
            Column::median("time ms", "elapsed_ms", thousands),
            Column::median("per s", "established_per_s", thousands),
            Column::median("connect p50 µs", "connect_us.p50", number),
            Column::median("p99 µs", "connect_us.p99", number),
            Column::median("max µs", "connect_us.max", number),
            Column::median("echoed", "echoed.right", thousands),
            Column::median("server CPU µs", "server_cpu_us_per_connection", number),
            Column::median("client CPU µs", "client_cpu_us_per_connection", number),
            Column::median("memory each", SERVER_BYTES, bytes),
            Column::median("after echo", SERVER_BYTES_AFTER_ECHO, bytes),
            Column::median("kernel, both ends", "kernel_bytes_per_connection", bytes),
        ]
    }

    fn below(&self, _: &Site, _: &[&Section<&'static str>]) -> Vec<String> {
        let mut lines = vec![
            "  memory each: the server processes' PSS with all connections less that with none, \
             divided by them; the kernel's is of sockets on both sides, and whatever else it did"
                .to_owned(),
        ];
        if self.options.is_the_documents() {
            lines.push(format!(
                "  document: 60,000 established, 0 failed, {} ms ({}); 35,400 ms of it are delays",
                thousands(document::ELAPSED_MS),
                document::HARDWARE
            ));
        }
        lines
    }

    fn goals(&self, section: &Section<&'static str>, _: &[Section<&'static str>]) -> Vec<Goal> {
        let Some(own) = section.own().filter(|_| self.options.is_the_documents()) else {
            return Vec::new();
        };
        let all = own.median("created").unwrap_or(0.0);
        let bytes = match own.median(SERVER_BYTES_AFTER_ECHO) {
            Some(_) => SERVER_BYTES_AFTER_ECHO,
            None => SERVER_BYTES,
        };
        vec![
            Goal::median("failed", "failed", Bound::AtMost(0.0)),
            Goal::median("time, s", "elapsed_ms", Bound::AtMost(40.0)).in_units_of(1e3),
            Goal::median("connections that echo", "echoed.right", Bound::AtLeast(all)),
            Goal::median("memory each, bytes", bytes, Bound::AtMost(2_048.0)),
        ]
    }
}

const SERVER_BYTES: &str = "server_bytes_per_connection";
const SERVER_BYTES_AFTER_ECHO: &str = "server_bytes_per_connection_after_echo";

/// Addresses in short: the first and the last.
fn listed(addresses: &[Ipv4Addr]) -> String {
    match addresses {
        [] => String::new(),
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
