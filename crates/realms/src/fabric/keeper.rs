//! Keeps a realm's port connected: dials one server after another, and again after a loss.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config as model;
use crosstie_front::seed::seed;
use crosstie_jetstream::{Greeting, LINE_BYTES_MAX, LoginFiles};
use crosstie_nats::Limits;
use crosstie_routing::Position;
use crosstie_transport::{Connection, ConnectionLimits, pump, uncork};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::dial::{DIAL_TIMEOUT, Speaking, dial};
use super::exclusive_grants;
use super::reader::{Denials, Reading};
use crate::fabric::port::{FabricPort, QUEUE_BYTES_MAX};
use crate::realm::SharedRealm;

/// Pause between two rounds over all servers: the first, and the longest.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Pause after a server has denied a necessary permission, which an operator must grant.
const DENIED_WAIT: Duration = Duration::from_secs(2);

/// Interval of the member's timer.
const TICK: Duration = Duration::from_millis(100);

/// Reads the files for a port's connections.
pub fn speaking(
    settings: &model::Fabric,
    directory: &Path,
    limits: &ConnectionLimits,
) -> io::Result<Speaking> {
    let (credentials, authorities) = (settings.credentials.as_deref(), &settings.ca_certificates);
    let asking = settings.strict_replicas.map(|_| {
        let read = crosstie_jetstream::Speaking::read(credentials, authorities, directory);
        read.map(|read| crosstie_jetstream::Speaking {
            silence_max: exclusive_grants::SILENCE_MAX,
            ..read
        })
    });
    Ok(Speaking {
        asking: asking.transpose()?,
        login: LoginFiles::read(credentials, authorities, directory)?,
        limits: Arc::new(ConnectionLimits {
            queue_bytes_max: QUEUE_BYTES_MAX,
            stall_max: limits.stall_max,
            message_max: limits.message_max,
            bytes_per_second_min: limits.bytes_per_second_min,
            account: Arc::clone(&limits.account),
        }),
    })
}

/// Keeps the port connected until it is stopped. Needs a runtime with timers; `serving` reads the connection.
pub async fn keep(
    port: Arc<FabricPort>,
    realm: Arc<SharedRealm>,
    speaking: Speaking,
    serving: Handle,
) {
    let ticking = tick(Arc::clone(&port), Arc::clone(&realm));
    let dialling = dial_on(&port, &realm, &speaking, &serving);
    let granting = exclusive_grants::keep(&port, &realm, &speaking);
    tokio::join!(ticking, dialling, granting);
}

async fn tick(port: Arc<FabricPort>, realm: Arc<SharedRealm>) {
    let mut told = Position(0);
    while !port.is_stopped() {
        tokio::time::sleep(TICK).await;
        let reached = port.tick();
        realm.handle_changes();
        if port.settings.strict_replicas.is_some() {
            realm.end_lease();
        }
        if reached > told {
            told = reached;
            realm.handle_in_force(reached);
        }
        uncork();
    }
}

async fn dial_on(
    port: &Arc<FabricPort>,
    realm: &Arc<SharedRealm>,
    speaking: &Speaking,
    serving: &Handle,
) {
    let urls = &port.settings.urls;
    let mut wait = WAIT_MIN;
    let mut is_told = false;
    // Nodes start with different servers, so that they spread over all.
    let mut next = seed() as usize % urls.len().max(1);
    while !port.is_stopped() {
        let mut failures = Vec::new();
        for _ in 0..urls.len() {
            let url = &urls[next % urls.len()];
            let at = format!("{}:{}", url.host, url.port);
            let served = match dial(url, speaking).await {
                Ok(dialled) => serve(port, realm, dialled, serving).await,
                Err(why) => Err(why),
            };
            match served {
                Ok(lost) => {
                    let Lost {
                        server,
                        why,
                        is_denied,
                        had,
                    } = lost;
                    port.note_lost(&why, is_denied);
                    if port.is_stopped() {
                        return;
                    }
                    is_told = false;
                    // A connection that is lost again and again is dialled with growing pauses.
                    if had > WAIT_MAX {
                        wait = WAIT_MIN;
                    }
                    let realm = &port.realm;
                    tracing::warn!(
                        "Realm '{realm}': NATS server '{server}' at {at} is lost: {why}"
                    );
                    if is_denied {
                        tokio::time::sleep(DENIED_WAIT).await;
                    }
                }
                Err(why) => failures.push(format!("{at}: {why}")),
            }
            next = next.wrapping_add(1);
            if port.is_stopped() {
                return;
            }
        }
        if failures.len() == urls.len() && !is_told {
            is_told = true;
            let (realm, failures) = (&port.realm, failures.join("; "));
            port.note_lost(&failures, false);
            tracing::warn!("Realm '{realm}': no NATS server is reached ({failures}); trying on");
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// A connection that the port had.
struct Lost {
    server: String,
    why: String,
    /// For lack of permissions.
    is_denied: bool,
    had: Duration,
}

/// Has a connection be the port's, from the server's first PONG until it ends; or why that has not come.
async fn serve(
    port: &Arc<FabricPort>,
    realm: &Arc<SharedRealm>,
    (connection, greeting): (Arc<Connection>, Greeting),
    serving: &Handle,
) -> Result<Lost, String> {
    let (attached, attaching) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    let server = greeting.name.clone();
    let mut reading = Reading {
        port: Arc::clone(port),
        realm: Arc::clone(realm),
        connection: Arc::clone(&connection),
        limits: Limits {
            line_bytes_max: LINE_BYTES_MAX,
            message_bytes_max: greeting.payload_bytes_max,
        },
        greeting,
        attached: Some(attached),
        reached: Position(0),
        error: None,
        is_denied: false,
        refuses: false,
        denials: Denials::default(),
    };
    let kept = Arc::clone(&connection);
    serving.spawn(async move {
        uncork();
        let why = pump(&connection, &mut reading).await;
        connection.close();
        let was_attached = reading.attached.is_none();
        let _ = ended.send((reading.why(&why), reading.is_denied, was_attached));
    });
    let is_late = tokio::time::timeout(DIAL_TIMEOUT, attaching).await.is_err();
    if is_late {
        kept.close();
    }
    let begun = Instant::now();
    let (why, is_denied, was_attached) = end.await.unwrap_or_default();
    if !was_attached {
        return Err(match is_late {
            true => "no answer to CONNECT in 3 s".to_owned(),
            false => why,
        });
    }
    let reached = port.detach();
    realm.handle_changes();
    realm.handle_in_force(reached);
    uncork();
    Ok(Lost {
        server,
        why,
        is_denied,
        had: begun.elapsed(),
    })
}
