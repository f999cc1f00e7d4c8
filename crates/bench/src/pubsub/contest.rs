//! One load in one case and placement, for all subjects in turn.

use std::net::Ipv4Addr;

use serde_json::json;

use super::Bench;
use super::hub::Hub;
use super::lines::{Lines, Parameters};
use super::options::{PubSubOptions, Work};
use super::profiles::Profile;
use super::round::{BUSY, CPU_PER_EVENT, EVENTS_PER_S, INTERRUPTED, P50, P99, Round};
use super::search::{Bounds, search};
use super::stage::{Load, Rate, Setup, Stage};
use super::subjects::{FLOOR, Subject, Subjects};
use crate::error::BenchError;
use crate::figures::{Figures, Series};
use crate::machine::placement::{Cores, Placement, bind_this_thread};
use crate::process::worker::WorkerError;
use crate::report::json::{FLOOR_SUSPECT, Row};
use crate::report::table::{number, thousands};
use crate::subject::case::Case;
use crate::subject::target::Endpoint;
use crate::wamp::holder::sessions_max;

/// What is asked of all subjects alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Terms {
    pub(super) case: Case,
    pub(super) placement: Placement,
    pub(super) clients: usize,
    pub(super) payload_bytes: usize,
    pub(super) load: Load,
    /// The document's result that this is.
    pub(super) profile: Option<Profile>,
}

/// However slow the rate, a row has so many publications.
const BATCHES_MIN: u64 = 10;

impl Terms {
    pub(super) fn of_options(options: &PubSubOptions, case: Case, placement: Placement) -> Self {
        let rate = match options.work {
            Work::Saturate { outstanding } => Rate::Saturated { outstanding },
            _ => Rate::Hz(options.rate_hz),
        };
        let load = Load {
            batch: options.batch,
            rate,
            seconds: options.seconds(),
            warm_up_seconds: options.warm_up_seconds(),
            // What counts are publications, of which a batch has several.
            batches_min: BATCHES_MIN.div_ceil(options.batch.max(1)),
        };
        Self {
            case,
            placement,
            clients: options.clients,
            payload_bytes: options.payload_bytes,
            load,
            profile: None,
        }
    }

    pub(super) fn of_profile(
        options: &PubSubOptions,
        case: Case,
        placement: Placement,
        profile: Profile,
    ) -> Self {
        let load = Load {
            batch: profile.batch,
            rate: Rate::Hz(profile.rate_hz),
            seconds: options.seconds(),
            warm_up_seconds: options.warm_up_seconds(),
            batches_min: BATCHES_MIN,
        };
        Self {
            case,
            placement,
            clients: profile.clients,
            payload_bytes: profile.payload_bytes,
            load,
            profile: Some(profile),
        }
    }

    /// As rows of the JSON frame have it.
    fn name(&self) -> String {
        match self.profile {
            None => self.case.to_string(),
            Some(profile) => format!("{} result {}", self.case, profile.result),
        }
    }
}

/// The highest rate of a search.
pub(super) const MAX_EVENTS_PER_S: &str = "max_events_per_s";

/// Below this share of its cores a router was not what held the rate back.
const BUSY_MIN: f64 = 0.9;

/// How far the floor's processor time per event may swing from round to round, where it is busy
/// enough for the time to mean something.
const FLOOR_SWING_MAX: f64 = 1.3;
const FLOOR_BUSY_MIN: f64 = 0.2;

/// What all subjects showed.
pub(super) struct Contest {
    pub(super) terms: Terms,
    /// The router, the floor, then peers.
    pub(super) series: Vec<Series>,
    /// How each search went.
    pub(super) searches: Vec<String>,
    /// Cores that a router can use in this placement.
    capacity_cores: f64,
    /// Whether the rate was the router's to decide.
    free_rate: bool,
    /// Whether a round was cut short.
    pub(super) interrupted: bool,
}

