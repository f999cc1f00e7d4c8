//! A running node, and the realm to query it in: shared by `stop`, `status` and `queues`.

mod place;

use std::time::Duration;

use anyhow::Context;
use crosstie_client::{Arguments, CallError, CallOptions, Client, Config};
use serde_json::Value as Json;

pub(crate) use place::{Place, embedded, locate, locate_if_any, reached};

/// Enters the management realm at `url`.
pub(crate) async fn join(url: &str) -> anyhow::Result<Client> {
    let mut config = Config::new(url)?;
    config.realm = "crossbar".into();
    let connected = Client::connect(config).await;
    connected.with_context(|| format!("cannot reach the node's management realm at {url}"))
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
    let answer = client.call(procedure, arguments).await?;
    Ok(answer.argument(0).unwrap_or(Json::Null))
}
