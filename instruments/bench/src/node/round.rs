//! One round of one subject: start, wait, work undisturbed, sample, end.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::lines::Average;
use super::options::NodeOptions;
use super::original::Original;
use super::processes::{Look, Role, Used};
use super::subject::{Ended, Running, Start, Subject};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::frame::Site;
use crate::machine::accounting::machine_busy;

/// For a node with components in Python on a busy machine.
const ACCEPT_MAX: Duration = Duration::from_secs(60);
const FIRST_LINES_MAX: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(super) struct Found {
    /// Of the node and all its processes.
    pub(super) node: Figures,
    /// Of each caller, by its title.
    pub(super) pairs: BTreeMap<String, Figures>,
    pub(super) processes: Vec<Used>,
    /// The reason why it does not count, if it does not.
    pub(super) fault: Option<String>,
}

/// The parts common to all rounds.
pub(super) struct Turn<'a> {
    pub(super) site: &'a Site,
    pub(super) options: &'a NodeOptions,
}

impl Turn<'_> {
    /// The callers of a directory, and the number of calls per line of each.
    fn callers(&self, original: &Original) -> BTreeMap<String, u64> {
        let callers = original.callers().into_iter();
        let usual = self.options.batch;
        callers
            .map(|caller| (caller.title, caller.batch.unwrap_or(usual)))
            .collect()
    }

    fn check_stop(&self) -> Result<(), BenchError> {
        match self.site.stop.is_wished() {
            true => Err(BenchError::Options("the run was ended".to_owned())),
            false => Ok(()),
        }
    }
}

/// Runs one round; an error is a subject that failed to start working.
pub(super) fn round(
    turn: &Turn<'_>,
    subject: &Subject,
    original: &Original,
    directory: &Path,
) -> Result<Found, BenchError> {
    let mut running = subject.start(&Start {
        executable: &turn.site.executable,
        original,
        directory,
        python: turn.options.python.as_deref(),
        cores: &turn.site.allowed,
        network: &turn.site.network,
    })?;
    let accepted = running.accepted(ACCEPT_MAX)?;
    let callers = turn.callers(original);
    let first = first_lines(turn, &mut running, &callers)?;
    pause(turn, turn.options.common.warm_up_seconds, &mut running)?;

    let roots = running.roots();
    let (before, busy_before) = (Look::at(&roots), machine_busy());
    let begun = Instant::now();
    pause(turn, turn.options.common.seconds, &mut running)?;
    second_lines(turn, &mut running, &callers, begun)?;
    let window = begun.elapsed().as_secs_f64();
    let (after, busy_after) = (Look::at(&roots), machine_busy());
    let processes = after.since(&before, window);
    let until = Instant::now();
    let averages = running.lines.averages();
    let spawned = running.spawned;
    let ended = running.end()?;

    let mut found = Found {
        node: Figures::new(),
        pairs: BTreeMap::new(),
        processes,
        fault: ended.fault(subject),
    };
    let within = |line: &&Average| (begun..until).contains(&line.at);
    let lines: Vec<&Average> = averages.iter().filter(within).collect();
    let calls_per_s = found.take_pairs(&callers, &lines);
    for (id, took) in &accepted {
        found.node.set(&format!("accept_{id}_ms"), ms(*took));
    }
    if let Some(all) = accepted.iter().map(|(_, took)| *took).max() {
        found.node.set("start_ms", ms(all));
    }
    if *subject != Subject::Plain {
        found.take_first_calls(&first, &callers, spawned);
        found.take_end(&ended);
    }
    load(&mut found, calls_per_s, window);
    let busy_cores = busy_after.saturating_sub(busy_before) as f64 / 1e9 / window;
    found.take_machine(busy_cores, turn.site.machine.cores);
    Ok(found)
}

impl Found {
    /// Each caller's lines in the window; returns the calls per second of all.
    fn take_pairs(&mut self, callers: &BTreeMap<String, u64>, lines: &[&Average]) -> f64 {
        let mut calls_per_s = 0.0;
        for (title, batch) in callers {
            let of = lines.iter().copied().filter(|line| line.title == *title);
            let lines: Vec<&Average> = of.collect();
            match pair(&lines, *batch) {
                Some(figures) => {
                    calls_per_s += figures.value("calls_per_s").unwrap_or_default();
                    self.pairs.insert(title.clone(), figures);
                }
                None => self.fault = Some(too_few(title, lines.len())),
            }
        }
        calls_per_s
    }

