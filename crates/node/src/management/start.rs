//! The start of the management realm: its router, the controller's session, and every procedure.

use std::path::Path;
use std::sync::Arc;

use crosstie_client::{Client, Config, MatchPolicy, RegisterOptions, SubscribeOptions};
use crosstie_config::Json;
use crosstie_router::Audit;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::controller::Management;
use super::meta_api::{self, Bridged};
use super::procedures::{PROCEDURES, ask, worker_of};
use super::{publication, realm};
use crate::event::{Event, Events, SessionNews};
use crate::task::Task;

/// Maximum number of concurrent calls of one procedure; further ones wait.
const RUNNING_MAX: u32 = 16;

/// Maximum number of waiting events; further ones are dropped.
const PUBLICATIONS_MAX: usize = 1_024;

/// Starts the router, joins the realm, and registers every procedure.
pub(crate) async fn start(
    node: &str,
    socket: &Path,
    audit: Option<Arc<Audit>>,
    events: Events,
) -> Result<Management, String> {
    let router = realm::start(node, socket, audit)?;
    let url = format!("rs+unix://{}", socket.display());
    let mut config = Config::new(&url).map_err(|error| error.to_string())?;
    realm::NAME.clone_into(&mut config.realm);
    // The router is in this process, and lives as long as the client.
    config.ping_interval = None;
    let client = Client::connect(config)
        .await
        .map_err(|error| error.to_string())?;
    register(&client, &events).await?;
    let bridged = Bridged::default();
    meta_api::register(&client, &bridged).await?;
    let mut tasks = hear_hosts(&client, &events).await?;
    let (publications, to_publish) = mpsc::channel(PUBLICATIONS_MAX);
    tasks.push(Task::spawn(publication::publish(
        client.clone(),
        to_publish,
    )));
    Ok(Management {
        client,
        url,
        publications,
        bridged,
        _tasks: tasks,
        router,
    })
}

/// Registers the procedures: all requests are sent before the first answer is awaited.
async fn register(client: &Client, events: &Events) -> Result<(), String> {
    let mut registering = JoinSet::new();
    for procedure in PROCEDURES.iter().flat_map(|table| *table) {
        let (client, events) = (client.clone(), events.clone());
        registering.spawn(async move {
            let mut options = RegisterOptions::default();
            options.running_max = RUNNING_MAX;
            if procedure.is_of_workers() {
                options.match_policy = MatchPolicy::Wildcard;
            }
            let handler = move |invocation| ask(procedure, invocation, events.clone());
            let registered = client.register_with(procedure.uri, options, handler);
            registered.await.map(drop)
        });
    }
    while let Some(registered) = registering.join_next().await {
        let registered = registered.map_err(|error| error.to_string())?;
        registered.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads a worker's event, if it is well-formed.
type Reading = fn(worker: &str, details: &Json) -> Option<Event>;

/// Subscribes to the events of hosts of components.
async fn hear_hosts(client: &Client, events: &Events) -> Result<Vec<Task>, String> {
    let heard: [(&str, Reading); 6] = [
        ("on_worker_ready", ready),
        ("on_component_joined", |worker, details| {
            session(worker, details, SessionNews::Joined)
        }),
        ("on_component_ready", |worker, details| {
            session(worker, details, SessionNews::Ready)
        }),
        ("on_component_waiting", |worker, details| {
            let reason = details.get("reason").and_then(Json::as_str);
            let reason = reason.unwrap_or_default().to_owned();
            session(worker, details, SessionNews::Waiting(reason))
        }),
        ("on_component_stopped", |worker, details| {
            ended(worker, details, None)
        }),
        ("on_component_failed", |worker, details| {
            let reason = details.get("reason").and_then(Json::as_str);
            ended(worker, details, Some(reason.unwrap_or_default().to_owned()))
        }),
    ];
    let mut tasks = Vec::new();
    for (what, read) in heard {
        let mut options = SubscribeOptions::default();
        options.match_policy = MatchPolicy::Wildcard;
        let topic = format!("crossbar.worker..{what}");
        let subscribed = client.subscribe_with(&topic, options).await;
        let mut subscription = subscribed.map_err(|error| error.to_string())?;
        let events = events.clone();
        tasks.push(Task::spawn(async move {
            while let Some(event) = subscription.next().await {
                let worker = worker_of(&event.topic).unwrap_or_default();
                // Any client may publish here; malformed events are not from a host.
                let details = event.arguments.argument::<Json>(0).ok();
                if let Some(event) = details.and_then(|details| read(worker, &details)) {
                    let _ = events.send(event);
                }
            }
        }));
    }
    Ok(tasks)
}

fn ready(worker: &str, details: &Json) -> Option<Event> {
    let pid = details.get("pid")?.as_u64()?;
    Some(Event::Ready {
        worker: worker.to_owned(),
        pid: u32::try_from(pid).ok()?,
    })
}

fn session(worker: &str, details: &Json, news: SessionNews) -> Option<Event> {
    Some(Event::ComponentSession {
        worker: worker.to_owned(),
        component: details.get("id")?.as_str()?.to_owned(),
        news,
    })
}

fn ended(worker: &str, details: &Json, failure: Option<String>) -> Option<Event> {
    Some(Event::ComponentEnded {
        worker: worker.to_owned(),
        component: details.get("id")?.as_str()?.to_owned(),
        failure,
    })
}
