//! One round: clients are started, warmed up, and measured.

use std::time::Duration;

use super::case::{Beside, Case};
use super::driver::{Order, ROLE, Task};
use super::nodes::Node;
use super::options::JoinOptions;
use crate::figures::Figures;
use crate::frame::Stage;
use crate::handshake::usage::PATIENCE;
use crate::load::Found;
use crate::load::Latencies;
use crate::machine::Usage;
use crate::process::{Driver, Workers};

pub(super) fn run(
    options: &JoinOptions,
    stage: &Stage<'_>,
    case: Case,
    node: &Node,
) -> Result<Figures, String> {
    let clients = options.outstanding;
    let method = case.method();
    let mut joiners = start(stage, node, Task::Join { method, clients })?;
    let mut beside = match case.beside() {
        Beside::Nobody => None,
        Beside::Guessers => {
            let clients = options.guessers;
            Some(start(stage, node, Task::Guess { clients })?)
        }
        Beside::Hashed => {
            let clients = options.hashed;
            Some(start(stage, node, Task::JoinHashed { clients })?)
        }
        Beside::Observer => Some(start(stage, node, Task::Observe)?),
    };
    let mut window = |seconds: f64| {
        // The other clients begin first and end last.
        if let Some(beside) = &mut beside {
            beside.tell(0, &seconds);
        }
        joiners.tell(0, &seconds);
        let longest = Duration::from_secs_f64(seconds) + PATIENCE;
        let found = joiners.expect(longest, "clients were joining", Driver::found)?;
        let other = beside.as_ref().map(|beside| {
            let what = "those beside were at work";
            beside.expect(longest, what, Driver::found)
        });
        Ok::<_, String>((found, other.transpose()?))
    };
    let common = &options.common;
    if common.warm_up_seconds > 0.0 {
        window(common.warm_up_seconds)?;
    }
    let before = Usage::now(&node.processes, &[]);
    let (found, other) = window(common.seconds)?;
    let cpu_ns = found.cpu_ns + other.as_ref().map_or(0, |other| other.cpu_ns);
    let used = Usage::now(&node.processes, &[]).since(&before);
    let used = used.with_drivers(cpu_ns as f64);
    if found.count == 0 {
        return Err("no session joined in time".to_owned());
    }
    let rate = |found: &Found| found.count as f64 / found.seconds;
    // The readings include the last answers, which may wait for the other clients.
    let rate_used = found.count as f64 / used.seconds;
    let times = Latencies::of(&found.times);
    let figures = Figures::new()
        .with_usage("server", "join", &used, rate_used)
        .with("joins", found.count as f64)
        .with("joins_per_s", rate(&found))
        .with_times("join", &times.summary());
    let other = other.as_ref().map(rate);
    Ok(match case.beside() {
        Beside::Nobody => figures,
        Beside::Guessers => figures.with_known("guesses_per_s", other),
        Beside::Hashed => figures.with_known("hashed_per_s", other),
        Beside::Observer => figures.with_known("events_per_s", other),
    })
}

fn start(stage: &Stage<'_>, node: &Node, task: Task) -> Result<Workers<Driver<Found>>, String> {
    let mut workers = Workers::default();
    let order = Order {
        target: node.target.clone(),
        task,
    };
    let executable = &stage.site.executable;
    workers
        .start(executable, ROLE, &stage.clients(), &order)
        .map_err(|error| format!("the clients: {error}"))?;
    workers.expect(PATIENCE, "clients should be ready", Driver::ready)?;
    Ok(workers)
}
