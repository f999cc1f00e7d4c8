//! One attack beside the witness, or the witness alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::attacker;
use super::options::HostileOptions;
use super::pages;
use super::strike::{Found, Order};
use super::subject::Started;
use super::watch::{Memory, Watch};
use super::witness::{self, Account, Instruction};
use crate::machine::{CpuTime, allowed_cores};
use crate::process::{Place, Workers};

#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) witness: BTreeMap<String, Account>,
    /// The parts of the witness that could not even begin, and the reasons.
    pub(super) without: Vec<String>,
    /// `None` for the witness alone.
    pub(super) attack: Option<Found>,
    /// The subject's processor time in seconds; `None` if its processes are unknown.
    pub(super) cpu_s: Option<f64>,
    pub(super) memory: Option<Memory>,
    /// Events that the subject dropped; `None` if it does not report them.
    pub(super) dropped: Option<f64>,
    pub(super) is_alive: bool,
}

/// Time for the witness's and the attacker's processes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// For `/metrics`, which is requested before and after.
const PAGE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the witness warms up.
const WARM_UP: Duration = Duration::from_millis(300);

const DROPPED: &str = "crosstie_events_dropped_full_total";

/// Runs the witness, and an attack beside it.
pub(super) fn run(
    started: &mut Started,
    attack: Option<&str>,
    executable: &Path,
    options: &HostileOptions,
) -> Result<Outcome, String> {
    let place = Place::on(&allowed_cores().map_err(|error| error.to_string())?);
    let mut witness = Workers::<witness::WitnessReport>::default();
    let of_the_witness = |why| format!("the witness: {why}");
    let order = witness::Order {
        ways: started.ways.clone(),
        patience: options.patience(),
    };
    witness
        .start(executable, witness::ROLE, &place, &order)
        .map_err(|error| error.to_string())?;
    let patience = PATIENCE + options.patience();
    let without = witness.expect(patience, "it should begin", |report| match report {
        witness::WitnessReport::Ready { without } => Ok(without),
        other => Err(other),
    });
    let without = without.map_err(of_the_witness)?;
    std::thread::sleep(WARM_UP);

    let dropped = |started: &Started| {
        let pages = started.ways.pages.as_ref()?;
        pages::metric(pages, DROPPED, PAGE_PATIENCE)
    };
    let dropped_before = dropped(started);
    let processes = started.processes();
    let cpu_before = CpuTime::of(&processes);
    let watch = Watch::start(&processes);
    witness.tell(0, &Instruction::Begin);
    let found = match attack {
        Some(attack) => Some(strike(started, attack, &place, executable, options)?),
        None => None,
    };
    std::thread::sleep(options.after());
    witness.tell(0, &Instruction::Finish);
    let accounts = witness.expect(patience, "it should end", |report| match report {
        witness::WitnessReport::Found(accounts) => Ok(accounts),
        other => Err(other),
    });
    let memory = watch.finish();
    let cpu = CpuTime::of(&processes).since(&cpu_before);
    let accounts = accounts.map_err(of_the_witness)?;
    let is_alive = started.is_alive();
    Ok(Outcome {
        witness: accounts,
        without,
        attack: found,
        cpu_s: (!processes.is_empty()).then_some(cpu as f64 / 1e9),
        memory,
        dropped: match (dropped_before, dropped(started)) {
            (Some(before), Some(after)) => Some(after - before),
            _ => None,
        },
        is_alive,
    })
}

fn strike(
    started: &Started,
    attack: &str,
    place: &Place,
    executable: &Path,
    options: &HostileOptions,
) -> Result<Found, String> {
    let mut attacker = Workers::<Found>::default();
    let order = Order {
        attack: attack.to_owned(),
        ways: started.ways.clone(),
        scale: options.scale,
        consumers: options.consumers,
        limit: options.limit(),
    };
    attacker
        .start(executable, attacker::ROLE, place, &order)
        .map_err(|error| error.to_string())?;
    // It ends by itself at its limit, plus at most one wait.
    let found = attacker.expect(2 * options.limit() + PATIENCE, "it should end", Ok);
    found.map_err(|why| format!("the attacker: {why}"))
}
