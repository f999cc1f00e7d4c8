//! One subject of a load with all its drivers, and the load.

use std::fmt;
use std::net::Ipv4Addr;

use super::drivers::{Drivers, Load, Rate, Setup};
use super::lines::{Lines, Parameters};
use super::options::{PubSubOptions, Work};
use super::profiles::Profile;
use super::round::{BUSY, EVENTS_PER_S, P99, Round};
use super::search::{Bounds, search};
use super::server::Server;
use super::subjects::Subject;
use crate::error::BenchError;
use crate::figures::Figures;
use crate::frame::{FLOOR, Site, instrument, site};
use crate::machine::Cores;
use crate::process::{INTERRUPTED, WorkerError};
use crate::report::table::{number, thousands};
use crate::subject::{Case, Endpoint};
use crate::wamp::holder::sessions_max;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Workload {
    pub(super) case: Case,
    pub(super) clients: usize,
    pub(super) payload_bytes: usize,
    pub(super) load: Load,
    /// The result of the document that this reproduces.
    pub(super) profile: Option<Profile>,
}

/// Minimum number of publications of a row, at any rate.
const BATCHES_MIN: u64 = 10;

impl Workload {
    pub(super) fn of_options(options: &PubSubOptions, case: Case) -> Self {
        let rate = match options.work {
            Work::Saturate { outstanding } => Rate::Saturated { outstanding },
            _ => Rate::Hz(options.rate_hz),
        };
        let load = Load {
            batch: options.batch,
            rate,
            seconds: options.common.seconds,
            warm_up_seconds: options.common.warm_up_seconds,
            // The minimum counts publications, of which a batch has several.
            batches_min: BATCHES_MIN.div_ceil(options.batch.max(1)),
        };
        Self {
            case,
            clients: options.clients,
            payload_bytes: options.payload_bytes,
            load,
            profile: None,
        }
    }

    pub(super) fn of_profile(options: &PubSubOptions, case: Case, profile: Profile) -> Self {
        let load = Load {
            batch: profile.batch,
            rate: Rate::Hz(profile.rate_hz),
            seconds: options.common.seconds,
            warm_up_seconds: options.common.warm_up_seconds,
            batches_min: BATCHES_MIN,
        };
        Self {
            case,
            clients: profile.clients,
            payload_bytes: profile.payload_bytes,
            load,
            profile: Some(profile),
        }
    }
}

/// As in rows of the results file.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.profile {
            None => self.case.fmt(f),
            Some(profile) => write!(f, "{} result {}", self.case, profile.result),
        }
    }
}

/// The highest rate of a search.
pub(super) const MAX_EVENTS_PER_S: &str = "max_events_per_s";

/// A participant with its drivers.
pub(super) struct Competitor {
    subject: Subject,
    /// The main subject: its lines are shown.
    is_first: bool,
    setup: Setup,
    drivers: Result<Drivers, String>,
    /// The end of the last search.
    last_hz: Option<f64>,
}

impl instrument::Subject for Competitor {
    fn name(&self) -> &str {
        &self.subject.name
    }
}

/// A round of one of them.
pub(super) struct Turn<'a> {
    pub(super) site: &'a Site,
    pub(super) options: &'a PubSubOptions,
    pub(super) workload: &'a Workload,
}

impl Competitor {
    /// Connects its clients. Without those of the router itself there is nothing to compare.
    pub(super) fn connect(
        options: &PubSubOptions,
        stage: &site::Stage<'_>,
        workload: &Workload,
        subject: Subject,
        is_first: bool,
    ) -> Result<Self, BenchError> {
        let name = &subject.name;
        let setup = Setup {
            executable: stage.site.executable.clone(),
            server: subject.server.clone(),
            subscribed: subject.subscribed.clone(),
            clients: workload.clients,
            payload_bytes: workload.payload_bytes,
            acknowledge: options.acknowledge && name != FLOOR,
            gate: matches!(options.work, Work::Saturate { .. }),
            uprate: options.uprate,
            processes: processes(options, workload.clients, &stage.cores),
            sources: sources(&subject.server, workload.clients),
            place: stage.clients(),
        };
        let shown = is_first.then(|| shown(options, workload)).flatten();
        let mut lines = Lines::new(shown, stage.site);
        let connected = Drivers::open(&setup, 1, &mut lines, &stage.site.stop);
        match &connected {
            Ok(_) => lines.connected(),
            Err(why) if is_first => {
                let why = format!("{name}: {why}");
                return Err(WorkerError::Io(std::io::Error::other(why)).into());
            }
            Err(_) => {}
        }
        Ok(Self {
            subject,
            is_first,
            setup,
            drivers: connected,
            last_hz: None,
        })
    }

