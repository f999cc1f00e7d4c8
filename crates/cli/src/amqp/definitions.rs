//! `crosstie amqp definitions`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use crosstie_client::args;
use serde_json::{Value as Json, json};

use crate::queues::realm::{ManagementRealm, Refused};

/// Export and import RabbitMQ's definitions: users, vhosts, permissions, policies, limits, parameters, queues, exchanges
/// and bindings.
#[derive(Subcommand)]
pub(super) enum Action {
    /// Write the definitions of a running node as JSON.
    ///
    /// Passwords of users that the configuration names are left out; the file lists them under `left_out`.
    Export {
        /// File to create; `-` is the standard output.
        #[arg(default_value = STANDARD)]
        file: PathBuf,
        /// Vhost to export alone, without users and permissions.
        #[arg(long)]
        vhost: Option<String>,
    },
    /// Import definitions into a running node, or none of them if one is wrong.
    ///
    /// Users, permissions, policies, limits and parameters are replaced. Queues and exchanges that exist stay as they are.
    /// Lists what is left out, each with the reason.
    Import {
        /// File to read; `-` is the standard input.
        file: PathBuf,
        /// Vhost that all queues, exchanges, bindings, policies and parameters of the file are for.
        #[arg(long)]
        vhost: Option<String>,
        /// Check the definitions only.
        #[arg(long)]
        dry_run: bool,
    },
}

/// The request of a command.
pub(super) enum Asked {
    Export {
        file: PathBuf,
        vhost: Option<String>,
    },
    Import {
        definitions: Json,
        vhost: Option<String>,
        is_check: bool,
    },
}

/// The standard input or output.
const STANDARD: &str = "-";

/// Maximum size of a file: it is one message to the node.
const FILE_BYTES_MAX: u64 = 16_000_000;

impl Action {
    /// Reads the file before the node is asked.
    pub(super) fn asked(self) -> anyhow::Result<Asked> {
        Ok(match self {
            Self::Export { file, vhost } => Asked::Export { file, vhost },
            Self::Import {
                file,
                vhost,
                dry_run,
            } => Asked::Import {
                definitions: read(&file)?,
                vhost,
                is_check: dry_run,
            },
        })
    }
}

/// Exports or imports. Returns the output.
pub(super) async fn run(
    realm: &ManagementRealm,
    asked: Asked,
    is_json: bool,
) -> anyhow::Result<Result<String, Refused>> {
    match asked {
        Asked::Export { file, vhost } => {
            let exported = match export(realm, vhost.as_deref()).await {
                Ok(exported) => exported,
                Err(refused) => return Ok(Err(refused)),
            };
            let text = serde_json::to_string_pretty(&exported)?;
            if file == Path::new(STANDARD) {
                return Ok(Ok(text));
            }
            write(&file, &text)?;
            let file = file.display().to_string();
            let left_out = exported["left_out"].as_array().cloned().unwrap_or_default();
            Ok(Ok(match is_json {
                true => json!({"file": file, "left_out": left_out}).to_string(),
                false => {
                    let word =
                        |row: &Json, key: &str| row[key].as_str().unwrap_or_default().to_owned();
                    let left_out = left_out.iter().map(|row| {
                        let (user, reason) = (word(row, "user"), word(row, "reason"));
                        format!("\n  left out: password of user '{user}': {reason}")
                    });
                    format!(
                        "definitions written to {file}{}",
                        left_out.collect::<String>()
                    )
                }
            }))
        }
        Asked::Import {
            definitions,
            vhost,
            is_check,
        } => {
            let imported = import(realm, definitions, vhost, is_check).await;
            Ok(imported.map(|answer| match is_json {
                true => answer.to_string(),
                false => told(&answer),
            }))
        }
    }
}

pub(crate) async fn export(realm: &ManagementRealm, vhost: Option<&str>) -> Result<Json, Refused> {
    let worker = match vhost {
        Some(vhost) => realm.worker_with(vhost).await?,
        None => realm.only_worker().await?,
    };
    let procedure = format!("crossbar.worker.{worker}.get_amqp_definitions");
    realm.call_for_long(&procedure, args![vhost]).await
}

pub(crate) async fn import(
    realm: &ManagementRealm,
    definitions: Json,
    vhost: Option<String>,
    is_check: bool,
) -> Result<Json, Refused> {
    let worker = match &vhost {
        Some(vhost) => realm.worker_with(vhost).await?,
        None => realm.only_worker().await?,
    };
    let procedure = format!("crossbar.worker.{worker}.import_amqp_definitions");
    let arguments = args![definitions, vhost, is_check];
    realm.call_for_long(&procedure, arguments).await
}

pub(crate) fn told(answer: &Json) -> String {
    let mut text = format!(
        "definitions: {}",
        answer["outcome"].as_str().unwrap_or_default()
    );
    for skipped in answer["skipped"].as_array().into_iter().flatten() {
        let word = |key: &str| skipped[key].as_str().unwrap_or_default();
        text.push_str(&format!(
            "\n  left out: {}: {}",
            word("what"),
            word("reason")
        ));
    }
    text
}

pub(crate) fn read(file: &Path) -> anyhow::Result<Json> {
    let mut bytes = Vec::new();
    let read = match file == Path::new(STANDARD) {
        true => io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
        false => File::open(file)
            .and_then(|found| found.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    let name = file.display();
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{name}: expected at most {FILE_BYTES_MAX} bytes");
    }
    serde_json::from_slice(&bytes).with_context(|| format!("{name}: expected definitions in JSON"))
}

/// Creates a file for its owner alone: it has hashes of passwords.
pub(crate) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let name = file.display();
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    let mut created = created.with_context(|| format!("cannot create {name}"))?;
    let written = created.write_all(text.as_bytes());
    let written = written.and_then(|()| created.write_all(b"\n"));
    written.with_context(|| format!("cannot write {name}"))
}
