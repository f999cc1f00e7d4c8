//! The options that several benches share, under one name each. Names that an option had in one bench alone still work,
//! in all of them.
//!
//! An instrument's options are its arguments: the name, default and effect of an option are in one place, beside the
//! check of their combinations.

use std::fs::{self, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crosstie_wan::units;

use super::options::Common;
use crate::error::BenchError;
use crate::machine::Placement;
use crate::network::NetworkOptions;
use crate::process::Stop;
use crate::report::json::Build;
use crate::subject::ParseError;

/// The program's contribution to a bench that it runs.
#[derive(Clone, Debug, Default)]
pub struct Host {
    pub build: Build,
    /// Ends the run after its current round.
    pub stop: Stop,
}

/// The results file.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FileOptions {
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl FileOptions {
    /// The common options of a bench without rounds. Checks the file before anything is measured.
    pub(crate) fn common(&self, host: Host) -> Result<Common, BenchError> {
        if let Some(path) = &self.json {
            check_writable(path).map_err(|error| {
                BenchError::Options(format!("--json {}: {error}", path.display()))
            })?;
        }
        Ok(Common {
            build: host.build,
            stop: host.stop,
            json: self.json.clone(),
            ..Common::default()
        })
    }
}

/// Opens the file and leaves it unchanged: a bench that is killed must not leave an empty file.
fn check_writable(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().create(true).append(true).open(path)?;
    match is_new {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

/// A bench's defaults; absent if they depend on the case, which its own help describes.
pub(crate) trait Usual {
    const PLACEMENTS: &'static str = "same-core and split";
    const RUNS: Option<&'static str> = Some("5");
    const SECONDS: Option<&'static str> = Some("1");
    const WARM_UP: Option<&'static str> = Some("0.3");
    /// The end of the help of `--runs` and `--seconds`.
    const RUNS_WHERE: &'static str = "";
    const SECONDS_WHERE: &'static str = "";
}

#[derive(Clone, Debug)]
pub(crate) struct AsUsual;

impl Usual for AsUsual {}

/// Rounds of a bench with `U`'s defaults.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RoundOptions<U: Usual> {
    #[arg(
        long,
        default_value = U::RUNS,
        value_name = "N",
        help = format!("Rounds, in each of which all subjects take turns{}", U::RUNS_WHERE)
    )]
    pub(crate) runs: Option<usize>,
    #[arg(
        short = 'l',
        long,
        default_value = U::SECONDS,
        help = format!("Measured seconds of each round{}", U::SECONDS_WHERE)
    )]
    pub(crate) seconds: Option<f64>,
    /// Unmeasured seconds before each round.
    #[arg(long, default_value = U::WARM_UP, value_name = "SECONDS")]
    warm_up: Option<f64>,
    #[command(flatten)]
    file: FileOptions,
    #[arg(skip)]
    usual: PhantomData<U>,
}

impl<U: Usual> RoundOptions<U> {
    pub(crate) fn common(&self, host: Host) -> Result<Common, BenchError> {
        let usual = self.file.common(host)?;
        Ok(Common {
            runs: self.runs.unwrap_or(usual.runs),
            seconds: self.seconds.unwrap_or(usual.seconds),
            warm_up_seconds: self.warm_up.unwrap_or(usual.warm_up_seconds),
            ..usual
        })
    }
}

/// The same, with placements.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CommonOptions<U: Usual> {
    #[arg(
        long = "placement",
        value_name = "PLACEMENT",
        help = format!("same-core, split or free; may be repeated [default: {}]", U::PLACEMENTS)
    )]
    pub(crate) placements: Vec<Placement>,
    #[command(flatten)]
    pub(crate) rounds: RoundOptions<U>,
}

impl<U: Usual> CommonOptions<U> {
    /// Of a bench that starts all its servers itself.
    pub(crate) fn own(&self, host: Host) -> Result<Common, BenchError> {
        Ok(Common {
            placements: self.placements.clone(),
            ..self.rounds.common(host)?
        })
    }

    /// With the processes of a foreign server.
    pub(crate) fn common<S: Server>(
        &self,
        host: Host,
        server: &ServerOptions<S>,
        network: &NetworkOptions,
    ) -> Result<Common, BenchError> {
        Ok(Common {
            pids: server.pids.clone(),
            is_foreign: server.url.is_some(),
            network: network.clone(),
            ..self.own(host)?
        })
    }
}

/// A foreign server in place of ours.
pub(crate) trait Server:
    FromStr<Err: std::fmt::Display> + Clone + Send + Sync + 'static
{
    /// Its kind, and the form of its URL.
    const WHAT: &'static str;
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServerOptions<S: Server> {
    #[arg(
        long,
        short_alias = 'w',
        aliases = ["connect", "wsuri", "router"],
        value_parser = parsed::<S>,
        value_name = "URL",
        help = format!("External {}", S::WHAT)
    )]
    pub(crate) url: Option<S>,
    /// Process of the external server, for its processor time, memory and placement; may be repeated.
    #[arg(
        long = "pid",
        aliases = ["router-pid", "server-pid", "broker-pid"],
        value_name = "PID"
    )]
    pub(crate) pids: Vec<u32>,
}

fn parsed<S: Server>(text: &str) -> Result<S, String> {
    text.parse().map_err(|error: S::Err| error.to_string())
}

/// A time with its unit, as in 50ms, 800us or 1s; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, ParseError> {
    let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
    match seconds {
        Some(Ok(duration)) => Ok(duration),
        _ => units::duration(text),
    }
}

/// The options of an empty command line.
#[cfg(test)]
pub(crate) fn usual<O: clap::Args>() -> O {
    let command = O::augment_args(clap::Command::new("bench").no_binary_name(true));
    let matches = command.try_get_matches_from([""; 0]).unwrap();
    O::from_arg_matches(&matches).unwrap()
}

/// Checks options after one change: the error, or none.
#[cfg(test)]
#[track_caller]
pub(crate) fn check_refusal<O: clap::Args>(
    check: fn(&O) -> Result<(), BenchError>,
    change: fn(&mut O),
    expected: Option<&str>,
) {
    let mut options = usual::<O>();
    change(&mut options);
    let error = check(&options).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), expected);
}

/// Compares the cases of changed options, or their refusal, with the expectation.
#[cfg(test)]
#[track_caller]
pub(crate) fn check_cases<C: std::fmt::Display>(
    found: Result<Vec<C>, BenchError>,
    expected: Result<&str, &str>,
) {
    let names = |cases: Vec<C>| cases.iter().map(ToString::to_string).collect::<Vec<_>>();
    match (found.map(names), expected) {
        (Ok(cases), Ok(expected)) => assert_eq!(cases.join(", "), expected),
        (Err(error), Err(expected)) => {
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
        }
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}
