//! Addresses of listeners, and collisions between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Builder;
use crate::files::Files;
use crate::model::{Endpoint, SystemdEndpoint, TcpEndpoint, Tls};
use crate::plain::{Plain, Section};
use crate::problem::Problem;
use crate::tree::Span;
use crate::view::View;

/// An address in use, with its position in the file.
pub(super) struct Listener {
    endpoint: Endpoint,
    span: Span,
}

impl Builder<'_> {
    /// The endpoint of a transport or of the admin listener.
    pub(super) fn endpoint(&mut self, object: View<'_>) -> Endpoint {
        let span = object.span_of("endpoint");
        let Some(view) = object.object("endpoint") else {
            return Endpoint::Unix {
                path: String::new(),
                backlog: 0,
                proxies: None,
            };
        };
        let proxies = self.proxies(view);
        let endpoint = match view.text("type") {
            Some("unix") => Endpoint::Unix {
                path: view.text("path").unwrap_or_default().into(),
                backlog: u32::read(view, "backlog"),
                proxies,
            },
            Some("systemd") => {
                let read = SystemdEndpoint::read(view);
                Endpoint::Systemd(SystemdEndpoint {
                    tls: tls(read.tls, view),
                    proxies,
                    ..read
                })
            }
            _ => {
                let (port, port_last) = self.ports(view);
                let read = TcpEndpoint::read(view);
                Endpoint::Tcp(TcpEndpoint {
                    interface: self.interface(view),
                    port,
                    port_last,
                    tls: tls(read.tls, view),
                    proxies,
                    ..read
                })
            }
        };
        self.check_client_certificates(view);
        if let Some(tls) = endpoint.tls()
            && let Some(given) = view.given("tls")
        {
            self.names(given.span, Files::Tls(tls.clone()));
        }
        if let Endpoint::Unix { path, .. } = &endpoint {
            self.names(view.span_of("path"), Files::Socket(path.clone()));
        }
        if self.disabled {
            return endpoint;
        }
        let earlier = self.listeners.iter();
        let mut earlier = earlier.filter(|earlier| collide(&earlier.endpoint, &endpoint));
        if let Some(earlier) = earlier.next() {
            let problem = Problem::error(span, "another listener has this address".into());
            self.problems
                .push(problem.note_at(earlier.span, "it is taken first here"));
        }
        self.listeners.push(Listener {
            endpoint: endpoint.clone(),
            span,
        });
        endpoint
    }

    /// Warns of keys of client certificates that nobody is asked for.
    fn check_client_certificates(&mut self, view: View<'_>) {
        if let Some(tls) = view.has("tls").then(|| view.object("tls")).flatten()
            && tls.given("ca_certificates").is_none()
        {
            for key in ["client_certificate", "crls"] {
                if tls.given(key).is_some() {
                    let message = format!("\"{key}\" has no effect without \"ca_certificates\"");
                    self.warn(tls, key, &message);
                }
            }
        }
    }

    /// The port, or the first and the last of a range.
    fn ports(&mut self, endpoint: View<'_>) -> (u16, Option<u16>) {
        let (port, range) = (endpoint.given("port"), endpoint.given("portrange"));
        let problem = match (port, range) {
            (None, None) => Some("a TCP endpoint needs \"port\" or \"portrange\""),
            (Some(_), Some(_)) => {
                Some("a TCP endpoint has a \"port\" or a \"portrange\", not both")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let at = range.map_or(endpoint.span, |range| range.span);
            self.problems.push(Problem::error(at, problem.into()));
        }
        let Some(range) = range else {
            return (u16::read(endpoint, "port"), None);
        };
        let ports: Vec<u16> = endpoint
            .integers("portrange")
            .filter_map(|port| port.try_into().ok())
            .collect();
        match ports[..] {
            [first, last] if first <= last => (first, Some(last)),
            _ => {
                let problem =
                    "\"portrange\" must be the first port and the last, which is not smaller";
                self.problems
                    .push(Problem::error(range.span, problem.into()));
                (0, None)
            }
        }
    }

    fn interface(&mut self, endpoint: View<'_>) -> IpAddr {
        let version = endpoint.integer("version");
        let (any, local): (IpAddr, IpAddr) = match version {
            Some(6) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
            _ => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
        };
        let interface = match endpoint.text("interface") {
            None | Some("") => any,
            Some("localhost") => local,
            Some(address) => address.parse().unwrap_or(any),
        };
        if version.is_some_and(|version| (version == 6) != interface.is_ipv6()) {
            let message = format!("{interface} is not an address of the \"version\" given");
            self.error(endpoint, "interface", message);
        }
        interface
    }
}

/// The files of TLS, with the rule for certificates of clients.
fn tls(read: Option<Tls>, endpoint: View<'_>) -> Option<Tls> {
    let given = endpoint.object("tls")?;
    Some(Tls {
        is_certificate_optional: given.text("client_certificate") == Some("optional"),
        ..read?
    })
}

/// Whether the system would refuse the second of the two.
fn collide(one: &Endpoint, other: &Endpoint) -> bool {
    match (one, other) {
        (Endpoint::Unix { path: one, .. }, Endpoint::Unix { path: other, .. }) => one == other,
        (Endpoint::Systemd(one), Endpoint::Systemd(other)) => one.name == other.name,
        (Endpoint::Tcp(one), Endpoint::Tcp(other)) => {
            let any = one.interface.is_unspecified() || other.interface.is_unspecified();
            let family = one.interface.is_ipv4() == other.interface.is_ipv4();
            // A range skips ports that are in use.
            let is_either_range = one.port_last.is_some() || other.port_last.is_some();
            one.port != 0
                && !is_either_range
                && one.port == other.port
                && family
                && (any || one.interface == other.interface)
                && !(one.shared && other.shared)
        }
        _ => false,
    }
}
