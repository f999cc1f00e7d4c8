//! A NATS server of the cluster: its name and its addresses.

use anyhow::Context as _;
use crosstie_config::NatsUrl;
use serde::{Deserialize, Serialize};

/// The name and the addresses of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// The port for other servers.
    pub(super) route_port: u16,
}

/// From NATS' port for clients to that for routes, as with NATS' defaults.
const ROUTE_PORT_ABOVE: u16 = 2_000;

/// And to that for monitoring.
const MONITORING_PORT_ABOVE: u16 = 4_000;

impl Server {
    /// The server with that number, at `HOST:PORT`.
    pub(super) fn parse(
        number: usize,
        text: &str,
        route_port: Option<u16>,
    ) -> anyhow::Result<Self> {
        let url = NatsUrl::parse(&format!("nats://{text}"));
        let url = url.map_err(|_| anyhow::anyhow!("--server {text}: expected HOST:PORT"))?;
        let port = route_port.or_else(|| url.port.checked_add(ROUTE_PORT_ABOVE));
        Ok(Self {
            name: format!("nats{number}"),
            route_port: port.with_context(|| {
                format!("--server {text}: {ROUTE_PORT_ABOVE} more is no port; name one with --route-port")
            })?,
            host: url.host,
            port: url.port,
        })
    }

    /// The host in the form of URLs.
    pub(super) fn url_host(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        }
    }

    /// The monitoring port: 8222 for 4222, as with NATS' defaults.
    pub(super) fn monitoring_port(&self) -> anyhow::Result<u16> {
        let port = self.port.checked_add(MONITORING_PORT_ABOVE);
        port.with_context(|| {
            format!(
                "--server {}:{}: {MONITORING_PORT_ABOVE} more is no port for its monitoring",
                self.host, self.port
            )
        })
    }

    pub(super) fn is_here(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The address that it listens at: its own if it is an address, because a name may resolve to another machine's.
    pub(super) fn interface(&self) -> String {
        match self.host.parse::<std::net::IpAddr>() {
            Ok(_) => self.url_host(),
            Err(_) if self.is_here() => "127.0.0.1".to_owned(),
            Err(_) => "0.0.0.0".to_owned(),
        }
    }
}
