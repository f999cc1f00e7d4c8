//! The rows of the status page.

use std::fmt::Write as _;
use std::sync::Arc;

use crosstie_front::markup::escaped;

use super::seen::Seen;

/// The replicated vhosts: router, name, this node's role, and the owner.
pub fn page<'r>(vhosts: impl Iterator<Item = (&'r str, Arc<str>, Seen, String)>) -> String {
    let mut rows = String::new();
    for (router, name, seen, owner) in vhosts {
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(router),
            escaped(&name),
            seen.role.name(),
            escaped(&owner),
            escaped(&seen.server),
            seen.epoch,
            seen.log_bytes,
            seen.end.saturating_sub(seen.sequence),
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<h3>Replicated vhosts</h3><div><table><tr><th>router<th>vhost<th>this node<th>owner<th>NATS server\
             <th>epoch<th>bytes of the log<th>entries behind{rows}</table></div>"
        ),
    }
}
