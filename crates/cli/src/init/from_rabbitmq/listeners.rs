//! Listeners, with the TLS files that they need.

use serde_json::{Value as Json, json};

use super::values::{address, boolean, number, port, within};

/// An address that clients reach by AMQP.
pub(super) struct Listener {
    pub(super) key: String,
    pub(super) port: u16,
    pub(super) interface: Option<String>,
    pub(super) is_tls: bool,
}

/// Options of TLS.
#[derive(Default)]
pub(super) struct Tls {
    pub(super) authorities: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    pub(super) asks_clients: bool,
    pub(super) is_required: bool,
}

/// A plugin with HTTP listeners: `management.tcp`, `management.ssl`, and `management.listener` of version 3.7;
/// `prometheus.tcp`, `prometheus.ssl`.
pub(super) struct Pages {
    plugin: Plugin,
    plain: Place,
    secure: Place,
    listener: Place,
    is_listener_secure: bool,
    tls: Tls,
    /// `cors.allow_origins` and `cors.max_age`.
    origins: Vec<String>,
    max_age: Option<u64>,
}

/// The plugin that has the listeners.
pub(super) struct Plugin {
    name: &'static str,
    transport: &'static str,
    port: u16,
    tls_port: u16,
}

pub(super) const MANAGEMENT: Plugin = Plugin {
    name: "management",
    transport: "amqp.management",
    port: 15_672,
    tls_port: 15_671,
};

pub(super) const PROMETHEUS: Plugin = Plugin {
    name: "prometheus",
    transport: "amqp.prometheus",
    port: 15_692,
    tls_port: 15_691,
};

/// An address that may be named in part.
#[derive(Default)]
pub(super) struct Place {
    pub(super) is_named: bool,
    pub(super) port: Option<u16>,
    pub(super) interface: Option<String>,
}

impl Pages {
    pub(super) fn of(plugin: Plugin) -> Self {
        Self {
            plugin,
            plain: Place::default(),
            secure: Place::default(),
            listener: Place::default(),
            is_listener_secure: false,
            tls: Tls::default(),
            origins: Vec::new(),
            max_age: None,
        }
    }

    /// Takes a key of the plugin; `None` if it is none of its listeners'.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let key = key.strip_prefix(self.plugin.name)?.strip_prefix('.')?;
        if key == "listener.ssl" {
            return Some(boolean(value).map(|is_secure| self.is_listener_secure = is_secure));
        }
        if let Some(part) = key.strip_prefix("listener.ssl_opts.") {
            return Some(self.tls.take(part, value));
        }
        if let Some(part) = key.strip_prefix("tcp.") {
            return Some(self.plain.take(part, value));
        }
        if let Some(part) = key.strip_prefix("listener.") {
            return Some(self.listener.take(part, value));
        }
        if key == "cors.max_age" {
            let age = number(value).and_then(|age| within(age, &(0..=86_400)));
            return Some(age.map(|age| self.max_age = Some(age)));
        }
        if key.starts_with("cors.allow_origins.") {
            return Some(self.take_origin(value));
        }
        let part = key.strip_prefix("ssl.")?;
        self.secure.is_named = true;
        Some(match part {
            "port" | "ip" => self.secure.take(part, value),
            _ => self.tls.take(part, value),
        })
    }

    fn take_origin(&mut self, origin: &str) -> Result<(), String> {
        let is_page = origin.starts_with("http://") || origin.starts_with("https://");
        if !is_page || origin.contains('*') || origin.matches('/').count() != 2 {
            return Err(format!(
                "expected the origin of pages, such as https://app.example.com, got {origin}"
            ));
        }
        self.origins.push(origin.to_owned());
        Ok(())
    }

    /// The transports. Without a named listener it is one for programs of this machine, since no key says whether the
    /// plugin was on.
    pub(super) fn transports(&self, left_out: &mut Vec<String>) -> Vec<Json> {
        let Plugin {
            name,
            transport,
            port,
            tls_port,
        } = self.plugin;
        let mut transports = Vec::new();
        let places = [
            ("tcp", &self.plain, false),
            ("ssl", &self.secure, true),
            ("listener", &self.listener, self.is_listener_secure),
        ];
        if places.iter().all(|(_, place, _)| !place.is_named) {
            let endpoint = endpoint(port, Some("127.0.0.1"));
            return vec![self.transport(transport, endpoint)];
        }
        for (part, place, is_secure) in places {
            if !place.is_named {
                continue;
            }
            let key = format!("{name}.{part}");
            let mut endpoint = place.endpoint(if is_secure { tls_port } else { port });
            if is_secure {
                match self.tls.made(&key) {
                    Ok(tls) => endpoint["tls"] = tls,
                    Err(why) => {
                        left_out.push(format!("{key}: {why}"));
                        continue;
                    }
                }
            }
            transports.push(self.transport(transport, endpoint));
        }
        transports
    }

    fn transport(&self, kind: &str, endpoint: Json) -> Json {
        let mut transport = json!({"type": kind, "endpoint": endpoint});
        if !self.origins.is_empty() {
            transport["cors"] = json!({"allow_origins": self.origins});
            if let Some(age) = self.max_age {
                transport["cors"]["max_age_seconds"] = age.into();
            }
        }
        transport
    }
}

