//! MQTT, over TCP and over WebSocket: the keys of the plugins `rabbitmq_mqtt` and `rabbitmq_web_mqtt`.

use crosstie_config::catalogue::Rule;
use crosstie_config::{Definitions, SettingKind};
use serde_json::{Map, Value as Json, json};

use super::listeners::{Listener, Place, Tls, asks_for_certificates, endpoint};
use super::values::{address, boolean, fitting, number, within};

/// The settings of both plugins that were taken.
#[derive(Default)]
pub(super) struct Mqtt {
    /// A key names MQTT. A RabbitMQ with the plugin of WebSockets has the other one, too.
    is_named: bool,
    has_no_tcp: bool,
    listeners: Vec<Listener>,
    /// `vhost`, `exchange`, `prefetch`.
    options: Map<String, Json>,
    /// The user of clients without a user name, by the keys of version 3 or by those of version 4.
    user: Option<String>,
    password: Option<String>,
    is_user_of_4: bool,
    is_anonymous_allowed: Option<bool>,
    is_certificate_login: bool,
    expiry_s: Option<u64>,
    web: Web,
}

/// The listeners of WebSockets.
#[derive(Default)]
struct Web {
    is_named: bool,
    plain: Place,
    secure: Place,
    has_no_plain: bool,
    has_no_secure: bool,
    tls: Tls,
    path: Option<String>,
    connections_max: Option<u64>,
}

/// The name and the password of the user that RabbitMQ has by itself.
pub(super) const GUEST: &str = "guest";

/// Tells whether a password is that of the user with a name.
pub(super) type IsRight<'f> = &'f dyn Fn(&str, &[u8]) -> bool;

const MQTT_PORT: u16 = 1883;
const WEB_PORT: u16 = 15_675;

/// Time for which the session of an absent client is kept at most, in seconds: queues expire by 32 bits of milliseconds.
pub(super) const EXPIRY_S_MAX: u64 = u32::MAX as u64 / 1_000;

const NO_CERTIFICATES: &str = "no listener asks clients for certificates: it needs ssl_options.verify = verify_peer and \
                               ssl_options.cacertfile, or those of web_mqtt.ssl";

const PROXIES: &str = "name the proxies that send it, by `proxy_protocol` of the endpoint";

/// RabbitMQ's stores of retained messages, in a file and in memory. The messages are durable here, which is more than the
/// second one asks for.
const STORES: [&str; 2] = [
    "rabbit_mqtt_retained_msg_store_dets",
    "rabbit_mqtt_retained_msg_store_ets",
];

/// Beginnings of other keys of MQTT: the value that changes nothing here, and the reason for leaving out any other.
#[rustfmt::skip]
const OTHERS: &[(&str, Option<&str>, &str)] = &[
    ("durable_queue_type", Some("classic"), "queues of sessions are classic, and have copies if their vhost is replicated"),
    ("login_timeout", None, "the bound of all logins is `limits.handshake_timeout_ms`"),
    ("num_acceptors.", None, "listeners are served by the threads of the node"),
    ("proxy_protocol", Some("false"), PROXIES),
    ("retained_message_store", None, "retained messages are in the store of the broker"),
    ("sparkplug", Some("false"), "a dot in a topic arrives as a slash, also in spBv1.0"),
    ("tcp_listen_options", None, "sockets are tuned by the node"),
];

/// The same for WebSockets.
#[rustfmt::skip]
const OTHERS_OF_WEB: &[(&str, Option<&str>, &str)] = &[
    ("cowboy_opts.", None, "requests have the bounds of any WebSocket"),
    ("max_connections", Some("infinity"), "expected a number of at least 1"),
    ("num_acceptors.", None, "listeners are served by the threads of the node"),
    ("proxy_protocol", Some("false"), PROXIES),
    ("ssl.", None, "TLS has the versions and ciphers of any listener"),
    ("tcp.", None, "sockets are tuned by the node"),
    ("ws_opts.", None, "WebSockets have their own options"),
];

