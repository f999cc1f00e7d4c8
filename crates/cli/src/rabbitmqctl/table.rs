//! All commands.

use super::command::Command;
use super::{
    bounds, checks, connections, definitions, limits, lists, node, parameters, permissions,
    policies, queues, users, vhosts,
};

/// All commands.
pub(super) static COMMANDS: [&[Command]; 13] = [
    &users::COMMANDS,
    &vhosts::COMMANDS,
    &permissions::COMMANDS,
    &policies::COMMANDS,
    &parameters::COMMANDS,
    &limits::COMMANDS,
    &bounds::COMMANDS,
    &lists::COMMANDS,
    &queues::COMMANDS,
    &connections::COMMANDS,
    &node::COMMANDS,
    &checks::COMMANDS,
    &definitions::COMMANDS,
];

/// Commands of RabbitMQ 3.10 that are refused by name.
pub(super) static OTHERS: [&str; 52] = [
    "autocomplete",
    "await_online_nodes",
    "cancel_sync_queue",
    "certificates",
    "change_cluster_node_type",
    "cipher_suites",
    "command_line_arguments",
    "consume_event_stream",
    "decode",
    "disable_auth_attempt_source_tracking",
    "discover_peers",
    "enable_auth_attempt_source_tracking",
    "encode",
    "environment",
    "erlang_cookie_hash",
    "erlang_cookie_sources",
    "erlang_version",
    "eval_file",
    "exec",
    "force_boot",
    "force_gc",
    "force_reset",
    "forget_cluster_node",
    "hipe_compile",
    "join_cluster",
    "list_ciphers",
    "list_hashes",
    "list_network_interfaces",
    "list_unresponsive_queues",
    "log_location",
    "log_tail",
    "log_tail_stream",
    "maybe_stuck",
    "memory_breakdown",
    "observer",
    "os_env",
    "remote_shell",
    "rename_cluster_node",
    "report",
    "reset",
    "reset_node_auth_attempt_metrics",
    "resolve_hostname",
    "resolver_info",
    "resume_listeners",
    "rotate_logs",
    "runtime_thread_stats",
    "schema_info",
    "set_log_level",
    "suspend_listeners",
    "sync_queue",
    "tls_versions",
    "update_cluster_nodes",
];

/// The next step in the place of some of them.
pub(super) static INSTEAD: [(&str, &str); 2] = [("force_reset", RESET), ("reset", RESET)];

/// A configuration names most users and vhosts here, so that no command makes a node as new.
const RESET: &str = "It would delete all messages, queues and users of the store. End the node with `rabbitmqctl stop`, \
                     move the directory away that `rabbitmqctl status` calls the node data directory, and start the node";
