//! Vhosts that survive their machine.

use super::Builder;
use crate::model::{Elsewhere, Replicated};
use crate::problem::Problem;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn replicated(&mut self, replicated: View<'_>) -> Replicated {
        let (urls, credentials, ca_certificates) = self.nats(replicated.section("nats"));
        let address = replicated.text("address");
        if let Some(address) = address
            && !is_address(address)
        {
            let at = replicated.span_of("address");
            let why = "expected host:port, with an IPv6 address in brackets";
            self.problems.push(Problem::error(at, why.into()));
        }
        if replicated.integer("replicas") == Some(1) {
            let at = replicated.span_of("replicas");
            let why =
                "one server has the vhost's journal: what was confirmed is gone when its disk is";
            self.problems.push(Problem::warning(at, why.into()));
        }
        if replicated.items("monitor").is_empty() {
            let why = "\"monitor\" names no server: that servers write what they acknowledge to the disk at once \
                       (sync_interval: always) is not checked";
            let at = replicated.span_of("monitor");
            self.problems.push(Problem::warning(at, why.into()));
        }
        Replicated {
            urls,
            credentials,
            ca_certificates,
            replicas: match replicated.integer("replicas") {
                Some(1) => 1,
                _ => 3,
            },
            is_standby_warm: replicated.text("standby") != Some("cold"),
            address: address.map(str::to_owned),
            elsewhere: Elsewhere::Refuse,
            is_kept_locally: replicated.boolean("keep_local"),
            monitor: replicated.texts("monitor").map(str::to_owned).collect(),
        }
    }
}

/// Whether that names a host and a port, as a client would connect to.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (is_bracketed || !host.contains([':', '[', ']', '/', ' ']));
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}
