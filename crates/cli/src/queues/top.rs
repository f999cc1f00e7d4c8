//! `crosstie top`: the WAMP sessions that do the most, or that read too slowly.
//!
//! Each look reads six numbers of every session; the details are those of the sessions on the screen alone.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use crosstie_client::args;
use serde_json::{Value as Json, json};

use super::realm::{ManagementRealm, Refused};
use crate::list::{Column, Form, Printer, Show, column, extra_column};
use crate::management::Place;
use crate::wait_for;

/// Show the busiest WAMP sessions of a running node, again and again.
///
/// A rate is that between two looks, and at the first look the average since the session joined. Requests are those that the
/// client sent, by their ids, which clients count from 1: calls, publications, subscriptions, registrations. Invocations
/// are those that it was sent. CPU is the share of a core for which its input held a thread. One in 61 short inputs is
/// measured. Queued bytes are output that the client has not read.
#[derive(Args)]
pub(crate) struct TopArguments {
    /// Order of the sessions.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Sessions to show.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rows: u16,
    /// Time between two looks.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::list::interval)]
    interval: Duration,
    /// Look once.
    #[arg(long)]
    once: bool,
    /// Realm; by default all.
    #[arg(long)]
    realm: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// Print JSON: a list of objects for each look.
    #[arg(long)]
    json: bool,
    /// Columns to show, by title (with _ for a blank) or by the key of the JSON, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Requests and invocations a second
    #[default]
    Rate,
    /// Share of a core for which its input held a thread
    Cpu,
    /// Output that the client has not read
    Queued,
    /// Calls that the client waits for
    Calls,
}

static COLUMNS: [Column; 12] = [
    column("session", Show::Number("session")),
    column("realm", Show::Text("realm")),
    column("authid", Show::Text("authid")),
    column("role", Show::Text("authrole")),
    column("peer", Show::Text("peer")),
    column("requests/s", Show::Number("requests_per_second")),
    column("invocations/s", Show::Number("invocations_per_second")),
    column("CPU %", Show::Number("cpu_percent")),
    column("calls", Show::Number("calls")),
    column("queued bytes", Show::Number("queued_bytes")),
    extra_column("since", Show::Text("since")),
    extra_column("worker", Show::Text("worker")),
];

pub(crate) fn run(arguments: &TopArguments) -> anyhow::Result<ExitCode> {
    let interval = (!arguments.once).then_some(arguments.interval);
    let form = Form::new(arguments.json, arguments.columns.clone(), interval);
    wait_for(async {
        let target = arguments.place.target()?;
        let realm = ManagementRealm::join(&target, arguments.worker.clone()).await?;
        let mut before = Looks::default();
        let shown = form.run(&COLUMNS, async |printer: &mut Printer<'_>| {
            let rows = look(&realm, arguments, &mut before).await?;
            printer.add(rows);
            Ok(())
        });
        let shown = shown.await;
        realm.leave().await;
        shown
    })
}

/// The numbers of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    requests: u64,
    invocations: u64,
    calls: u64,
    queued_bytes: u64,
    busy_us: u32,
}

/// A session, its rates, and its counters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Busy {
    session: u64,
    now: Counters,
    /// Since the last look; `None` at the first one.
    per_second: Option<Rates>,
}

/// What a session did, a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    requests: f64,
    invocations: f64,
    busy_us: f64,
}

/// The last look at each worker.
#[derive(Default)]
struct Looks(HashMap<String, (Instant, HashMap<u64, Counters>)>);

