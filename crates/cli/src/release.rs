//! `crosstie amqp release`: ends the replication of a vhost. Its contents go into a store, and its log is deleted.
//!
//! The log is deleted after the store has the contents, and the node's memory of it last. So an interrupted command can
//! be repeated, and until then the node refuses to start without `replicated`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context as _, bail};
use clap::Args;
use crosstie_config::{self as config, Config, Failure, Replicated, Worker};
use crosstie_metadata::Key;
use crosstie_node::directory::NodeDirectory;
use crosstie_store::{Replaced, StoreError};
use serde_json::json;

use crate::replicated_log::{Contents, Log};
use crate::wait_for;

/// Write the owner's copy of a vhost into a store, and delete its log, to end its replication. Stop all nodes first.
///
/// The copy replaces the store's content of that vhost; other vhosts are unchanged. It must have what the log has. Then
/// start the node with the vhost without `replicated`.
#[derive(Args)]
pub(crate) struct ReleaseArguments {
    /// The vhost's name.
    vhost: String,
    /// Store of the worker.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["worker", "cbdir", "socket", "context"])]
    store: PathBuf,
    /// Copy to use, if several are beside the store.
    #[arg(long, value_name = "FILE")]
    copy: Option<PathBuf>,
    /// Node configuration whose `replicated` names the servers of the log; by default that in the store's directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Neither compare the copy with the log nor delete the log.
    #[arg(long, conflicts_with = "config")]
    keep_log: bool,
}

/// The settings of a vhost's replication, and the node's directory.
struct Settings {
    replicated: Replicated,
    directory: PathBuf,
}

pub(crate) fn run(asked: &ReleaseArguments, is_json: bool) -> anyhow::Result<ExitCode> {
    let ReleaseArguments { vhost, store, .. } = asked;
    let beside = Beside::of(store, vhost);
    let copy = match &asked.copy {
        Some(copy) => copy.clone(),
        None => beside.only_copy()?,
    };
    let found = match asked.keep_log {
        true => Err("--keep-log".to_owned()),
        false => asked.settings()?,
    };
    let settings = match found {
        Ok(settings) => settings,
        Err(why) => {
            let replaced = replace(store, vhost, &copy)?;
            beside.forget()?;
            say!("{}", asked.told(&copy, &replaced, None, is_json))?;
            complain!(
                "note: the log stays in JetStream ({why}): delete it before the vhost is replicated again"
            );
            return Ok(ExitCode::SUCCESS);
        }
    };
    wait_for(async {
        let Settings {
            replicated,
            directory,
        } = &settings;
        let mut log = Log::open(vhost, replicated, directory).await?;
        if let Err(why) = log.listen().await {
            complain!("{why}\nNothing was done");
            return Ok(ExitCode::FAILURE);
        }
        let kept = Contents::of(crosstie_store::records(&copy, vhost)?);
        if let Err(why) = log.compare(&kept).await {
            complain!(
                "{}: {why}\nNothing was done. With --keep-log the copy is used as it is, and the log stays",
                copy.display()
            );
            return Ok(ExitCode::FAILURE);
        }
        let replaced = replace(store, vhost, &copy)?;
        let deleted = match log.delete().await {
            Ok(deleted) => deleted,
            Err(why) => {
                complain!(
                    "Vhost '{vhost}' is in {}. Its log, stream {}, is not deleted: {why}. Repeat the \
                     command; until then the node refuses to start without `replicated`",
                    store.display(),
                    log.name()
                );
                return Ok(ExitCode::FAILURE);
            }
        };
        beside.forget()?;
        say!(
            "{}",
            asked.told(&copy, &replaced, Some((&log, deleted)), is_json)
        )?;
        Ok(ExitCode::SUCCESS)
    })
}

fn replace(store: &Path, vhost: &str, copy: &Path) -> Result<Replaced, StoreError> {
    crosstie_store::replace(store, vhost, copy, &|key| {
        let key = Key::parse(key);
        key.as_ref()
            .and_then(Key::vhost)
            .is_some_and(|of| **of == *vhost)
    })
}