    /// From spawn to the first call of the first caller and of the last one.
    fn take_first_calls(
        &mut self,
        first: &[Average],
        callers: &BTreeMap<String, u64>,
        spawned: Instant,
    ) {
        let calling = first.iter().map(|line| {
            let batch = callers.get(&line.title).copied().unwrap_or_default();
            ms(line.at - spawned) - line.average_ms * batch as f64
        });
        let calling: Vec<f64> = calling.collect();
        let least = calling.iter().copied().fold(f64::INFINITY, f64::min);
        let most = calling.iter().copied().fold(0.0, f64::max);
        self.node.set("first_call_ms", least);
        self.node.set("all_calling_ms", most);
    }

    fn take_end(&mut self, ended: &Ended) {
        let code = ended.status.and_then(|status| status.code());
        self.node.set("end_ms", ms(ended.took));
        self.node.set("exit_code", code.map_or(f64::NAN, f64::from));
        self.node.set("children_left", ended.left as f64);
    }

    /// The machine's other load.
    fn take_machine(&mut self, busy_cores: f64, cores: usize) {
        let percent = self.processes.iter().map(|used| used.cpu_percent);
        let own = percent.sum::<f64>() / 100.0;
        let foreign = (busy_cores - own).max(0.0);
        self.node.set("foreign_busy_cores", foreign);
        for pair in self.pairs.values_mut() {
            // The goal's check reads it beside each figure.
            pair.set("foreign_busy_cores", foreign);
        }
        let idle = 1.0 - busy_cores / cores.max(1) as f64;
        self.node.set("idle_percent", (100.0 * idle).max(0.0));
    }
}

/// Waits for each caller's first line.
fn first_lines(
    turn: &Turn<'_>,
    running: &mut Running,
    callers: &BTreeMap<String, u64>,
) -> Result<Vec<Average>, BenchError> {
    let deadline = Instant::now() + FIRST_LINES_MAX;
    loop {
        let averages = running.lines.averages();
        let first: BTreeMap<&String, &Average> = averages
            .iter()
            .rev()
            .map(|line| (&line.title, line))
            .collect();
        let missing: Vec<&str> = callers
            .keys()
            .filter(|title| !first.contains_key(title))
            .map(String::as_str)
            .collect();
        if missing.is_empty() {
            return Ok(first.into_values().cloned().collect());
        }
        running.check_alive("before all of its callers had called")?;
        if Instant::now() > deadline {
            let why = format!(
                "no average of {} for {} s",
                missing.join(", "),
                FIRST_LINES_MAX.as_secs()
            );
            return Err(running.fault(why));
        }
        turn.check_stop()?;
        thread::sleep(Duration::from_millis(1));
    }
}

/// A window that closes before a slow caller's second line would have no rate of it. The window stays open for that, up
/// to so many times its length.
const WINDOWS_MAX: f64 = 4.0;

fn second_lines(
    turn: &Turn<'_>,
    running: &mut Running,
    callers: &BTreeMap<String, u64>,
    begun: Instant,
) -> Result<(), BenchError> {
    let longest = Duration::from_secs_f64(turn.options.common.seconds * WINDOWS_MAX);
    loop {
        let averages = running.lines.averages();
        let has_two = |title: &String| {
            let lines = averages
                .iter()
                .filter(|l| l.title == *title && l.at >= begun);
            lines.take(2).count() == 2
        };
        if callers.keys().all(has_two) || begun.elapsed() > longest {
            return Ok(());
        }
        pause(turn, 0.01, running)?;
    }
}

