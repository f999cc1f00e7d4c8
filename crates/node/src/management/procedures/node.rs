//! Procedures of the node as a whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosstie_config::Json;
use serde_json::json;
use tracing::info;

use super::{Deferred, Procedure, date, later, now, seconds_since};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;
use crate::outcome::Outcome;
use crate::reload::ReloadOrder;
use crate::upgrade::{Times, UpgradeOrder};
use crate::workers::host_monitor::host_stats;

pub(super) static PROCEDURES: [Procedure; 10] = [
    now("crossbar.get_status", status),
    now("crossbar.get_public_key", public_key),
    now("crossbar.get_system_stats", system_stats),
    later("crossbar.reload", reload),
    later("crossbar.drain", drain),
    now("crossbar.undrain", undrain),
    later("crossbar.upgrade", upgrade),
    now("crossbar.get_log", log),
    now("crossbar.set_log_level", set_log_level),
    now("crossbar.shutdown", shutdown),
];

fn status(node: &mut Node, _: &Call) -> Answer {
    let mut by_type: BTreeMap<&str, usize> = BTreeMap::new();
    for worker in &node.workers {
        *by_type.entry(worker.kind()).or_default() += 1;
    }
    Ok(json!({
        "type": "node",
        "id": node.id,
        "title": node.title,
        "version": node.version,
        "pid": std::process::id(),
        "directory": node.place.directory,
        "public_key": node.public_key,
        "started": date(node.since),
        "uptime": seconds_since(node.since),
        "admin_urls": node.admin_urls,
        "console_urls": node.console_urls,
        "ready": node.is_ready(),
        "draining": node.drain.is_some(),
        "shutdown_requested": node.is_ending(),
        "workers_by_type": by_type,
    }))
}

fn public_key(node: &mut Node, _: &Call) -> Answer {
    let key = node.public_key.as_ref();
    key.map(|key| Json::from(key.as_str()))
        .ok_or_else(|| errors::no_such_object("the node has no key"))
}

fn set_log_level(node: &mut Node, call: &Call) -> Answer {
    let level: String = call.required(0, "level")?;
    let for_ms: Option<u64> = call.optional(1, "for_ms")?;
    let within = for_ms.map(Duration::from_millis);
    let former = node.log.change(&level, within)?;
    if within.is_none() {
        // Python children that start later follow.
        node.place.loglevel.clone_from(&level);
    }
    Ok(json!({ "level": level, "former": former, "for_ms": for_ms }))
}

/// Lines of an answer.
const LOG_LINES_MAX: usize = 1_000;

fn log(node: &mut Node, call: &Call) -> Answer {
    let after: Option<u64> = call.optional(0, "after")?;
    let limit: Option<usize> = call.optional(1, "limit")?;
    let limit = limit.unwrap_or(100).min(LOG_LINES_MAX);
    let lines = node.log.lines(after, limit)?.into_iter();
    let about = |(number, level, text)| json!({"number": number, "level": level, "text": text});
    Ok(lines.map(about).collect())
}

fn system_stats(_: &mut Node, _: &Call) -> Answer {
    Ok(host_stats())
}

fn reload(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let order = || {
        let is_dry: Option<bool> = call.optional(0, "dry_run")?;
        let is_partial: Option<bool> = call.optional(1, "partial")?;
        Ok((is_dry.unwrap_or(false), is_partial.unwrap_or(false)))
    };
    match order() {
        Ok((is_dry, is_partial)) => {
            node.handle_reload(ReloadOrder {
                is_dry,
                is_partial,
                reply: Some(reply),
            });
            Ok(())
        }
        Err(error) => Err((reply, error)),
    }
}

fn drain(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let times = || {
        Ok((
            milliseconds(call, 0, "over_ms")?,
            milliseconds(call, 1, "grace_ms")?,
        ))
    };
    match times() {
        Ok((over, grace)) => {
            node.drain(grace.unwrap_or(GRACE), over.unwrap_or(OVER), reply);
            Ok(())
        }
        Err(error) => Err((reply, error)),
    }
}

/// The defaults of a drain's times.
const GRACE: Duration = Duration::from_secs(5);
const OVER: Duration = Duration::from_secs(30);

/// Maximum of both, in milliseconds: a day.
const MS_MAX: i64 = 24 * 60 * 60 * 1000;

fn milliseconds(call: &Call, index: usize, name: &str) -> Result<Option<Duration>, Refusal> {
    let given: Option<i64> = call.optional(index, name)?;
    let Some(given) = given else {
        return Ok(None);
    };
    match u64::try_from(given) {
        Ok(ms) if given <= MS_MAX => Ok(Some(Duration::from_millis(ms))),
        _ => {
            let text = format!("argument {index}, '{name}': expected 0 to {MS_MAX}, got {given}");
            Err(errors::invalid_argument(&text))
        }
    }
}

fn undrain(node: &mut Node, _: &Call) -> Answer {
    node.undrain()
}

fn upgrade(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let arguments = || {
        let program: String = call.required(0, "program")?;
        if !Path::new(&program).is_absolute() {
            let text = format!("argument 0, 'program': expected an absolute path, got '{program}'");
            return Err(errors::invalid_argument(&text));
        }
        let over = milliseconds(call, 1, "over_ms")?.unwrap_or(UPGRADE_OVER);
        let timeout = milliseconds(call, 2, "timeout_ms")?.unwrap_or(UPGRADE_TIMEOUT);
        Ok((PathBuf::from(program), Times { over, timeout }))
    };
    match arguments() {
        Ok((program, times)) => {
            node.upgrade(UpgradeOrder {
                program,
                times,
                reply,
            });
            Ok(())
        }
        Err(error) => Err((reply, error)),
    }
}

/// The defaults of an upgrade's times.
const UPGRADE_OVER: Duration = Duration::from_secs(1);
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(30);

fn shutdown(node: &mut Node, _: &Call) -> Answer {
    if node.is_ending() {
        return Err(errors::ending());
    }
    info!("Shutdown requested in the management realm, shutting down.");
    // The answer is sent before the realm ends with the last router.
    node.begin_end(Outcome::Orderly);
    Ok(json!({"id": node.id, "pid": std::process::id()}))
}