impl ReleaseArguments {
    /// The vhost's settings in the node's configuration; inside, the reason why there are none. Without them a named
    /// configuration is refused.
    fn settings(&self) -> anyhow::Result<Result<Settings, String>> {
        let current = std::env::current_dir().context("no current directory")?;
        let store = current.join(&self.store);
        let beside = store.parent().unwrap_or(&current);
        let named = self.config.as_ref().map(|config| current.join(config));
        let found = match NodeDirectory::find(None, named.as_deref(), beside, &|_| None) {
            Ok(found) => found,
            Err(e) if named.is_none() => return Ok(Err(e.to_string())),
            Err(e) => return Err(e.into()),
        };
        let Some(found) = found else {
            let beside = beside.display();
            return Ok(Err(format!(
                "no node's configuration in {beside}: name one by --config"
            )));
        };
        let path = found.config.display();
        let loaded = config::load(&found.config, &|name| std::env::var(name).ok());
        let loaded = loaded.map_err(|failure| match failure {
            Failure::Invalid { .. } => {
                anyhow::anyhow!("{path} is invalid: see `crosstie check --config {path}`")
            }
            failure => anyhow::Error::msg(failure.to_string()),
        })?;
        match replicated(loaded.config, &self.vhost) {
            Some(replicated) => Ok(Ok(Settings {
                replicated,
                directory: found.path,
            })),
            None if named.is_some() => {
                bail!("{path}: vhost '{}' is not `replicated` in it", self.vhost)
            }
            None => Ok(Err(format!(
                "{path} has no `replicated` for the vhost: name one that has by --config"
            ))),
        }
    }

    /// The outcome; `log` with whether it was there.
    fn told(
        &self,
        copy: &Path,
        replaced: &Replaced,
        log: Option<(&Log, bool)>,
        is_json: bool,
    ) -> String {
        let Replaced {
            queues,
            messages,
            queues_before,
            messages_before,
        } = replaced;
        let (vhost, store, copy) = (&self.vhost, self.store.display(), copy.display());
        if is_json {
            let told = json!({
                "vhost": vhost,
                "queues": queues,
                "messages": messages,
                "queues_before": queues_before,
                "messages_before": messages_before,
                "deleted": log.filter(|(_, deleted)| *deleted).map(|(log, _)| log.name()),
            });
            return told.to_string();
        }
        let mut text = format!(
            "Vhost '{vhost}' in {store}: {queues} queues with {messages} messages, from {copy}; before \
             {queues_before} with {messages_before}"
        );
        text += &match log {
            Some((log, true)) => format!(
                "\nDeleted its log, stream {} with {} entries",
                log.name(),
                log.entries()
            ),
            Some((log, false)) => format!(
                "\nThe servers have no stream {}: nothing was to be deleted",
                log.name()
            ),
            None => String::new(),
        };
        text
    }
}

fn replicated(config: Config, vhost: &str) -> Option<Replicated> {
    let workers = config.workers.into_iter();
    let mut vhosts = workers.flat_map(|worker| match worker {
        Worker::Router(router) => router.amqp.map(|amqp| amqp.vhosts).unwrap_or_default(),
        _ => Vec::new(),
    });
    vhosts.find(|found| *found.name == *vhost)?.replicated
}

/// A node's files about a replicated vhost, besides its worker's store.
struct Beside {
    directory: PathBuf,
    word: String,
}

impl Beside {
    fn of(store: &Path, vhost: &str) -> Self {
        let mut directory = store.as_os_str().to_owned();
        directory.push(".replicated");
        Self {
            directory: directory.into(),
            word: crosstie_nats::escaped(vhost),
        }
    }

    fn only_copy(&self) -> anyhow::Result<PathBuf> {
        let place = self.directory.display();
        let entries = fs::read_dir(&self.directory).with_context(|| format!("{place}"))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.with_context(|| format!("{place}"))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let rest = name.and_then(|name| name.strip_prefix(&format!("{}.", self.word)));
            let epoch = rest.and_then(|rest| rest.strip_suffix(".store"));
            if epoch.is_some_and(|epoch| epoch.parse::<u64>().is_ok()) {
                found.push(path);
            }
        }
        match &found[..] {
            [only] if only.with_added_extension("partial").exists() => bail!(
                "{} is not a whole copy of the vhost: its node has ended before. Use the copy of the previous owner, by --copy",
                only.display()
            ),
            [only] => Ok(only.clone()),
            [] => bail!(
                "there is no copy of the vhost in {place}: take that of the node that owned it last, by --copy"
            ),
            _ => bail!("there are several copies of the vhost in {place}: name one by --copy"),
        }
    }

    /// Removes the node's memory of a log.
    fn forget(&self) -> anyhow::Result<()> {
        let known = self.directory.join(format!("{}.known", self.word));
        match fs::remove_file(&known) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(e).with_context(|| format!("{}", known.display()))
            }
            _ => Ok(()),
        }
    }
}
