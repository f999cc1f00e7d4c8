//! `crosstie amqp`: users, permissions and policies of a running node; its replicated vhosts: their owners, the handover
//! to another node, the recovery of a log.

pub(crate) mod definitions;
pub(crate) mod entries;
mod limit;
mod message_json;
pub(crate) mod messages;
mod parameter;
mod permission;
mod policy;
mod publisher;
mod user;
mod vhost;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use crosstie_client::{Arguments, args};
use serde_json::Value as Json;

use crate::list::{Column, Form, Printer, Show, column};
use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::{pull, release, wait_for};

/// Publish, get and consume messages; change users, vhosts, permissions, policies and limits; move messages of another
/// broker here; list, move, recover and release replicated vhosts.
#[derive(Args)]
pub(crate) struct AmqpArguments {
    #[command(subcommand)]
    action: Action,
    /// Worker; by default all.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

#[derive(Subcommand)]
enum Action {
    /// List the replicated vhosts, with this node's role and the owner of each.
    List,
    Move(MoveArguments),
    Pull(pull::PullArguments),
    Publish(Box<messages::PublishArguments>),
    Get(messages::GetArguments),
    Consume(messages::ConsumeArguments),
    Recover(RecoverArguments),
    Release(release::ReleaseArguments),
    #[command(subcommand)]
    User(user::Action),
    #[command(subcommand)]
    Vhost(vhost::Action),
    #[command(subcommand)]
    Permission(permission::Action),
    #[command(subcommand)]
    TopicPermission(permission::TopicAction),
    #[command(subcommand)]
    Policy(policy::Action),
    #[command(subcommand)]
    Limit(limit::Action),
    #[command(subcommand)]
    Parameter(parameter::Action),
    #[command(subcommand)]
    GlobalParameter(parameter::GlobalAction),
    #[command(subcommand)]
    Definitions(definitions::Action),
}

/// Move a vhost to another node. Run this on the owner.
///
/// The target catches up while the owner serves. Then the owner writes what its publishers have sent, closes its clients
/// with 320, and the target takes over at once.
#[derive(Args)]
struct MoveArguments {
    /// The vhost's name.
    vhost: String,
    /// Target node, as in `crosstie amqp list` and on the status page; its worker is optional. By default a warm
    /// standby.
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    /// Maximum time for the target to catch up. Beyond it the move is refused and the vhost stays.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout: f64,
}

/// Recover the log of a closed vhost, or begin a log from a store.
///
/// Prints the present and the missing content; `--yes` executes the recovery. Refused while a node owns the vhost.
#[derive(Args)]
struct RecoverArguments {
    /// The vhost's name.
    vhost: String,
    #[command(flatten)]
    means: Means,
    /// Store to use in place of the node's own copy, as a path on the node's machine.
    #[arg(long, value_name = "FILE", requires = "from")]
    store: Option<PathBuf>,
    /// Execute; without this the command only prints.
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Means {
    /// Write a store's content into the log: this node's copy as the owner, or the worker's store from before the
    /// replication.
    #[arg(long, value_name = "WHAT")]
    from: Option<From>,
    /// Accept the rest of the log.
    #[arg(long)]
    accept_loss: bool,
    /// Begin an empty log.
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
    let form = &arguments.form;
    let is_json = form.is_json();
    if let Action::Release(asked) = &arguments.action {
        form.check_unused()?;
        return release::run(asked, is_json);
    }
    if let Action::Pull(asked) = &arguments.action {
        form.check_unused()?;
        let worker = arguments.worker.as_deref();
        return pull::run(asked, &arguments.place, worker, is_json);
    }
    if let Some(exit_code) = messages(&arguments)? {
        return Ok(exit_code);
    }
    // A password is prompted for before the node is asked.
    let task = Task::of(arguments.action)?;
    let target = arguments.place.target()?;
    if !matches!(&task, Task::List | Task::Entries(entries::Asked::List(_))) {
        form.check_unused()?;
    }
    wait_for(async {
        let realm = ManagementRealm::join(&target, arguments.worker).await?;
        let told = match task {
            Task::List => {
                let listed = form.run(&COLUMNS, async |printer: &mut Printer<'_>| {
                    list(&realm, printer).await
                });
                let listed = listed.await;
                realm.leave().await;
                return listed;
            }
            Task::Entries(entries::Asked::List(listing)) => {
                let listed = form.run(listing.columns, async |printer: &mut Printer<'_>| {
                    printer.add(listing.rows(&realm).await?);
                    Ok(())
                });
                let listed = listed.await;
                realm.leave().await;
                return listed;
            }
            Task::Move(asked) => move_vhost(&realm, asked, is_json).await,
            Task::Recover(asked) => recover(&realm, asked, is_json).await,
            Task::Entries(asked) => {
                let done = entries::run(&realm, asked, is_json).await;
                Ok(done.map(|text| (text, ExitCode::SUCCESS)))
            }
            Task::Definitions(asked) => {
                let done = definitions::run(&realm, asked, is_json).await?;
                Ok(done.map(|text| (text, ExitCode::SUCCESS)))
            }
            // These were done above.
            Task::Other => Ok(Ok((String::new(), ExitCode::SUCCESS))),
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

/// The commands that are clients of a broker; `None` for the others.
fn messages(arguments: &AmqpArguments) -> anyhow::Result<Option<ExitCode>> {
    let is_client = matches!(
        arguments.action,
        Action::Publish(_) | Action::Get(_) | Action::Consume(_)
    );
    if !is_client {
        return Ok(None);
    }
    arguments.form.check_unused()?;
    let place = &arguments.place;
    let option = [
        ("--worker", arguments.worker.is_some()),
        ("--cbdir", place.cbdir().is_some()),
        ("--socket", place.socket().is_some()),
    ];
    if let Some((option, _)) = option.iter().find(|(_, is_given)| *is_given) {
        bail!("{option} names no broker, expected --url or a context with --amqp");
    }
    let done = match &arguments.action {
        Action::Publish(asked) => messages::publish(asked, place),
        Action::Get(asked) => messages::get(asked, place),
        Action::Consume(asked) => messages::consume(asked, place),
        _ => return Ok(None),
    };
    done.map(Some)
}

/// The request of a command.
enum Task {
    List,
    Move(MoveArguments),
    Recover(RecoverArguments),
    Entries(entries::Asked),
    Definitions(definitions::Asked),
    /// One that does not use the management realm.
    Other,
}

impl Task {
    fn of(action: Action) -> anyhow::Result<Self> {
        Ok(match action {
            Action::List => Self::List,
            Action::Move(asked) => Self::Move(asked),
            Action::Recover(asked) => Self::Recover(asked),
            Action::Pull(_)
            | Action::Release(_)
            | Action::Publish(_)
            | Action::Get(_)
            | Action::Consume(_) => Self::Other,
            Action::User(action) => Self::Entries(action.asked()?),
            Action::Vhost(action) => Self::Entries(action.asked()),
            Action::Permission(action) => Self::Entries(action.asked()),
            Action::TopicPermission(action) => Self::Entries(action.asked()),
            Action::Policy(action) => Self::Entries(action.asked()?),
            Action::Limit(action) => Self::Entries(action.asked()),
            Action::Parameter(action) => Self::Entries(action.asked()),
            Action::GlobalParameter(action) => Self::Entries(action.asked()),
            Action::Definitions(action) => Self::Definitions(action.asked()?),
        })
    }
}

/// The output and the exit code; or the refusal.
type Told = anyhow::Result<Result<(String, ExitCode), Refused>>;

async fn list(realm: &ManagementRealm, printer: &mut Printer<'_>) -> Result<(), Refused> {
    for (worker, rows) in realm.replicated().await? {
        let rows = rows.into_iter().map(|mut row| {
            row["worker"] = worker.as_str().into();
            row
        });
        printer.add(rows.collect());
    }
    Ok(())
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
            "Moved vhost '{}' from {} to {} in {} ms; its clients were paused for {} ms",
            asked.vhost,
            word("from"),
            word("to"),
            moved["ms"],
            moved["paused_ms"]
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

/// The state of a log, and the outcome of its recovery.
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
    let settings = match number("settings") {
        0 => String::new(),
        count => format!(", {count} settings"),
    };
    let end = match is_done {
        true => "Recovered: it is opened by the next node that claims it",
        false => "Nothing was done: --yes does it",
    };
    format!(
        "The log of vhost '{vhost}': {wrong}\n  there: {there}{unreadable}\n  known: {missing}\n  {verb}: \
         {} queues, {} exchanges, {} bindings, {} messages{settings}, from {}\n{end}",
        number("queues"),
        number("exchanges"),
        number("bindings"),
        number("messages"),
        from.unwrap_or_default(),
    )
}

/// Calls a procedure of the worker with the vhost.
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
