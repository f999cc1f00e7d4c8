//! The keys of `rabbitmq.conf`, and what they are here.

use std::ops::RangeInclusive;

use crosstie_auth::PasswordHash;
use serde_json::{Map, Value as Json, json};

use super::conf::Setting;

/// The settings that were taken.
pub(super) struct Made {
    listeners: Vec<Listener>,
    has_tcp: bool,
    tls: Tls,
    user: User,
    limits: Map<String, Json>,
    options: Map<String, Json>,
    mechanisms: Vec<String>,
    cluster_name: Option<String>,
    management: Management,
}

struct Listener {
    key: String,
    port: u16,
    interface: Option<String>,
    is_tls: bool,
}

#[derive(Default)]
struct Tls {
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    asks_clients: bool,
    is_required: bool,
}

/// The user that a first start creates.
#[derive(Default)]
struct User {
    name: Option<String>,
    password: Option<String>,
    vhost: Option<String>,
    tags: Vec<String>,
    permissions: Map<String, Json>,
    is_remote_allowed: bool,
}

#[derive(Default)]
struct Management {
    port: Option<u16>,
    interface: Option<String>,
}

/// Beginnings of keys that are left out, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("auth_backends.", "users are in the node's own store"),
    ("auth_ldap.", "there is no LDAP"),
    (
        "cluster_formation.",
        "nodes share vhosts by `replicated`, not by a cluster",
    ),
    (
        "cluster_",
        "nodes share vhosts by `replicated`, not by a cluster",
    ),
    ("collect_statistics", "figures are always the present ones"),
    ("management.load_definitions", DEFINITIONS),
    ("load_definitions", DEFINITIONS),
    ("definitions.", DEFINITIONS),
    (
        "log.",
        "the log goes to the standard error stream; `--loglevel` filters it",
    ),
    ("mqtt.", "there is no MQTT"),
    ("net_ticktime", "it is about clusters of Erlang"),
    ("prometheus.", "metrics are a page of `admin`"),
    ("queue_master_locator", "a queue is on its vhost's node"),
    ("stomp.", "there is no STOMP"),
    ("stream.", "the stream protocol is not spoken"),
    ("tcp_listen_options.", "sockets are tuned by the node"),
    (
        "vm_memory_high_watermark.relative",
        "messages have a bound in bytes: `limits.memory_bytes_max`",
    ),
    (
        "disk_free_limit.relative",
        "the bound is in bytes: `limits.disk_free_bytes_min`",
    ),
    ("web_", "there are no plugins"),
];

const DEFINITIONS: &str = "name the file after rabbitmq.conf on the command line";

const OF_DEFINITIONS: &str = "the definitions have the users";

