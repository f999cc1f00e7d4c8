//! `crosstie queues`, `sessions` and their like: the contents of a running node's vhosts and realms, and an operator's
//! few actions on them.

pub(crate) mod kill;
pub(crate) mod lists;
pub(crate) mod realm;
pub(crate) mod sessions;
pub(crate) mod top;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use crosstie_client::args;
use serde_json::Value as Json;

use self::lists::List;
use self::realm::{Asked, ManagementRealm};
use crate::list::{Form, Printer};
use crate::wait_for;

/// List the queues of a running node's AMQP vhosts; purge or delete one.
#[derive(Args)]
pub(crate) struct QueuesArguments {
    #[command(subcommand)]
    action: Option<QueuesAction>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Subcommand)]
enum QueuesAction {
    /// List the queues (the default).
    List,
    /// Remove the messages of a queue that are not delivered to a consumer.
    Purge {
        /// Name.
        queue: String,
    },
    /// Delete a queue with its messages, even if in use. A queue of the definitions returns when the node restarts.
    Delete {
        /// Name.
        queue: String,
    },
}

/// List the exchanges of a running node's AMQP vhosts; delete one.
#[derive(Args)]
pub(crate) struct ExchangesArguments {
    #[command(subcommand)]
    action: Option<ExchangesAction>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Subcommand)]
enum ExchangesAction {
    /// List the exchanges (the default).
    List,
    /// Delete an exchange with its bindings, even if in use. An exchange of the definitions returns when the node
    /// restarts.
    Delete {
        /// Name.
        exchange: String,
    },
}

/// List the bindings of a running node's AMQP vhosts.
#[derive(Args)]
pub(crate) struct BindingsArguments {
    #[command(subcommand)]
    action: Option<ListAction>,
    #[command(flatten)]
    asked: Asked,
}

/// List the channels of a running node's AMQP connections.
#[derive(Args)]
pub(crate) struct ChannelsArguments {
    #[command(flatten)]
    asked: Asked,
}

/// List the consumers of a running node's AMQP queues.
#[derive(Args)]
pub(crate) struct ConsumersArguments {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Subcommand)]
enum ListAction {
    /// List the bindings (the default).
    List,
}

/// List the AMQP connections of a running node; close one.
#[derive(Args)]
pub(crate) struct ConnectionsArguments {
    #[command(subcommand)]
    action: Option<ConnectionsAction>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Subcommand)]
enum ConnectionsAction {
    /// List the connections (the default).
    List,
    /// Close a connection with 320 CONNECTION_FORCED.
    Close {
        /// Number of the connection in the list.
        connection: u64,
        /// Reason that the client gets.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub(crate) fn queues(arguments: QueuesArguments) -> anyhow::Result<ExitCode> {
    let QueuesArguments { action, asked } = arguments;
    let (verb, queue) = match action {
        None | Some(QueuesAction::List) => return list(&asked, &lists::QUEUES),
        Some(QueuesAction::Purge { queue }) => ("purge", queue),
        Some(QueuesAction::Delete { queue }) => ("delete", queue),
    };
    wait_for(async {
        let realm = asked.join_to_change().await?;
        let vhost = asked.vhost_or_default();
        let done = async {
            let worker = realm.worker_with(vhost).await?;
            let procedure = format!("crossbar.worker.{worker}.{verb}_amqp_queue");
            realm.call(&procedure, args![queue.as_str(), vhost]).await
        };
        let done = done.await;
        realm.leave().await;
        said(done, |done| {
            let messages = &done["messages"];
            match verb {
                "purge" => {
                    format!("Purged {messages} messages of queue '{queue}' in vhost '{vhost}'")
                }
                _ => {
                    format!("Deleted queue '{queue}' in vhost '{vhost}', with {messages} messages")
                }
            }
        })
    })
}

pub(crate) fn exchanges(arguments: ExchangesArguments) -> anyhow::Result<ExitCode> {
    let ExchangesArguments { action, asked } = arguments;
    let exchange = match action {
        None | Some(ExchangesAction::List) => return list(&asked, &lists::EXCHANGES),
        Some(ExchangesAction::Delete { exchange }) => exchange,
    };
    wait_for(async {
        let realm = asked.join_to_change().await?;
        let vhost = asked.vhost_or_default();
        let done = async {
            let worker = realm.worker_with(vhost).await?;
            let procedure = format!("crossbar.worker.{worker}.delete_amqp_exchange");
            realm
                .call(&procedure, args![exchange.as_str(), vhost])
                .await
        };
        let done = done.await;
        realm.leave().await;
        said(done, |_| {
            format!("Deleted exchange '{exchange}' in vhost '{vhost}', with its bindings")
        })
    })
}

pub(crate) fn bindings(arguments: &BindingsArguments) -> anyhow::Result<ExitCode> {
    let (None | Some(ListAction::List)) = &arguments.action;
    list(&arguments.asked, &lists::BINDINGS)
}

pub(crate) fn channels(arguments: &ChannelsArguments) -> anyhow::Result<ExitCode> {
    list(&arguments.asked, &lists::CHANNELS)
}

pub(crate) fn consumers(arguments: &ConsumersArguments) -> anyhow::Result<ExitCode> {
    list(&arguments.asked, &lists::CONSUMERS)
}

pub(crate) fn connections(arguments: ConnectionsArguments) -> anyhow::Result<ExitCode> {
    let ConnectionsArguments { action, asked } = arguments;
    let (connection, reason) = match action {
        None | Some(ConnectionsAction::List) => return list(&asked, &lists::CONNECTIONS),
        Some(ConnectionsAction::Close { connection, reason }) => (connection, reason),
    };
    wait_for(async {
        let realm = asked.join_to_change().await?;
        let done = async {
            let worker = realm.only_worker().await?;
            let procedure = format!("crossbar.worker.{worker}.close_amqp_connection");
            realm.call(&procedure, args![connection, reason]).await
        };
        let done = done.await;
        realm.leave().await;
        said(done, |_| format!("Closed connection {connection}"))
    })
}

fn list(asked: &Asked, list: &'static List) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let realm = asked.join().await?;
        let listed = print(&realm, list, asked.vhost(), &asked.form).await;
        realm.leave().await;
        listed
    })
}

/// Prints a list while it is read.
async fn print(
    realm: &ManagementRealm,
    list: &'static List,
    within: Option<&str>,
    form: &Form,
) -> anyhow::Result<ExitCode> {
    form.run(list.columns, async |printer: &mut Printer<'_>| {
        lists::read(realm, list, within, &mut |part| printer.add(part)).await
    })
    .await
}

/// Prints the result, or the reason for a refusal.
fn said(
    done: Result<Json, realm::Refused>,
    text: impl Fn(&Json) -> String,
) -> anyhow::Result<ExitCode> {
    match done {
        Ok(done) => {
            say!("{}", text(&done))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(refused) => refused.told(),
    }
}
