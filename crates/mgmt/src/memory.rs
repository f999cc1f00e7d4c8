//! The memory of the node, by RabbitMQ's categories.

use serde_json::{Map, Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::node;
use crate::process;
use crate::route::Unit;

/// RabbitMQ's categories without a counterpart here: processes, tables and code of Erlang.
const OF_ERLANG: [&str; 22] = [
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "connection_other",
    "queue_procs",
    "queue_slave_procs",
    "quorum_queue_procs",
    "quorum_queue_dlx_procs",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "plugins",
    "other_proc",
    "metrics",
    "mgmt_db",
    "mnesia",
    "quorum_ets",
    "other_ets",
    "msg_index",
    "code",
    "atom",
    "allocated_unused",
];

/// Messages in memory are `binary`, the rest of the process is `other_system`.
pub(crate) fn memory(call: &Call<'_>, asked: &str, unit: Unit) -> Answer {
    if asked != node::name(call.api) {
        return Answer::not_found();
    }
    let resident = process::resident_bytes();
    let messages = call.api.operators.broker().shared.flow.memory_bytes() as u64;
    let messages = messages.min(resident);
    let shown = |bytes: u64| match unit {
        Unit::Octets => bytes,
        Unit::Percent => (bytes * 100).div_ceil(resident.max(1)),
    };
    let mut memory: Map<String, Json> = OF_ERLANG
        .iter()
        .map(|name| ((*name).to_owned(), json!(0)))
        .collect();
    memory.insert("binary".to_owned(), json!(shown(messages)));
    memory.insert("other_system".to_owned(), json!(shown(resident - messages)));
    memory.insert("reserved_unallocated".to_owned(), json!(0));
    match unit {
        Unit::Octets => {
            memory.insert("strategy".to_owned(), json!("rss"));
            let total = json!({"erlang": resident, "rss": resident, "allocated": resident});
            memory.insert("total".to_owned(), total);
        }
        Unit::Percent => {
            memory.insert("total".to_owned(), json!(100));
        }
    }
    Answer::json(&json!({"memory": memory}))
}

/// The node has no tables of Erlang.
pub(crate) fn tables(call: &Call<'_>, asked: &str) -> Answer {
    match asked == node::name(call.api) {
        true => Answer::json(&json!({"ets_tables_memory": {}})),
        false => Answer::not_found(),
    }
}