    /// Reconnects: drivers that lost a client would fail every later run, at rates that the subject holds too.
    fn repair(&mut self, site: &Site) {
        if !self.drivers.as_ref().is_ok_and(Drivers::is_damaged) {
            return;
        }
        let old = std::mem::replace(&mut self.drivers, Err("not connected".to_owned()));
        let Ok(old) = old else { return };
        let next = old.next();
        // Its processes end before others take their place.
        old.close();
        let mut lines = Lines::new(None, site);
        self.drivers = Drivers::open(&self.setup, next, &mut lines, &site.stop)
            .map_err(|why| format!("could not connect again: {why}"));
    }

    pub(super) fn close(self) {
        if let Ok(drivers) = self.drivers {
            drivers.close();
        }
    }

    /// One round: the load, or a search for the highest rate. The search's course is reported.
    pub(super) fn round(
        &mut self,
        turn: &Turn<'_>,
        searches: &mut Vec<String>,
    ) -> Result<Figures, String> {
        if let Work::Max { p99 } = turn.options.work {
            return self.highest(turn, p99.as_secs_f64() * 1e6, searches);
        }
        let shown = self.is_first.then(|| shown(turn.options, turn.workload));
        let mut lines = Lines::new(shown.flatten(), turn.site);
        let round = self.one(turn.site, &turn.workload.load, &mut lines)?;
        round.into_result()
    }

    fn one(&mut self, site: &Site, load: &Load, lines: &mut Lines<'_>) -> Result<Round, String> {
        self.repair(site);
        let drivers = self.drivers.as_mut().map_err(|why| why.clone())?;
        drivers.run(load, &self.subject.processes, lines, &site.stop)
    }

    /// Searches the highest rate in one round, starting a little below the previous round's.
    fn highest(
        &mut self,
        turn: &Turn<'_>,
        bound_us: f64,
        searches: &mut Vec<String>,
    ) -> Result<Figures, String> {
        let Turn { site, workload, .. } = turn;
        let per_batch = workload.clients as f64 * workload.load.batch as f64;
        let start = self.last_hz.unwrap_or(START_EVENTS_PER_S / per_batch);
        let mut unreachable = false;
        let mut busy_when_failed = None;
        let bounds = search(start, |hz| {
            if site.stop.is_wished() || unreachable {
                return None;
            }
            let load = Load {
                rate: Rate::Hz(hz),
                ..workload.load
            };
            Some(match self.one(site, &load, &mut Lines::new(None, site)) {
                Err(why) => {
                    // Broken drivers are reconnected before the next probe.
                    unreachable = self.drivers.is_err();
                    Err(why)
                }
                Ok(round) => {
                    let busy = round.figures.value(BUSY);
                    let outcome = hold_to(round, bound_us);
                    if outcome.is_err() {
                        busy_when_failed = busy;
                    }
                    outcome
                }
            })
        });
        if site.stop.is_wished() {
            return Err(INTERRUPTED.to_owned());
        }
        let name = &self.subject.name;
        searches.push(format!("  {name}: {}", describe(&bounds, per_batch)));
        let Some((hz, mut figures)) = bounds.held else {
            let why = bounds.failed.map(|(_, why)| why);
            let why = why.unwrap_or_else(|| "nothing was tried".to_owned());
            return Err(format!("no rate held: {why}"));
        };
        self.last_hz = Some(hz * 0.97);
        let reached = figures.value(EVENTS_PER_S).unwrap_or(hz * per_batch);
        figures.set(MAX_EVENTS_PER_S, reached);
        // At the last rate that held, or at the first that did not, it must have been busy.
        if let (Some(held), Some(failed)) = (figures.value(BUSY), busy_when_failed) {
            figures.set(BUSY, held.max(failed));
        }
        Ok(figures)
    }
}

