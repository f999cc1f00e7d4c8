//! The keys of `rabbitmq.conf`, and what they are here.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crosstie_auth::PasswordHash;
use crosstie_config::{AmqpUser, Definitions};
use serde_json::{Map, Value as Json, json};

use super::backends::Backends;
use super::conf::Setting;
use super::listeners::{
    Listener, MANAGEMENT, PROMETHEUS, Pages, Tls, asks_for_certificates, endpoint,
};
use super::mqtt::{GUEST, IsRight, Mqtt};
use super::values::{address, boolean, bytes, number, within};

/// The settings that were taken.
pub(super) struct Made {
    listeners: Vec<Listener>,
    has_tcp: bool,
    tls: Tls,
    user: User,
    limits: Map<String, Json>,
    options: Map<String, Json>,
    mechanisms: Vec<String>,
    /// Mechanisms are named, even if there is none of them here.
    names_mechanisms: bool,
    cluster_name: Option<String>,
    pages: [Pages; 2],
    pub(super) mqtt: Mqtt,
    pub(super) backends: Backends,
}

/// The user that a first start creates.
#[derive(Default)]
struct User {
    name: Option<String>,
    password: Option<String>,
    vhost: Option<String>,
    tags: Vec<String>,
    /// A tag is named, also one that the user does not have.
    names_tags: bool,
    permissions: Map<String, Json>,
    /// Users by name, and whether each logs in from this machine only.
    loopback: BTreeMap<String, bool>,
}

