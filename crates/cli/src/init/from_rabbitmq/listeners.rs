//! Listeners, with the TLS files that they need.

use serde_json::{Value as Json, json};

use super::values::{boolean, port};

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

/// The management API: `management.tcp`, `management.ssl`, and `management.listener` of version 3.7.
#[derive(Default)]
pub(super) struct Management {
    pub(super) plain: Place,
    pub(super) secure: Place,
    pub(super) listener: Place,
    pub(super) is_listener_secure: bool,
    pub(super) tls: Tls,
}

/// An address that may be named in part.
#[derive(Default)]
pub(super) struct Place {
    pub(super) is_named: bool,
    pub(super) port: Option<u16>,
    pub(super) interface: Option<String>,
}

impl Management {
    pub(super) fn transports(&self, left_out: &mut Vec<String>) -> Vec<Json> {
        let mut transports = Vec::new();
        for (key, place, is_secure) in [
            ("management.tcp", &self.plain, false),
            ("management.ssl", &self.secure, true),
            (
                "management.listener",
                &self.listener,
                self.is_listener_secure,
            ),
        ] {
            if !place.is_named {
                continue;
            }
            let mut endpoint = place.endpoint(if is_secure { 15_671 } else { 15_672 });
            if is_secure {
                match self.tls.made(key) {
                    Ok(tls) => endpoint["tls"] = tls,
                    Err(why) => {
                        left_out.push(format!("{key}: {why}"));
                        continue;
                    }
                }
            }
            transports.push(json!({"type": "amqp.management", "endpoint": endpoint}));
        }
        transports
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