impl Place {
    pub(super) fn take(&mut self, part: &str, value: &str) -> Result<(), String> {
        match part {
            "port" => self.port = Some(port(value)?),
            "ip" => self.interface = Some(value.to_owned()),
            _ => return Err("it is not known".to_owned()),
        }
        self.is_named = true;
        Ok(())
    }

    /// Takes a port, or an address with one.
    pub(super) fn take_address(&mut self, value: &str) -> Result<(), String> {
        let (interface, port) = address(value)?;
        *self = Self {
            is_named: true,
            port: Some(port),
            interface,
        };
        Ok(())
    }

    pub(super) fn endpoint(&self, port: u16) -> Json {
        endpoint(self.port.unwrap_or(port), self.interface.as_deref())
    }
}

impl Tls {
    pub(super) fn take(&mut self, part: &str, value: &str) -> Result<(), String> {
        let owned = || Some(value.to_owned());
        match part {
            "cacertfile" => self.authorities = owned(),
            "certfile" => self.certificate = owned(),
            "keyfile" => self.key = owned(),
            "verify" => self.asks_clients = value == "verify_peer",
            "fail_if_no_peer_cert" => self.is_required = boolean(value)?,
            _ => return Err("it is not known".to_owned()),
        }
        Ok(())
    }

    /// The keys of an endpoint, or the reason why a listener cannot have TLS as it was.
    pub(super) fn made(&self, prefix: &str) -> Result<Json, String> {
        let (Some(key), Some(certificate)) = (&self.key, &self.certificate) else {
            return Err(format!("it needs {prefix}.certfile and {prefix}.keyfile"));
        };
        let mut made = json!({"key": key, "certificate": certificate});
        if self.asks_clients || self.is_required {
            let authorities = self.authorities.as_ref().filter(|_| self.asks_clients);
            let Some(authorities) = authorities else {
                return Err(format!(
                    "it asks clients for certificates, and needs {prefix}.cacertfile and {prefix}.verify"
                ));
            };
            made["ca_certificates"] = json!([authorities]);
            if !self.is_required {
                made["client_certificate"] = "optional".into();
            }
        }
        Ok(made)
    }
}

/// Whether an endpoint with these keys of TLS asks its clients for certificates.
pub(super) fn asks_for_certificates(tls: &Json) -> bool {
    tls.get("ca_certificates").is_some()
}

pub(super) fn endpoint(port: u16, interface: Option<&str>) -> Json {
    let mut endpoint = json!({"type": "tcp", "port": port});
    if let Some(interface) = interface {
        endpoint["interface"] = interface.into();
        if interface.contains(':') {
            endpoint["version"] = 6.into();
        }
    }
    endpoint
}