/// The load client's parameters, if its lines are shown.
fn shown(options: &PubSubOptions, workload: &Workload) -> Option<Parameters> {
    let rate_hz = match (&options.work, workload.load.rate) {
        (Work::Load, Rate::Hz(hz)) => hz,
        (Work::Saturate { .. }, _) => 0.0,
        _ => return None,
    };
    Some(Parameters {
        clients: workload.clients,
        uprate: options.uprate,
        payload_bytes: workload.payload_bytes,
        batch: workload.load.batch,
        rate_hz,
    })
}

/// The number of processes that share the subscribers.
fn processes(options: &PubSubOptions, clients: usize, cores: &Cores) -> usize {
    let least = clients.div_ceil(sessions_max().saturating_sub(8).max(1));
    let usual = match cores.clients == cores.router && cores.clients.len() > 1 {
        // The scheduler places them: one less than the cores, for the router's sake.
        true => cores.clients.len() - 1,
        false => cores.clients.len(),
    };
    options.processes.unwrap_or(usual).max(least).min(clients)
}

/// One address has ports for some 28,000 connections to one server.
const CLIENTS_PER_SOURCE: usize = 25_000;

/// Source addresses: as many loopback addresses as needed; elsewhere, any address with a route there.
fn sources(server: &Server, clients: usize) -> Vec<Ipv4Addr> {
    let endpoint = match server {
        Server::Router { target, .. } => &target.endpoint,
        Server::Floor { endpoint, .. } => endpoint,
    };
    match endpoint {
        Endpoint::Tcp(address) if address.ip().is_loopback() => {
            let count = clients.div_ceil(CLIENTS_PER_SOURCE).clamp(1, 250) as u8;
            (1..=count)
                .map(|last| Ipv4Addr::new(127, 0, 0, last))
                .collect()
        }
        _ => vec![Ipv4Addr::UNSPECIFIED],
    }
}

/// Events per second that any router reaches here.
const START_EVENTS_PER_S: f64 = 50_000.0;

/// A rate holds if nothing is lost and the latency is bounded.
fn hold_to(round: Round, bound_us: f64) -> Result<Figures, String> {
    let figures = round.into_result()?;
    match figures.value(P99) {
        Some(p99) if p99 <= bound_us => Ok(figures),
        Some(p99) => {
            let (p99, bound) = (number(p99 / 1e3), number(bound_us / 1e3));
            Err(format!("p99 {p99} ms, above the bound of {bound} ms"))
        }
        None => Err("no event came".to_owned()),
    }
}

fn describe(bounds: &Bounds<Figures>, per_batch: f64) -> String {
    let held = match &bounds.held {
        Some((_, figures)) => {
            let p99_ms = figures.value(P99).unwrap_or(0.0) / 1e3;
            let events = figures.value(EVENTS_PER_S).unwrap_or(0.0);
            format!(
                "{} events/s held (p99 {} ms)",
                thousands(events),
                number(p99_ms)
            )
        }
        None => "nothing held".to_owned(),
    };
    match &bounds.failed {
        Some((hz, why)) => format!("{held}, {} did not: {why}", thousands(hz * per_batch)),
        None => held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_addresses_enough() {
        #[track_caller]
        fn check(endpoint: &str, clients: usize, expected: &[&str]) {
            let server = Server::Floor {
                endpoint: Endpoint::Tcp(endpoint.parse().unwrap()),
                lengths: crate::pubsub::server::Lengths {
                    publication: 8,
                    event: 8,
                },
            };
            let sources: Vec<String> = sources(&server, clients)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(sources, expected);
        }
        check("127.0.0.1:9000", 6_000, &["127.0.0.1"]);
        check(
            "127.0.0.1:9000",
            60_000,
            &["127.0.0.1", "127.0.0.2", "127.0.0.3"],
        );
        check("10.0.0.1:9000", 60_000, &["0.0.0.0"]);
    }

    #[test]
    fn a_rate_holds_within_its_bound() {
        #[track_caller]
        fn check(p99_us: Option<f64>, fault: Option<&str>, expected: Result<(), &str>) {
            let round = Round {
                figures: Figures::new().with_known(P99, p99_us),
                fault: fault.map(str::to_owned),
            };
            let found = hold_to(round, 50_000.0).map(|_| ());
            assert_eq!(found, expected.map_err(str::to_owned));
        }
        check(Some(49_000.0), None, Ok(()));
        check(
            Some(51_000.0),
            None,
            Err("p99 51.0 ms, above the bound of 50.0 ms"),
        );
        check(None, None, Err("no event came"));
    }
}
