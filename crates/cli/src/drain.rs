//! `crosstie drain` and `undrain`: the clients of a running node leave, and may return.

use std::process::ExitCode;
use std::time::Duration;

use crosstie_client::args;
use crosstie_terminal::duration::duration;

use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Have the clients of a running node leave one after another, and wait until the last one has left.
///
/// The page `/ready` answers 503 at once. After `--grace` the listeners close; the operators' listener stays open. Then
/// clients leave over the time of `--over`, each after its open calls and in the way after which it reconnects. The
/// node runs on without clients until it is stopped, or until `crosstie undrain`.
#[derive(clap::Args)]
pub(crate) struct DrainArguments {
    /// Time over which the clients leave, in slices.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    over: Duration,
    /// Time for load balancers to see that the node is not ready, before the listeners close.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    grace: Duration,
    #[command(flatten)]
    place: Place,
}

/// Undo a drain: the listeners open again at their addresses.
///
/// If one of them cannot be opened, the others are, and the exit code is 1. Another call tries that one again.
#[derive(clap::Args)]
pub(crate) struct UndrainArguments {
    #[command(flatten)]
    place: Place,
}

pub(crate) fn drain(arguments: DrainArguments) -> anyhow::Result<ExitCode> {
    let target = arguments.place.target()?;
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let (over, grace) = (ms(arguments.over), ms(arguments.grace));
    wait_for(async {
        let realm = ManagementRealm::join(&target, None).await?;
        let answer = realm
            .call_for_long("crossbar.drain", args![over, grace])
            .await;
        realm.leave().await;
        match answer {
            Ok(told) => {
                say!("Drained; clients that left: {}", told["clients"])?;
                Ok(ExitCode::SUCCESS)
            }
            Err(refused) => Refused::told(refused),
        }
    })
}

pub(crate) fn undrain(arguments: UndrainArguments) -> anyhow::Result<ExitCode> {
    let target = arguments.place.target()?;
    wait_for(async {
        let realm = ManagementRealm::join(&target, None).await?;
        let answer = realm.call_for_long("crossbar.undrain", args![]).await;
        realm.leave().await;
        let told = match answer {
            Ok(told) => told,
            Err(refused) => return Refused::told(refused),
        };
        let troubles = told["troubles"].as_array().cloned().unwrap_or_default();
        for trouble in troubles.iter().filter_map(|trouble| trouble.as_str()) {
            complain!("{trouble}");
        }
        match troubles.is_empty() {
            true => {
                say!("The drain is undone")?;
                Ok(ExitCode::SUCCESS)
            }
            false => Ok(ExitCode::FAILURE),
        }
    })
}
