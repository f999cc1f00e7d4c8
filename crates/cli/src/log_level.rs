//! `crosstie log-level`: how much a running node logs.

use std::process::ExitCode;
use std::time::Duration;

use crosstie_client::args;
use crosstie_terminal::duration::duration;

use crate::logging::LogLevel;
use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Change how much a running node logs, for a time or until it ends.
///
/// A restart begins with the level of `crosstie start --loglevel` again. Python children that start later follow a change
/// without `--for`; those that run keep their level.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The level from now on.
    level: LogLevel,
    /// Time after which the former level applies again, such as `10m`.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    within: Option<Duration>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let target = arguments.place.target()?;
    let level = arguments.level.name();
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let for_ms = arguments.within.map(ms);
    wait_for(async {
        let realm = ManagementRealm::join(&target, None).await?;
        let answer = match for_ms {
            Some(for_ms) => {
                realm
                    .call("crossbar.set_log_level", args![level, for_ms])
                    .await
            }
            None => realm.call("crossbar.set_log_level", args![level]).await,
        };
        realm.leave().await;
        match answer {
            Ok(told) => {
                let former = told["former"].as_str().unwrap_or_default();
                say!("Log level: {level}; before: {former}")?;
                Ok(ExitCode::SUCCESS)
            }
            Err(refused) => Refused::told(refused),
        }
    })
}
