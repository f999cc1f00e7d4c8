//! `crosstie store` and `crosstie restore`: the durable data of a node that does not run.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chrono::{DateTime, SecondsFormat};
use clap::{Args, Subcommand};
use crosstie_store::{Checked, PutBack, Salvaged};
use serde_json::json;

use self::report::counted;

/// Check the store of a stopped node; salvage a damaged one.
#[derive(Args)]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Check(CheckArguments),
    Salvage(SalvageArguments),
}

/// Read all of a store, or of a backup, and report what is whole, damaged or missing.
///
/// Reads each record of each file, and changes nothing. The report has a row for each queue, with its confirmed messages, and
/// a line for each damaged file. The store of a running node is refused.
///
/// Exits with 0 if everything is whole, with 1 if anything is damaged or missing, and with 2 if it cannot be read as a
/// store.
#[derive(Args)]
struct CheckArguments {
    /// Store of a node that does not run, or a backup.
    path: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Write what can be read of a damaged store, or of a damaged backup, into a new store.
///
/// The damaged store is not changed. A queue whose declaration is lost is declared anew, as `salvaged-NUMBER`, durable and
/// classic, with its messages. The report has what could not be read.
///
/// Exits with 0 if the new store has everything that was confirmed, and with 1 if something is missing from it.
#[derive(Args)]
struct SalvageArguments {
    /// Store of a node that does not run, or a backup.
    from: PathBuf,
    /// Path of the new store, where nothing may be.
    to: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Put a backup in the place of a stopped node's store.
///
/// Checks all of the backup first, and refuses one with any damage. Until the new store is complete, nothing changes at its
/// path. Backups of version 0.1.0 are accepted. The store of a running node is refused.
#[derive(Args)]
pub(crate) struct RestoreArguments {
    /// File that `crosstie backup` made.
    backup: PathBuf,
    /// Path of the store: `amqp.store` in the configuration.
    store: PathBuf,
    /// Replace the store that is there. It is kept beside the new one, as STORE.former.
    #[arg(long)]
    replace: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: StoreArguments) -> anyhow::Result<ExitCode> {
    match arguments.action {
        Action::Check(asked) => check(&asked),
        Action::Salvage(asked) => salvage(&asked),
    }
}

fn check(asked: &CheckArguments) -> anyhow::Result<ExitCode> {
    let checked = crosstie_store::check(&asked.path)?;
    match asked.json {
        true => say!("{}", report::json(&checked)),
        false => say!("{}", report::text(&asked.path, &checked)),
    }?;
    Ok(match checked.is_whole() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn salvage(asked: &SalvageArguments) -> anyhow::Result<ExitCode> {
    let salvaged = crosstie_store::salvage(&asked.from, &asked.to)?;
    let Salvaged {
        queues,
        messages,
        renamed,
        source,
    } = &salvaged;
    if asked.json {
        let renamed = renamed.iter();
        let renamed: Vec<_> = renamed
            .map(|(vhost, queue)| json!({"vhost": &**vhost, "queue": &**queue}))
            .collect();
        let salvaged = json!({
            "queues": queues,
            "messages": messages,
            "renamed": renamed,
            "source": report::json(source),
        });
        say!("{salvaged}")?;
    } else {
        say!("{}", report::text(&asked.from, source))?;
        for (vhost, queue) in renamed {
            say!("A queue of vhost '{vhost}' without a declaration is '{queue}' in the new store")?;
        }
        let (from, to) = (asked.from.display(), asked.to.display());
        say!(
            "Salvaged {} with {} from {from} to {to}",
            counted(*queues, "queue"),
            counted(*messages, "message")
        )?;
    }
    Ok(match loses(source) {
        false => ExitCode::SUCCESS,
        true => ExitCode::FAILURE,
    })
}

/// Whether confirmed data is missing from a salvaged store.
fn loses(source: &Checked) -> bool {
    source.lost() + source.unknown_records + source.lost_declarations > 0
}

pub(crate) fn restore(asked: &RestoreArguments) -> anyhow::Result<ExitCode> {
    let put_back = crosstie_store::restore(&asked.backup, &asked.store, asked.replace)?;
    let PutBack {
        former,
        queues,
        messages,
        time_ms,
    } = &put_back;
    let time = time_ms.and_then(|ms| DateTime::from_timestamp_millis(i64::try_from(ms).ok()?));
    let time = time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
    let text = |path: &Path| path.display().to_string();
    if asked.json {
        let put_back = json!({
            "store": text(&asked.store),
            "backup": text(&asked.backup),
            "backup_time": time,
            "queues": queues,
            "messages": messages,
            "former": former.as_deref().map(text),
        });
        say!("{put_back}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let time = time.map(|time| format!(", of {time}"));
    say!(
        "Restored {} with {} to {} from {}{}",
        counted(*queues, "queue"),
        counted(*messages, "message"),
        text(&asked.store),
        text(&asked.backup),
        time.unwrap_or_default()
    )?;
    if let Some(former) = former {
        say!("The former store is kept as {}", text(former))?;
    }
    Ok(ExitCode::SUCCESS)
}
