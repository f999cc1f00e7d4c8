//! Lists of addresses and networks.

use std::net::IpAddr;

use super::Builder;
use crate::catalogue::network;
use crate::model::ProxyProtocol;
use crate::problem::Problem;
use crate::view::View;

/// The word for the clients of a Unix socket.
const UNIX: &str = "unix";

impl Builder<'_> {
    /// The networks of a list, with the lengths of their prefixes.
    pub(super) fn networks(&mut self, object: View<'_>, key: &str) -> Vec<(IpAddr, u8)> {
        let mut networks = Vec::new();
        let items = object.items(key).iter();
        for (item, text) in items.zip(object.texts(key)) {
            let Some((address, bits)) = network(text) else {
                continue;
            };
            let written = text
                .split('/')
                .next()
                .and_then(|written| written.parse().ok());
            if written != Some(address) {
                let message = format!(
                    "{text} is no network, for bits behind its prefix are set; it is taken to be {address}/{bits}"
                );
                self.problems.push(Problem::warning(item.span, message));
            }
            networks.push((address, bits));
        }
        networks
    }

    /// The proxies of an endpoint.
    pub(super) fn proxies(&mut self, endpoint: View<'_>) -> Option<ProxyProtocol> {
        let proxies = endpoint.object("proxy_protocol")?;
        let from = self.networks(proxies, "from");
        let from_unix = proxies.texts("from").any(|text| text == UNIX);
        let useless = match endpoint.text("type") {
            Some("unix") if !from.is_empty() => {
                Some("a Unix socket has no clients with an IP address: \"unix\" means its clients")
            }
            Some("tcp") if from_unix => Some("\"unix\" means the clients of a Unix socket"),
            _ => None,
        };
        if let Some(useless) = useless {
            self.error(proxies, "from", useless.to_owned());
        }
        if from.iter().any(|(_, bits)| *bits == 0) {
            let message =
                "every client may state any address: limits and delays by address hold nobody";
            self.warn(proxies, "from", message);
        }
        Some(ProxyProtocol { from, from_unix })
    }

    /// Refuses proxies at a listener that reads no header.
    pub(super) fn refuse_proxies(&mut self, transport: View<'_>) {
        let endpoint = transport.object("endpoint");
        if let Some(endpoint) =
            endpoint.filter(|endpoint| endpoint.given("proxy_protocol").is_some())
        {
            let message = "a testee reads no PROXY protocol";
            self.error(endpoint, "proxy_protocol", message.to_owned());
        }
    }
}
