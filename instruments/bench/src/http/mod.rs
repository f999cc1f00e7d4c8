//! `bench http`: the cost of requests that a node's web services answer, beside a web server and a Crossbar.io.
//!
//! ```text
//!  driver ──requests, each after its answer──▶ ┌────────┐ ◀──WAMP── callee
//!    (N connections, a thread each)            │ server │
//!                                              └────────┘
//! ```
//!
//! Clients of long-poll wait for publications, beside subscribers over WebSocket; and thousands of them only wait.

pub(crate) mod answer;
pub(crate) mod case;
pub(crate) mod client;
pub(crate) mod driver;
mod events;
mod expected;
mod idle;
mod options;
mod request;
mod round;
mod servers;

pub use options::HttpOptions;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series, unfit};
use crate::frame::{
    self, Bound, Column, Common, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
};
use crate::handshake::usage;
use crate::report::table::{number, thousands};

use case::{Case, Kind};
use options::HttpPeer;
use request::Request;
use servers::{Server, Servers};

const RATE: &str = "requests_per_s";
const SERVER_CPU: &str = "server_cpu_us_per_request";
const EVENT_P99: &str = "event_p99_us";
const CLIENT_BYTES: &str = "pss_bytes_per_client";

/// Measures, prints to standard output, and writes the results file if requested.
pub fn http(options: HttpOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Http {
        options: options.on(host)?,
        servers: Servers::default(),
    })
}

struct Http {
    options: HttpOptions,
    servers: Servers,
}

impl Instrument for Http {
    const NAME: &'static str = "http";

    type Case = Case;
    type Subject = Server;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.servers = Servers::start(site, &self.options)?;
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.servers.testbed()
    }

    fn load(&self) -> Option<String> {
        Some(format!(
            "HTTP/1.1 over loopback TCP, {} connections that stay open, one request at a time on each",
            self.options.connections
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({ "connections": self.options.connections, "clients": self.options.clients })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.definite_cases())
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Server>, BenchError> {
        self.servers.on(&stage.cores.router, *case)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, server: &mut Server) -> Round {
        Ok(round::run(&self.options, stage, *case, server)?)
    }

    fn limit(&self, section: &Section<Case>, _: &Series) -> Option<Limit> {
        let is_of_requests = matches!(section.case.kind(), Kind::Requests(_));
        is_of_requests.then(|| usage::limit(section.placement))
    }

    fn title(&self, section: &Section<Case>) -> String {
        let what = match section.case.kind() {
            Kind::Requests(_) => return section.title(),
            Kind::Events { .. } => "events",
            Kind::Memory => "clients of long-poll that wait",
        };
        format!("{what}: {}", section.title())
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, series: &Series) -> Figures {
        let mut over = Figures::new();
        for peer in HttpPeer::ALL {
            for figure in [RATE, SERVER_CPU] {
                if let Some(ratio) = section.over(series, peer.name(), figure) {
                    over.set(&format!("{figure}_over_{peer}"), ratio.median);
                }
            }
        }
        over
    }

    fn columns(&self, case: &Case) -> Vec<Column> {
        let (crossbar, nginx) = (HttpPeer::Crossbar.name(), HttpPeer::Nginx.name());
        match case.kind() {
            Kind::Requests(_) => vec![
                Column::rate("requests/s", RATE, thousands),
                Column::spread("server CPU µs", SERVER_CPU, number),
                Column::median("p50 µs", "request_p50_us", number),
                Column::spread("p99 µs", "request_p99_us", number),
                Column::median("max µs", "request_max_us", number),
                Column::over("rate ÷ nginx", nginx, RATE),
                Column::over("rate ÷ crossbar", crossbar, RATE),
                Column::over("CPU ÷ crossbar", crossbar, SERVER_CPU),
            ],
            Kind::Events { .. } => vec![
                Column::median("events", "events", thousands),
                Column::spread("server CPU µs", "server_cpu_us_per_event", number),
                Column::median("p50 µs", "event_p50_us", number),
                Column::spread("p99 µs", EVENT_P99, number),
                Column::median("max µs", "event_max_us", number),
            ],
            Kind::Memory => vec![
                Column::median("clients", "clients", thousands),
                Column::spread("bytes per client", CLIENT_BYTES, thousands),
            ],
        }
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let has_load = |one: &&&Section<Case>| one.case.kind() != Kind::Memory;
        let loaded = sections.iter().filter(has_load);
        loaded.flat_map(|one| usage::lines(one)).collect()
    }

    fn goals(&self, section: &Section<Case>, before: &[Section<Case>]) -> Vec<Goal> {
        let (crossbar, nginx) = (HttpPeer::Crossbar.name(), HttpPeer::Nginx.name());
        match section.case.kind() {
            Kind::Requests(Request::File) => vec![
                Goal::over("requests/s ÷ nginx", nginx, RATE, Bound::AtLeast(1.0)),
                Goal::over("server CPU ÷ nginx", nginx, SERVER_CPU, Bound::AtMost(1.0)),
                Goal::over(
                    "requests/s ÷ crossbar",
                    crossbar,
                    RATE,
                    Bound::AtLeast(20.0),
                ),
            ],
            Kind::Requests(_) => {
                let what = "server CPU ÷ crossbar";
                vec![Goal::over(what, crossbar, SERVER_CPU, Bound::AtMost(0.05))]
            }
            Kind::Events { is_longpoll: false } => Vec::new(),
            Kind::Events { is_longpoll: true } => vec![over_websocket(section, before)],
            Kind::Memory => {
                let what = "KiB per client that waits";
                vec![Goal::median(what, CLIENT_BYTES, Bound::AtMost(6.0)).in_units_of(1024.0)]
            }
        }
    }
}

/// The 99th percentile of the latency over that of WebSocket.
fn over_websocket(section: &Section<Case>, before: &[Section<Case>]) -> Goal {
    let websocket = before
        .iter()
        .find(|other| other.placement == section.placement && other.case == Case::WebSocket);
    let both = section.own().zip(websocket.and_then(Section::own));
    let over =
        both.and_then(|(own, other)| Some(own.median(EVENT_P99)? / other.median(EVENT_P99)?));
    let why = both.and_then(|(own, other)| unfit([own, other]));
    Goal::computed("p99 ÷ WebSocket's", over, Bound::AtMost(2.0)).unless(why)
}
