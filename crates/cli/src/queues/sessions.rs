//! `crosstie sessions`: the WAMP sessions of a running node, and the end of one of them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use crosstie_client::args;
use serde_json::Value as Json;

use super::lists::SESSIONS;
use super::realm::{ManagementRealm, Refused};
use super::{said, table};
use crate::management::Place;
use crate::wait_for;

/// List the WAMP sessions of a running node; close one.
#[derive(Args)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    action: Option<SessionsAction>,
    /// Realm; by default all.
    #[arg(long, global = true)]
    realm: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    /// Print JSON: a list of objects.
    #[arg(long, global = true)]
    json: bool,
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
    let SessionsArguments {
        action,
        realm: of_realm,
        worker,
        json,
        place,
    } = arguments;
    wait_for(async {
        let realm = ManagementRealm::join(&place.management_url()?, worker).await?;
        if let Some(SessionsAction::Close { session, reason }) = action {
            let closed = close(&realm, session, reason.as_deref()).await;
            realm.leave().await;
            return said(closed, |_| format!("Closed session {session}"));
        }
        let rows = read(&realm, of_realm.as_deref()).await;
        realm.leave().await;
        match rows {
            Ok(rows) if json => say!("{}", Json::Array(rows))?,
            Ok(rows) => say!("{}", table::of(SESSIONS.columns, &rows))?,
            Err(refused) => return refused.told(),
        };
        Ok(ExitCode::SUCCESS)
    })
}

/// All of them, worker by worker; each with its `worker`.
async fn read(realm: &ManagementRealm, of_realm: Option<&str>) -> Result<Vec<Json>, Refused> {
    let mut rows = Vec::new();
    let mut is_there = of_realm.is_none();
    for worker in realm.routers().await? {
        let procedure = format!("crossbar.worker.{worker}.{}", SESSIONS.procedure);
        let from = rows.len();
        // A list arrives in parts; an empty one is its end.
        loop {
            let arguments = args![of_realm, rows.len() - from];
            let part = match realm.call(&procedure, arguments).await {
                // Another worker may have it.
                Err(refused) if of_realm.is_some() && refused.is_no_such_object() => break,
                part => part?,
            };
            is_there = true;
            let Json::Array(part) = part else { break };
            if part.is_empty() {
                break;
            }
            rows.extend(part.into_iter().map(|mut row| {
                row["worker"] = worker.as_str().into();
                row
            }));
        }
    }
    match (is_there, of_realm) {
        (false, Some(name)) => Err(Refused::Here(format!("there is no realm '{name}'"))),
        _ => Ok(rows),
    }
}

/// On any worker that has it.
async fn close(
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
    Err(Refused::Here(format!("there is no session {session}")))
}
