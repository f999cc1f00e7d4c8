//! `bench mqtt`: messages, connections and idle clients of any broker of MQTT, beside the machine's floor and live
//! peers.
//!
//! ```text
//!                  ┌▶ subscriber
//! publisher ─▶ broker ─▶ subscriber     all clients: one process, one thread, one epoll, a connection each
//!                  └▶ subscriber
//! ```
//!
//! From the sockets up: [`wire`] (a connection), [`flight`] and [`arrivals`] (a publisher's acknowledgements, a
//! subscriber's check), [`load`] (all of them in one loop), [`kept`] (the session of a subscriber that was away),
//! [`connections`] and [`idle`]; [`worker`] (those as processes), [`floor`], [`subjects`] (the brokers), [`round`].

mod arrivals;
mod case;
mod clock;
mod connections;
mod figures;
mod flight;
pub(crate) mod floor;
mod goals;
mod idle;
mod kept;
mod load;
mod node;
mod options;
mod order;
mod present;
mod round;
mod subjects;
mod tls;
pub(crate) mod url;
mod wire;
pub(crate) mod worker;

pub use options::MqttOptions;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Round, Series};
use crate::frame::{
    self, Column, Common, Goal, Host, Instrument, Limit, Section, Site, Stage, Testbed,
};
use crate::machine::Placement;
use crate::process::descriptors;
use crate::report::table::thousands;

use case::{Case, Kind};
use figures::{CONNECTIONS, CPU, RATE};
use subjects::{Brokers, Subject};

/// Measures, prints to standard output, and writes the results file if requested, in any outcome.
pub fn mqtt(options: MqttOptions, host: Host) -> Result<bool, BenchError> {
    // All started processes inherit it: a broker of thousands needs it as much.
    descriptors::raise();
    frame::run::run(Mqtt {
        options: options.on(host)?,
        brokers: None,
    })
}

struct Mqtt {
    options: MqttOptions,
    brokers: Option<Brokers>,
}

impl Instrument for Mqtt {
    const NAME: &'static str = "mqtt";
    const OVER_FLOOR: &'static [&'static str] = &[RATE, CPU, CONNECTIONS];

    type Case = Case;
    type Subject = Subject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.brokers = Some(Brokers::start(site, &self.options.brokers)?);
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.brokers
            .as_ref()
            .map(Brokers::testbed)
            .unwrap_or_default()
    }

    fn load(&self) -> Option<String> {
        let options = &self.options;
        Some(format!(
            "MQTT {}, payloads of {} bytes",
            options.protocol,
            thousands(options.payload_bytes as f64),
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        json!({
            "protocol": options.protocol.name(),
            "payload_bytes": options.payload_bytes,
            "outstanding": options.outstanding,
            "fan": options.fan,
            "rate": options.rate,
            "connections": options.connections,
            "clients": options.clients,
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.cases())
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Subject>, BenchError> {
        match &mut self.brokers {
            Some(brokers) => brokers.on(&stage.cores.router, *case),
            None => Ok(Vec::new()),
        }
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut Subject) -> Round {
        match &self.brokers {
            Some(brokers) => round::run(&self.options, stage, *case, (brokers, subject)),
            None => Err("there is no broker".into()),
        }
    }

    /// If both share one core, neither is idle; a broker that waits for a disk does not wait for the driver; and a
    /// given rate is no limit.
    fn limit(&self, section: &Section<Case>, _series: &Series) -> Option<Limit> {
        let is_apart = section.placement != Some(Placement::SameCore);
        let is_free = match section.case.kind() {
            Kind::Messages => !section.case.is_durable() && section.case != Case::FanOutPaced,
            Kind::Connections { .. } => true,
            Kind::Memory => false,
        };
        (is_apart && is_free).then_some(Limit {
            busy: &["broker_busy_cores"],
            cores: 1.0,
        })
    }

    fn columns(&self, case: &Case) -> Vec<Column> {
        present::columns(*case)
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let mut lines = Vec::new();
        for section in sections {
            lines.extend(present::below(&self.options, section.case));
            lines.extend(section.crowd());
        }
        lines
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        goals::goals(section.case, self.options.fan, self.options.outstanding)
    }
}
