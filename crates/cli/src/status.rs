//! `crosstie status`: whether the node of a node directory runs, its addresses, and its problems.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use crosstie_client::{CallError, Client, args};
use crosstie_node::directory::{Occupant, occupant};
use serde_json::{Value as Json, json};

use crate::embedded::SOCKET;
use crate::management::{self, Place, Target, embedded, locate_if_any, reached};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Exit with 1 if the node is in another state.
    #[arg(long, value_enum, value_name = "STATE")]
    assert: Option<State>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    Running,
    Stopped,
}

/// The findings about a node.
struct Found {
    directory: PathBuf,
    /// The node that occupies the directory.
    occupant: Option<Occupant>,
    /// The address of its management realm, if known.
    url: Option<String>,
    /// Its answers, if it answers.
    told: Option<Told>,
    /// There is no node's directory, only the current one.
    no_directory: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let found = look(&arguments.place)?;
    let state = match (&found.occupant, &found.told) {
        (None, None) => State::Stopped,
        _ => State::Running,
    };
    if arguments.json {
        say!("{}", found.to_json(state))?;
    } else {
        found.say(state)?;
    }
    let is_asserted = arguments.assert.is_none_or(|asserted| asserted == state);
    Ok(match is_asserted {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

fn look(place: &Place) -> anyhow::Result<Found> {
    let current = std::env::current_dir().context("no current directory")?;
    let cbdir = match place.chosen()? {
        None => place.cbdir().map(Path::to_owned),
        Some(chosen) => match chosen.context.cbdir {
            // Nothing is known of a node on another machine that does not answer.
            None => return Found::of(&place.target()?),
            cbdir => cbdir,
        },
    };
    if place.socket().is_some() {
        return Found::of(&place.target()?);
    }
    // A node on its embedded default occupies no directory; it runs if it answers.
    let beside = match cbdir {
        Some(_) => None,
        None => embedded(&current.join(SOCKET)),
    };
    let (directory, no_directory) = match locate_if_any(cbdir) {
        Ok(Some(directory)) => (directory, false),
        Ok(None) => (current, true),
        Err(_) if beside.is_some() => (current, true),
        Err(error) => return Err(error),
    };
    let occupant = occupant(&directory)?;
    let url = match &occupant {
        Some(occupant) => occupant.management.as_deref().map(|url| {
            // The commands that need the realm report where it was expected.
            reached(url, occupant, &directory).unwrap_or_else(|_| url.to_owned())
        }),
        None => beside,
    };
    let target = url.clone().map(Target::local).transpose()?;
    let told = target.as_ref().and_then(|target| ask(target).ok());
    Ok(Found {
        directory,
        occupant,
        url,
        told,
        no_directory,
    })
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

impl Found {
    /// A node that is known by its management realm alone.
    fn of(target: &Target) -> anyhow::Result<Self> {
        let told = ask(target)?;
        Ok(Self {
            directory: told.directory.clone().into(),
            occupant: None,
            url: Some(target.url.clone()),
            told: Some(told),
            no_directory: true,
        })
    }

    /// For programs: every list is present, even if it is empty.
    fn to_json(&self, state: State) -> Json {
        let (occupant, told) = (self.occupant.as_ref(), self.told.as_ref());
        let is_crossbar = occupant.is_some_and(|occupant| occupant.is_crossbar);
        let program = Some(if is_crossbar {
            "Crossbar.io"
        } else {
            "Crosstie"
        });
        let pid = occupant.and_then(|occupant| occupant.pid.map(u64::from));
        let since = occupant.and_then(|occupant| occupant.started.clone());
        let rows = |name: &str| -> Vec<&str> {
            let rows = told.iter().flat_map(|told| &told.rows);
            let named = rows.filter(|(what, _)| *what == name);
            named.map(|(_, text)| text.as_str()).collect()
        };
        let problems = [rows("worker"), rows("component"), rows("alarm")].concat();
        json!({
            "state": state.word(),
            "answers": told.is_some(),
            "directory": self.directory.display().to_string(),
            "program": program.filter(|_| state == State::Running),
            "process": pid.or_else(|| told.map(|told| told.pid)),
            "since": since.or_else(|| told.map(|told| told.started.clone())),
            "management": self.url,
            "admin": rows("admin"),
            "console": rows("console"),
            "wamp": rows("wamp"),
            "amqp": rows("amqp"),
            "testee": rows("testee"),
            "pages": rows("pages"),
            "workers": told.map_or(&[][..], |told| told.workers.as_slice()),
            "problems": problems,
        })
    }

    fn say(&self, state: State) -> anyhow::Result<()> {
        say!("{}", state.word())?;
        say!("directory: {}", self.directory.display())?;
        if state == State::Stopped && self.no_directory {
            let what = self.left_over(Path::new(SOCKET));
            say!("note: this directory is not a node's, and {what}")?;
        }
        if let Some(occupant) = &self.occupant {
            let pid = occupant.pid.map(|pid| pid.to_string());
            let program = occupant.is_crossbar.then(|| "Crossbar.io".to_owned());
            let rows = [
                ("program", program),
                ("process", pid),
                ("since", occupant.started.clone()),
                ("management", occupant.management.clone()),
            ];
            for (what, value) in rows {
                if let Some(value) = value {
                    say!("{what}: {value}")?;
                }
            }
        } else if let (Some(told), Some(url)) = (&self.told, &self.url) {
            say!("process: {}", told.pid)?;
            say!("since: {}", told.started)?;
            say!("management: {url}")?;
        }
        for (what, text) in self.told.iter().flat_map(|told| &told.rows) {
            say!("{what}: {text}")?;
        }
        Ok(())
    }

    /// The remains of a node on its embedded default that does not answer.
    fn left_over(&self, socket: &Path) -> String {
        match &self.url {
            Some(_) => format!(
                "the node on its embedded default that left '{}' was killed or does not answer",
                crate::embedded::management_socket(socket).display()
            ),
            None => "no node runs here on its embedded default".to_owned(),
        }
    }
}

/// A node's answers.
struct Told {
    pid: u64,
    started: String,
    directory: String,
    /// Its addresses and problems, each with its name.
    rows: Vec<(&'static str, String)>,
    /// The answer of `crossbar.get_worker` for each.
    workers: Vec<Json>,
}

/// Queries the node.
fn ask(target: &Target) -> anyhow::Result<Told> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let told = tokio::time::timeout(PATIENCE, read(target)).await;
        told.with_context(|| format!("the node at {} does not answer", target.url))?
    })
}

async fn read(target: &Target) -> anyhow::Result<Told> {
    let client = target.join().await?;
    let told = async {
        let status = management::call(&client, "crossbar.get_status", args![]).await?;
        let mut told = Told {
            pid: status["pid"].as_u64().unwrap_or_default(),
            started: status["started"].as_str().unwrap_or_default().to_owned(),
            directory: status["directory"].as_str().unwrap_or_default().to_owned(),
            rows: Vec::new(),
            workers: Vec::new(),
        };
        told.add("admin", texts(&status["admin_urls"]));
        told.add("console", texts(&status["console_urls"]));
        let workers = management::call(&client, "crossbar.get_workers", args![]).await?;
        for worker in texts(&workers) {
            told.ask_worker(&client, &worker).await?;
        }
        Ok::<_, CallError>(told)
    };
    let told = told.await;
    client.leave().await;
    Ok(told?)
}

impl Told {
    fn add(&mut self, what: &'static str, texts: impl IntoIterator<Item = String>) {
        let rows = texts.into_iter().map(|text| (what, text));
        self.rows.extend(rows);
    }

    /// Queries a worker's state, and a router's listeners and problems.
    async fn ask_worker(&mut self, client: &Client, worker: &str) -> Result<(), CallError> {
        let about = management::call(client, "crossbar.get_worker", args![worker]).await;
        let about = match about {
            Ok(about) => about,
            // It has ended since it was listed.
            Err(CallError::Application(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.add("worker", restart_loop(worker, &about));
        self.add("component", troubles(worker, &about));
        let has_listeners = about["type"] == "router" || about["type"] == "websocket-testee";
        self.workers.push(about);
        if !has_listeners {
            return Ok(());
        }
        let of = |what: &str| format!("crossbar.worker.{worker}.{what}");
        let transports = management::call(client, &of("get_router_transports"), args![]).await?;
        let mut speaks_amqp = false;
        for id in texts(&transports) {
            let transport =
                management::call(client, &of("get_router_transport"), args![id.as_str()]).await?;
            let what = match transport["type"].as_str() {
                Some("amqp") => "amqp",
                Some("websocket.testee" | "stream.testee") => "testee",
                _ => "wamp",
            };
            speaks_amqp |= what == "amqp";
            self.add(what, texts(&transport["urls"]));
            self.add("pages", texts(&transport["pages"]));
        }
        if speaks_amqp {
            let alarms = management::call(client, &of("get_amqp_alarms"), args![]).await?;
            let alarms = alarms.as_array().into_iter().flatten();
            let lines = alarms.filter_map(|alarm| alarm["text"].as_str());
            self.add("alarm", lines.map(str::to_owned));
        }
        Ok(())
    }
}

/// A process that ended this often since it was last well does not recover by a restart.
const LOOP_FROM: u64 = 3;

/// Reports that a worker ends at each start, if it does.
fn restart_loop(worker: &str, about: &Json) -> Option<String> {
    let restarts = about["restarts"].as_u64().filter(|&n| n >= LOOP_FROM)?;
    let last = about["last_end"].as_str().unwrap_or("not known why");
    let whose = match about["type"].as_str() {
        Some("router") => "the host of its components",
        _ => "it",
    };
    Some(format!(
        "{worker} is in a restart loop: {whose} has ended {restarts} times in a row, the last time \
         with: {last}"
    ))
}

/// Reports the components of a worker that should run but do not, with the reasons.
fn troubles(worker: &str, about: &Json) -> Vec<String> {
    let components = about["components"].as_array().into_iter().flatten();
    let troubled = components.filter_map(|component| {
        let (id, state) = (component["id"].as_str()?, component["state"].as_str()?);
        let reason = component["reason"].as_str()?;
        Some(format!("{id} of {worker} {}: {reason}", in_words(state)))
    });
    troubled.collect()
}

fn in_words(state: &str) -> &str {
    match state {
        "failed" => "has failed",
        "waiting" => "has no session",
        other => other,
    }
}

fn texts(list: &Json) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
