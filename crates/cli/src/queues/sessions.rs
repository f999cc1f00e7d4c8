//! `crosstie sessions`, `registrations` and `subscriptions`: the WAMP realms of a running node.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use crosstie_client::args;
use serde_json::Value as Json;

use super::lists::{List, REGISTRATIONS, SESSIONS, SUBSCRIPTIONS};
use super::realm::{ManagementRealm, Refused};
use super::{print, said};
use crate::list::Form;
use crate::management::Place;
use crate::wait_for;

/// List the WAMP sessions of a running node; close one.
#[derive(Args)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    action: Option<SessionsAction>,
    #[command(flatten)]
    asked: Asked,
}

/// List the registrations of a running node's WAMP realms: procedures and patterns, each with its callees here.
#[derive(Args)]
pub(crate) struct RegistrationsArguments {
    #[command(flatten)]
    asked: Asked,
}

/// List the subscriptions of a running node's WAMP realms: topics and patterns, each with its subscribers here.
#[derive(Args)]
pub(crate) struct SubscriptionsArguments {
    #[command(flatten)]
    asked: Asked,
}

/// Of which node and realm, and in which form.
#[derive(Args)]
struct Asked {
    /// Realm; by default all.
    #[arg(long, global = true)]
    realm: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

#[derive(Subcommand)]
enum SessionsAction {
    /// List the sessions (the default).
    List,
    /// Close a session with GOODBYE wamp.close.killed.
    Close {
        /// Id of the session in the list.
        session: u64,
        /// Reason that the client gets.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub(crate) fn run(arguments: SessionsArguments) -> anyhow::Result<ExitCode> {
    let SessionsArguments { action, asked } = arguments;
    let Some(SessionsAction::Close { session, reason }) = action else {
        return list(&asked, &SESSIONS);
    };
    asked.form.check_unused()?;
    wait_for(async {
        let realm = ManagementRealm::join(&asked.place.target()?, asked.worker).await?;
        let closed = close(&realm, session, reason.as_deref()).await;
        realm.leave().await;
        said(closed, |_| format!("Closed session {session}"))
    })
}

pub(crate) fn registrations(arguments: &RegistrationsArguments) -> anyhow::Result<ExitCode> {
    list(&arguments.asked, &REGISTRATIONS)
}

pub(crate) fn subscriptions(arguments: &SubscriptionsArguments) -> anyhow::Result<ExitCode> {
    list(&arguments.asked, &SUBSCRIPTIONS)
}

fn list(asked: &Asked, list: &'static List) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let realm = ManagementRealm::join(&asked.place.target()?, asked.worker.clone()).await?;
        let listed = print(&realm, list, asked.realm.as_deref(), &asked.form).await;
        realm.leave().await;
        listed
    })
}

/// On any worker that has it.
pub(super) async fn close(
    realm: &ManagementRealm,
    session: u64,
    reason: Option<&str>,
) -> Result<Json, Refused> {
    for worker in realm.routers().await? {
        let procedure = format!("crossbar.worker.{worker}.close_router_session");
        match realm.call(&procedure, args![session, reason]).await {
            Err(refused) if refused.is_no_such_object() => {}
            closed => return closed,
        }
    }
    Err(Refused::Here(format!(
        "there is no session {session}; `crosstie sessions` lists them"
    )))
}
