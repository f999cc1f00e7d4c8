//! Realms of several nodes.

/// The connection of a realm with those of its name on other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Never empty.
    pub urls: Vec<NatsUrl>,
    /// Relative to the node's directory, like the next field.
    pub credentials: Option<String>,
    pub ca_certificates: Vec<String>,
    pub is_refused_detached: bool,
    /// Calls prefer callees of the caller's node.
    pub is_own_preferred: bool,
    /// JetStream grants single-callee procedures, with this number of replicas.
    pub strict_replicas: Option<u8>,
    pub local_prefixes: Vec<String>,
}

/// Address of a NATS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsUrl {
    pub host: String,
    pub port: u16,
    pub is_tls: bool,
}

impl NatsUrl {
    /// Parses a URL; the error states the expected form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or(EXPECTED)?;
        let is_tls = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(EXPECTED),
        };
        if rest.contains('@') {
            return Err("credentials are not part of the URL; name their file in \"credentials\"");
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') => (host, port),
            _ => return Err(EXPECTED),
        };
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        let is_host = !host.is_empty() && host.chars().all(is_plain);
        let is_host = is_host && (bracketed.is_some() || !host.contains(':'));
        let port = port.parse().ok().filter(|port| *port > 0);
        match (is_host, port) {
            (true, Some(port)) => Ok(Self {
                host: host.to_owned(),
                port,
                is_tls,
            }),
            _ => Err(EXPECTED),
        }
    }
}

const EXPECTED: &str = "expected nats://host:port or tls://host:port";
