//! `bench fabric`: the cost of a realm on several nodes, beside one on a single node, and beside NATS alone.
//!
//! ```text
//! off, alone   caller ─▶ node ─▶ callee
//! crosstie     caller ─▶ node ─▶ NATS ─▶ node ─▶ callee
//! floor        caller ───────▶ NATS ───────▶ callee       by our own codec
//!
//! crosstie     publisher ─▶ node ─▶ owner of a vhost ─▶ NATS
//! owner        publisher ─────────▶ owner of a vhost ─▶ NATS
//! ```

mod case;
pub(crate) mod confirms;
pub(crate) mod events;
mod options;
mod subjects;
pub(crate) mod wire;
pub(crate) mod wishes;

pub use options::FabricOptions;
pub(crate) use subjects::await_calls;

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::figures::{Figures, Round, Series, unfit};
use crate::frame::{
    self, Bound, Column, Common, FLOOR, Goal, Host, Instrument, Section, Site, Stage, Testbed,
};
use crate::report::table::{number, thousands};
use crate::rpc::round::{self, Operation, Plan, run};
use crate::rpc::worker::{LoadOrder, Role};
use crate::wamp::caller::PairOrder;

use case::Case;
use confirms::ConfirmsOrder;
use events::EventsOrder;
use subjects::{ALONE, Ends, FabricSubject, OFF, OWNER, Subjects};
use wire::NatsOrder;
use wishes::{Wish, WishesOrder};

const P50: &str = "rtt_us.p50";
const CALL_CPU: &str = "router_cpu_us_per_call";
const P99: &str = "rtt_us.p99";
const EVENT_CPU: &str = "router_cpu_us_per_event";
const CONFIRM_CPU: &str = "router_cpu_us_per_confirm";

/// Measures, prints to standard output, and writes the results file if requested.
pub fn fabric(options: FabricOptions, host: Host) -> Result<bool, BenchError> {
    frame::run::run(Fabric {
        options: options.on(host)?,
        subjects: Subjects::default(),
    })
}

struct Fabric {
    options: FabricOptions,
    subjects: Subjects,
}

impl Instrument for Fabric {
    const NAME: &'static str = "fabric";

    type Case = Case;
    type Subject = FabricSubject;

    fn common(&self) -> &Common {
        &self.options.common
    }

    fn start(&mut self, site: &Site) -> Result<(), BenchError> {
        self.subjects = Subjects::start(site, &self.options)?;
        Ok(())
    }

    fn testbed(&self) -> Testbed {
        self.subjects.testbed()
    }

    fn load(&self) -> Option<String> {
        Some(format!(
            "Unix socket, RawSocket, MessagePack; {} calls or confirms, or {} events, in flight; crosstie: two nodes and a server of \
             NATS, whose time is not in theirs; floor: the server alone, with {} bytes; confirms: AMQP over TCP",
            self.options.outstanding,
            self.options.events,
            self.floor_bytes()
        ))
    }

    fn settings(&self, _site: &Site) -> Value {
        json!({
            "outstanding": self.options.outstanding,
            "events": self.options.events,
            "payload_bytes": self.options.payload_bytes,
            "floor_bytes": self.floor_bytes(),
        })
    }

    fn cases(&self) -> Result<Vec<Case>, BenchError> {
        Ok(self.options.definite_cases())
    }

    fn subjects(
        &mut self,
        stage: &Stage<'_>,
        case: &Case,
    ) -> Result<Vec<FabricSubject>, BenchError> {
        self.subjects.on(&stage.cores.router, *case)
    }

    fn round(&mut self, stage: &Stage<'_>, case: &Case, subject: &mut FabricSubject) -> Round {
        let options = &self.options;
        let name = format!("crosstie.bench.fabric.r{:03}", stage.at);
        let ends = [self.ends(*case, subject, name)?];
        let plan = Plan {
            executable: &stage.site.executable,
            ends: &ends,
            operation: match case {
                Case::Call | Case::Calls => Operation::Call,
                Case::Events => Operation::Event,
                Case::Subscribe => Operation::Subscription,
                Case::Register => Operation::Registration,
                Case::Confirm | Case::Confirms => Operation::Confirm,
            },
            place: &stage.clients(),
            subject: &subject.processes,
            beside: &subject.server,
            warm_up: Duration::from_secs_f64(options.common.warm_up_seconds),
            measured: Duration::from_secs_f64(options.common.seconds),
            stop: &stage.site.stop,
        };
        run(&plan, &mut |_| {})
    }

    fn comparisons(&self, _site: &Site, section: &Section<Case>, series: &Series) -> Figures {
        let p50_over = |other| {
            let ratio = section.over(series, other, P50);
            ratio.map(|ratio| ratio.median)
        };
        Figures::new()
            .with_known("p50_over_floor", p50_over(FLOOR))
            .with_known("p50_over_owner", p50_over(OWNER))
    }

