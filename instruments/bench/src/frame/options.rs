//! The common options of all instruments.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::error::BenchError;
use crate::machine::Placement;
use crate::network::NetworkOptions;
use crate::process::Stop;
use crate::report::json::Build;
use crate::report::table::thousands;

/// The same for all instruments; each uses the ones that it needs.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) build: Build,
    /// By default `same-core`, and `split` if there are two cores.
    pub(crate) placements: Vec<Placement>,
    /// Rounds, in each of which the subjects take turns.
    pub(crate) runs: usize,
    /// Measured time of each round.
    pub(crate) seconds: f64,
    /// Unmeasured time before it.
    pub(crate) warm_up_seconds: f64,
    /// Whether the main subject is a foreign server.
    pub(crate) is_foreign: bool,
    /// The processes of a foreign server. Without them its processor time and memory stay unknown, and it stays on its
    /// own cores.
    pub(crate) pids: Vec<u32>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) network: NetworkOptions,
    /// Ends the run after its current round.
    pub(crate) stop: Stop,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            build: Build::default(),
            placements: Vec::new(),
            runs: 5,
            seconds: 1.0,
            warm_up_seconds: 0.3,
            is_foreign: false,
            pids: Vec::new(),
            json: None,
            network: NetworkOptions::default(),
            stop: Stop::default(),
        }
    }
}

/// Refuses options by the rule that they break.
pub(crate) fn require(held: bool, rule: &str) -> Result<(), BenchError> {
    match held {
        true => Ok(()),
        false => Err(BenchError::Options(rule.to_owned())),
    }
}

/// Refuses a value outside of `range`.
pub(crate) fn require_within<T: PartialOrd + fmt::Display>(
    option: &str,
    value: &T,
    range: RangeInclusive<T>,
) -> Result<(), BenchError> {
    let [least, most] = [range.start(), range.end()].map(grouped);
    require(
        range.contains(value),
        &format!("{option} is {least} to {most}"),
    )
}

/// The digits of a whole number in groups.
fn grouped(number: &impl fmt::Display) -> String {
    let text = number.to_string();
    match text.parse::<u32>() {
        Ok(whole) => thousands(f64::from(whole)),
        Err(_) => text,
    }
}

/// The requested cases, or all without a choice.
pub(crate) fn chosen<C: Clone>(requested: &[C], all: &[C]) -> Vec<C> {
    match requested.is_empty() {
        true => all.to_vec(),
        false => requested.to_vec(),
    }
}

impl Common {
    /// Refuses invalid options, and runs that would take forever.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(self.runs > 0, "--runs is at least 1")?;
        require_within("--seconds", &self.seconds, 0.001..=86_400.0)?;
        require_within("--warm-up", &self.warm_up_seconds, 0.0..=600.0)?;
        match self.is_foreign {
            true => self.network.check_foreign_server(),
            false => require(self.pids.is_empty(), "--pid goes with a --url"),
        }
    }

    /// The line that describes a table's rounds.
    pub(crate) fn load(&self, what: &str) -> String {
        format!(
            "Load: {what}; {} round{} of {} s after {} s; median over rounds, below it \
             smallest–largest",
            self.runs,
            if self.runs == 1 { "" } else { "s" },
            self.seconds,
            self.warm_up_seconds,
        )
    }

    /// The placements to measure in, on a machine that allows these cores; without a choice those of `usual` that it
    /// has cores for.
    pub(super) fn placements(&self, allowed: &[usize], usual: &[Placement]) -> Vec<Placement> {
        match (self.placements.is_empty(), allowed.len()) {
            (false, _) => self.placements.clone(),
            (true, 0 | 1) => vec![Placement::SameCore],
            (true, _) => usual.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_refused() {
        #[track_caller]
        fn check(change: fn(&mut Common), expected: Option<&str>) {
            let mut common = Common::default();
            change(&mut common);
            let error = common.check().err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected);
        }
        check(|_| {}, None);
        check(
            |common| (common.pids, common.is_foreign) = (vec![1], true),
            None,
        );
        check(
            |common| common.pids = vec![1],
            Some("--pid goes with a --url"),
        );
        check(|common| common.runs = 0, Some("--runs is at least 1"));
        check(
            |common| common.seconds = 0.0,
            Some("--seconds is 0.001 to 86,400"),
        );
        check(
            |common| common.warm_up_seconds = -1.0,
            Some("--warm-up is 0 to 600"),
        );
    }

    #[test]
    fn one_core_has_one_placement() {
        let common = Common::default();
        let usual = [Placement::SameCore, Placement::Split];
        assert_eq!(common.placements(&[0], &usual), [Placement::SameCore]);
        assert_eq!(common.placements(&[0, 1], &usual), usual);
    }
}
