//! `bench http`: what requests cost that a node's web services answer, beside a web server and a Crossbar.io.
//!
//! ```text
//!  driver ──requests, each after its answer──▶ ┌────────┐ ◀──WAMP── callee
//!    (N connections, a thread each)            │ server │
//!                                              └────────┘
//! ```

pub(crate) mod answer;
pub(crate) mod case;
pub(crate) mod driver;
mod expected;
mod options;
mod round;
mod servers;

pub use options::HttpOptions;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Bound, Column, Common, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
    Threads,
};
use crate::handshake::usage;
use crate::report::table::{number, thousands};

use case::Case;
use options::HttpPeer;
use servers::{Server, Servers};

const RATE: &str = "requests_per_s";
const SERVER_CPU: &str = "server_cpu_us_per_request";

/// Measures, prints to standard output, and writes the results file if one was asked for.
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
        json!({ "connections": self.options.connections })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.definite_cases())
    }

    fn threads(&self) -> Threads {
        Threads {
            server: 1,
            clients: 1,
        }
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Server>, BenchError> {
        self.servers.on(&stage.cores.router, *case)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, server: &mut Server) -> Round {
        Ok(round::run(&self.options, stage, *case, server)?)
    }

    fn limit(&self, section: &Section<Case>, _: &Series) -> Option<Limit> {
        Some(usage::limit(section.placement))
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

    fn columns(&self, _: &Case) -> Vec<Column> {
        let (crossbar, nginx) = (HttpPeer::Crossbar.name(), HttpPeer::Nginx.name());
        vec![
            Column::rate("requests/s", RATE, thousands),
            Column::spread("server CPU µs", SERVER_CPU, number),
            Column::median("p50 µs", "request_p50_us", number),
            Column::spread("p99 µs", "request_p99_us", number),
            Column::median("max µs", "request_max_us", number),
            Column::over("rate ÷ nginx", nginx, RATE),
            Column::over("rate ÷ crossbar", crossbar, RATE),
            Column::over("CPU ÷ crossbar", crossbar, SERVER_CPU),
        ]
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        sections.iter().flat_map(|one| usage::lines(one)).collect()
    }

    fn goals(&self, section: &Section<Case>, _: &[Section<Case>]) -> Vec<Goal> {
        let (crossbar, nginx) = (HttpPeer::Crossbar.name(), HttpPeer::Nginx.name());
        match section.case {
            Case::File => vec![
                Goal::over("requests/s ÷ nginx", nginx, RATE, Bound::AtLeast(0.5)),
                Goal::over(
                    "requests/s ÷ crossbar",
                    crossbar,
                    RATE,
                    Bound::AtLeast(20.0),
                ),
            ],
            Case::Call | Case::Publish => {
                let what = "server CPU ÷ crossbar";
                vec![Goal::over(what, crossbar, SERVER_CPU, Bound::AtMost(0.05))]
            }
        }
    }
}