impl Mqtt {
    /// Takes a key of the plugins; `None` if it is another one's.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let web = key.strip_prefix("web_mqtt.");
        let part = web.or_else(|| key.strip_prefix("mqtt."))?;
        self.is_named = true;
        Some(match web {
            Some(part) => self.web.take(part, value),
            None => self.take_part(key, part, value),
        })
    }

    fn take_part(&mut self, key: &str, part: &str, value: &str) -> Result<(), String> {
        let owned = || Some(value.to_owned());
        match part {
            "listeners.tcp" if value == "none" => self.has_no_tcp = true,
            "listeners.ssl" if value == "none" => {}
            "vhost" | "exchange" => self.option(part, fitting(Rule::ShortText, value)?),
            "prefetch" => self.option(part, within(number(value)?, &(1..=65_535))?.into()),
            "default_user" => self.user = owned(),
            "default_pass" => self.password = owned(),
            "allow_anonymous" => self.is_anonymous_allowed = Some(boolean(value)?),
            "ssl_cert_login" => self.is_certificate_login = boolean(value)?,
            "retained_message_store" if STORES.contains(&value) => {}
            "subscription_ttl" => return self.take_expiry(value),
            _ if part.starts_with("listeners.tcp.") || part.starts_with("listeners.ssl.") => {
                let (interface, port) = address(value)?;
                self.listeners.push(Listener {
                    key: key.to_owned(),
                    port,
                    interface,
                    is_tls: part.starts_with("listeners.ssl."),
                });
            }
            _ => return other(OTHERS, part, value),
        }
        Ok(())
    }

    /// Takes a key of RabbitMQ 4 on clients without a user name, which are those of MQTT here; `None` if it is another key.
    /// It does not tell whether MQTT was on.
    pub(super) fn take_anonymous(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "anonymous_login_user" => self.user = Some(value.to_owned()),
            "anonymous_login_pass" => self.password = Some(value.to_owned()),
            _ => return None,
        }
        self.is_user_of_4 = true;
        Some(())
    }

    fn option(&mut self, key: &str, value: Json) {
        self.options.insert(key.to_owned(), value);
    }

    fn take_expiry(&mut self, value: &str) -> Result<(), String> {
        let seconds = match value {
            "undefined" | "infinity" => u64::MAX,
            value => number(value)?.div_ceil(1_000),
        };
        self.expiry_s = Some(seconds.min(EXPIRY_S_MAX));
        match seconds > EXPIRY_S_MAX {
            true => Err(format!(
                "sessions are kept for {EXPIRY_S_MAX} seconds at most"
            )),
            false => Ok(()),
        }
    }

    /// A note on the plugins: the files do not tell whether they were enabled.
    pub(super) fn note(&self) -> &'static str {
        match self.is_named {
            true => {
                "MQTT is served, since a key names it: whether its plugin was enabled is in none of these files"
            }
            false => {
                "MQTT is not served, since no key names it: if its plugin was enabled, add mqtt.listeners.tcp.1 = 1883 to \
                 rabbitmq.conf, and web_mqtt.tcp.port = 15675 for WebSockets"
            }
        }
    }

    /// The node's limits.
    pub(super) fn limits(&self) -> Option<Json> {
        let expiry_s = self.expiry_s?;
        Some(json!({"mqtt_session_expiry_3_seconds": expiry_s}))
    }

    /// The transports. `anonymous` is the user of clients without a user name.
    pub(super) fn transports(
        &self,
        tls: &Tls,
        anonymous: Option<&str>,
        definitions: Option<&Definitions>,
        left_out: &mut Vec<String>,
    ) -> Vec<Json> {
        if !self.is_named {
            return Vec::new();
        }
        let mut options = self.options.clone();
        options.entry("vhost").or_insert_with(|| "/".into());
        if let Some(name) = anonymous {
            options.insert("anonymous_user".to_owned(), name.into());
        }
        let vhosts = definitions.and_then(ports);
        let options = |port: u16, asks_clients: bool| {
            let mut options = options.clone();
            if asks_clients && self.is_certificate_login {
                options.insert("certificate_login".to_owned(), true.into());
            }
            let named = vhosts
                .as_ref()
                .and_then(|vhosts| vhosts.get(&port.to_string()));
            if let Some(vhost) = named {
                options.insert("vhost".to_owned(), vhost.clone());
            }
            json!({"options": options})
        };
        let default = Listener {
            key: String::new(),
            port: MQTT_PORT,
            interface: None,
            is_tls: false,
        };
        let has_default = !self.has_no_tcp && self.listeners.iter().all(|listener| listener.is_tls);
        let default = has_default.then_some(&default);
        let mut transports = Vec::new();
        let mut asks_any = false;
        for listener in default.into_iter().chain(&self.listeners) {
            let mut asks_clients = false;
            let mut endpoint = endpoint(listener.port, listener.interface.as_deref());
            if listener.is_tls {
                match tls.made("ssl_options") {
                    Ok(tls) => {
                        asks_clients = asks_for_certificates(&tls);
                        endpoint["tls"] = tls;
                    }
                    Err(why) => {
                        left_out.push(format!("{}: {why}", listener.key));
                        continue;
                    }
                }
            } else if self.has_no_tcp {
                continue;
            }
            asks_any |= asks_clients;
            let mut transport = options(listener.port, asks_clients);
            transport["type"] = "mqtt".into();
            transport["endpoint"] = endpoint;
            transports.push(transport);
        }
        asks_any |= self.web.transports(&options, &mut transports, left_out);
        if self.is_certificate_login && !asks_any {
            left_out.push(format!("mqtt.ssl_cert_login: {NO_CERTIFICATES}"));
        }
        transports
    }

    /// The user of clients without a user name: RabbitMQ logs them in by name and password. Without `is_right`, another
    /// server decides on that.
    pub(super) fn anonymous(
        &self,
        is_right: Option<IsRight<'_>>,
        left_out: &mut Vec<String>,
    ) -> Option<&str> {
        let is_off = self.is_user_of_4 && self.user.as_deref() == Some("none");
        if self.is_user_of_4 && !is_off && !self.is_named {
            let why = "MQTT is not served, and there is no mechanism ANONYMOUS";
            left_out.push(format!("anonymous_login_user: {why}"));
        }
        if !self.is_named || is_off || self.is_anonymous_allowed == Some(false) {
            return None;
        }
        let name = self.user.as_deref().unwrap_or(GUEST);
        let password = self.password.as_deref().unwrap_or(GUEST);
        let [name_key, password_key] = match self.is_user_of_4 {
            true => ["anonymous_login_user", "anonymous_login_pass"],
            false => ["mqtt.default_user", "mqtt.default_pass"],
        };
        let why = match is_right {
            Some(is_right) if is_right(name, password.as_bytes()) => return Some(name),
            Some(_) => format!("no user has that name and the password of {password_key}"),
            None => "another server than this one decides on logins".to_owned(),
        };
        // RabbitMQ's own `guest` is often gone, and such clients are refused there, too.
        if self.user.is_some() || self.password.is_some() || self.is_anonymous_allowed.is_some() {
            left_out.push(format!(
                "{name_key}: {why}: clients without a user name are refused"
            ));
        }
        None
    }
}

