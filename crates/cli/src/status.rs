//! `crosstie status`: whether the node of a node directory runs, where its AMQP listeners are, and what
//! is wrong there.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use crosstie_client::{CallError, args};
use crosstie_controller::directory::occupant;
use serde_json::Value as Json;

use crate::embedded::SOCKET;
use crate::management::{self, embedded, locate};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The node's directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current
    /// one.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Exit with 1 if it is not so.
    #[arg(long, value_enum, value_name = "STATE")]
    assert: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    Running,
    Stopped,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let current = std::env::current_dir().context("no current directory")?;
    // A node on its embedded default occupies no directory; it is there if it answers.
    let beside = match arguments.cbdir {
        Some(_) => None,
        None => embedded(&current.join(SOCKET)),
    };
    let directory = match locate(arguments.cbdir) {
        Err(_) if beside.is_some() => current,
        located => located?,
    };
    let found = occupant(&directory)?;
    let url = match &found {
        Some(found) => found.management.clone(),
        None => beside,
    };
    let told = url.as_deref().and_then(ask);
    let state = match (&found, &told) {
        (None, None) => State::Stopped,
        _ => State::Running,
    };
    say!(
        "{}",
        if state == State::Running {
            "running"
        } else {
            "stopped"
        }
    )?;
    say!("directory: {}", directory.display())?;
    if let Some(found) = found {
        let pid = found.pid.map(|pid| pid.to_string());
        let program = found.is_crossbar.then(|| "Crossbar.io".to_owned());
        let rows = [
            ("program", program),
            ("process", pid),
            ("since", found.started),
            ("management", found.management),
        ];
        for (what, value) in rows {
            if let Some(value) = value {
                say!("{what}: {value}")?;
            }
        }
    } else if let (Some(told), Some(url)) = (&told, &url) {
        say!("process: {}", told.pid)?;
        say!("since: {}", told.started)?;
        say!("management: {url}")?;
    }
    for url in told.iter().flat_map(|told| &told.amqp) {
        say!("amqp: {url}")?;
    }
    for alarm in told.iter().flat_map(|told| &told.alarms) {
        say!("alarm: {alarm}")?;
    }
    let is_asserted = arguments.assert.is_none_or(|asserted| asserted == state);
    Ok(if is_asserted {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// What a node says of itself.
struct Told {
    pid: u64,
    started: String,
    /// The URLs of its AMQP listeners.
    amqp: Vec<String>,
    /// What is wrong there.
    alarms: Vec<String>,
}

/// Asks the node; nothing where it does not answer, for whether it runs is known without.
fn ask(url: &str) -> Option<Told> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let told = tokio::time::timeout(PATIENCE, read(url)).await;
        told.ok()?.ok()
    })
}

async fn read(url: &str) -> anyhow::Result<Told> {
    let client = management::join(url).await?;
    let told = async {
        let status = management::call(&client, "crossbar.get_status", args![]).await?;
        let mut told = Told {
            pid: status["pid"].as_u64().unwrap_or_default(),
            started: status["started"].as_str().unwrap_or_default().to_owned(),
            amqp: Vec::new(),
            alarms: Vec::new(),
        };
        told.ask_workers(&client).await?;
        Ok::<_, CallError>(told)
    };
    let told = told.await;
    client.leave().await;
    Ok(told?)
}

impl Told {
    /// Asks each router worker for its AMQP listeners, and what is wrong there.
    async fn ask_workers(&mut self, client: &crosstie_client::Client) -> Result<(), CallError> {
        let types = Json::from(vec!["router"]);
        let workers = management::call(client, "crossbar.get_workers", args![types]).await?;
        for worker in texts(&workers) {
            let of = |what: &str| format!("crossbar.worker.{worker}.{what}");
            let transports =
                management::call(client, &of("get_router_transports"), args![]).await?;
            let listened = self.amqp.len();
            for id in texts(&transports) {
                let transport =
                    management::call(client, &of("get_router_transport"), args![id.as_str()])
                        .await?;
                if transport["type"] == "amqp" {
                    self.amqp.extend(texts(&transport["urls"]));
                }
            }
            if self.amqp.len() > listened {
                let alarms = management::call(client, &of("get_amqp_alarms"), args![]).await?;
                let alarms = alarms.as_array().into_iter().flatten();
                let lines = alarms.filter_map(|alarm| alarm["text"].as_str());
                self.alarms.extend(lines.map(str::to_owned));
            }
        }
        Ok(())
    }
}

fn texts(list: &Json) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
