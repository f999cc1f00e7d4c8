//! `bench amqp`: messages from publishers through a queue to consumers, over any broker of AMQP 0-9-1, beside the
//! machine's floor and a live RabbitMQ.
//!
//! In each round the driver is a fresh process; every message is checked by its number.
//!
//! A broker accepts messages faster than it delivers them, so a driver without a bound measures the growth of its
//! queue. This one keeps a fixed number of messages in flight, and measures those that have arrived.

pub(crate) mod case;
mod goals;
mod ledger;
mod levels;
mod options;
mod pace;
mod present;
mod round;
pub(crate) mod worker;

pub use options::AmqpOptions;

use std::time::Duration;

use serde_json::{Value, json};

use crate::broker::subjects::{Brokers, Subject};
use crate::error::BenchError;
use crate::figures::{Round, Series};
use crate::frame::{
    self, Column, Common, Drive, FLOOR, Goal, Host, Instrument, Limit, Section, Site, Stage,
    Testbed, Threads,
};
use crate::machine::Placement;
use crate::report::table::{number, thousands};

use case::Case;
use worker::{Order, ROLE};

const RATE: &str = "messages_per_s";
const CPU: &str = "broker_cpu_us_per_message";
const PEER: &str = "rabbitmq";

/// How long a driver may take to start, and for the last messages.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures, prints to standard output, and writes the results file if requested, in any outcome.
pub fn amqp(options: AmqpOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Amqp {
        options: options.on(host)?,
        brokers: None,
    })
}

struct Amqp {
    options: AmqpOptions,
    brokers: Option<Brokers>,
}

impl Instrument for Amqp {
    const NAME: &'static str = "amqp";
    const OVER_FLOOR: &'static [&'static str] = &[RATE];

    type Case = Case;
    type Subject = Subject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.brokers = Some(Brokers::start(
            site,
            &self.options.brokers,
            self.options.copies(),
        )?);
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
            "{} producer(s), {} consumer(s) of one queue, bodies of {} bytes, at most {} under way{}",
            options.producers,
            options.consumers,
            thousands(options.payload_bytes as f64),
            thousands(options.outstanding as f64),
            match options.replicated {
                true => "; three nodes on this machine, and a copy of each message on each of them",
                false => "",
            }
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        let options = &self.options;
        json!({
            "payload_bytes": options.payload_bytes,
            "in_flight": options.outstanding,
            "window": options.window,
            "prefetch": options.prefetch,
            "rate": options.rate,
            "producers": options.producers,
            "consumers": options.consumers,
            "replicated": options.replicated,
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.cases())
    }

    fn threads(&self) -> Threads {
        Threads {
            server: 1,
            clients: self.options.producers.max(self.options.consumers),
        }
    }

    fn subjects(&mut self, stage: &Stage<'_>, case: &Case) -> Result<Vec<Subject>, BenchError> {
        let Some(brokers) = &mut self.brokers else {
            return Ok(Vec::new());
        };
        let mut subjects = brokers.on(&stage.cores.router)?;
        // The floor stores nothing on a disk, and has no priorities.
        subjects.retain(|subject| *case == Case::Transient || subject.name != FLOOR);
        Ok(subjects)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut Subject) -> Round {
        let options = &self.options;
        let near = stage.site.network.reach(&subject.broker.endpoint);
        let drive = Drive {
            stage,
            common: &options.common,
            role: ROLE,
            processes: &subject.processes,
            patience: PATIENCE,
        };
        let (finding, used) = drive.run(&Order {
            broker: subject.broker.by(near.map_err(|error| error.to_string())?),
            queue: format!("crosstie-bench-{}-{}", std::process::id(), stage.at),
            case: *case,
            is_quorum: options.replicated,
            payload_bytes: options.payload_bytes,
            in_flight: options.outstanding,
            window: options.window,
            prefetch: options.prefetch,
            rate: options.rate,
            producers: options.producers,
            consumers: options.consumers,
        })?;
        Ok(round::figures(&finding, options.common.seconds, &used)?)
    }

    /// If both share one core, neither is idle; and a broker that waits for a disk does not wait for the driver.
    fn limit(&self, section: &Section<Case>, _series: &Series) -> Option<Limit> {
        let is_apart = section.placement != Some(Placement::SameCore);
        (is_apart && !section.case.is_durable()).then_some(Limit {
            busy: &["broker_busy_cores"],
            cores: 1.0,
        })
    }

    fn columns(&self, _case: &Case) -> Vec<Column> {
        vec![
            Column::median("messages", "messages", thousands),
            Column::rate("per s", RATE, thousands),
            Column::spread("broker CPU µs", CPU, number),
            Column::median("driver CPU µs", "driver_cpu_us_per_message", number),
            Column::median("broker busy", "broker_busy_cores", number),
            Column::median("messages/read", "messages_per_read", number),
            Column::over_floor("÷ floor", RATE),
            Column::over("÷ rabbitmq", PEER, RATE),
        ]
    }

    fn below(&self, _site: &Site, sections: &[&Section<Case>]) -> Vec<String> {
        let mut lines = Vec::new();
        for section in sections {
            lines.extend(present::below(&self.options, section));
            lines.extend(section.crowd());
        }
        lines
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        goals::goals(section.case, &self.options)
    }
}