impl Made {
    pub(super) fn new(settings: &[Setting<'_>]) -> Self {
        let has_tcp = !settings
            .iter()
            .any(|setting| setting.key == "listeners.tcp" && setting.value == "none");
        Self {
            listeners: Vec::new(),
            has_tcp,
            tls: Tls::default(),
            user: User::default(),
            limits: Map::new(),
            options: Map::new(),
            mechanisms: Vec::new(),
            cluster_name: None,
            management: Management::default(),
        }
    }

    /// Takes a setting, or returns the reason for leaving it out.
    pub(super) fn take(
        &mut self,
        setting: &Setting<'_>,
        has_definitions: bool,
    ) -> Result<(), String> {
        let Setting { key, value } = *setting;
        let owned = || Some(value.to_owned());
        match key {
            "listeners.tcp" if value == "none" => {}
            "heartbeat" => self.option("heartbeat_seconds", number(value)?, 0..=3_600)?,
            "frame_max" => self.option("frame_bytes_max", number(value)?, 4_096..=16_777_216)?,
            "channel_max" => self.option("channels_max", number(value)?, 1..=65_535)?,
            "handshake_timeout" => {
                self.option("handshake_timeout_ms", number(value)?, 100..=3_600_000)?;
            }
            "vm_memory_high_watermark.absolute" => {
                self.limit("memory_bytes_max", bytes(value)?, 1 << 20..=1 << 44)?;
            }
            "disk_free_limit.absolute" => {
                self.limit("disk_free_bytes_min", bytes(value)?, 1 << 20..=1 << 40)?;
            }
            "consumer_timeout" => {
                self.limit(
                    "consumer_timeout_ms",
                    number(value)?,
                    1_000..=31_536_000_000,
                )?;
            }
            "max_message_size" => {
                self.limit("message_bytes_max", number(value)?, 1_024..=1 << 31)?;
            }
            "cluster_name" => self.cluster_name = owned(),
            "ssl_options.cacertfile" => self.tls.authorities = owned(),
            "ssl_options.certfile" => self.tls.certificate = owned(),
            "ssl_options.keyfile" => self.tls.key = owned(),
            "ssl_options.verify" => self.tls.asks_clients = value == "verify_peer",
            "ssl_options.fail_if_no_peer_cert" => self.tls.is_required = boolean(value)?,
            "management.tcp.port" | "management.listener.port" => {
                self.management.port = Some(port(value)?);
            }
            "management.tcp.ip" | "management.listener.ip" => self.management.interface = owned(),
            _ => return self.take_other(setting, has_definitions),
        }
        Ok(())
    }

    fn take_other(&mut self, setting: &Setting<'_>, has_definitions: bool) -> Result<(), String> {
        let Setting { key, value } = *setting;
        if key.starts_with("listeners.tcp.") || key.starts_with("listeners.ssl.") {
            let (interface, port) = address(value)?;
            self.listeners.push(Listener {
                key: key.to_owned(),
                port,
                interface,
                is_tls: key.starts_with("listeners.ssl."),
            });
            return Ok(());
        }
        if key.starts_with("auth_mechanisms.") {
            return match value {
                "PLAIN" | "AMQPLAIN" | "EXTERNAL" => {
                    self.mechanisms.push(value.to_owned());
                    Ok(())
                }
                other => Err(format!("there is no mechanism {other}")),
            };
        }
        if key.starts_with("default_") || key.starts_with("loopback_users") {
            return self.take_user(key, value, has_definitions);
        }
        let mut left_out = LEFT_OUT.iter();
        match left_out.find(|(beginning, _)| key.starts_with(beginning)) {
            Some((_, why)) => Err((*why).to_owned()),
            None => Err("it is not known".to_owned()),
        }
    }

    fn take_user(&mut self, key: &str, value: &str, has_definitions: bool) -> Result<(), String> {
        if key == "default_queue_type" && value != "classic" {
            return Err("clients name other types by x-queue-type".to_owned());
        }
        if has_definitions {
            return match key.starts_with("loopback_users") {
                true => Err(
                    "`guest` of definitions logs in from this machine; name the user in `users` with `loopback_only`"
                        .to_owned(),
                ),
                false => Err(OF_DEFINITIONS.to_owned()),
            };
        }
        let user = &mut self.user;
        match key {
            "default_queue_type" => {}
            "default_user" => user.name = Some(value.to_owned()),
            "default_pass" => user.password = Some(value.to_owned()),
            "default_vhost" => user.vhost = Some(value.to_owned()),
            "loopback_users" if value == "none" => user.is_remote_allowed = true,
            "loopback_users.guest" => user.is_remote_allowed = !boolean(value)?,
            "default_permissions.configure"
            | "default_permissions.write"
            | "default_permissions.read" => {
                let kind = key.trim_start_matches("default_permissions.");
                user.permissions.insert(kind.to_owned(), value.into());
            }
            _ => match key.strip_prefix("default_user_tags.") {
                Some(tag) if boolean(value)? => user.tags.push(tag.to_owned()),
                Some(_) => {}
                None => return Err("it is not known".to_owned()),
            },
        }
        Ok(())
    }

    fn option(&mut self, key: &str, value: u64, may: RangeInclusive<u64>) -> Result<(), String> {
        self.options
            .insert(key.to_owned(), within(value, &may)?.into());
        Ok(())
    }

    fn limit(&mut self, key: &str, value: u64, may: RangeInclusive<u64>) -> Result<(), String> {
        self.limits
            .insert(key.to_owned(), within(value, &may)?.into());
        Ok(())
    }

    /// The broker: users, bounds, the name.
    pub(super) fn amqp(&self, has_definitions: bool, salt: [u8; 4]) -> Json {
        let mut amqp = json!({"store": "amqp.store"});
        let user = &self.user;
        let is_default = user.name.is_none()
            && user.password.is_none()
            && user.vhost.is_none()
            && user.permissions.is_empty()
            && user.tags.is_empty()
            && !user.is_remote_allowed;
        if !has_definitions && !is_default {
            let name = user.name.as_deref().unwrap_or("guest");
            let password = user.password.as_deref().unwrap_or("guest");
            let hash = PasswordHash::of(password.as_bytes(), salt);
            let mut tags = user.tags.clone();
            if tags.is_empty() {
                tags.push("administrator".to_owned());
            }
            amqp["users"] = json!([{
                "name": name,
                // The configuration might take the password itself for a variable.
                "password_hash": hash.to_text(),
                "tags": tags,
                "loopback_only": name == "guest" && !user.is_remote_allowed,
            }]);
            let mut permission =
                json!({"user": name, "configure": ".*", "write": ".*", "read": ".*"});
            for (kind, pattern) in &user.permissions {
                permission[kind] = pattern.clone();
            }
            let vhost = user.vhost.as_deref().unwrap_or("/");
            amqp["vhosts"] = json!([{"name": vhost, "permissions": [permission]}]);
        }
        if !self.limits.is_empty() {
            amqp["limits"] = self.limits.clone().into();
        }
        if let Some(name) = &self.cluster_name {
            amqp["identity"] = json!({"cluster_name": name});
        }
        amqp
    }

    /// The listeners. One that needs what is not there is left out.
    pub(super) fn transports(&self, left_out: &mut Vec<String>) -> Vec<Json> {
        let mut listeners: Vec<_> = self.listeners.iter().collect();
        let default = Listener {
            key: "listeners.tcp.default".to_owned(),
            port: 5672,
            interface: None,
            is_tls: false,
        };
        match self.has_tcp {
            true if listeners.iter().all(|listener| listener.is_tls) => {
                listeners.insert(0, &default)
            }
            true => {}
            false => listeners.retain(|listener| listener.is_tls),
        }
        let mut transports = Vec::new();
        for listener in listeners {
            let mut endpoint = endpoint(listener.port, listener.interface.as_deref());
            if listener.is_tls {
                let Some(tls) = self.tls() else {
                    let why = "it needs ssl_options.certfile and ssl_options.keyfile";
                    left_out.push(format!("{}: {why}", listener.key));
                    continue;
                };
                endpoint["tls"] = tls;
            }
            let mut transport = json!({"type": "amqp", "endpoint": endpoint});
            if !self.options.is_empty() {
                transport["options"] = self.options.clone().into();
            }
            if !self.mechanisms.is_empty() {
                transport["mechanisms"] = self.mechanisms.clone().into();
            }
            transports.push(transport);
        }
        if transports.is_empty() {
            left_out.push("no listener is left: add one to `transports`".to_owned());
        }
        if let Some(port) = self.management.port {
            let endpoint = endpoint(port, self.management.interface.as_deref());
            transports.push(json!({"type": "amqp.management", "endpoint": endpoint}));
        }
        transports
    }

    fn tls(&self) -> Option<Json> {
        let tls = &self.tls;
        let mut made = json!({"key": tls.key.as_ref()?, "certificate": tls.certificate.as_ref()?});
        if let Some(authorities) = tls.authorities.as_ref().filter(|_| tls.asks_clients) {
            made["ca_certificates"] = json!([authorities]);
            if !tls.is_required {
                made["client_certificate"] = "optional".into();
            }
        }
        Some(made)
    }
}

fn endpoint(port: u16, interface: Option<&str>) -> Json {
    let mut endpoint = json!({"type": "tcp", "port": port});
    if let Some(interface) = interface {
        endpoint["interface"] = interface.into();
        if interface.contains(':') {
            endpoint["version"] = 6.into();
        }
    }
    endpoint
}

/// A port, or an address with one.
fn address(value: &str) -> Result<(Option<String>, u16), String> {
    let Some((interface, last)) = value.rsplit_once(':') else {
        return Ok((None, port(value)?));
    };
    let interface = interface.trim_start_matches('[').trim_end_matches(']');
    Ok((Some(interface.to_owned()), port(last)?))
}

fn port(value: &str) -> Result<u16, String> {
    let port = value.parse();
    port.map_err(|_| format!("expected a port, got {value}"))
}

fn number(value: &str) -> Result<u64, String> {
    let number = value.parse();
    number.map_err(|_| format!("expected a whole number, got {value}"))
}

fn within(value: u64, may: &RangeInclusive<u64>) -> Result<u64, String> {
    match may.contains(&value) {
        true => Ok(value),
        false => Err(format!(
            "expected {} to {}, got {value}: the default stays",
            may.start(),
            may.end()
        )),
    }
}

fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("expected true or false, got {other}")),
    }
}

/// Bytes with RabbitMQ's units.
fn bytes(value: &str) -> Result<u64, String> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &value[digits.len()..] {
        "" | "B" => 1,
        "k" | "K" | "kiB" | "KiB" => 1 << 10,
        "kB" | "KB" => 1_000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        other => return Err(format!("expected a size, got the unit {other}")),
    };
    let number = number(digits.trim_end())?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("expected a size, got {value}"))
}
