//! Arguments and results of procedures for replicated vhosts.

use std::path::PathBuf;
use std::time::Duration;

use crosstie_config::Json;
use crosstie_router::amqp::{Means, Moved, Recovered, ReplicatedStatus};
use serde_json::json;

use crate::management::errors::{self, Refusal};

/// Default and maximum deadline of a handover, in milliseconds.
const TIMEOUT_MS: u64 = 10_000;
const TIMEOUT_MS_MAX: u64 = 600_000;

/// Parses the deadline of a handover.
pub(super) fn timeout(ms: Option<u64>) -> Result<Duration, Refusal> {
    let ms = ms.unwrap_or(TIMEOUT_MS);
    match (1..=TIMEOUT_MS_MAX).contains(&ms) {
        true => Ok(Duration::from_millis(ms)),
        false => {
            let text = format!("expected 1 to {TIMEOUT_MS_MAX} as 'timeout_ms', got {ms}");
            Err(errors::invalid_argument(&text))
        }
    }
}

/// Parses the source of a recovery.
pub(super) fn means(from: &str, store: Option<String>) -> Result<Means, Refusal> {
    let store = store.map(PathBuf::from);
    let is_found = store.as_ref().is_none_or(|path| path.is_absolute());
    match (from, store) {
        ("log", None) => Ok(Means::Log),
        ("nothing", None) => Ok(Means::Nothing),
        ("store", store) if is_found => Ok(Means::Store(store)),
        ("store", Some(path)) => {
            let got = path.display();
            let text = format!("expected an absolute path as 'store', got '{got}'");
            Err(errors::invalid_argument(&text))
        }
        (from, _) => {
            let text = format!(
                "expected 'log', 'nothing', or 'store' (with one if any) as 'from', got '{from}'"
            );
            Err(errors::invalid_argument(&text))
        }
    }
}

pub(super) fn about_moved(vhost: &str, moved: &Moved) -> Json {
    json!({
        "vhost": vhost,
        "from": moved.from,
        "to": moved.to,
        "ms": moved.taken.as_millis() as u64,
        "paused_ms": moved.paused.as_millis() as u64,
    })
}

pub(super) fn about(vhost: &ReplicatedStatus) -> Json {
    json!({
        "name": vhost.name,
        "role": vhost.role,
        "owner": vhost.owner,
        "epoch": vhost.epoch,
        "entries": vhost.entries,
        "lag_entries": vhost.lag_entries,
        "waiting_bytes": vhost.waiting_bytes,
        "alarm": vhost.alarm,
    })
}

pub(super) fn about_recovered(vhost: &str, recovered: &Recovered) -> Json {
    json!({
        "vhost": vhost,
        "done": recovered.is_done,
        "wrong": recovered.wrong,
        "known": recovered.known,
        "first": recovered.found.0,
        "last": recovered.found.1,
        "unreadable": recovered.unreadable,
        "from": recovered.from,
        "exchanges": recovered.exchanges,
        "queues": recovered.queues,
        "bindings": recovered.bindings,
        "messages": recovered.messages,
        "settings": recovered.settings,
    })
}