impl Contest {
    pub(super) fn floor(&self) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == FLOOR)
    }

    /// Whether something else than the subject limited its rate.
    pub(super) fn driver_bound(&self, series: &Series) -> bool {
        let busy = series.median(BUSY);
        // The floor has one thread, whatever the router has.
        let capacity_cores = match series.subject == FLOOR {
            true => self.capacity_cores.min(1.0),
            false => self.capacity_cores,
        };
        self.free_rate && busy.is_some_and(|busy| busy < BUSY_MIN * capacity_cores)
    }

    /// Whether the highest rate was searched for.
    pub(super) fn is_search(&self) -> bool {
        self.free_rate && matches!(self.terms.load.rate, Rate::Hz(_))
    }

    /// Round by round over the floor; `None` for the floor itself.
    pub(super) fn over_floor(&self, series: &Series, name: &str) -> Option<f64> {
        let floor = self.floor()?;
        if series.subject == floor.subject || floor.suspect.is_some() {
            return None;
        }
        series.over(floor, name).map(|spread| spread.median)
    }

    /// A floor whose own cost swings has something beside it, and nothing can be divided by it.
    fn suspect_the_floor(&mut self) {
        let Some(floor) = self.series.iter_mut().find(|one| one.subject == FLOOR) else {
            return;
        };
        let busy = floor.median(BUSY).unwrap_or(0.0);
        if let Some(cpu) = floor.spread(CPU_PER_EVENT)
            && busy >= FLOOR_BUSY_MIN
            && cpu.max / cpu.min > FLOOR_SWING_MAX
        {
            let (min, max) = (number(cpu.min), number(cpu.max));
            floor.suspect = Some(format!(
                "{FLOOR_SUSPECT}: between rounds it took {min} to {max} µs of processor time per event"
            ));
        }
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for series in &self.series {
            let placement = self.terms.placement.to_string();
            let mut own = series.rows(&self.terms.name(), Some(&placement));
            if let Some(fields) = own.first_mut().and_then(|row| row.metrics.as_object_mut()) {
                fields.extend(self.comparisons(series));
            }
            rows.extend(own);
        }
        rows
    }

    /// What only the sum of the rounds can say.
    fn comparisons(&self, series: &Series) -> Vec<(String, serde_json::Value)> {
        let terms = &self.terms;
        let mut fields = vec![
            ("clients".to_owned(), json!(terms.clients)),
            ("batch".to_owned(), json!(terms.load.batch)),
            ("payload_bytes".to_owned(), json!(terms.payload_bytes)),
        ];
        if let Rate::Hz(hz) = terms.load.rate
            && !self.free_rate
        {
            fields.push(("rate_hz".to_owned(), json!(hz)));
        }
        for name in [P50, P99, MAX_EVENTS_PER_S] {
            if let Some(ratio) = self.over_floor(series, name) {
                fields.push((format!("{name}_over_floor"), json!(ratio)));
            }
        }
        if let Some(profile) = &terms.profile {
            fields.push(("document_result".to_owned(), json!(profile.result)));
            let heading = profile.heading_events_per_s;
            fields.push(("document_events_per_s".to_owned(), json!(heading)));
            if let Some(latency_ms) = profile.latency_ms {
                fields.push(("document_latency_ms".to_owned(), json!(latency_ms)));
            }
        }
        if self.free_rate {
            fields.push(("driver_bound".to_owned(), json!(self.driver_bound(series))));
        }
        fields
    }
}

/// Everybody who takes part, with what drives them.
struct Contestant<'a> {
    subject: Subject,
    setup: Setup<'a>,
    stage: Result<Stage, String>,
}

impl Contestant<'_> {
    /// A stage that lost somebody would fail every later run, at rates that the subject holds too.
    fn repair(&mut self, bench: &Bench) {
        if !self.stage.as_ref().is_ok_and(Stage::is_damaged) {
            return;
        }
        let old = std::mem::replace(&mut self.stage, Err("not connected".to_owned()));
        let Ok(old) = old else { return };
        let next = old.next();
        // Its processes are gone before others come in their place.
        old.close();
        let mut lines = Lines::new(None, &bench.progress);
        self.stage = Stage::open(&self.setup, next, &mut lines, &bench.options.stop)
            .map_err(|why| format!("could not connect again: {why}"));
    }
}

