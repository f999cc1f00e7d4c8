//! `crosstie amqp`: the replicated vhosts of a running node. Who has them; have another node own one; have its log recovered.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use crosstie_client::{Arguments, args};
use serde_json::Value as Json;

use crate::management::Place;
use crate::queues::lists::{Column, Show, column};
use crate::queues::realm::{ManagementRealm, Refused};
use crate::queues::table;
use crate::wait_for;

/// Replicated vhosts of a running node: list them, move one to another node, recover the log of one.
#[derive(Args)]
pub(crate) struct AmqpArguments {
    #[command(subcommand)]
    action: Action,
    /// Of this worker only.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Subcommand)]
enum Action {
    /// List the replicated vhosts: what this node is to each, and who owns it.
    List,
    Move(MoveArguments),
    Recover(RecoverArguments),
}

/// Have another node own a vhost. Asked of the node that owns it.
///
/// Its publishers are not read any more, what they have sent is written to the log, then the entry that hands
/// the vhost over; its clients are closed with 320, and the other node takes it at once.
#[derive(Args)]
struct MoveArguments {
    vhost: String,
    /// The node, as `/status` names it; its worker may be left out. By default one that has read the log along.
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    /// How long the other one is given; after that this node takes the vhost back.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout: f64,
}

/// Recover the log of a vhost that is not opened, or begin one with what a store has.
///
/// Says what there is and what is missing, and with `--yes` does it. Not while a node owns the vhost.
#[derive(Args)]
struct RecoverArguments {
    vhost: String,
    #[command(flatten)]
    means: Means,
    /// The store, in place of the one that the node has kept. A path on the node's machine.
    #[arg(long, value_name = "FILE", requires = "from")]
    store: Option<PathBuf>,
    /// Do it: without this nothing is done.
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Means {
    /// Write what a store has into the log: the copy that this node has kept as the owner, or what the worker's store has from
    /// before the vhost was replicated.
    #[arg(long, value_name = "WHAT")]
    from: Option<From>,
    /// Take what is left of the log.
    #[arg(long)]
    accept_loss: bool,
    /// Begin with nothing.
    #[arg(long)]
    empty: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum From {
    Store,
}

static COLUMNS: [Column; 6] = [
    column("vhost", Show::Text("name")),
    column("this node", Show::Text("role")),
    column("owner", Show::Text("owner")),
    column("epoch", Show::Number("epoch")),
    column("entries", Show::Number("entries")),
    column("alarm", Show::Text("alarm")),
];

pub(crate) fn run(arguments: AmqpArguments) -> anyhow::Result<ExitCode> {
    let url = arguments.place.management_url()?;
    let is_json = arguments.json;
    wait_for(async {
        let realm = ManagementRealm::join(&url, arguments.worker).await?;
        let told = match arguments.action {
            Action::List => list(&realm, is_json).await,
            Action::Move(asked) => move_vhost(&realm, asked, is_json).await,
            Action::Recover(asked) => recover(&realm, asked, is_json).await,
        };
        realm.leave().await;
        match told? {
            Ok((text, exit_code)) => {
                say!("{text}")?;
                Ok(exit_code)
            }
            Err(refused) => refused.told(),
        }
    })
}

/// What is printed, and the exit code; or why not.
type Told = anyhow::Result<Result<(String, ExitCode), Refused>>;

async fn list(realm: &ManagementRealm, is_json: bool) -> Told {
    let rows = match realm.replicated().await {
        Ok(found) => found.into_iter().flat_map(|(worker, rows)| {
            rows.into_iter().map(move |mut row| {
                row["worker"] = worker.as_str().into();
                row
            })
        }),
        Err(refused) => return Ok(Err(refused)),
    };
    let rows: Vec<Json> = rows.collect();
    let text = match is_json {
        true => Json::Array(rows).to_string(),
        false => table::of(&COLUMNS, &rows),
    };
    Ok(Ok((text, ExitCode::SUCCESS)))
}

async fn move_vhost(realm: &ManagementRealm, asked: MoveArguments, is_json: bool) -> Told {
    let timeout_ms = (asked.timeout * 1000.0) as u64;
    let arguments = args![asked.vhost.as_str(), asked.to, timeout_ms];
    let moved = match call(realm, &asked.vhost, "move_amqp_vhost", arguments).await {
        Ok(moved) => moved,
        Err(refused) => return Ok(Err(refused)),
    };
    let word = |key: &str| moved[key].as_str().unwrap_or_default();
    let text = match is_json {
        true => moved.to_string(),
        false => format!(
            "Moved vhost '{}' from {} to {} in {} ms",
            asked.vhost,
            word("from"),
            word("to"),
            moved["ms"]
        ),
    };
    Ok(Ok((text, ExitCode::SUCCESS)))
}

async fn recover(realm: &ManagementRealm, asked: RecoverArguments, is_json: bool) -> Told {
    let from = match asked.means {
        Means {
            from: Some(From::Store),
            ..
        } => "store",
        Means {
            accept_loss: true, ..
        } => "log",
        Means { .. } => "nothing",
    };
    let store = asked.store.map(std::path::absolute).transpose();
    let store = store.context("no path: --store")?;
    let store = store.map(|store| {
        store
            .to_str()
            .map(str::to_owned)
            .context("expected a path in UTF-8")
    });
    let arguments = args![asked.vhost.as_str(), from, store.transpose()?, asked.yes];
    let recovered = match call(realm, &asked.vhost, "recover_amqp_vhost", arguments).await {
        Ok(recovered) => recovered,
        Err(refused) => return Ok(Err(refused)),
    };
    let is_done = recovered["done"] == true;
    let text = match is_json {
        true => recovered.to_string(),
        false => told(&asked.vhost, &recovered),
    };
    let exit_code = if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    Ok(Ok((text, exit_code)))
}

/// What there is of a log, and what becomes of it.
fn told(vhost: &str, recovered: &Json) -> String {
    let number = |key: &str| recovered[key].as_u64().unwrap_or_default();
    let (first, last, known) = (number("first"), number("last"), number("known"));
    let there = match (first, last) {
        (_, 0) => "no entries".to_owned(),
        (first, last) if first > last => format!("no entries, of {last}"),
        (first, last) => format!("entries {first} to {last}"),
    };
    let unreadable = match number("unreadable") {
        0 => String::new(),
        count => format!(", of which {count} cannot be read"),
    };
    let missing = match known.saturating_sub(last) {
        _ if known == 0 => "none".to_owned(),
        0 => format!("entries up to {known}"),
        missing => format!("entries up to {known}: {missing} are missing"),
    };
    let wrong = recovered["wrong"].as_str().unwrap_or("it has nothing");
    let (is_done, from) = (recovered["done"] == true, recovered["from"].as_str());
    let verb = if is_done { "now" } else { "then" };
    let end = match is_done {
        true => "Recovered: it is opened by the next node that claims it",
        false => "Nothing was done: --yes does it",
    };
    format!(
        "The log of vhost '{vhost}': {wrong}\n  there: {there}{unreadable}\n  known: {missing}\n  {verb}: \
         {} queues, {} exchanges, {} bindings, {} messages, from {}\n{end}",
        number("queues"),
        number("exchanges"),
        number("bindings"),
        number("messages"),
        from.unwrap_or_default(),
    )
}

/// Calls a procedure of the worker that has the vhost.
async fn call(
    realm: &ManagementRealm,
    vhost: &str,
    procedure: &str,
    arguments: Arguments,
) -> Result<Json, Refused> {
    let worker = realm.worker_with_replicated(vhost).await?;
    let procedure = format!("crossbar.worker.{worker}.{procedure}");
    realm.call_for_long(&procedure, arguments).await
}
