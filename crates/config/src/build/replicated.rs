//! Replicated vhosts.

use std::net::SocketAddr;

use super::Builder;
use crate::model::{Elsewhere, NodesTls, Replicated};
use crate::plain::Section;
use crate::problem::Problem;
use crate::tree::Value;
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
            self.warn(replicated, "monitor", why);
        }
        for monitor in replicated.items("monitor") {
            if let Value::Text(url) = &monitor.value
                && has_path(url)
            {
                let why = format!(
                    "\"monitor\": expected http://host:port without a path (the node asks for /jsz), found {url:?}"
                );
                self.problems.push(Problem::error(monitor.span, why));
            }
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
            tls: replicated.object("tls").map(NodesTls::read),
            elsewhere: self.elsewhere(replicated),
            is_kept_locally: replicated.boolean("keep_local"),
            monitor: replicated.texts("monitor").map(str::to_owned).collect(),
        }
    }

    /// The handling of clients of a vhost that another node owns, and checks of the addresses and TLS that it needs.
    fn elsewhere(&mut self, replicated: View<'_>) -> Elsewhere {
        let splices = replicated.text("elsewhere") == Some("splice");
        let has_tls = replicated.object("tls").is_some();
        let is_plain = replicated.boolean("plain");
        if !splices {
            for key in ["tls", "plain"] {
                if replicated.given(key).is_some() {
                    let why = format!("{key:?} has no effect without \"elsewhere\": \"splice\"");
                    self.warn(replicated, key, why);
                }
            }
            return Elsewhere::Refuse;
        }
        let address = replicated.text("address");
        let parsed = address.and_then(|address| address.parse::<SocketAddr>().ok());
        let wrong = match (address, parsed) {
            (None, _) => Some((
                "elsewhere",
                "\"splice\" needs an \"address\", where other nodes pass their clients on to this one",
            )),
            (Some(address), None) if is_address(address) => Some((
                "address",
                "expected an IP address and a port: with \"splice\" the node listens there",
            )),
            (_, Some(at)) if !has_tls && !is_plain && !at.ip().is_loopback() => Some((
                "address",
                "clients would be passed on to other machines without TLS: give \"tls\", or \"plain\": true where nobody \
                 else is on the network",
            )),
            (_, Some(_)) if has_tls && is_plain => {
                Some(("plain", "expected either \"tls\" or \"plain\""))
            }
            _ => None,
        };
        if let Some((key, why)) = wrong {
            self.error(replicated, key, why);
        }
        Elsewhere::Splice
    }
}

/// Whether the text names a host and a port.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (is_bracketed || !host.contains([':', '[', ']', '/', ' ']));
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Whether an HTTP URL has more than a host and a port.
fn has_path(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    authority
        .split_once(['/', '?', '#'])
        .is_some_and(|(_, path)| !path.is_empty())
}