/// The rows of one look.
async fn look(
    realm: &ManagementRealm,
    arguments: &TopArguments,
    before: &mut Looks,
) -> Result<Vec<Json>, Refused> {
    let of_realm = arguments.realm.as_deref();
    let mut rows = Vec::new();
    let mut is_there = of_realm.is_none();
    for worker in realm.routers().await? {
        let counters = match counters(realm, &worker, of_realm).await {
            Err(refused) if of_realm.is_some() && refused.is_no_such_object() => continue,
            counters => counters?,
        };
        is_there = true;
        let at = Instant::now();
        let last = before.0.get(&worker);
        let last = last.map(|(then, counters)| (at.duration_since(*then), counters));
        let busy = busiest(&counters, last, arguments.sort, arguments.rows.into());
        before.0.insert(worker.clone(), (at, counters));
        rows.extend(detailed(realm, &worker, &busy).await?);
    }
    if let (false, Some(name)) = (is_there, of_realm) {
        return Err(Refused::Here(format!("there is no realm '{name}'")));
    }
    let key = |row: &Json| match arguments.sort {
        Sort::Rate => ["requests_per_second", "invocations_per_second"]
            .map(|key| row[key].as_f64().unwrap_or_default())
            .iter()
            .sum(),
        Sort::Cpu => row["cpu_percent"].as_f64().unwrap_or_default(),
        Sort::Queued => row["queued_bytes"].as_f64().unwrap_or_default(),
        Sort::Calls => row["calls"].as_f64().unwrap_or_default(),
    };
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    rows.truncate(arguments.rows.into());
    Ok(rows)
}

/// The counters of all sessions of a worker.
async fn counters(
    realm: &ManagementRealm,
    worker: &str,
    of_realm: Option<&str>,
) -> Result<HashMap<u64, Counters>, Refused> {
    let procedure = format!("crossbar.worker.{worker}.get_router_session_counters");
    let (mut found, mut offset) = (HashMap::new(), 0);
    loop {
        let part = realm.call(&procedure, args![of_realm, offset]).await?;
        // A node of an earlier release has no column of the last kind.
        let number = |key: &str, index: usize| part[key][index].as_u64().unwrap_or_default();
        let count = part["session"].as_array().map_or(0, Vec::len);
        if count == 0 {
            return Ok(found);
        }
        found.extend((0..count).map(|index| {
            let counters = Counters {
                requests: number("requests", index),
                invocations: number("invocations", index),
                calls: number("calls", index),
                queued_bytes: number("queued_bytes", index),
                // Modulo 2^32.
                busy_us: number("busy_us", index) as u32,
            };
            (number("session", index), counters)
        }));
        offset += count;
    }
}

/// The sessions that come first.
fn busiest(
    now: &HashMap<u64, Counters>,
    last: Option<(Duration, &HashMap<u64, Counters>)>,
    sort: Sort,
    rows: usize,
) -> Vec<Busy> {
    let all = now.iter().map(|(&session, &now)| {
        // One that was not there has begun since.
        let earlier = |counters: &HashMap<u64, Counters>| counters.get(&session).copied();
        let earlier = last.map(|(time, counters)| (time, earlier(counters).unwrap_or_default()));
        let per_second = earlier.map(|(time, then)| {
            let seconds = time.as_secs_f64().max(0.001);
            let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            Rates {
                requests: rate(now.requests, then.requests),
                invocations: rate(now.invocations, then.invocations),
                busy_us: f64::from(now.busy_us.wrapping_sub(then.busy_us)) / seconds,
            }
        });
        Busy {
            session,
            now,
            per_second,
        }
    });
    let mut all: Vec<Busy> = all.collect();
    let key = |busy: &Busy| match (sort, busy.per_second) {
        (Sort::Rate, Some(rates)) => rates.requests + rates.invocations,
        (Sort::Rate, None) => (busy.now.requests + busy.now.invocations) as f64,
        (Sort::Cpu, Some(rates)) => rates.busy_us,
        (Sort::Cpu, None) => f64::from(busy.now.busy_us),
        (Sort::Queued, _) => busy.now.queued_bytes as f64,
        (Sort::Calls, _) => busy.now.calls as f64,
    };
    // Equal ones keep an order, so that a quiet list stands still.
    let order = |a: &Busy, b: &Busy| key(b).total_cmp(&key(a)).then(a.session.cmp(&b.session));
    if all.len() > rows {
        all.select_nth_unstable_by(rows, order);
        all.truncate(rows);
    }
    all.sort_by(order);
    all
}

