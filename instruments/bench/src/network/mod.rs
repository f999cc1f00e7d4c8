//! The network between a bench's clients and its servers.
//!
//! ```text
//!   plain            clients ─────────── lo ───────────▶ server
//!   --link           clients ── lo ──▶ line ── lo ─────▶ server
//!   --netns          clients ─────────[veth]───────────▶ server
//!   --link --netns   clients ── lo ──▶ line ──[veth]───▶ server
//!                    └──── a namespace ────┘           └─ another ─┘
//! ```
//!
//! The delay line's process is on the clients' side, on any idle core. A Unix socket is a file and crosses namespaces,
//! so it cannot be used with them.

pub(crate) mod exactness;
pub(crate) mod link;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crosstie_wan::namespaces::{CLIENT_IPS, SERVER_IP};
use crosstie_wan::{LinkOptions, Namespaces};

use crate::error::BenchError;
use crate::load::free_address;
use crate::machine::allowed_cores;
use crate::process::{Place, Workers};
use crate::subject::Endpoint;

use link::{LinkOrder, LinkReport, ROLE};

/// The options of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct NetworkOptions {
    /// Put a delay line in front of each server: a delay as in 50ms, then jitter=TIME, rate=RATE or
    /// direction=up|down|both, as in 50ms,rate=10mbit; the round trip grows by the delay.
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<LinkOptions>,
    /// Run servers and clients in two network namespaces over a veth pair, as if on two machines; needs root.
    #[arg(long)]
    pub(crate) netns: bool,
}

impl NetworkOptions {
    /// For a run that measures a running foreign server.
    pub(crate) fn check_foreign_server(&self) -> Result<(), BenchError> {
        match self.netns {
            true => Err(BenchError::Options(
                "--netns is for servers that the bench starts: one that runs already, at a URL, \
                 cannot be moved; measure it without --netns"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }
}

pub(crate) struct Network {
    options: NetworkOptions,
    executable: PathBuf,
    directory: PathBuf,
    cores: Vec<usize>,
    /// Ended before the namespaces that they run in.
    links: Mutex<Links>,
    namespaces: Option<Namespaces>,
}

#[derive(Default)]
struct Links {
    workers: Workers<LinkReport>,
    /// The reached addresses, and the addresses to use for them.
    reached: Vec<(Endpoint, Endpoint)>,
}

/// How long a delay line may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

impl Network {
    /// Sets it up. With namespaces, this also moves the calling thread to the clients' side, so that its connections
    /// take their path.
    pub(crate) fn set_up(
        options: &NetworkOptions,
        executable: &Path,
        directory: &Path,
    ) -> Result<Self, BenchError> {
        let namespaces = match options.netns {
            true => Some(Namespaces::create()?),
            false => None,
        };
        Ok(Self {
            options: options.clone(),
            executable: executable.to_owned(),
            directory: directory.to_owned(),
            cores: allowed_cores()?,
            links: Mutex::default(),
            namespaces,
        })
    }

    /// The address for servers to bind.
    pub(crate) fn server_ip(&self) -> Ipv4Addr {
        match self.namespaces {
            Some(_) => SERVER_IP,
            None => Ipv4Addr::LOCALHOST,
        }
    }

    /// The same with a port that is free.
    pub(crate) fn free_server_address(&self) -> io::Result<SocketAddr> {
        // The servers' own namespace is empty, so a free port here is free there.
        let port = free_address()?.port();
        Ok(SocketAddr::from((self.server_ip(), port)))
    }

    /// Source addresses for clients that need more ports than one address has.
    pub(crate) fn client_ips(&self) -> Vec<Ipv4Addr> {
        match (&self.namespaces, &self.options.link) {
            (Some(_), None) => CLIENT_IPS.to_vec(),
            // To the loopback, or to a delay line on it.
            _ => (1..=CLIENT_IPS.len() as u8)
                .map(|last| Ipv4Addr::new(127, 0, 0, last))
                .collect(),
        }
    }

    pub(crate) fn server_place(&self, cores: &[usize]) -> Place {
        Place {
            cores: cores.to_vec(),
            namespace: self.namespaces.as_ref().map(Namespaces::server),
        }
    }

    pub(crate) fn client_place(&self, cores: &[usize]) -> Place {
        Place {
            cores: cores.to_vec(),
            namespace: self.namespaces.as_ref().map(Namespaces::client),
        }
    }

    /// The address by which clients reach `server`: its own, or that of the delay line in front of it.
    pub(crate) fn reach(&self, server: &Endpoint) -> Result<Endpoint, BenchError> {
        let Some(options) = &self.options.link else {
            return Ok(server.clone());
        };
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, near)) = links.reached.iter().find(|(far, _)| far == server) {
            return Ok(near.clone());
        }
        let listen = match server {
            Endpoint::Tcp(_) => Endpoint::Tcp((Ipv4Addr::LOCALHOST, 0).into()),
            Endpoint::Unix(_) => {
                let name = format!("link-{}.sock", links.reached.len());
                Endpoint::Unix(self.directory.join(name))
            }
        };
        let order = LinkOrder {
            listen,
            server: server.clone(),
            options: options.clone(),
        };
        let place = self.client_place(&self.cores);
        links
            .workers
            .start(&self.executable, ROLE, &place, &order)?;
        let ready = |report| match report {
            LinkReport::Ready { endpoint, .. } => Ok(endpoint),
            other => Err(other),
        };
        let endpoint = links.workers.expect(PATIENCE, "it should listen", ready);
        let endpoint = endpoint.map_err(|why| BenchError::Server {
            name: format!("the link to {server}"),
            why,
        })?;
        links.reached.push((server.clone(), endpoint.clone()));
        Ok(endpoint)
    }

    /// The processes of the delay lines, for the accounting of the machine.
    pub(crate) fn link_processes(&self) -> Vec<u32> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.workers.processes()
    }

    /// For tables and the settings in the JSON frame; `None` for the plain loopback.
    pub(crate) fn description(&self) -> Option<String> {
        let link = self.options.link.as_ref();
        let parts = [
            link.map(|link| format!("a link of {link} in front of each server")),
            self.namespaces
                .as_ref()
                .map(|_| "servers and clients in two network namespaces over a veth pair".into()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_network_is_the_loopback() {
        let directory = tempfile::tempdir().unwrap();
        let options = NetworkOptions::default();
        let network = Network::set_up(&options, Path::new("x"), directory.path()).unwrap();
        assert_eq!(network.server_ip(), Ipv4Addr::LOCALHOST);
        assert_eq!(network.server_place(&[0]), Place::on(&[0]));
        assert_eq!(network.client_place(&[1]), Place::on(&[1]));
        assert_eq!(network.description(), None);
        let server = Endpoint::Tcp("127.0.0.1:9".parse().unwrap());
        assert_eq!(network.reach(&server).unwrap(), server);
        assert!(network.free_server_address().unwrap().port() > 0);
        assert!(options.check_foreign_server().is_ok());
    }
}
