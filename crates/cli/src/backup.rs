//! `crosstie backup`: a copy of the durable data, of a running node or of a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_client::args;

use crate::queues::realm::ManagementRealm;
use crate::wait_for;

/// Copy a running node's durable data (queues, exchanges, bindings, persistent messages) to a file.
///
/// The node serves meanwhile. The copy has everything that was confirmed before the command began. It gets its name
/// when it is complete and synced; existing files are not overwritten. `crosstie restore`
/// puts it in the place of a stopped node's store. Replicated vhosts are not included.
#[derive(clap::Args)]
pub(crate) struct BackupArguments {
    /// File to create.
    file: PathBuf,
    /// Store of a stopped node, in place of a running node's.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["worker", "cbdir", "socket", "context"])]
    store: Option<PathBuf>,
    /// Worker, if several have AMQP: each has a store of its own.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    #[command(flatten)]
    place: crate::management::Place,
}

pub(crate) fn backup(arguments: BackupArguments) -> anyhow::Result<ExitCode> {
    let file = std::path::absolute(&arguments.file)
        .with_context(|| format!("no path: '{}'", arguments.file.display()))?;
    // The node reports its own path, which is absent if text cannot hold it.
    if let Some(store) = &arguments.store {
        let made = crosstie_store::back_up(store, &file)?;
        return told(&made.path, made.bytes, &store.display().to_string());
    }
    let Some(name) = file.to_str() else {
        bail!("expected a path in UTF-8, got '{}'", file.display());
    };
    let target = arguments
        .place
        .target()
        .context("for the store of a node that does not run, --store names its file")?;
    wait_for(async {
        let realm = ManagementRealm::join(&target, arguments.worker).await?;
        let made = async {
            let worker = realm.only_worker().await?;
            let procedure = format!("crossbar.worker.{worker}.back_up_amqp_store");
            realm.call_for_long(&procedure, args![name]).await
        };
        let made = made.await;
        let missing = match &made {
            Ok(made) => replicated(&realm, made["worker"].as_str()).await,
            Err(_) => Vec::new(),
        };
        realm.leave().await;
        for vhost in missing {
            complain!(
                "warning: vhost '{vhost}' is replicated, and not in it: its log is on the servers of NATS, and its owner keeps a copy beside the store"
            );
        }
        match made {
            Ok(made) => told(
                &file,
                made["bytes"].as_u64().unwrap_or_default(),
                &format!("worker '{}'", made["worker"].as_str().unwrap_or_default()),
            ),
            Err(refused) => refused.told(),
        }
    })
}

/// The names of the worker's vhosts that are not in its store. Empty for a node of a release without replicated vhosts.
async fn replicated(realm: &ManagementRealm, worker: Option<&str>) -> Vec<String> {
    let found = realm.replicated().await.unwrap_or_default().into_iter();
    let of_worker = found.filter(|(name, _)| worker == Some(name));
    let names = of_worker.flat_map(|(_, vhosts)| vhosts).map(|vhost| {
        let name = vhost["name"].as_str();
        name.unwrap_or_default().to_owned()
    });
    names.collect()
}

fn told(file: &Path, bytes: u64, of: &str) -> anyhow::Result<ExitCode> {
    say!(
        "Backed up the store of {of} to {}: {bytes} bytes",
        file.display()
    )?;
    Ok(ExitCode::SUCCESS)
}
