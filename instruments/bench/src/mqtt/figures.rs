//! The names of figures that tables and goals share.

pub(super) const RATE: &str = "messages_per_s";
pub(super) const CPU: &str = "broker_cpu_us_per_message";
pub(super) const ACKNOWLEDGED: &str = "acknowledged_per_s";
pub(super) const CONNECTIONS: &str = "connections_per_s";
pub(super) const CONNECTION_CPU: &str = "broker_cpu_us_per_connection";
pub(super) const CLIENT_BYTES: &str = "pss_bytes_per_client";
