//! One run against one server: the load divided among threads, each with a driver of its own, and their common log.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::driver::{Findings, Load, drive};
use super::log::{Connection, Log};
use super::opening::Target;
use crate::error::BenchError;
use crate::frame::require;
use crate::process::descriptors;

/// The options of a run, in wsperf's terms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    pub threads: usize,
    /// Opened over the whole run.
    pub connections: u64,
    /// Handshakes in flight, over all threads.
    pub low: usize,
    pub high: usize,
    /// Launch nothing after this time.
    pub seconds_max: Option<f64>,
    /// How long a server may take for one step of a connection.
    pub timeout_s: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub log: Log,
    pub failures: BTreeMap<String, u64>,
    pub left_open: u64,
    pub gave_up: Option<String>,
}

/// Descriptors for everything but measured connections.
const DESCRIPTORS_ASIDE: usize = 64;

const THREADS_MAX: usize = 256;
/// Each takes 40 bytes until the log is written.
const CONNECTIONS_MAX: u64 = 10_000_000;

impl RunOptions {
    /// Refuses invalid options, and loads that would overwhelm the machine.
    pub fn check(&self) -> Result<(), BenchError> {
        require(self.threads <= THREADS_MAX, "THREADS is at most 256")?;
        let connections = 1..=CONNECTIONS_MAX;
        require(
            connections.contains(&self.connections),
            "CONNECTIONS is 1 to 10,000,000",
        )?;
        require(self.high > 0, "HIGH is at least 1")?;
        require(self.low <= self.high, "LOW is at most HIGH")?;
        let timeout_s = 0.001..3_600.0;
        require(
            timeout_s.contains(&self.timeout_s),
            "the timeout is 0.001 to 3,600 s",
        )
    }

    /// One driver's part, of `threads`.
    fn part(&self, thread: usize, threads: usize, open_max: usize) -> Load {
        let share = |whole: usize| whole / threads + usize::from(thread < whole % threads);
        let (whole, parts) = (self.connections, threads as u64);
        Load {
            connections: whole / parts + u64::from((thread as u64) < whole % parts),
            seconds_max: self.seconds_max,
            low: share(self.low),
            high: share(self.high),
            open_max: share(open_max),
            patience: Duration::from_secs_f64(self.timeout_s),
        }
    }
}

