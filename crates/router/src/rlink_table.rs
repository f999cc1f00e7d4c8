//! The links of routers, on the status page.

use std::fmt::Write as _;

use crosstie_config::RLinkEndpoint;
use crosstie_front::markup::escaped;

use crate::rlink_state::RLinkStatus;

/// A table of links, each with its router's id; empty if there are none.
pub(crate) fn table<'r>(links: impl Iterator<Item = (&'r str, RLinkStatus)>) -> String {
    let mut rows = String::new();
    for (router, status) in links {
        let link = &status.link;
        let to = match &link.transport.endpoint {
            RLinkEndpoint::Unix { path } => path.clone(),
            RLinkEndpoint::Tcp { host, port, .. } => format!("{host}:{port}"),
        };
        let state = match (status.is_connected, &status.trouble) {
            (true, _) => "connected".to_owned(),
            (false, None) => "<strong>not connected</strong>".to_owned(),
            (false, Some(trouble)) => {
                format!("<strong>not connected</strong> {}", escaped(trouble))
            }
        };
        let [from_here, from_there] = status.calls;
        let both = |[here, there]: [usize; 2]| format!("{here} here, {there} there");
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{}<td>{} at {}<td>{state}<td>{}<td>{}<td>{from_here} from here, \
             {from_there} from there<td>{}",
            escaped(router),
            escaped(&status.realm),
            escaped(&link.id),
            escaped(&link.realm),
            escaped(&to),
            both(status.topics),
            both(status.procedures),
            status.queued_bytes
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<h2>Links</h2><div><table><tr><th>router<th>realm<th>link<th>to<th>state<th>mirrored topics\
             <th>procedures<th>open calls<th>bytes that wait{rows}</table></div>"
        ),
    }
}
