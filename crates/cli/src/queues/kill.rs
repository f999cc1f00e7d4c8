//! `crosstie kill`: ends WAMP sessions and AMQP connections by their numbers.

use std::process::ExitCode;

use clap::Args;
use crosstie_client::args;

use super::realm::{ManagementRealm, Refused};
use super::sessions::close;
use crate::management::Place;
use crate::wait_for;

/// End WAMP sessions, by their ids, and AMQP connections, by their numbers.
///
/// A session gets GOODBYE wamp.close.killed, a connection 320 CONNECTION_FORCED. The exit code is 1 if one of them does not
/// exist; the others are ended.
#[derive(Args)]
pub(crate) struct KillArguments {
    /// Numbers in the lists of `crosstie sessions` and `crosstie connections`.
    #[arg(required = true, value_name = "SESSION|CONNECTION")]
    ids: Vec<u64>,
    /// Reason that the clients get.
    #[arg(long)]
    reason: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: KillArguments) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let realm = ManagementRealm::join(&arguments.place.target()?, arguments.worker).await?;
        let mut exit_code = ExitCode::SUCCESS;
        for id in arguments.ids {
            match kill(&realm, id, arguments.reason.as_deref()).await {
                Ok(text) => {
                    say!("{text}")?;
                }
                Err(refused) => exit_code = refused.told()?,
            }
        }
        realm.leave().await;
        Ok(exit_code)
    })
}

async fn kill(realm: &ManagementRealm, id: u64, reason: Option<&str>) -> Result<String, Refused> {
    match close(realm, id, reason).await {
        Ok(_) => return Ok(format!("Closed session {id}")),
        Err(Refused::Here(_)) => {}
        Err(refused) => return Err(refused),
    }
    let worker = worker_with_connection(realm, id).await?;
    let procedure = format!("crossbar.worker.{worker}.close_amqp_connection");
    realm.call(&procedure, args![id, reason]).await?;
    Ok(format!("Closed connection {id}"))
}

/// The one worker with an AMQP connection of that number. The error says that there is no session of that id either.
pub(crate) async fn worker_with_connection(
    realm: &ManagementRealm,
    id: u64,
) -> Result<String, Refused> {
    let nothing = || {
        let text = format!(
            "there is neither a session nor a connection {id}; `crosstie sessions` and `crosstie connections` list them"
        );
        Refused::Here(text)
    };
    // A node without AMQP has no connections.
    let brokers = realm.brokers().await.map_err(|refused| match refused {
        Refused::Here(_) => nothing(),
        refused => refused,
    })?;
    let mut with_it = Vec::new();
    for broker in brokers {
        if has_connection(realm, &broker.worker, id).await? {
            with_it.push(broker.worker);
        }
    }
    match with_it.as_slice() {
        [] => Err(nothing()),
        [worker] => Ok(worker.clone()),
        workers => {
            let text = format!(
                "more than one worker has a connection {id}: name one of {} with --worker",
                workers.join(", ")
            );
            Err(Refused::Here(text))
        }
    }
}

/// Whether a worker has that connection: each worker counts its own.
async fn has_connection(realm: &ManagementRealm, worker: &str, id: u64) -> Result<bool, Refused> {
    let procedure = format!("crossbar.worker.{worker}.get_amqp_connections");
    let mut offset = 0;
    loop {
        let part = realm.call(&procedure, args![None::<&str>, offset]).await?;
        let rows = part.as_array().map_or(&[][..], Vec::as_slice);
        if rows.iter().any(|row| row["connection"] == id) {
            return Ok(true);
        }
        if rows.is_empty() {
            return Ok(false);
        }
        offset += rows.len();
    }
}
