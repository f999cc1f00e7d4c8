//! A running node, and the realm to query it in: shared by `stop`, `status` and `queues`.

mod place;
mod target;

use std::io::IsTerminal as _;
use std::time::Duration;

use crosstie_client::{Arguments, CallError, CallOptions, Client};
use serde_json::Value as Json;

pub(crate) use self::target::Target;
pub(crate) use place::{Place, embedded, locate, locate_if_any, reached};

/// Shows that a procedure has not answered yet, on a terminal.
async fn report_waiting(procedure: &str) {
    const EVERY: Duration = Duration::from_secs(5);
    if !std::io::stderr().is_terminal() {
        std::future::pending::<()>().await;
    }
    let what = procedure.rsplit('.').next().unwrap_or(procedure);
    for seconds in (1_u64..).map(|count| count * EVERY.as_secs()) {
        tokio::time::sleep(EVERY).await;
        complain!("{what}: {seconds} s so far");
    }
}

/// Calls a procedure that answers with one value.
pub(crate) async fn call(
    client: &Client,
    procedure: &str,
    arguments: Arguments,
) -> Result<Json, CallError> {
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_secs(30));
    let answer = client.call_with(procedure, arguments, options).await?;
    Ok(answer.argument(0).unwrap_or(Json::Null))
}

/// The same without a time limit, for procedures that answer when they are done.
pub(crate) async fn call_for_long(
    client: &Client,
    procedure: &str,
    arguments: Arguments,
) -> Result<Json, CallError> {
    let call = client.call(procedure, arguments);
    let answer = tokio::select! {
        answer = call => answer?,
        () = report_waiting(procedure) => return Ok(Json::Null),
    };
    Ok(answer.argument(0).unwrap_or(Json::Null))
}