impl Web {
    fn take(&mut self, part: &str, value: &str) -> Result<(), String> {
        self.is_named = true;
        match part {
            "tcp.listener" if value == "none" => self.has_no_plain = true,
            "ssl.listener" if value == "none" => self.has_no_secure = true,
            "tcp.listener" => self.plain.take_address(value)?,
            "ssl.listener" => self.secure.take_address(value)?,
            "tcp.port" | "tcp.ip" => self.plain.take(&part[4..], value)?,
            "ssl.port" | "ssl.ip" => self.secure.take(&part[4..], value)?,
            "ssl.certfile"
            | "ssl.keyfile"
            | "ssl.cacertfile"
            | "ssl.verify"
            | "ssl.fail_if_no_peer_cert" => {
                self.secure.is_named = true;
                self.tls.take(&part[4..], value)?;
            }
            "ws_path" => {
                let path = match value.strip_prefix('/') {
                    Some("") | None => value,
                    Some(rest) => rest,
                };
                fitting(Rule::WebPath, path)?;
                self.path = Some(path.to_owned());
            }
            "max_connections" if value != "infinity" => {
                self.connections_max = Some(within(number(value)?, &(1..=u32::MAX.into()))?);
            }
            _ => return other(OTHERS_OF_WEB, part, value),
        }
        Ok(())
    }

    /// Adds the transports. Returns whether one asks clients for certificates.
    fn transports(
        &self,
        options: &dyn Fn(u16, bool) -> Json,
        transports: &mut Vec<Json>,
        left_out: &mut Vec<String>,
    ) -> bool {
        let mut push = |place: &Place, tls: Option<Json>| {
            let mut endpoint = place.endpoint(WEB_PORT);
            let asks_clients = tls.as_ref().is_some_and(asks_for_certificates);
            if let Some(tls) = tls {
                endpoint["tls"] = tls;
            }
            let path = self.path.as_deref().unwrap_or("ws");
            let mut transport = json!({
                "type": "universal",
                "endpoint": endpoint,
                "websocket": {path: {"mqtt": options(place.port.unwrap_or(WEB_PORT), asks_clients)}},
            });
            if let Some(max) = self.connections_max {
                transport["max_connections"] = max.into();
            }
            transports.push(transport);
            asks_clients
        };
        if self.is_named && !self.has_no_plain {
            push(&self.plain, None);
        }
        if self.secure.is_named && !self.has_no_secure {
            match self.tls.made("web_mqtt.ssl") {
                Ok(tls) => return push(&self.secure, Some(tls)),
                Err(why) => left_out.push(format!("web_mqtt.ssl: {why}")),
            }
        }
        false
    }
}

fn other(known: &[(&str, Option<&str>, &str)], part: &str, value: &str) -> Result<(), String> {
    let mut known = known.iter();
    match known.find(|(beginning, _, _)| part.starts_with(beginning)) {
        Some((_, Some(same), _)) if *same == value => Ok(()),
        Some((_, _, why)) => Err((*why).to_owned()),
        None => Err("it is not known".to_owned()),
    }
}

/// The vhosts of clients by their port, if definitions name them.
fn ports(definitions: &Definitions) -> Option<Map<String, Json>> {
    let mut settings = definitions.settings.iter();
    let named = settings.find(|setting| {
        setting.kind == SettingKind::GlobalParameter && setting.name == "mqtt_port_to_vhost_mapping"
    });
    match named?.body.get("value")? {
        Json::Object(ports) => Some(ports.clone()),
        // The form of `rabbitmqctl export_definitions`.
        Json::Array(pairs) => {
            let pairs = pairs.iter().filter_map(|pair| {
                let [port, vhost] = pair.as_array()?.as_slice() else {
                    return None;
                };
                Some((port.as_str()?.to_owned(), vhost.clone()))
            });
            Some(pairs.collect())
        }
        _ => None,
    }
}