/// Connects all subjects' clients, and lets the subjects take turns.
pub(super) fn hold(
    bench: &Bench,
    subjects: &mut Subjects,
    terms: Terms,
) -> Result<Contest, BenchError> {
    let options = &bench.options;
    let cores = terms
        .placement
        .cores(&bench.allowed, options.router_threads, 2)
        .ok_or_else(|| BenchError::Options(format!("{} needs two cores", terms.placement)))?;
    step_aside(bench, &cores)?;
    let present = subjects.of(bench, terms.case, &cores, terms.payload_bytes)?;
    let mut contest = Contest {
        terms,
        series: present
            .iter()
            .map(|subject| Series::new(subject.name.as_str()))
            .collect(),
        searches: Vec::new(),
        capacity_cores: cores.router.len().min(options.router_threads) as f64,
        free_rate: matches!(options.work, Work::Saturate { .. } | Work::Max { .. }),
        interrupted: false,
    };
    let mut contestants = connect(bench, &terms, &cores, present)?;
    let mut last_rates = vec![None; contestants.len()];
    'rounds: for at in 0..options.runs() {
        for (which, contestant) in contestants.iter_mut().enumerate() {
            if options.stop.is_wished() {
                break 'rounds;
            }
            let name = &contestant.subject.name;
            let runs = options.runs();
            let what = terms.name();
            bench.progress.set_message(format!(
                "{what} {}: {name}, round {}/{runs}",
                terms.placement,
                at + 1
            ));
            let shown = (which == 0).then(|| shown(bench, &terms)).flatten();
            let mut lines = Lines::new(shown, &bench.progress);
            let round = match options.work {
                Work::Max { p99 } => {
                    let bound_us = p99.as_secs_f64() * 1e6;
                    let last = &mut last_rates[which];
                    highest(
                        bench,
                        contestant,
                        &terms,
                        bound_us,
                        last,
                        &mut contest.searches,
                    )
                }
                _ => one(bench, contestant, &terms.load, &mut lines).and_then(Round::into_result),
            };
            contest.interrupted |= options.stop.is_wished();
            contest.series[which].push(round);
            bench.progress.inc(1);
        }
    }
    for contestant in contestants {
        if let Ok(stage) = contestant.stage {
            stage.close();
        }
    }
    bind_this_thread(&bench.allowed)?;
    if options.stop.is_wished() {
        // Whose turn never came has nothing to answer for.
        contest.series.retain(|series| !series.rounds.is_empty());
    }
    contest.suspect_the_floor();
    Ok(contest)
}

/// The load client's parameters, where its lines are shown.
fn shown(bench: &Bench, terms: &Terms) -> Option<Parameters> {
    let rate_hz = match (&bench.options.work, terms.load.rate) {
        (Work::Load, Rate::Hz(hz)) => hz,
        (Work::Saturate { .. }, _) => 0.0,
        _ => return None,
    };
    Some(Parameters {
        clients: terms.clients,
        uprate: bench.options.uprate,
        payload_bytes: terms.payload_bytes,
        batch: terms.load.batch,
        rate_hz,
    })
}

/// The bench itself keeps off the one core that everybody else shares.
fn step_aside(bench: &Bench, cores: &Cores) -> Result<(), BenchError> {
    if let (true, Some(last)) = (cores.router == cores.clients, bench.allowed.last())
        && !cores.router.contains(last)
    {
        bind_this_thread(&[*last])?;
    }
    Ok(())
}

fn connect<'a>(
    bench: &'a Bench,
    terms: &Terms,
    cores: &Cores,
    present: Vec<Subject>,
) -> Result<Vec<Contestant<'a>>, BenchError> {
    let options = &bench.options;
    let mut contestants = Vec::new();
    for subject in present {
        let name = &subject.name;
        let first = contestants.is_empty();
        let setup = Setup {
            executable: &bench.executable,
            hub: subject.hub.clone(),
            clients: terms.clients,
            payload_bytes: terms.payload_bytes,
            acknowledge: options.acknowledge && name != FLOOR,
            gate: matches!(options.work, Work::Saturate { .. }),
            uprate: options.uprate,
            processes: processes(options, terms.clients, cores),
            sources: sources(&subject.hub, terms.clients),
            place: bench.network.client_place(&cores.clients),
        };
        let shown = first.then(|| shown(bench, terms)).flatten();
        let mut lines = Lines::new(shown, &bench.progress);
        let stage = Stage::open(&setup, 1, &mut lines, &options.stop);
        match &stage {
            Ok(_) => lines.connected(),
            // Without the router itself there is nothing to compare.
            Err(why) if first => {
                let why = format!("{name}: {why}");
                return Err(WorkerError::Io(std::io::Error::other(why)).into());
            }
            Err(_) => {}
        }
        contestants.push(Contestant {
            subject,
            setup,
            stage,
        });
    }
    Ok(contestants)
}

