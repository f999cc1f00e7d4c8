//! Names of files in a cluster's directory.

/// The record, and a change that is being written.
pub(super) const RECORD: &str = "cluster.json";
pub(super) const PENDING: &str = "cluster.json.pending";

/// The operator's seed. No machine needs it.
pub(super) const SYSTEM: &str = "system.nk";

/// Files in the directories of servers and nodes.
pub(super) const AUTHORITIES: &str = "ca.pem";
pub(super) const CERTIFICATE: &str = "server.pem";
pub(super) const KEY: &str = "server.key";
pub(super) const SERVER_CONFIG: &str = "nats.conf";

/// The path of a file in the directory of a server or node.
pub(super) fn in_folder(folder: &str, file: &str) -> String {
    format!("{folder}/{file}")
}