    fn columns(&self, case: &Case) -> Vec<Column> {
        let [rate, cpu, nats] = match case {
            Case::Call | Case::Calls => [
                Column::rate("calls/s", "calls_per_s", thousands),
                Column::spread("CPU/call µs", CALL_CPU, number),
                Column::median("NATS' CPU µs", "beside_cpu_us_per_call", number),
            ],
            Case::Events => [
                Column::rate("events/s", "events_per_s", thousands),
                Column::spread("CPU/event µs", EVENT_CPU, number),
                Column::median("NATS' CPU µs", "beside_cpu_us_per_event", number),
            ],
            Case::Subscribe => [
                Column::rate("SUBSCRIBED/s", "subscriptions_per_s", thousands),
                Column::spread("CPU each µs", "router_cpu_us_per_subscription", number),
                Column::median("NATS' CPU µs", "beside_cpu_us_per_subscription", number),
            ],
            Case::Register => [
                Column::rate("REGISTERED/s", "registrations_per_s", thousands),
                Column::spread("CPU each µs", "router_cpu_us_per_registration", number),
                Column::median("NATS' CPU µs", "beside_cpu_us_per_registration", number),
            ],
            Case::Confirm | Case::Confirms => [
                Column::rate("confirms/s", "confirms_per_s", thousands),
                Column::spread("both nodes' CPU µs", CONFIRM_CPU, number),
                Column::median("NATS' CPU µs", "beside_cpu_us_per_confirm", number),
            ],
        };
        let p50_over = match case.is_of_a_vhost() {
            true => Column::over("p50 ÷ owner", OWNER, P50),
            false => Column::over_floor("p50 ÷ floor", P50),
        };
        vec![
            rate,
            Column::spread("p50 µs", P50, number),
            Column::median("p99 µs", P99, number),
            Column::median("max µs", "rtt_us.max", number),
            cpu,
            nats,
            p50_over,
        ]
    }

    fn goals(&self, section: &Section<Case>, _before: &[Section<Case>]) -> Vec<Goal> {
        let ours = section.own().zip(section.subject(FLOOR));
        let alone = section.subject(ALONE).zip(section.subject(OFF));
        let beyond = ours.and_then(|(own, floor)| Some(own.median(P50)? - floor.median(P50)?));
        let cpu = |what| {
            let (alone, off) = alone?;
            Some(alone.median(what)? / off.median(what)?)
        };
        let of_ours = ours.and_then(|(own, floor)| unfit([own, floor]));
        let of_alone = alone.and_then(|(alone, off)| unfit([alone, off]));
        let alone_over_off = |what| {
            let goal = Goal::computed("CPU alone ÷ off", cpu(what), Bound::AtMost(1.03));
            goal.unless(of_alone)
        };
        match section.case {
            Case::Call => {
                let goal = Goal::computed("p50 − floor µs", beyond, Bound::AtMost(60.0));
                vec![goal.unless(of_ours)]
            }
            Case::Calls => vec![
                Goal::median("calls/s", "calls_per_s", Bound::AtLeast(60_000.0)),
                Goal::median("both nodes' CPU µs/call", CALL_CPU, Bound::AtMost(3.0)),
                alone_over_off(CALL_CPU),
            ],
            Case::Events => vec![
                Goal::median("events/s", "events_per_s", Bound::AtLeast(300_000.0)),
                alone_over_off(EVENT_CPU),
            ],
            Case::Subscribe => vec![Goal::median("p99 µs", P99, Bound::AtMost(2_000.0))],
            Case::Register => vec![Goal::median("p50 µs", P50, Bound::AtMost(3_000.0))],
            // The cost of forwarding is reported, and has no goal.
            Case::Confirm | Case::Confirms => Vec::new(),
        }
    }
}

impl Fabric {
    /// A crossing's head, fields and message have some 100 bytes besides the payload.
    fn floor_bytes(&self) -> usize {
        128 + self.options.payload_bytes
    }

    fn ends(
        &self,
        case: Case,
        subject: &FabricSubject,
        name: String,
    ) -> Result<round::Ends, String> {
        let options = &self.options;
        let payload_bytes = options.payload_bytes;
        let load = LoadOrder {
            every: None,
            outstanding: match case {
                Case::Call | Case::Subscribe | Case::Register | Case::Confirm => 1,
                Case::Calls | Case::Confirms => options.outstanding,
                Case::Events => options.events,
            },
            batch: u64::MAX,
        };
        let (callee, caller) = match (&subject.ends, case) {
            (Ends::Vhost(broker), _) => {
                let order = ConfirmsOrder {
                    broker: broker.clone(),
                    queue: name,
                    payload_bytes,
                };
                (Role::Nobody, Role::Confirms(order, load))
            }
            (_, Case::Confirm | Case::Confirms) => {
                return Err(format!("{} has no vhost for {case}", subject.name));
            }
            (Ends::Nodes(here, there), Case::Events) => {
                let order = EventsOrder {
                    publisher: here.clone(),
                    subscriber: there.clone(),
                    topic: name,
                    payload_bytes,
                };
                (Role::Nobody, Role::Events(order, load))
            }
            (Ends::Nodes(here, there), Case::Call | Case::Calls) => {
                let order = |target| PairOrder {
                    target,
                    procedure: name.clone(),
                    payload_bytes,
                };
                let callee = Role::Callee(order(there.clone()));
                (callee, Role::Caller(order(here.clone()), load))
            }
            (Ends::Nodes(here, _), Case::Subscribe | Case::Register) => {
                let order = WishesOrder {
                    target: here.clone(),
                    wish: match case {
                        Case::Register => Wish::Registration,
                        _ => Wish::Subscription,
                    },
                    name,
                };
                (Role::Nobody, Role::Wishes(order, load))
            }
            (Ends::Nats(address), _) => {
                let order = NatsOrder {
                    address: *address,
                    subject: name,
                    payload_bytes: self.floor_bytes(),
                };
                of_nats(case, order, load)
            }
        };
        Ok(round::Ends { callee, caller })
    }
}

/// The floor's ends.
fn of_nats(case: Case, order: NatsOrder, load: LoadOrder) -> (Role, Role) {
    match case {
        Case::Events => (Role::Nobody, Role::NatsPublisher(order, load)),
        Case::Subscribe | Case::Register => (Role::Nobody, Role::NatsSubscriber(order, load)),
        _ => (
            Role::NatsCallee(order.clone()),
            Role::NatsCaller(order, load),
        ),
    }
}