/// Makes the run. `show` is called periodically with the number of ended connections.
pub(super) fn run(
    target: &Target,
    options: &RunOptions,
    show: &mut dyn FnMut(u64),
) -> Result<Run, BenchError> {
    options.check()?;
    let open_max = connections_open_max(options.high)?;
    // Without threads wsperf works in its first one; a thread without a handshake is of no use.
    let threads = options.threads.clamp(1, options.high);
    let started = SystemTime::now();
    let done = AtomicU64::new(0);
    let (sender, receiver) = mpsc::channel::<Result<Findings, Errno>>();
    let mut found = Vec::with_capacity(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let load = options.part(thread, threads, open_max);
            let (sender, done) = (sender.clone(), &done);
            scope.spawn(move || {
                let _ = sender.send(drive(target, &load, done));
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok(findings) => found.push(findings),
                Err(RecvTimeoutError::Timeout) => show(done.load(Ordering::Relaxed)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    let mut run = Run::default();
    let (mut begun, mut ended) = (None, None);
    for findings in found {
        let findings = findings.map_err(|error| BenchError::Io(error.into()))?;
        begun = begun.min(Some(findings.begun)).or(Some(findings.begun));
        ended = ended.max(Some(findings.ended));
        run.add(findings);
    }
    let since_1970 = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    if let (Some(begun), Some(ended)) = (begun, ended) {
        run.log.total_duration = ended.saturating_duration_since(begun).as_micros() as i64;
    }
    run.log.started = since_1970.as_micros() as i64;
    run.log.ended = run.log.started + run.log.total_duration;
    Ok(run)
}

impl Run {
    fn add(&mut self, findings: Findings) {
        self.log.connection_stats.extend(findings.connections);
        self.log.handshake_throttle_count += findings.throttled;
        self.log.handshake_resume_count += findings.resumed;
        self.left_open += findings.left_open;
        for (why, count) in findings.failures {
            *self.failures.entry(why).or_insert(0) += count;
        }
        if self.gave_up.is_none() {
            self.gave_up = findings.gave_up;
        }
    }

    pub(super) fn succeeded(&self) -> impl Iterator<Item = &Connection> {
        let connections = self.log.connection_stats.iter();
        connections.filter(|connection| !connection.failed)
    }

    /// The reason why it does not count, if it does not.
    pub(super) fn fault(&self) -> Option<String> {
        let failures = self
            .failures
            .iter()
            .map(|(why, count)| format!("{count} failed: {why}"));
        let faults: Vec<String> = failures.chain(self.gave_up.clone()).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// Maximum number of open connections: raises the soft limit of descriptors as far as possible.
fn connections_open_max(high: usize) -> Result<usize, BenchError> {
    let limit = descriptors::raise();
    match limit.saturating_sub(DESCRIPTORS_ASIDE) {
        connections if connections >= high => Ok(connections),
        _ => Err(BenchError::Options(format!(
            "{high} handshakes in flight (HIGH) need as many descriptors and {DESCRIPTORS_ASIDE} \
             more, and this process may have {limit}: lower HIGH, or raise the hard limit \
             (`ulimit -Hn`, LimitNOFILE= of a service, or /etc/security/limits.conf)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: RunOptions = RunOptions {
        threads: 8,
        connections: 100_001,
        low: 1_000,
        high: 2_000,
        seconds_max: None,
        timeout_s: 5.0,
    };

    #[test]
    fn the_parts_make_the_whole() {
        for threads in [1, 3, 7, 8] {
            let parts: Vec<Load> = (0..threads)
                .map(|thread| OPTIONS.part(thread, threads, 10_000))
                .collect();
            assert_eq!(parts.iter().map(|p| p.connections).sum::<u64>(), 100_001);
            assert_eq!(parts.iter().map(|p| p.low).sum::<usize>(), 1_000);
            assert_eq!(parts.iter().map(|p| p.high).sum::<usize>(), 2_000);
            assert_eq!(parts.iter().map(|p| p.open_max).sum::<usize>(), 10_000);
        }
    }

    #[test]
    fn every_connection_is_in_the_log() {
        let address = crate::floor::websocket::in_background();
        let target = Target {
            address,
            host: address.to_string(),
            resource: "/".into(),
        };
        let mut options = OPTIONS;
        (options.connections, options.low, options.high) = (1_000, 20, 40);
        for threads in [0, 1, 3] {
            options.threads = threads;
            let made = run(&target, &options, &mut |_| {}).unwrap();
            assert_eq!(made.fault(), None);
            assert_eq!(made.succeeded().count(), 1_000);
            assert_eq!(made.left_open, 0);
            assert!(made.log.handshake_resume_count > 0);
            let longest = made.succeeded().map(|c| c.open + c.close).max();
            assert!(longest.is_some_and(|longest| longest <= made.log.total_duration));
        }
        options.seconds_max = Some(0.0);
        let made = run(&target, &options, &mut |_| {}).unwrap();
        assert_eq!(made.succeeded().count(), 0);
    }

    #[test]
    fn invalid_options_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut RunOptions), expected: &str) {
            let mut options = OPTIONS;
            change(&mut options);
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(OPTIONS.check().is_ok());
        check(|o| o.threads = 10_000, "THREADS");
        check(|o| o.connections = 0, "CONNECTIONS");
        check(|o| o.high = 0, "HIGH");
        check(|o| o.low = 3_000, "LOW is at most HIGH");
        check(|o| o.timeout_s = 0.0, "timeout");
        let error = connections_open_max(usize::MAX - 64)
            .unwrap_err()
            .to_string();
        assert!(error.contains("raise the hard limit"), "{error}");
    }
}
