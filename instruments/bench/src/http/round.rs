//! One round: connections are opened, warmed up, and measured.

use std::time::Duration;

use super::case::{Case, Kind};
use super::driver::{Order, ROLE};
use super::options::HttpOptions;
use super::request::Request;
use super::servers::Server;
use super::{events, idle};
use crate::figures::Figures;
use crate::frame::Stage;
use crate::handshake::usage::PATIENCE;
use crate::load::Found;
use crate::load::Latencies;
use crate::machine::{Usage, Used};
use crate::process::{Driver, Workers};
use crate::wamp::caller::PairOrder;

pub(super) fn run(
    options: &HttpOptions,
    stage: &Stage<'_>,
    case: Case,
    server: &Server,
) -> Result<Figures, String> {
    match case.kind() {
        Kind::Requests(request) => requests(options, stage, request, server),
        Kind::Events { is_longpoll } => events(options, stage, is_longpoll, server),
        Kind::Memory => idle::run(options, stage),
    }
}

fn requests(
    options: &HttpOptions,
    stage: &Stage<'_>,
    request: Request,
    server: &Server,
) -> Result<Figures, String> {
    // Each round has its own: the registration of the round before may still exist.
    let procedure = format!("crosstie.bench.http.procedure{}", stage.at);
    let called = match (request, &server.target) {
        (Request::Call, Some(target)) => {
            let pair = PairOrder {
                target: target.clone(),
                procedure: procedure.clone(),
                payload_bytes: 0,
            };
            Some(start(stage, &Order::Serve(pair))?)
        }
        _ => None,
    };
    let called = called.as_ref().map(Workers::processes).unwrap_or_default();
    let ask = Order::Ask {
        request,
        address: server.address,
        connections: options.connections,
        procedure,
    };
    let (found, used) = measure(options, stage, &ask, server, &called)?;
    if found.count == 0 {
        return Err("no request was answered in time".to_owned());
    }
    // The readings include the last answers.
    let rate_used = found.count as f64 / used.seconds;
    let times = Latencies::of(&found.times);
    Ok(Figures::new()
        .with_usage("server", "request", &used, rate_used)
        .with("requests", found.count as f64)
        .with("requests_per_s", found.count as f64 / found.seconds)
        .with_times("request", &times.summary()))
}

fn events(
    options: &HttpOptions,
    stage: &Stage<'_>,
    is_longpoll: bool,
    server: &Server,
) -> Result<Figures, String> {
    let publisher = server.target.clone();
    let order = events::Order {
        is_longpoll,
        address: server.address,
        subscribers: options.connections,
        publisher: publisher.ok_or("there is no WAMP")?,
    };
    let (found, used) = measure(options, stage, &Order::Events(order), server, &[])?;
    let rate_used = found.count as f64 / used.seconds;
    let times = Latencies::of(&found.times);
    Ok(Figures::new()
        .with_usage("server", "event", &used, rate_used)
        .with("events", found.count as f64)
        .with_times("event", &times.summary()))
}

/// Warms up and measures; returns the results and the usage.
fn measure(
    options: &HttpOptions,
    stage: &Stage<'_>,
    order: &Order,
    server: &Server,
    called: &[u32],
) -> Result<(Found, Used), String> {
    let mut askers = start(stage, order)?;
    let mut window = |seconds: f64| {
        askers.tell(0, &seconds);
        let longest = Duration::from_secs_f64(seconds) + PATIENCE;
        askers.expect(longest, "requests were made", Driver::found)
    };
    let common = &options.common;
    if common.warm_up_seconds > 0.0 {
        window(common.warm_up_seconds)?;
    }
    let before = Usage::now(&server.processes, called);
    let found: Found = window(common.seconds)?;
    let used = Usage::now(&server.processes, called).since(&before);
    let drivers_ns = used.drivers_ns + found.cpu_ns as f64;
    Ok((found, used.with_drivers(drivers_ns)))
}

pub(super) fn start(stage: &Stage<'_>, order: &Order) -> Result<Workers<Driver<Found>>, String> {
    let mut workers = Workers::default();
    let executable = &stage.site.executable;
    workers
        .start(executable, ROLE, &stage.clients(), order)
        .map_err(|error| format!("a worker: {error}"))?;
    workers.expect(PATIENCE, "it should be ready", Driver::ready)?;
    Ok(workers)
}
