//! `crosstie trace`: the messages of one session or AMQP connection of a running node.

use std::process::ExitCode;
use std::time::Duration;

use crosstie_client::args;
use crosstie_terminal::duration::duration;
use crosstie_terminal::output::print_line;
use crosstie_terminal::signals::Signals;
use serde_json::Value as Json;

use crate::list::harmless;
use crate::management::Place;
use crate::queues::kill::worker_with_connection;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Print the messages of a WAMP session or an AMQP connection as lines of JSON.
///
/// The trace ends at the first of its bounds, at the end of the session, and with this command: if the command is killed, the
/// node ends the trace within 10 seconds. Keys such as `ticket`, `token` and `password` are redacted, positional arguments
/// and bodies that are not JSON are not. A session over HTTP long-poll cannot be traced.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number in the lists of `crosstie sessions` and `crosstie connections`.
    #[arg(value_name = "SESSION|CONNECTION")]
    id: u64,
    /// End after that many messages.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    messages: u64,
    /// End after that many bytes of lines.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    bytes: u64,
    /// End after that time.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = duration)]
    within: Duration,
    /// Show arguments, properties and bodies, too.
    #[arg(long)]
    payload: bool,
    /// Worker; by default all.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// A new message is seen within this time.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    wait_for(async {
        // Before the trace begins, which a signal shall end.
        let mut signals = Signals::catch()?;
        let target = arguments.place.target()?;
        let realm = ManagementRealm::join(&target, arguments.worker.clone()).await?;
        let told = match begin(&realm, arguments).await {
            Ok((trace, what)) => {
                complain!("crosstie: the trace of {what} has begun");
                follow(&realm, trace, &mut signals).await?
            }
            Err(refused) => Err(refused),
        };
        realm.leave().await;
        match told {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(refused) => refused.told(),
        }
    })
}

/// Begins the trace on the worker that has such a session or connection; returns its number, and the traced object.
async fn begin(realm: &ManagementRealm, arguments: &Arguments) -> Result<(u64, String), Refused> {
    let Arguments {
        id,
        messages,
        bytes,
        within,
        payload,
        ..
    } = arguments;
    let seconds = within.as_millis().div_ceil(1_000).max(1);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    let options = || args![*id, *messages, *bytes, seconds, *payload];
    let number = |begun: Json| begun["trace"].as_u64().unwrap_or_default();
    for worker in realm.routers().await? {
        let procedure = format!("crossbar.worker.{worker}.trace_router_session");
        match realm.call(&procedure, options()).await {
            Ok(begun) => return Ok((number(begun), format!("session {id} of worker {worker}"))),
            Err(refused) if refused.is_no_such_object() => {}
            Err(refused) => return Err(refused),
        }
    }
    let worker = worker_with_connection(realm, *id).await?;
    let procedure = format!("crossbar.worker.{worker}.trace_amqp_connection");
    let begun = realm.call(&procedure, options()).await?;
    let what = format!("connection {id} of worker {worker}");
    Ok((number(begun), what))
}

async fn follow(
    realm: &ManagementRealm,
    trace: u64,
    signals: &mut Signals,
) -> anyhow::Result<Result<(), Refused>> {
    loop {
        let part = match realm.call("crossbar.read_trace", args![trace]).await {
            Ok(part) => part,
            Err(refused) => return Ok(Err(refused)),
        };
        let lines = part["lines"].as_array().map_or(&[][..], Vec::as_slice);
        for line in lines {
            let line = line.as_str().unwrap_or_default().to_owned();
            if !print_line(&harmless(line))? {
                // The output is closed.
                let _ = realm.call("crossbar.end_trace", args![trace]).await;
                return Ok(Ok(()));
            }
        }
        if let Some(why) = part["ended"].as_str() {
            match part["missing"].as_u64().unwrap_or_default() {
                0 => {}
                missing => complain!("crosstie: the last {missing} messages are missing"),
            }
            complain!("crosstie: the trace has ended: {}", told(why));
            return Ok(Ok(()));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN_AFTER) => {}
            _ = signals.next() => {
                let _ = realm.call("crossbar.end_trace", args![trace]).await;
                return Ok(Ok(()));
            }
        }
    }
}

/// The reasons of the node in words.
fn told(why: &str) -> &str {
    match why {
        "messages" => "as many messages as --messages",
        "bytes" => "as many bytes as --bytes",
        "time" => "the time of --for is over",
        "closed" => "the session or connection has ended",
        other => other,
    }
}
