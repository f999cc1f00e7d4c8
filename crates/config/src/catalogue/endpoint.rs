//! Keys of listeners' endpoints.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::form::{Kind, OFF, Rule, TYPE, integer, list, list_not_empty, object, one_of, text};
use super::table::tables;
use crate::model::ProxyProtocol;
use crate::plain;

tables! {
    pub(super) tagged ENDPOINT("endpoint.type", "an endpoint") {
        "tcp" => TCP_ENDPOINT, "unix" => UNIX_ENDPOINT, "systemd" => SYSTEMD_ENDPOINT
    }

    const BACKLOG = "backlog": integer(1, 65_535).or(1_024), "Maximum number of connections that wait to be accepted.";
    const PORT = "port": integer(0, 65_535).otherwise("a port of `portrange`").environment(),
        "Port to listen on. 0 takes any free port.";
    const PORTRANGE = "portrange": Kind::List { of: &integer(1, 65_535), least: 1 }.otherwise("the port in `port`"),
        "First and last port of a range, in place of `port`. The listener takes the first free one.";
    const INTERFACE = "interface": text(Rule::Interface).otherwise("all interfaces").environment(),
        "Address to listen on.";
    const VERSION = "version": Kind::Numbers { path: "", numbers: &[4, 6] }.otherwise("the interface's, else 4"),
        "IP version: 4 or 6.";
    const SHARED = "shared": OFF.restart(), "Lets other processes listen on the same port (`SO_REUSEPORT`).";
    const USER_TIMEOUT = "user_timeout": integer(0, 65_535).otherwise("`limits.queue_stall_timeout_ms`"),
        "Time after which the system closes a connection whose sent data stays unacknowledged or whose peer \
         reads nothing, in milliseconds (`TCP_USER_TIMEOUT`). 0 leaves it to the system.";
    const PROXY_PROTOCOL_OF_LISTENER = "proxy_protocol": object(&PROXY_PROTOCOL).optional().own(),
        "Proxies that send the client's address in a header of the PROXY protocol, version 1 or 2. Limits, delays, log \
         lines and listings then have the client's address.";
    const TLS_OF_LISTENER = "tls": object(&TLS).optional(), "TLS of the listener.";

    /// A TCP listener. With `port_last` it takes the first free port of a range that starts with `port`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TcpEndpoint = static TCP_ENDPOINT("endpoint[tcp]", "a TCP endpoint") {
        ..TYPE, PORT, PORTRANGE, INTERFACE, VERSION;
        ..BACKLOG => backlog: u32;
        ..SHARED => shared: bool;
        ..USER_TIMEOUT => user_timeout: Option<Duration> as plain::milliseconds_if_given;
        ..PROXY_PROTOCOL_OF_LISTENER;
        ..TLS_OF_LISTENER => tls: Option<Tls> as plain::optional_section;
        let proxies: Option<ProxyProtocol> = None;
        let interface: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let port: u16 = 0;
        let port_last: Option<u16> = None;
    }

    static UNIX_ENDPOINT("endpoint[unix]", "a Unix endpoint") {
        ..TYPE;
        "path" = text(Rule::SocketPath).required().environment(),
            "Path of the socket. A relative path starts at the node's directory. `$NAME` and `${NAME}` are replaced \
             anywhere in it. Maximum 107 bytes, the directory's included.";
        ..BACKLOG;
        ..PROXY_PROTOCOL_OF_LISTENER;
    }

    static PROXY_PROTOCOL("endpoint[tcp].proxy_protocol", "the proxies of an endpoint") {
        "from" = list_not_empty(&text(Rule::Proxy)).required(),
            "Addresses and networks of the proxies; `unix` means the clients of a Unix socket. A connection from one of \
             them must begin with the header, else it is closed. Other addresses must not send a header: the protocol's \
             own check refuses their connection.";
    }

    /// A listening socket that the service manager opened.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SystemdEndpoint = static SYSTEMD_ENDPOINT("endpoint[systemd]", "an endpoint of systemd") {
        ..TYPE;
        name: String = text(Rule::NotEmpty).required().environment(),
            "Name of a socket that systemd passes to the service: `FileDescriptorName=` of its socket unit, by default \
             the unit's name with `.socket`. The node does not start if systemd passed no such socket, or several. The \
             socket stays open while its transport is stopped; clients that connect then wait. The configuration does \
             not know the address, so hosts and origins are restricted only by `allowed_hosts` and `allowed_origins`.";
        ..USER_TIMEOUT => user_timeout: Option<Duration> as plain::milliseconds_if_given;
        ..PROXY_PROTOCOL_OF_LISTENER;
        ..TLS_OF_LISTENER => tls: Option<Tls> as plain::optional_section;
        let proxies: Option<ProxyProtocol> = None;
    }

    pub(super) const TLS_KEY = "key": text(Rule::NotEmpty).required().environment(),
        "PEM file of the private key. Relative paths of these keys start at the node's directory.";
    pub(super) const CERTIFICATE = "certificate": text(Rule::NotEmpty).required().environment(),
        "PEM file of the certificate.";
    pub(super) const CHAIN_CERTIFICATES = "chain_certificates": list(&text(Rule::NotEmpty)).optional(),
        "PEM files of the intermediate certificates, in order.";
    const DHPARAM = "dhparam": text(Rule::Any).inert("keys are agreed over elliptic curves only");
    const CIPHERS = "ciphers": text(Rule::Any)
        .inert(
            "only forward-secret, authenticated cipher suites are offered (TLS 1.3, and of TLS 1.2 ECDHE with \
             AES-GCM or ChaCha20)"
        );

    /// PEM files of a TLS listener.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tls = static TLS("endpoint[tcp].tls", "a TLS endpoint") {
        ..TLS_KEY => key: String;
        ..CERTIFICATE => certificate: String;
        ..CHAIN_CERTIFICATES => chain_certificates: Vec<String>;
        ca_certificates => client_authorities: Vec<String> = list_not_empty(&text(Rule::NotEmpty))
            .otherwise("none: clients are not asked for certificates"),
            "PEM files of the authorities that sign client certificates. Every client must then present a \
             certificate. Certificates are X.509 version 3.";
        "client_certificate" = one_of(&CLIENT_CERTIFICATE).or_text("required").own(),
            "Whether clients need a certificate with `ca_certificates`: `required`, or `optional`, which leaves the \
             choice to the client and the authentication methods.";
        certificates => named: Vec<NamedCertificate> as plain::sections = list(&object(&NAMED_CERTIFICATE))
            .optional()
            .own(),
            "Certificates for other names of the host. A client that asks for a host (SNI) gets the first of them that \
             has its name and whose kind of key the client knows, else `certificate`.";
        crls => revocation_lists: Vec<String> = list_not_empty(&text(Rule::NotEmpty)).optional().own(),
            "PEM files of the lists of revoked certificates (CRL). Every authority in a client's chain needs a list in \
             force: a client with a certificate that is revoked, or of which that is unknown, is refused.";
        ..DHPARAM, CIPHERS;
        let is_certificate_optional: bool = false;
    }

    /// A certificate of a TLS listener for the names in it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NamedCertificate = static NAMED_CERTIFICATE(
        "endpoint[tcp].tls.certificates[]", "a certificate for other names"
    ) {
        ..TLS_KEY => key: String;
        ..CERTIFICATE => certificate: String;
        ..CHAIN_CERTIFICATES => chain_certificates: Vec<String>;
    }

    words CLIENT_CERTIFICATE("endpoint[tcp].tls.client_certificate") { "required", "optional" }
}
