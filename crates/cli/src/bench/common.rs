//! What several benches take, under one name each. Names that an option had in one bench alone before
//! still work, in all of them.

use std::fs::OpenOptions;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use crosstie_bench::{Common, NetworkOptions, Placement, Stop};

/// The results file.
#[derive(clap::Args)]
pub(super) struct FileArguments {
    /// Write every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl FileArguments {
    /// All that a bench without rounds takes of what is common.
    pub(super) fn common(self, usual: Common, stop: &Stop) -> anyhow::Result<Common> {
        Ok(Common {
            build: super::build(),
            json: self.checked()?,
            stop: stop.clone(),
            ..usual
        })
    }

    /// That it cannot be written is better known before anything is measured.
    fn checked(self) -> anyhow::Result<Option<PathBuf>> {
        if let Some(path) = &self.json {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.with_context(|| format!("--json {}", path.display()))?;
        }
        Ok(self.json)
    }
}

/// What a bench does where it is not told; nothing where that depends on what is measured, which
/// its own help says.
pub(super) trait Usual {
    const PLACEMENTS: &'static str = "same-core and split";
    const RUNS: Option<&'static str> = Some("5");
    const SECONDS: Option<&'static str> = Some("1");
    const WARM_UP: Option<&'static str> = Some("0.3");
    /// What the help of `--runs` and `--seconds` says at its end.
    const RUNS_WHERE: &'static str = "";
    const SECONDS_WHERE: &'static str = "";
}

pub(super) struct AsUsual;

impl Usual for AsUsual {}

/// Rounds of a bench whose usual ones are `U`'s.
#[derive(clap::Args)]
pub(super) struct RoundArguments<U: Usual> {
    #[arg(
        long,
        default_value = U::RUNS,
        value_name = "N",
        help = format!("Rounds, in each of which all subjects take turns{}", U::RUNS_WHERE)
    )]
    pub(super) runs: Option<usize>,
    #[arg(
        short = 'l',
        long,
        default_value = U::SECONDS,
        help = format!("Measured seconds of each round{}", U::SECONDS_WHERE)
    )]
    pub(super) seconds: Option<f64>,
    /// Unmeasured seconds before it.
    #[arg(long, default_value = U::WARM_UP, value_name = "SECONDS")]
    warm_up: Option<f64>,
    #[command(flatten)]
    file: FileArguments,
    #[arg(skip)]
    usual: PhantomData<U>,
}

impl<U: Usual> RoundArguments<U> {
    pub(super) fn options(self, stop: &Stop) -> anyhow::Result<Common> {
        let usual = Common::default();
        Ok(Common {
            runs: self.runs.unwrap_or(usual.runs),
            seconds: self.seconds.unwrap_or(usual.seconds),
            warm_up_seconds: self.warm_up.unwrap_or(usual.warm_up_seconds),
            ..self.file.common(usual, stop)?
        })
    }
}

/// The same, and where.
#[derive(clap::Args)]
pub(super) struct CommonArguments<U: Usual> {
    #[arg(
        long = "placement",
        value_name = "PLACEMENT",
        help = format!("same-core, split or free; may be repeated [default: {}]", U::PLACEMENTS)
    )]
    placements: Vec<Placement>,
    #[command(flatten)]
    pub(super) rounds: RoundArguments<U>,
}

impl<U: Usual> CommonArguments<U> {
    /// With the processes of somebody else's server.
    pub(super) fn options(
        self,
        pids: Vec<u32>,
        network: NetworkOptions,
        stop: &Stop,
    ) -> anyhow::Result<Common> {
        Ok(Common {
            placements: self.placements,
            pids,
            network,
            ..self.rounds.options(stop)?
        })
    }
}

/// Somebody else's server in place of ours.
pub(super) trait Server:
    FromStr<Err: std::fmt::Display> + Clone + Send + Sync + 'static
{
    /// What it is, and what its URL looks like.
    const WHAT: &'static str;
}

#[derive(clap::Args)]
pub(super) struct SubjectArguments<S: Server> {
    #[arg(
        long,
        short_alias = 'w',
        aliases = ["connect", "wsuri", "router"],
        value_parser = parsed::<S>,
        value_name = "URL",
        help = format!("Somebody else's {}", S::WHAT)
    )]
    pub(super) url: Option<S>,
    /// A process of that server, for its processor time, memory and placement; may be repeated.
    #[arg(
        long = "pid",
        aliases = ["router-pid", "server-pid", "broker-pid"],
        value_name = "PID"
    )]
    pub(super) pids: Vec<u32>,
}

fn parsed<S: Server>(text: &str) -> Result<S, String> {
    text.parse().map_err(|error: S::Err| error.to_string())
}
