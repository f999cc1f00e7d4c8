//! A connection to NATS for commands.

use anyhow::bail;
use crosstie_jetstream::{Connection, Server, Speaking};

/// Connects to the first server that answers; each has a name for errors.
pub(crate) async fn dial(
    servers: impl IntoIterator<Item = (String, Server)>,
    speaking: &Speaking,
) -> anyhow::Result<Connection> {
    let mut failures = Vec::new();
    for (name, server) in servers {
        match Connection::dial(&server, speaking).await {
            Ok(connection) => return Ok(connection),
            Err(why) => failures.push(format!("{name}: {why}")),
        }
    }
    bail!("no NATS server is reached ({})", failures.join("; "))
}
