//! Procedures of router workers: their realms that span several nodes.

use std::collections::BTreeMap;

use crosstie_router::FabricStatus;
use serde_json::json;

use super::router::router;
use super::{Procedure, now};
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 1] = [now("crossbar.worker..get_fabric_realms", realms)];

fn realms(node: &mut Node, call: &Call) -> Answer {
    let realms = router(node, call)?.router.fabric_realms();
    Ok(realms.iter().map(about).collect())
}

fn about(realm: &FabricStatus) -> crosstie_config::Json {
    let nodes = realm.nodes.iter().map(|other| {
        json!({
            "node": other.node,
            "server": other.server,
            "state": other.state,
            "silent_ms": other.silent_ms,
            "paired": other.is_paired,
        })
    });
    let resets: BTreeMap<_, _> = realm.resets.iter().copied().collect();
    json!({
        "realm": realm.realm,
        "state": realm.state,
        "server": realm.server,
        "troubles": realm.troubles,
        "nodes": nodes.collect::<Vec<_>>(),
        "calls": realm.calls,
        "registrations": realm.registrations,
        "queued_bytes": realm.queued_bytes,
        "dropped": realm.dropped,
        "barriers": realm.barriers,
        "barrier_us": realm.barrier_us,
        "resets": resets,
    })
}
