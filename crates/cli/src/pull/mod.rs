//! `crosstie amqp pull`: moves the messages of another broker's queues into queues of the same names.

pub(crate) mod confirmed;
pub(crate) mod side;
mod transfer;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use crosstie_amqp_client::TransportUrl;
use serde_json::{Value as Json, json};

use self::side::{Depth, Side};
use self::transfer::Transfer;
use crate::list::{Column, Show, column, table};
use crate::management::Place;
use crate::queues::lists;
use crate::queues::realm::ManagementRealm;
use crate::wait_for;

/// The name of the connections.
const NAME: &str = "crosstie amqp pull";

/// Environment variables for URLs with passwords, which others can read on the command line.
const FROM: &str = "CROSSTIE_PULL_FROM";
const TO: &str = "CROSSTIE_PULL_TO";

/// Move the messages of another broker's queues into the queues of the same names here.
///
/// A message is acknowledged there once it is confirmed here. An interrupted command can be repeated: no message is
/// lost, and at most as many as the window are here twice. If the other broker is killed, so are those whose
/// acknowledgements it had not stored. The queues must exist here; import their definitions first.
#[derive(Args)]
pub(crate) struct PullArguments {
    /// Queues to move; by default all durable ones of the receiving vhost, except streams.
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Broker with the messages, as amqp://USER:PASSWORD@HOST:PORT/VHOST; by default the value of the environment
    /// variable CROSSTIE_PULL_FROM.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Broker that receives them; by default the value of CROSSTIE_PULL_TO, or this machine's port 5672 as guest, with the
    /// vhost of the other one.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Messages that are on their way at once.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u16).range(1..))]
    window: u16,
}

/// The outcome of a queue.
struct Moved {
    queue: String,
    before_there: Depth,
    before_here: Depth,
    messages: u64,
    after_there: Depth,
    after_here: Depth,
}

static COLUMNS: [Column; 6] = [
    column("queue", Show::Text("queue")),
    column("there before", Show::Number("there_before")),
    column("moved", Show::Number("moved")),
    column("left there", Show::Number("there_after")),
    column("here before", Show::Number("here_before")),
    column("here after", Show::Number("here_after")),
];

pub(crate) fn run(
    asked: &PullArguments,
    place: &Place,
    worker: Option<&str>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let from = url(asked.from.as_deref(), FROM)?.context(format!(
        "expected the other broker's URL, as --from or as {FROM}"
    ))?;
    let to = match url(asked.to.as_deref(), TO)? {
        Some(to) => to,
        None => TransportUrl {
            virtual_host: from.virtual_host.clone(),
            ..parsed("amqp://")?
        },
    };
    let is_listed = asked.queues.is_empty();
    let queues = match is_listed {
        true => queues_of(&to.virtual_host, place, worker)?,
        false => asked.queues.clone(),
    };
    let mut source = Side::open(&from, NAME).context("the other broker")?;
    let mut target = Side::open(&to, NAME).context("the receiving broker")?;
    let present = present(queues, is_listed, &mut source, &mut target)?;
    let total: u64 = present.iter().map(|(_, there, _)| there.messages).sum();
    let mut progress = Progress::new(total);
    let mut moved = Vec::new();
    for (queue, before_there, before_here) in present {
        let mut transfer = Transfer {
            queue: &queue,
            source: &mut source,
            target: &mut target,
            window: asked.window,
        };
        let transferred = transfer.run(&mut |messages| progress.show(&queue, messages));
        let messages = transferred.with_context(|| format!("queue '{queue}'"))?;
        progress.end(messages);
        let gone = || format!("queue '{queue}' was deleted meanwhile");
        moved.push(Moved {
            before_there,
            before_here,
            messages,
            after_there: source.depth(&queue)?.with_context(gone)?,
            after_here: target.depth(&queue)?.with_context(gone)?,
            queue,
        });
    }
    let _ = source.connection.close();
    let _ = target.connection.close();
    tell(&moved, is_json)
}

/// The URL of the option, or of the environment.
fn url(option: Option<&str>, variable: &str) -> anyhow::Result<Option<TransportUrl>> {
    match (option, std::env::var(variable)) {
        (Some(text), _) => parsed(text).map(Some),
        (None, Ok(text)) => parsed(&text)
            .with_context(|| format!("{variable} in the environment"))
            .map(Some),
        (None, Err(_)) => Ok(None),
    }
}

