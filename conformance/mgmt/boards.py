"""Families that the Grafana boards 10991 (overview) and 11340 (Raft) read, and how they read them.

Every expression of both multiplies by `rabbitmq_identity_info` to select a cluster. Names are those
of the boards' revisions for RabbitMQ 3.10 and 4.
"""

from __future__ import annotations

# Read as they are.
GAUGES = (
    "rabbitmq_build_info",
    "rabbitmq_channel_consumers",
    "rabbitmq_channels",
    "rabbitmq_connections",
    "rabbitmq_consumers",
    "rabbitmq_disk_space_available_bytes",
    "rabbitmq_disk_space_available_limit_bytes",
    "rabbitmq_erlang_uptime_seconds",
    "rabbitmq_global_consumers",
    "rabbitmq_global_publishers",
    "rabbitmq_process_max_fds",
    "rabbitmq_process_max_tcp_sockets",
    "rabbitmq_process_open_fds",
    "rabbitmq_process_open_tcp_sockets",
    "rabbitmq_process_resident_memory_bytes",
    "rabbitmq_queue_messages_ready",
    "rabbitmq_queue_messages_unacked",
    "rabbitmq_queues",
    "rabbitmq_raft_commit_latency_seconds",
    "rabbitmq_raft_entry_commit_latency_seconds",
    "rabbitmq_resident_memory_limit_bytes",
)
# Read by their growth.
COUNTERS = (
    "rabbitmq_channels_closed_total",
    "rabbitmq_channels_opened_total",
    "rabbitmq_connections_closed_total",
    "rabbitmq_connections_opened_total",
    "rabbitmq_global_messages_acknowledged_total",
    "rabbitmq_global_messages_confirmed_total",
    "rabbitmq_global_messages_delivered_consume_auto_ack_total",
    "rabbitmq_global_messages_delivered_consume_manual_ack_total",
    "rabbitmq_global_messages_delivered_get_auto_ack_total",
    "rabbitmq_global_messages_delivered_get_manual_ack_total",
    "rabbitmq_global_messages_delivered_total",
    "rabbitmq_global_messages_get_empty_total",
    "rabbitmq_global_messages_received_confirm_total",
    "rabbitmq_global_messages_received_total",
    "rabbitmq_global_messages_redelivered_total",
    "rabbitmq_global_messages_routed_total",
    "rabbitmq_global_messages_unroutable_dropped_total",
    "rabbitmq_global_messages_unroutable_returned_total",
    "rabbitmq_message_size_bytes_sum",
    "rabbitmq_message_size_bytes_count",
    "rabbitmq_queues_created_total",
    "rabbitmq_queues_declared_total",
    "rabbitmq_queues_deleted_total",
    "rabbitmq_raft_commit_index",
    "rabbitmq_raft_log_commit_index",
    "rabbitmq_raft_term",
    "rabbitmq_raft_term_total",
)
# The classes of message sizes, as labels `le` of `rabbitmq_message_size_bytes_bucket`.
SIZES = ("100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "5e+07", "1e+08", "+Inf")
# The difference of two.
DIFFERENCES = (
    ("rabbitmq_disk_space_available_bytes", "rabbitmq_disk_space_available_limit_bytes"),
    ("rabbitmq_resident_memory_limit_bytes", "rabbitmq_process_resident_memory_bytes"),
    ("rabbitmq_process_max_fds", "rabbitmq_process_open_fds"),
    ("rabbitmq_raft_log_last_written_index", "rabbitmq_raft_log_commit_index"),
    ("rabbitmq_raft_last_written_index", "rabbitmq_raft_commit_index"),
    ("rabbitmq_raft_log_last_written_index", "rabbitmq_raft_log_snapshot_index"),
    ("rabbitmq_raft_last_written_index", "rabbitmq_raft_snapshot_index"),
)
# Labels of `rabbitmq_identity_info` and of `rabbitmq_build_info` that the boards show or select by.
IDENTITY = ("rabbitmq_node", "rabbitmq_cluster", "rabbitmq_endpoint")
BUILD = ("rabbitmq_version", "erlang_version")


def expressions(cluster: str) -> list[str]:
    """Return one for each way in which a panel reads a family."""
    selected = f'rabbitmq_cluster="{cluster}",rabbitmq_endpoint="aggregated"'
    identity = f"rabbitmq_identity_info{{{selected}}}"
    join = f"* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) {identity}"
    by_node = "by (rabbitmq_node)"
    found = [f"sum({name} {join}) {by_node}" for name in GAUGES]
    found += [f"sum(rate({name}[60s]) {join}) {by_node}" for name in COUNTERS]
    bucket = "rabbitmq_message_size_bytes_bucket"
    found += [f'sum(rate({bucket}{{le="{le}"}}[60s]) {join})' for le in SIZES]
    found += [f"sum(({one} {join}) - ({other} {join})) {by_node}" for one, other in DIFFERENCES]
    found += [f"count({identity})"]
    return found