/// Leaves the subject alone for a while, unless it ends or a stop is requested.
fn pause(turn: &Turn<'_>, seconds: f64, running: &mut Running) -> Result<(), BenchError> {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        running.check_alive("while it was measured")?;
        turn.check_stop()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// The figures of a caller's lines in the window; `None` for fewer than two.
fn pair(lines: &[&Average], batch: u64) -> Option<Figures> {
    let [first, .., last] = lines else {
        return None;
    };
    let averages: Vec<f64> = lines.iter().map(|line| line.average_ms).collect();
    let average_ms = averages.iter().sum::<f64>() / averages.len() as f64;
    let between = (last.at - first.at).as_secs_f64();
    let calls = (lines.len() as u64 - 1) * batch;
    let least = averages.iter().copied().fold(f64::INFINITY, f64::min);
    let figures = Figures::new()
        .with("rtt_avg_us", average_ms * 1e3)
        .with("rtt_batch_least_us", least * 1e3)
        .with(
            "rtt_batch_most_us",
            averages.iter().copied().fold(0.0, f64::max) * 1e3,
        )
        // By the clock of the lines' reader, and by the caller's own.
        .with("calls_per_s", calls as f64 / between)
        .with("own_clock_calls_per_s", 1e3 / average_ms)
        .with("batches", lines.len() as f64);
    Some(figures)
}

fn too_few(title: &str, lines: usize) -> String {
    let lines = match lines {
        0 => "no line".to_owned(),
        _ => "one line only".to_owned(),
    };
    format!("{lines} of {title} in the window: --seconds is too short, or it stopped calling")
}

/// The processes' usage, the node's own and that of hosted ones separately.
fn load(found: &mut Found, calls_per_s: f64, window: f64) {
    let (node, hosted): (Vec<&Used>, Vec<&Used>) =
        found.processes.iter().partition(|used| used.role.is_node());
    let sum =
        |of: &[&Used], figure: fn(&Used) -> f64| of.iter().map(|used| figure(used)).sum::<f64>();
    let node_percent = sum(&node, |used| used.cpu_percent);
    let figures = [
        // Of all pairs together; that of each is in its own rows.
        ("all_calls_per_s", calls_per_s),
        ("node_cpu_percent", node_percent),
        ("node_cpu_us_per_call", node_percent * 1e4 / calls_per_s),
        ("node_pss_bytes", sum(&node, |used| used.pss_bytes as f64)),
        ("node_rss_bytes", sum(&node, |used| used.rss_bytes as f64)),
        ("node_threads", sum(&node, |used| used.threads as f64)),
        ("node_processes", node.len() as f64),
        (
            "node_voluntary_switches_per_s",
            sum(&node, |used| used.voluntary_switches_per_s),
        ),
        (
            "node_involuntary_switches_per_s",
            sum(&node, |used| used.involuntary_switches_per_s),
        ),
        ("hosted_cpu_percent", sum(&hosted, |used| used.cpu_percent)),
        (
            "hosted_pss_bytes",
            sum(&hosted, |used| used.pss_bytes as f64),
        ),
        ("hosted_processes", hosted.len() as f64),
        ("window_s", window),
    ];
    for (name, value) in figures {
        found.node.set(name, value);
    }
    for role in [Role::Controller, Role::Router] {
        let of_role: Vec<&Used> = found
            .processes
            .iter()
            .filter(|used| used.role == role)
            .collect();
        if !of_role.is_empty() {
            let name = format!("{}_cpu_percent", role.name());
            found
                .node
                .set(&name, sum(&of_role, |used| used.cpu_percent));
        }
    }
}

impl Ended {
    /// The fault of its end. A peer's exit code is ignored.
    fn fault(&self, subject: &Subject) -> Option<String> {
        if self.left > 0 {
            return Some(format!("{} of its processes stayed behind", self.left));
        }
        match self.status {
            None => Some("it did not end at SIGINT and had to be killed".to_owned()),
            Some(status) if *subject == Subject::Crosstie && !status.success() => {
                Some(format!("it ended with {status}"))
            }
            Some(_) => None,
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_a_rate_and_an_average() {
        let start = Instant::now();
        let line = |at_ms: u64, average_ms| Average {
            at: start + Duration::from_millis(at_ms),
            title: "A".to_owned(),
            average_ms,
        };
        let lines = [line(0, 0.4), line(500, 0.5), line(1000, 0.6)];
        let lines: Vec<&Average> = lines.iter().collect();
        let figures = pair(&lines, 1000).unwrap();
        let close = |name, expected: f64| {
            let found = figures.value(name).unwrap();
            assert!((found - expected).abs() < 1e-6, "{name}: {found}");
        };
        close("calls_per_s", 2000.0);
        close("rtt_avg_us", 500.0);
        close("own_clock_calls_per_s", 2000.0);
        close("rtt_batch_most_us", 600.0);
        assert_eq!(pair(&lines[..1], 1000), None);
    }
}