/// How many processes share the subscribers.
fn processes(options: &PubSubOptions, clients: usize, cores: &Cores) -> usize {
    let least = clients.div_ceil(sessions_max().saturating_sub(8).max(1));
    let usual = match cores.clients == cores.router && cores.clients.len() > 1 {
        // Wherever the scheduler puts them: one less than the cores, for the router's sake.
        true => cores.clients.len() - 1,
        false => cores.clients.len(),
    };
    options.processes.unwrap_or(usual).max(least).min(clients)
}

/// One address has ports for some 28,000 connections to one server.
const CLIENTS_PER_SOURCE: usize = 25_000;

/// Where connections come from: as many loopback addresses as are needed; elsewhere, whichever
/// address leads there.
fn sources(hub: &Hub, clients: usize) -> Vec<Ipv4Addr> {
    let endpoint = match hub {
        Hub::Router { target, .. } => &target.endpoint,
        Hub::Floor { endpoint, .. } => endpoint,
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

fn one(
    bench: &Bench,
    contestant: &mut Contestant<'_>,
    load: &Load,
    lines: &mut Lines<'_>,
) -> Result<Round, String> {
    contestant.repair(bench);
    let stage = contestant.stage.as_mut().map_err(|why| why.clone())?;
    stage.run(
        load,
        &contestant.subject.processes,
        lines,
        &bench.options.stop,
    )
}

/// Events per second that any router here manages.
const START_EVENTS_PER_S: f64 = 50_000.0;

/// Searches the highest rate of one subject in one round. `last` is where the round before ended:
/// this one begins a little below it.
fn highest(
    bench: &Bench,
    contestant: &mut Contestant<'_>,
    terms: &Terms,
    bound_us: f64,
    last: &mut Option<f64>,
    searches: &mut Vec<String>,
) -> Result<Figures, String> {
    let per_batch = terms.clients as f64 * terms.load.batch as f64;
    let start = last.unwrap_or(START_EVENTS_PER_S / per_batch);
    let mut unreachable = false;
    let mut busy_when_failed = None;
    let bounds = search(start, |hz| {
        if bench.options.stop.is_wished() || unreachable {
            return None;
        }
        let load = Load {
            rate: Rate::Hz(hz),
            ..terms.load
        };
        let mut lines = Lines::new(None, &bench.progress);
        Some(match one(bench, contestant, &load, &mut lines) {
            Err(why) => {
                // A stage that broke is opened again before the next probe.
                unreachable = contestant.stage.is_err();
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
    if bench.options.stop.is_wished() {
        return Err(INTERRUPTED.to_owned());
    }
    let name = &contestant.subject.name;
    searches.push(format!("{name}: {}", describe(&bounds, per_batch)));
    match bounds {
        Bounds {
            held: Some((hz, mut figures)),
            ..
        } => {
            *last = Some(hz * 0.97);
            let reached = figures.value(EVENTS_PER_S).unwrap_or(hz * per_batch);
            figures.set(MAX_EVENTS_PER_S, reached);
            // At the last rate that held, or at the first that did not, it must have been busy.
            if let (Some(held), Some(failed)) = (figures.value(BUSY), busy_when_failed) {
                figures.set(BUSY, held.max(failed));
            }
            Ok(figures)
        }
        Bounds { failed, .. } => {
            let why = failed.map_or_else(|| "nothing was tried".to_owned(), |(_, why)| why);
            Err(format!("no rate held: {why}"))
        }
    }
}

/// A rate holds while nothing is lost and the latency is bounded.
fn hold_to(round: Round, bound_us: f64) -> Result<Figures, String> {
    let figures = round.into_result()?;
    match figures.value(P99) {
        Some(p99) if p99 <= bound_us => Ok(figures),
        Some(p99) => {
            let (p99, bound) = (number(p99 / 1e3), number(bound_us / 1e3));
            Err(format!("p99 {p99} ms where {bound} ms is the bound"))
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
            let hub = Hub::Floor {
                endpoint: Endpoint::Tcp(endpoint.parse().unwrap()),
                lengths: crate::pubsub::hub::Lengths {
                    publication: 8,
                    event: 8,
                },
            };
            let sources: Vec<String> = sources(&hub, clients)
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
            Err("p99 51.0 ms where 50.0 ms is the bound"),
        );
        check(None, None, Err("no event came"));
    }
}