/// Beginnings of keys that are left out, each with the reason.
#[rustfmt::skip]
const LEFT_OUT: &[(&str, &str)] = &[
    ("auth_ldap.", "there is no LDAP"),
    ("cluster_formation.", "nodes share vhosts by `replicated`, not by a cluster"),
    ("cluster_", "nodes share vhosts by `replicated`, not by a cluster"),
    ("collect_statistics", "figures are always the present ones"),
    ("management.load_definitions", DEFINITIONS),
    ("load_definitions", DEFINITIONS),
    ("definitions.", DEFINITIONS),
    ("log.", "the log goes to the standard error stream; `--loglevel` filters it"),
    ("net_ticktime", "it is about clusters of Erlang"),
    ("prometheus.path", "the path is /metrics"),
    ("prometheus.return_per_object_metrics", "the path /metrics/per-object has the metrics of each object"),
    ("queue_master_locator", "a queue is on its vhost's node"),
    ("stomp.", "there is no STOMP"),
    ("stream.", "the stream protocol is not spoken"),
    ("tcp_listen_options.", "sockets are tuned by the node"),
    ("vm_memory_high_watermark.relative", "messages have a bound in bytes: `limits.memory_bytes_max`"),
    ("disk_free_limit.relative", "the bound is in bytes: `limits.disk_free_bytes_min`"),
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
            names_mechanisms: false,
            cluster_name: None,
            pages: [Pages::of(MANAGEMENT), Pages::of(PROMETHEUS)],
            mqtt: Mqtt::default(),
            backends: Backends::default(),
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
            _ => return self.take_part(setting, has_definitions),
        }
        Ok(())
    }

    /// Takes a key of TLS, or of a plugin.
    fn take_part(&mut self, setting: &Setting<'_>, has_definitions: bool) -> Result<(), String> {
        let Setting { key, value } = *setting;
        if let Some(part) = key.strip_prefix("ssl_options.") {
            return self.tls.take(part, value);
        }
        let taken = self
            .pages
            .iter_mut()
            .find_map(|pages| pages.take(key, value))
            .or_else(|| self.mqtt.take(key, value));
        taken.unwrap_or_else(|| self.take_other(setting, has_definitions))
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
            self.names_mechanisms = true;
            return match value {
                "PLAIN" | "AMQPLAIN" | "EXTERNAL" => {
                    self.mechanisms.push(value.to_owned());
                    Ok(())
                }
                other => Err(format!("there is no mechanism {other}")),
            };
        }
        if self.mqtt.take_anonymous(key, value).is_some() {
            return Ok(());
        }
        if Backends::has(key) {
            return self.backends.take(key, value);
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
        if let Some(name) = key.strip_prefix("loopback_users.") {
            self.user.loopback.insert(name.to_owned(), boolean(value)?);
            return Ok(());
        }
        if key == "loopback_users" && value == "none" {
            self.user.loopback.insert(GUEST.to_owned(), false);
            return Ok(());
        }
        if has_definitions {
            return Err(OF_DEFINITIONS.to_owned());
        }
        let user = &mut self.user;
        match key {
            "default_queue_type" => {}
            "default_user" => user.name = Some(value.to_owned()),
            "default_pass" => user.password = Some(value.to_owned()),
            "default_vhost" => user.vhost = Some(value.to_owned()),
            "default_permissions.configure"
            | "default_permissions.write"
            | "default_permissions.read" => {
                let kind = key.trim_start_matches("default_permissions.");
                user.permissions.insert(kind.to_owned(), value.into());
            }
            _ => match key.strip_prefix("default_user_tags.") {
                Some(tag) => {
                    user.names_tags = true;
                    if boolean(value)? {
                        user.tags.push(tag.to_owned());
                    }
                }
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
    pub(super) fn amqp(
        &self,
        definitions: Option<&Definitions>,
        salt: [u8; 4],
        left_out: &mut Vec<String>,
    ) -> Json {
        let mut amqp = json!({"store": "amqp.store"});
        let name = self.user.name.as_deref().unwrap_or(GUEST);
        if let Some(definitions) = definitions {
            // Users of the configuration replace those of definitions.
            let users = definitions.users.iter().filter_map(|user| {
                let is_restricted = self.user.is_restricted(&user.name);
                (is_restricted == user.is_remote_allowed).then(|| own(user, is_restricted))
            });
            let users: Vec<_> = users.collect();
            if !users.is_empty() {
                amqp["users"] = users.into();
            }
        } else if let Some((user, vhost)) = self.default_user(name, salt) {
            amqp["users"] = json!([user]);
            amqp["vhosts"] = json!([vhost]);
        }
        let is_there = |other: &str| match definitions {
            Some(definitions) => definitions.users.iter().any(|user| user.name == other),
            None => other == name,
        };
        for (name, is_restricted) in &self.user.loopback {
            if *is_restricted != (name == GUEST) && !is_there(name) {
                left_out.push(format!("loopback_users.{name}: there is no such user"));
            }
        }
        if !self.limits.is_empty() {
            amqp["limits"] = self.limits.clone().into();
        }
        if let Some(name) = &self.cluster_name {
            amqp["identity"] = json!({"cluster_name": name});
        }
        amqp
    }

    /// The user that a first start creates with its vhost, unless it is the one that a node has by default.
    fn default_user(&self, name: &str, salt: [u8; 4]) -> Option<(Json, Json)> {
        let user = &self.user;
        let has_own = user.name.is_some() || user.password.is_some() || user.vhost.is_some();
        let is_restricted = user.is_restricted(name);
        let is_default =
            !has_own && user.permissions.is_empty() && !user.names_tags && is_restricted;
        if is_default {
            return None;
        }
        let password = user.password.as_deref().unwrap_or(GUEST);
        let hash = PasswordHash::of(password.as_bytes(), salt);
        let mut tags = user.tags.clone();
        if !user.names_tags {
            tags.push("administrator".to_owned());
        }
        let made = json!({
            "name": name,
            // The configuration might take the password itself for a variable.
            "password_hash": hash.to_text(),
            "tags": tags,
            "loopback_only": is_restricted,
        });
        let mut permission = json!({"user": name, "configure": ".*", "write": ".*", "read": ".*"});
        for (kind, pattern) in &user.permissions {
            permission[kind] = pattern.clone();
        }
        let vhost = user.vhost.as_deref().unwrap_or("/");
        Some((made, json!({"name": vhost, "permissions": [permission]})))
    }

    /// The listeners. One that needs what is not there is left out.
    pub(super) fn transports(
        &self,
        definitions: Option<&Definitions>,
        left_out: &mut Vec<String>,
    ) -> Vec<Json> {
        let mut listeners: Vec<_> = self.listeners.iter().collect();
        let default = Listener {
            key: "listeners.tcp.default".to_owned(),
            port: 5672,
            interface: None,
            is_tls: false,
        };
        match self.has_tcp {
            true if listeners.iter().all(|listener| listener.is_tls) => {
                listeners.insert(0, &default);
            }
            true => {}
            false => listeners.retain(|listener| listener.is_tls),
        }
        let mut transports = Vec::new();
        for listener in listeners {
            match self.transport(listener) {
                Ok(transport) => transports.push(transport),
                Err(why) => left_out.push(format!("{}: {why}", listener.key)),
            }
        }
        transports.extend(self.mqtt_transports(definitions, left_out));
        if transports.is_empty() {
            left_out.push("no listener is left: add one to `transports`".to_owned());
        }
        for pages in &self.pages {
            transports.extend(pages.transports(left_out));
        }
        transports
    }

    fn mqtt_transports(
        &self,
        definitions: Option<&Definitions>,
        left_out: &mut Vec<String>,
    ) -> Vec<Json> {
        let is_right = |name: &str, password: &[u8]| match definitions {
            Some(definitions) => {
                let mut users = definitions.users.iter();
                let user = users.find(|user| user.name == name);
                let hash = user.and_then(|user| user.password.as_ref());
                hash.is_some_and(|hash| !password.is_empty() && hash.verify(password))
            }
            None => {
                let own = [&self.user.name, &self.user.password];
                own.map(|own| own.as_deref().unwrap_or(GUEST).as_bytes())
                    == [name.as_bytes(), password]
            }
        };
        let is_right: IsRight<'_> = &is_right;
        let is_right = self.backends.are_internal().then_some(is_right);
        let anonymous = self.mqtt.anonymous(is_right, left_out);
        self.mqtt
            .transports(&self.tls, anonymous, definitions, left_out)
    }

    fn transport(&self, listener: &Listener) -> Result<Json, String> {
        let mut endpoint = endpoint(listener.port, listener.interface.as_deref());
        let mut asks_clients = false;
        if listener.is_tls {
            let tls = self.tls.made("ssl_options")?;
            asks_clients = asks_for_certificates(&tls);
            endpoint["tls"] = tls;
        }
        let mut transport = json!({"type": "amqp", "endpoint": endpoint});
        if !self.options.is_empty() {
            transport["options"] = self.options.clone().into();
        }
        if self.names_mechanisms {
            let mechanisms = self.mechanisms.iter();
            let mechanisms = mechanisms.filter(|name| asks_clients || *name != "EXTERNAL");
            let mechanisms: Vec<_> = mechanisms.collect();
            if mechanisms.is_empty() {
                return Err("none of its mechanisms is offered here".to_owned());
            }
            transport["mechanisms"] = json!(mechanisms);
        }
        Ok(transport)
    }
}

impl User {
    /// Whether a user logs in from this machine only.
    fn is_restricted(&self, name: &str) -> bool {
        self.loopback.get(name).copied().unwrap_or(name == GUEST)
    }
}

/// A user of definitions as one of the configuration.
fn own(user: &AmqpUser, is_restricted: bool) -> Json {
    let mut made = json!({"name": user.name, "tags": user.tags, "loopback_only": is_restricted});
    if let Some(hash) = &user.password {
        made["password_hash"] = hash.to_text().into();
        made["hashing_algorithm"] = hash.algorithm().into();
    }
    made
}
