//! `bench oslo`: the remote procedure calls of oslo.messaging over a broker of AMQP 0-9-1, beside the machine's floor,
//! a live RabbitMQ, and the source document's figures.
//!
//! Rates are measured like those of all instruments. With a delay a round is a number of operations, through a delay
//! line on one side.
//!
//! The native ends behave on the wire like oslo.messaging's: four connections, replies that are `mandatory`, waits for
//! confirms on both sides, acknowledgements on both sides.

pub(crate) mod case;
mod client;
mod document;
mod envelope;
mod goals;
mod names;
mod options;
mod present;
mod python;
mod round;
mod server;
pub(crate) mod topology;
pub(crate) mod worker;

pub use options::OsloOptions;
use options::Part;

use std::time::Duration;

use crosstie_wan::{LinkOptions, units};
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::broker::subjects::{Brokers, Copies, Subject};
use crate::error::BenchError;
use crate::figures::{Figures, Round, Series};
use crate::frame::{
    self, Column, Common, FLOOR, Goal, Host, Instrument, Section, Site, Stage, Testbed, Wanted,
};
use crate::machine::Placement;
use crate::network::{Network, NetworkOptions};
use crate::report::table::{number, thousands};

use case::{Driver, Placed};
use client::ClientOrder;
use names::Names;
use python::Python;
use round::{Extent, Plan};
use server::ServerOrder;
use topology::Topology;
use worker::Role;

/// The factor of further operations when no delay bounds them.
const STEADY: u64 = 10;

const RATE: &str = "operations_per_s";
const CPU: &str = "broker_cpu_us_per_operation";
/// Including the client's connecting, like the document's clock.
const WITH_SETUP: &str = "with_setup_per_s";
const PEER: &str = "rabbitmq";

/// Measures, prints to standard output, and writes the results file if requested, in any outcome.
pub fn oslo(options: OsloOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Oslo {
        options: options.on(host)?,
        brokers: None,
        links: Vec::new(),
        python: None,
    })
}

struct Oslo {
    options: OsloOptions,
    brokers: Option<Brokers>,
    /// A network with a delay line for each delay.
    links: Vec<(Duration, Network)>,
    python: Option<Python>,
}

impl Oslo {
    fn roles(&self, case: &Placed, broker: &Broker, at: usize) -> Result<(Role, Role), BenchError> {
        let near = self.by_link(case.way, broker)?;
        let (client, server) = match case.way {
            Some((Topology::RemoteClient, _)) => (near, broker.clone()),
            Some((Topology::RemoteServer, _)) => (broker.clone(), near),
            _ => (broker.clone(), broker.clone()),
        };
        let names = Names::of(&format!("{}-{at}", std::process::id()));
        let operation = case.of.operation;
        if let (Driver::Python, Some(python)) = (case.of.driver, &self.python) {
            return Ok((
                python.role(true, &server, &names, operation),
                python.role(false, &client, &names, operation),
            ));
        }
        let round = (u64::from(std::process::id()) << 32) + at as u64;
        let server = ServerOrder {
            broker: server,
            names: names.clone(),
            round,
        };
        let client = ClientOrder {
            broker: client,
            names,
            operation,
            round,
        };
        Ok((Role::Server(server), Role::Client(client)))
    }

    fn extent(&self, case: &Placed) -> Extent {
        let options = &self.options;
        match case.way {
            None => Extent::Time {
                warm_up: Duration::from_secs_f64(options.common.warm_up_seconds),
                measured: Duration::from_secs_f64(options.common.seconds),
            },
            Some((topology, delay)) => Extent::Count {
                operations: options.repeat,
                each: delay,
                steady_operations: match topology.limit_per_s(case.of.operation, delay) {
                    Some(_) => 0,
                    None => options.repeat * STEADY,
                },
            },
        }
    }

    /// The broker by the delay line of a delay; directly without one.
    fn by_link(
        &self,
        way: Option<(Topology, Duration)>,
        broker: &Broker,
    ) -> Result<Broker, BenchError> {
        let (Topology::RemoteClient | Topology::RemoteServer, wanted) =
            way.unwrap_or((Topology::Together, Duration::ZERO))
        else {
            return Ok(broker.clone());
        };
        let link = self.links.iter().find(|(delay, _)| *delay == wanted);
        match link {
            Some((_, network)) => Ok(broker.by(network.reach(&broker.endpoint)?)),
            None => Ok(broker.clone()),
        }
    }
}

/// Apart from the broker if possible, like separate machines.
fn delays_placement(placements: &[Option<Placement>]) -> Option<Placement> {
    match placements.contains(&Some(Placement::Split)) {
        true => Some(Placement::Split),
        false => placements.first().copied().flatten(),
    }
}

impl Instrument for Oslo {
    const NAME: &'static str = "oslo";