fn parsed(text: &str) -> anyhow::Result<TransportUrl> {
    text.parse::<TransportUrl>().map_err(anyhow::Error::from)
}

/// The queues of a running node's vhost that keep messages.
fn queues_of(vhost: &str, place: &Place, worker: Option<&str>) -> anyhow::Result<Vec<String>> {
    let target = place.target()?;
    let mut listed = Ok(Vec::new());
    wait_for(async {
        let realm = ManagementRealm::join(&target, worker.map(str::to_owned)).await?;
        let mut rows = Vec::new();
        let mut take = |part: Vec<Json>| {
            rows.extend(part);
            true
        };
        let read = lists::read(&realm, &lists::QUEUES, Some(vhost), &mut take).await;
        listed = read.map(|()| rows);
        realm.leave().await;
        Ok(ExitCode::SUCCESS)
    })
    .context("listing the queues of the node: name them instead")?;
    let rows = listed.map_err(|refused| anyhow::anyhow!("{refused}"))?;
    let keeps = |row: &&Json| row["durable"] == true && row["type"] != "stream";
    let names = rows.iter().filter(keeps).map(|row| row["name"].as_str());
    Ok(names.flatten().map(str::to_owned).collect())
}

/// The queues that both brokers have, with their depths. Nothing is moved if a queue is missing here; one that this
/// program has listed may be missing there.
fn present(
    queues: Vec<String>,
    is_listed: bool,
    source: &mut Side,
    target: &mut Side,
) -> anyhow::Result<Vec<(String, Depth, Depth)>> {
    let mut present = Vec::new();
    let mut missing = Vec::new();
    for queue in queues {
        match (source.depth(&queue)?, target.depth(&queue)?) {
            (Some(there), Some(here)) => present.push((queue, there, here)),
            (None, _) if is_listed => {}
            (None, _) => missing.push(format!("'{queue}' there")),
            (_, None) => missing.push(format!("'{queue}' here")),
        }
    }
    if !missing.is_empty() {
        bail!(
            "nothing was moved: queues are missing: {}",
            missing.join(", ")
        );
    }
    Ok(present)
}

/// The totals, compared.
fn tell(moved: &[Moved], is_json: bool) -> anyhow::Result<ExitCode> {
    let rows: Vec<Json> = moved
        .iter()
        .map(|moved| {
            json!({
                "queue": moved.queue,
                "there_before": moved.before_there.messages,
                "moved": moved.messages,
                "there_after": moved.after_there.messages,
                "here_before": moved.before_here.messages,
                "here_after": moved.after_here.messages,
            })
        })
        .collect();
    let total: u64 = moved.iter().map(|moved| moved.messages).sum();
    let text = match is_json {
        true => Json::Array(rows).to_string(),
        false => {
            let plural = if moved.len() == 1 { "" } else { "s" };
            format!(
                "{}\nMoved {total} messages of {} queue{plural}",
                table(&COLUMNS, &rows),
                moved.len()
            )
        }
    };
    say!("{text}")?;
    for moved in moved {
        let queue = &moved.queue;
        if moved.before_there.consumers > 0 {
            complain!(
                "note: queue '{queue}' has {} consumers there, which take messages too; what they have not acknowledged \
                 when they end is there again",
                moved.before_there.consumers
            );
        }
        let expected = moved.before_here.messages + moved.messages;
        if moved.after_here.messages < expected {
            complain!(
                "note: queue '{queue}' has {} messages here instead of {expected}: consumers, a TTL or a length limit \
                 here have taken the others",
                moved.after_here.messages
            );
        }
    }
    let is_all = moved.iter().all(|moved| moved.after_there.messages == 0);
    Ok(match is_all {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A line a second on a terminal.
struct Progress {
    total: u64,
    /// Messages of the queues that are done.
    done: u64,
    shown_at: Option<Instant>,
}

impl Progress {
    fn new(total: u64) -> Self {
        Self {
            total,
            done: 0,
            shown_at: std::io::stderr().is_terminal().then(Instant::now),
        }
    }

    fn show(&mut self, queue: &str, messages: u64) {
        let Some(shown_at) = &mut self.shown_at else {
            return;
        };
        if shown_at.elapsed() >= Duration::from_secs(1) {
            *shown_at = Instant::now();
            let done = self.done + messages;
            complain!("{done} of {} messages; queue '{queue}'", self.total);
        }
    }

    fn end(&mut self, messages: u64) {
        self.done += messages;
    }
}
