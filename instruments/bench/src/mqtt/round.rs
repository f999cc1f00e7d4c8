//! One round of `bench mqtt`: messages, connections, or the memory of idle clients.

use std::thread;
use std::time::Duration;

use super::case::{Case, Kind};
use super::connections::ConnectionsOrder;
use super::idle::{FIRST, IdleOrder};
use super::options::MqttOptions;
use super::order::{LoadFinding, LoadOrder, kept_max};
use super::subjects::{Brokers, Subject};
use super::url::Broker;
use super::worker::{Order, ROLE};
use crate::figures::{Figures, Round};
use crate::frame::{Drive, Stage};
use crate::load::{Found, Latencies};
use crate::machine::{Memory, Usage, Used, bind_processes};
use crate::process::{Driver, Workers};
use crate::report::table::thousands;

/// How long a driver may take to start, and for the last messages.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) fn run(
    options: &MqttOptions,
    stage: &Stage<'_>,
    case: Case,
    (brokers, subject): (&Brokers, &Subject),
) -> Round {
    match case.kind() {
        Kind::Messages => Ok(messages(options, stage, case, subject)?),
        Kind::Connections { .. } => Ok(connections(options, stage, case, subject)?),
        Kind::Memory => Ok(memory(options, stage, case, (brokers, subject))?),
    }
}

/// The broker as clients reach it.
fn reached(stage: &Stage<'_>, subject: &Subject, case: Case) -> Result<Broker, String> {
    let broker = subject.broker(case).ok_or("it has no address for this")?;
    let near = stage.site.network.reach(&broker.endpoint);
    Ok(broker.by(near.map_err(|error| error.to_string())?))
}

/// Of this round alone, without a character that any broker gives a meaning.
fn name(stage: &Stage<'_>) -> String {
    format!("crosstie-bench/{}/{}", std::process::id(), stage.at)
}

fn messages(
    options: &MqttOptions,
    stage: &Stage<'_>,
    case: Case,
    subject: &Subject,
) -> Result<Figures, String> {
    let order = LoadOrder {
        broker: reached(stage, subject, case)?,
        is_v5: options.is_v5(),
        topic: format!("{}/{case}", name(stage)),
        qos: case.qos(),
        publishers: if case == Case::FanIn { options.fan } else { 1 },
        subscribers: match case {
            Case::FanOut | Case::FanOutPaced => options.fan,
            _ => 1,
        },
        is_kept: case.is_durable(),
        is_away: case == Case::DurableKept,
        payload_bytes: options.payload_bytes,
        outstanding: options.outstanding,
        rate: (case == Case::FanOutPaced).then_some(options.rate),
    };
    let drive = Drive {
        stage,
        common: &options.common,
        role: ROLE,
        processes: &subject.processes,
        patience: PATIENCE,
    };
    let (found, used) = drive.run(&Order::Load(order.clone()))?;
    figures(&order, &found, options.common.seconds, &used)
}

fn figures(
    order: &LoadOrder,
    found: &LoadFinding,
    seconds: f64,
    used: &Used,
) -> Result<Figures, String> {
    if let Some(why) = found.faults.describe() {
        return Err(why);
    }
    if found.is_full {
        let most = thousands(kept_max(order.payload_bytes) as f64);
        return Err(format!(
            "the session held its maximum of {most} messages before the end: shorten --seconds"
        ));
    }
    // Those of a session that is away have arrived where they should.
    let messages = match order.is_away {
        true => found.acknowledged,
        false => found.traffic.messages,
    };
    if messages == 0 {
        return Err("no message in time".to_owned());
    }
    let per_s = messages as f64 / seconds;
    let mut figures = Figures::new()
        .with("messages", messages as f64)
        .with("published", found.published as f64)
        .with("messages_per_s", per_s)
        .with(
            "driver_calls_per_message",
            found.calls as f64 / messages as f64,
        )
        .with_usage("broker", "message", used, per_s);
    if !order.is_away {
        figures.set("messages_per_read", found.traffic.messages_per_read());
    }
    if order.qos > 0 {
        figures.set("acknowledged_per_s", found.acknowledged as f64 / seconds);
    }
    if order.rate.is_some() {
        let times = Latencies::of(&found.times);
        figures = figures.with_times("latency", &times.summary());
    }
    Ok(figures)
}

fn connections(
    options: &MqttOptions,
    stage: &Stage<'_>,
    case: Case,
    subject: &Subject,
) -> Result<Figures, String> {
    let order = Order::Connect(ConnectionsOrder {
        broker: reached(stage, subject, case)?,
        is_v5: options.is_v5(),
        name: name(stage).replace('/', "-"),
        outstanding: options.connections,
    });
    let mut clients = start(stage, &order)?;
    let mut window = |seconds: f64| {
        clients.tell(0, &seconds);
        let longest = Duration::from_secs_f64(seconds) + PATIENCE;
        clients.expect(longest, "connections were made", Driver::found)
    };
    if options.common.warm_up_seconds > 0.0 {
        window(options.common.warm_up_seconds)?;
    }
    let before = Usage::now(&subject.processes, &[]);
    let found = window(options.common.seconds)?;
    let used = Usage::now(&subject.processes, &[]).since(&before);
    let used = used.with_drivers(found.cpu_ns as f64);
    if found.count == 0 {
        return Err("no connection in time".to_owned());
    }
    // The readings include the last connections.
    let rate_used = found.count as f64 / used.seconds;
    let times = Latencies::of(&found.times);
    Ok(Figures::new()
        .with("connections", found.count as f64)
        .with("connections_per_s", found.count as f64 / found.seconds)
        .with_usage("broker", "connection", &used, rate_used)
        .with_times("connect", &times.summary()))
}

fn memory(
    options: &MqttOptions,
    stage: &Stage<'_>,
    case: Case,
    (brokers, subject): (&Brokers, &Subject),
) -> Result<Figures, String> {
    let site = stage.site;
    let fresh = brokers.another(site, subject, stage.at);
    let fresh = fresh.map_err(|error| error.to_string())?;
    let subject = fresh.as_ref().map_or(subject, |fresh| &fresh.subject);
    bind_processes(&subject.processes, &stage.cores.router).map_err(|error| error.to_string())?;
    let order = Order::Hold(IdleOrder {
        broker: reached(stage, subject, case)?,
        is_v5: options.is_v5(),
        name: name(stage).replace('/', "-"),
    });
    let mut clients = start(stage, &order)?;
    let mut memory_with = |count: usize| {
        clients.tell(0, &count);
        let held: Found = clients.expect(PATIENCE, "clients are idle", Driver::found)?;
        if held.count != count as u64 {
            return Err(format!(
                "{} clients are idle in place of {count}",
                held.count
            ));
        }
        thread::sleep(options.settling());
        let memory = Memory::of(&subject.processes).map_err(|error| format!("memory: {error}"))?;
        Ok::<_, String>(memory.pss as f64)
    };
    let before = memory_with(FIRST)?;
    let after = memory_with(options.clients)?;
    let clients = (options.clients - FIRST) as f64;
    Ok(Figures::new()
        .with("clients", options.clients as f64)
        .with("pss_bytes", after)
        .with("pss_bytes_per_client", (after - before) / clients))
}

fn start(stage: &Stage<'_>, order: &Order) -> Result<Workers<Driver<Found>>, String> {
    let mut workers = Workers::default();
    workers
        .start(&stage.site.executable, ROLE, &stage.clients(), order)
        .map_err(|error| format!("a driver: {error}"))?;
    workers.expect(PATIENCE, "it should be ready", Driver::ready)?;
    Ok(workers)
}