    type Case = Placed;
    type Subject = Subject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        let directory = site.directory.path();
        let python = self.options.python.as_ref();
        let python = python.map(|program| Python::find(program, directory));
        self.python = python.transpose()?;
        for delay in &self.options.delays {
            let link = LinkOptions {
                delay: *delay,
                ..LinkOptions::default()
            };
            let options = NetworkOptions {
                link: Some(link),
                netns: false,
            };
            let network = Network::set_up(&options, &site.executable, directory)?;
            self.links.push((*delay, network));
        }
        self.brokers = Some(Brokers::start(site, &self.options.brokers, Copies::One)?);
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.brokers
            .as_ref()
            .map(Brokers::testbed)
            .unwrap_or_default()
    }

    fn header(&self, _site: &Site) -> Vec<String> {
        let Common {
            runs,
            seconds,
            warm_up_seconds,
            ..
        } = &self.options.common;
        let repeat = self.options.repeat;
        let python = self.python.iter();
        let mut lines: Vec<String> = python
            .map(|python| format!("oslo.messaging {}", python.version))
            .collect();
        lines.push(format!(
            "Load: one operation after the other, from one client to one server; rates: {runs} \
             round(s) of {seconds} s after {warm_up_seconds} s; delays: {runs} run(s) of {repeat}; \
             median, below it smallest–largest"
        ));
        lines
    }

    fn settings(&self, _site: &Site) -> Value {
        let delays = self.options.delays.iter();
        json!({
            "repeat": self.options.repeat,
            "delays": delays.map(|delay| units::written(*delay)).collect::<Vec<_>>(),
            "oslo_messaging": self.python.as_ref().map(|python| &python.version),
            "document_hardware": document::HARDWARE,
        })
    }

    fn cases(&self) -> Result<Vec<Placed>, BenchError> {
        let cases = self.options.cases().into_iter();
        Ok(cases.map(|of| Placed { of, way: None }).collect())
    }

    fn sections(
        &self,
        placements: &[Option<Placement>],
    ) -> Result<Vec<Wanted<Placed>>, BenchError> {
        let is_wished = |part| self.options.part.is_none_or(|only| only == part);
        let mut sections = Vec::new();
        if is_wished(Part::Rates) {
            for placement in placements {
                let cases = self.cases()?.into_iter();
                sections.extend(cases.map(|case| (case, *placement)));
            }
        }
        if is_wished(Part::Delays) {
            let placement = delays_placement(placements);
            for of in self.options.cases() {
                let ways = self.options.ways().into_iter().map(Some);
                sections.extend(ways.map(|way| (Placed { of, way }, placement)));
            }
        }
        Ok(sections)
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Placed) -> Result<Vec<Subject>, BenchError> {
        let Some(brokers) = &mut self.brokers else {
            return Ok(Vec::new());
        };
        let mut subjects = brokers.on(&stage.cores.router)?;
        // The floor knows only as much AMQP as the native ends use, and means nothing with a delay.
        if case.of.driver == Driver::Python || case.way.is_some() {
            subjects.retain(|subject| subject.name != FLOOR);
        }
        Ok(subjects)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Placed, subject: &mut Subject) -> Round {
        let roles = self.roles(case, &subject.broker, stage.at);
        let (server, client) = roles.map_err(|error| error.to_string())?;
        let links = self.links.iter();
        let links = links.flat_map(|(_, network)| network.link_processes());
        let found = round::run(&Plan {
            executable: &stage.site.executable,
            place: &stage.clients(),
            server,
            client,
            processes: &subject.processes,
            links: &links.collect::<Vec<_>>(),
            extent: self.extent(case),
            stop: &stage.site.stop,
        });
        Ok(found?)
    }

    fn comparisons(&self, _site: &Site, section: &Section<Placed>, series: &Series) -> Figures {
        let over_floor = section.over_floor(series, &[RATE]);
        if section.case.way.is_none() {
            return over_floor;
        }
        let least = |name| series.spread(name).map(|spread| spread.min);
        let document = section.case.document();
        over_floor
            .with_known("operations_per_s_min", least(RATE))
            .with_known("with_setup_per_s_min", least(WITH_SETUP))
            .with_known("limit_per_s", section.case.limit_per_s())
            .with_known("over_limit", section.case.over_limit(series))
            .with_known("document_one_core_per_s", document.map(|of| of.one_core))
            .with_known(
                "document_eight_cores_per_s",
                document.map(|of| of.eight_cores),
            )
    }

    fn title(&self, section: &Section<Placed>) -> String {
        match (section.case.way, section.placement) {
            (Some(_), Some(placement)) => {
                format!("{} per second, delayed · {placement}", section.case.of)
            }
            _ => section.title(),
        }
    }

    fn columns(&self, _case: &Placed) -> Vec<Column> {
        vec![
            Column::median("operations", "operations", thousands),
            Column::spread("per s", RATE, thousands),
            Column::spread("p50 µs", "rtt_p50_us", number),
            Column::median("p99 µs", "rtt_p99_us", number),
            Column::spread("broker CPU µs", CPU, number),
            Column::median("driver CPU µs", "driver_cpu_us_per_operation", number),
            Column::median("broker busy", "broker_busy_cores", number),
            Column::over_floor("÷ floor", RATE),
            Column::over("÷ rabbitmq", PEER, RATE),
        ]
    }

    fn table(&self, sections: &[&Section<Placed>]) -> Option<Vec<Vec<String>>> {
        let is_delayed = sections.iter().any(|section| section.case.way.is_some());
        is_delayed.then(|| present::delays(sections))
    }

    fn below(&self, _site: &Site, sections: &[&Section<Placed>]) -> Vec<String> {
        present::below(sections)
    }

    fn goals(&self, section: &Section<Placed>, before: &[Section<Placed>]) -> Vec<Goal> {
        goals::goals(section, before)
    }
}
