//! `crosstie wait-for`: waits for a procedure, a queue or a node, so that scripts need no sleep.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Subcommand};
use crosstie_amqp_client::{ConnectionError, TransportUrl};
use crosstie_client::{CallError, Client, args};
use crosstie_terminal::duration::duration;
use serde_json::Value as Json;

use crate::amqp::messages::broker_url;
use crate::context::Choice;
use crate::management::{self, Place};
use crate::pull::side::{Depth, Side};
use crate::wait_for;
use crate::wamp_arguments::{Connection, Refused};

/// Wait for a procedure, a queue or a node.
///
/// An address that nothing serves yet is tried again. The exit code is 1 if the time is over, or if a login is refused.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Maximum wait: 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, global = true)]
    timeout: Duration,
}

#[derive(Subcommand)]
enum What {
    /// Wait until a call of a procedure finds a callee. The session needs the right to call wamp.registration.match.
    Procedure {
        /// URI of the procedure.
        procedure: String,
        #[command(flatten)]
        connection: Box<Connection>,
    },
    /// Wait until a queue of a broker exists.
    Queue {
        /// Name of the queue.
        queue: String,
        /// Wait also for this number of ready messages.
        #[arg(long, value_name = "N", default_value_t = 0)]
        messages: u64,
        /// Wait also for this number of consumers.
        #[arg(long, value_name = "N", default_value_t = 0)]
        consumers: u32,
        /// Broker, as amqp://USER:PASSWORD@HOST:PORT/VHOST; by default that of the context, or this machine's port 5672
        /// as guest.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        #[command(flatten)]
        context: Choice,
    },
    /// Wait until a node runs and every part of its configuration has started.
    Ready(Place),
}

/// The answer of one look.
enum Look {
    Found,
    NotYet(String),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut patience = Patience::new(arguments.timeout);
    match arguments.what {
        What::Procedure {
            procedure,
            connection,
        } => wait_for(async {
            connection.check()?;
            let mut client = None;
            patience
                .wait(async || has_callee(&connection, &mut client, &procedure).await)
                .await
        }),
        What::Queue {
            queue,
            messages,
            consumers,
            url,
            context,
        } => {
            let chosen = match url {
                Some(_) => None,
                None => context.resolve()?,
            };
            let wanted = Arc::new(Wanted {
                url: broker_url(url.as_deref(), chosen.as_ref())?,
                queue,
                messages,
                consumers,
            });
            let mut opened = None;
            wait_for(patience.wait(async || {
                let (wanted, before) = (Arc::clone(&wanted), opened.take());
                // The client for AMQP blocks, perhaps for longer than the time that is left.
                let look = tokio::task::spawn_blocking(move || wanted.look(before));
                let (now, found) = look.await?;
                opened = now;
                found
            }))
        }
        What::Ready(place) => wait_for(patience.wait(async || is_ready(&place).await)),
    }
}

/// The time that is left, and the pauses in it.
struct Patience {
    end: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Patience {
    const PAUSE_MAX: Duration = Duration::from_secs(1);

    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            end: now.checked_add(timeout).unwrap_or(now),
            timeout,
            pause: Duration::from_millis(20),
        }
    }

    /// Looks until the answer is `Found`. An error ends the wait.
    async fn wait(
        &mut self,
        mut look: impl AsyncFnMut() -> anyhow::Result<Look>,
    ) -> anyhow::Result<ExitCode> {
        let mut is_told = !std::io::stderr().is_terminal();
        let mut last = "there was no answer".to_owned();
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            if let Ok(found) = tokio::time::timeout(left, look()).await {
                match found? {
                    Look::Found => return Ok(ExitCode::SUCCESS),
                    Look::NotYet(why) => last = why,
                }
            }
            let left = self.end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                complain!("crosstie: not within {:?}: {last}", self.timeout);
                return Ok(ExitCode::FAILURE);
            }
            if !is_told {
                is_told = true;
                complain!("waiting: {last}");
            }
            tokio::time::sleep(self.pause.min(left)).await;
            self.pause = (self.pause * 2).min(Self::PAUSE_MAX);
        }
    }
}

async fn has_callee(
    connection: &Connection,
    client: &mut Option<Client>,
    procedure: &str,
) -> anyhow::Result<Look> {
    let joined = match client {
        Some(client) => client,
        None => match connection.connect().await {
            Ok(joined) => client.insert(joined),
            Err(error) if error.is::<Refused>() => return Err(error),
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        },
    };
    match management::call(joined, "wamp.registration.match", args![procedure]).await {
        Ok(Json::Null) => Ok(Look::NotYet(format!(
            "no callee has registered {procedure}"
        ))),
        Ok(_) => Ok(Look::Found),
        Err(CallError::Application(error)) => bail!(
            "{error}: the session needs the right to call wamp.registration.match; `crosstie call {procedure}` needs none"
        ),
        Err(error) => {
            *client = None;
            Ok(Look::NotYet(error.to_string()))
        }
    }
}

/// Access refused (section 1.2 of the specification).
const ACCESS_REFUSED: u16 = 403;

/// A queue that is awaited.
struct Wanted {
    url: TransportUrl,
    queue: String,
    messages: u64,
    consumers: u32,
}

impl Wanted {
    /// Looks through that connection, or a new one. Returns the connection for the next look.
    fn look(&self, before: Option<Side>) -> (Option<Side>, anyhow::Result<Look>) {
        let opened = before.map_or_else(|| Side::open(&self.url, "crosstie wait-for"), Ok);
        let looked = opened.and_then(|mut side| {
            let depth = side.depth(&self.queue)?;
            Ok((side, depth))
        });
        match looked {
            Ok((side, depth)) => (Some(side), Ok(self.judge(depth))),
            Err(
                error @ (ConnectionError::Closed {
                    code: ACCESS_REFUSED,
                    ..
                }
                | ConnectionError::ChannelClosed {
                    code: ACCESS_REFUSED,
                    ..
                }),
            ) => (None, Err(Refused(error.to_string()).into())),
            Err(error @ ConnectionError::ChannelClosed { .. }) => (None, Err(error.into())),
            Err(error) => (None, Ok(Look::NotYet(error.to_string()))),
        }
    }

    fn judge(&self, found: Option<Depth>) -> Look {
        let queue = &self.queue;
        match found {
            None => Look::NotYet(format!("there is no queue '{queue}'")),
            Some(depth) if depth.messages < self.messages || depth.consumers < self.consumers => {
                Look::NotYet(format!(
                    "queue '{queue}' has {} ready messages and {} consumers",
                    depth.messages, depth.consumers
                ))
            }
            Some(_) => Look::Found,
        }
    }
}

async fn is_ready(place: &Place) -> anyhow::Result<Look> {
    // A wrong context does not become right by waiting.
    place.chosen()?;
    let asked = async {
        let client = place.target()?.join_once().await?;
        let status = management::call(&client, "crossbar.get_status", args![]).await;
        client.leave().await;
        Ok::<_, anyhow::Error>(status?)
    };
    Ok(match asked.await {
        // A node of an earlier release does not say it.
        Ok(status) if status["ready"] != false => Look::Found,
        Ok(_) => Look::NotYet("the node is starting".to_owned()),
        Err(error) if error.is::<Refused>() => return Err(error),
        Err(error) => Look::NotYet(crate::chain(&error)),
    })
}