/// The rows of these sessions, without those that have left.
async fn detailed(
    realm: &ManagementRealm,
    worker: &str,
    busy: &[Busy],
) -> Result<Vec<Json>, Refused> {
    if busy.is_empty() {
        return Ok(Vec::new());
    }
    let procedure = format!("crossbar.worker.{worker}.get_router_sessions_by_id");
    let ids: Vec<u64> = busy.iter().map(|busy| busy.session).collect();
    let found = realm.call(&procedure, args![ids]).await?;
    let rows = found.as_array().cloned().unwrap_or_default();
    let rows = rows.into_iter().filter_map(|mut row| {
        let id = row["session"].as_u64()?;
        let busy = busy.iter().find(|busy| busy.session == id)?;
        let rates = busy.per_second.unwrap_or_else(|| {
            let age = age_s(row["since"].as_str()).max(1.0);
            Rates {
                requests: busy.now.requests as f64 / age,
                invocations: busy.now.invocations as f64 / age,
                busy_us: f64::from(busy.now.busy_us) / age,
            }
        });
        row["requests_per_second"] = rounded(rates.requests);
        row["invocations_per_second"] = rounded(rates.invocations);
        row["cpu_percent"] = rounded(rates.busy_us / 1e4);
        row["calls"] = busy.now.calls.into();
        row["queued_bytes"] = busy.now.queued_bytes.into();
        row["worker"] = worker.into();
        Some(row)
    });
    Ok(rows.collect())
}

/// With one digit behind the point for small rates.
fn rounded(rate: f64) -> Json {
    match rate < 10.0 {
        true => json!((rate * 10.0).round() / 10.0),
        false => json!(rate.round() as u64),
    }
}

/// The time since a date of the node, by this machine's clock.
fn age_s(since: Option<&str>) -> f64 {
    let since = since.and_then(|date| chrono::DateTime::parse_from_rfc3339(date).ok());
    since.map_or(0.0, |since| {
        let age = chrono::Utc::now().signed_duration_since(since);
        age.num_milliseconds().max(0) as f64 / 1000.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(requests: u64, queued_bytes: u64, calls: u64) -> Counters {
        Counters {
            requests,
            queued_bytes,
            calls,
            ..Counters::default()
        }
    }

    #[test]
    fn the_busiest_come_first() {
        let then = HashMap::from([(1, counters(100, 0, 0)), (2, counters(0, 0, 0))]);
        let now = HashMap::from([
            (1, counters(120, 5, 9)),
            (2, counters(40, 7, 0)),
            (3, counters(4, 6, 1)),
        ]);
        let check = |sort: Sort, last: bool, rows: usize, expected: &[u64]| {
            let last = last.then_some((Duration::from_secs(2), &then));
            let found = busiest(&now, last, sort, rows);
            let ids: Vec<u64> = found.iter().map(|busy| busy.session).collect();
            assert_eq!(ids, expected, "{sort:?}");
        };
        check(Sort::Rate, true, 9, &[2, 1, 3]);
        check(Sort::Rate, false, 9, &[1, 2, 3]);
        check(Sort::Queued, true, 2, &[2, 3]);
        check(Sort::Calls, true, 1, &[1]);
        let last = Some((Duration::from_secs(2), &then));
        let rates = busiest(&now, last, Sort::Rate, 1)[0].per_second;
        assert_eq!(rates.map(|rates| rates.requests), Some(20.0));
    }

    #[test]
    fn a_share_of_a_core_survives_the_end_of_its_counter() {
        let busy = |busy_us: u32| {
            let counters = Counters {
                busy_us,
                ..Counters::default()
            };
            HashMap::from([(1, counters)])
        };
        let (then, now) = (busy(u32::MAX - 499_999), busy(500_000));
        let last = Some((Duration::from_secs(2), &then));
        let rates = busiest(&now, last, Sort::Cpu, 1)[0].per_second;
        assert_eq!(rates.map(|rates| rates.busy_us), Some(500_000.0));
    }

    #[test]
    fn small_rates_have_a_digit_behind_the_point() {
        assert_eq!(rounded(0.26), json!(0.3));
        assert_eq!(rounded(1234.5), json!(1235));
    }
}
