//! Backends of logins: `auth_backends`, `auth_http` and `auth_oauth2`.

use std::collections::BTreeMap;
use std::path::Path;

use crosstie_auth::wamp::jwt::Algorithm;
use crosstie_auth::x509::public_key::members_of_pem;
use crosstie_config::catalogue::Rule;
use serde_json::{Map, Value as Json, json};

use super::files::read;
use super::values::{fitting, number, within};

/// The backends and the keys of each.
#[derive(Default)]
pub(super) struct Backends {
    /// By their numbers.
    order: BTreeMap<u32, &'static str>,
    /// Some are named, even if there is none of them here.
    is_named: bool,
    http: Map<String, Json>,
    /// A setting of `auth_http` that is left out. Another server than the one that is meant gets no passwords.
    http_lacks: Option<String>,
    oauth2: Map<String, Json>,
    algorithms: Vec<Algorithm>,
    names_algorithms: bool,
    keys: Vec<Json>,
}

/// The file of the keys, in the node's directory.
pub(super) const KEYS: &str = "oauth2-keys.json";

/// Maximum size of a file with a key, in bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// The URLs that RabbitMQ's plugin asks by default.
const HTTP_PATHS: [(&str, &str); 4] = [
    ("user_path", "http://localhost:8000/auth/user"),
    ("vhost_path", "http://localhost:8000/auth/vhost"),
    ("resource_path", "http://localhost:8000/auth/resource"),
    ("topic_path", "http://localhost:8000/auth/topic"),
];

impl Backends {
    /// Whether a key is one of these.
    pub(super) fn has(key: &str) -> bool {
        let beginnings = ["auth_backends.", "auth_http.", "auth_oauth2."];
        beginnings
            .iter()
            .any(|beginning| key.starts_with(beginning))
    }

    /// Takes a setting, or returns the reason for leaving it out.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (of, part) = key.split_once('.').unwrap_or((key, ""));
        match of {
            "auth_backends" => self.take_backend(part, value),
            "auth_http" => self.take_http(part, value).inspect_err(|_| {
                let is_url = HTTP_PATHS.iter().any(|(path, _)| *path == part);
                self.http_lacks = self
                    .http_lacks
                    .take()
                    .or_else(|| is_url.then(|| part.to_owned()));
            }),
            _ => self.take_oauth2(part, value),
        }
    }

    /// Whether the broker alone decides on logins.
    pub(super) fn are_internal(&self) -> bool {
        self.order.values().all(|kind| *kind == "internal")
    }

    fn take_backend(&mut self, place: &str, value: &str) -> Result<(), String> {
        self.is_named = true;
        let place = place.parse().map_err(|_| {
            "a login and the rights of its user are decided by one backend".to_owned()
        })?;
        let kind = match value.trim_start_matches("rabbit_auth_backend_") {
            "internal" => "internal",
            "http" => "http",
            "oauth2" => "oauth2",
            "ldap" => {
                return Err(
                    "there is no LDAP: let a server ask it, as the backend `http`".to_owned(),
                );
            }
            "cache" => return Err("the backend `http` has a cache: name what it keeps".to_owned()),
            other => return Err(format!("there is no backend {other}")),
        };
        if self.order.values().any(|known| *known == kind) {
            return Err("it is named twice".to_owned());
        }
        self.order.insert(place, kind);
        Ok(())
    }

    fn take_http(&mut self, part: &str, value: &str) -> Result<(), String> {
        let (key, value) = match part {
            "user_path" | "vhost_path" | "resource_path" | "topic_path" => {
                (part, fitting(Rule::BareHttpUrl, value)?)
            }
            "http_method" if ["get", "post"].contains(&value) => (part, value.into()),
            "http_method" => return Err(format!("expected get or post, found {value}")),
            "request_timeout" => ("timeout_ms", within(number(value)?, &(1..=60_000))?.into()),
            "connection_timeout" => return Err("`timeout_ms` bounds the whole answer".to_owned()),
            _ => return Err("it is not known".to_owned()),
        };
        self.http.insert(key.to_owned(), value);
        Ok(())
    }

    fn take_oauth2(&mut self, part: &str, value: &str) -> Result<(), String> {
        if let Some(id) = part.strip_prefix("signing_keys.") {
            self.keys.push(key_of_file(id, Path::new(value))?);
            return Ok(());
        }
        if part.starts_with("algorithms.") {
            self.names_algorithms = true;
            let algorithm = Algorithm::parse(value);
            let unknown = || format!("tokens are not verified by {value}");
            self.algorithms.push(algorithm.ok_or_else(unknown)?);
            return Ok(());
        }
        let value = match part {
            "resource_server_id" | "additional_scopes_key" | "default_key" => {
                fitting(Rule::NotEmpty, value)?
            }
            "jwks_url" => fitting(Rule::HttpUrl, value)?,
            "https.cacertfile" => json!([fitting(Rule::Path, value)?]),
            "https.peer_verification" if value == "verify_peer" => return Ok(()),
            "https.peer_verification" => {
                return Err("the certificate of the keys' server is always verified".to_owned());
            }
            "https.hostname_verification" if value == "wildcard" => return Ok(()),
            _ if part.starts_with("https.") => {
                return Err(
                    "the certificate of the keys' server is verified as for browsers".to_owned(),
                );
            }
            _ => return Err("it is not known".to_owned()),
        };
        let key = match part {
            "https.cacertfile" => "jwks_ca_certificates",
            part => part,
        };
        self.oauth2.insert(key.to_owned(), value);
        Ok(())
    }

    /// The backends in their order. `None`: the node's own users, as none is named. An error is the reason why nobody may
    /// log in.
    pub(super) fn made(&self, left_out: &mut Vec<String>) -> Result<Option<Json>, &'static str> {
        let is_unused = |kind| !self.order.values().any(|named| *named == kind);
        if is_unused("http") && !self.http.is_empty() {
            left_out.push("auth_http: no auth_backends names it".to_owned());
        }
        if is_unused("oauth2") && (!self.oauth2.is_empty() || !self.keys.is_empty()) {
            left_out.push("auth_oauth2: no auth_backends names it".to_owned());
        }
        if !self.is_named {
            return Ok(None);
        }
        let mut made = Vec::new();
        for kind in self.order.values() {
            match *kind {
                "http" => match &self.http_lacks {
                    None => made.push(self.made_http()),
                    Some(key) => left_out.push(format!("auth_http: its {key} is left out")),
                },
                "oauth2" => match self.made_oauth2(left_out) {
                    Ok(backend) => made.push(backend),
                    Err(why) => left_out.push(format!("auth_oauth2: {why}")),
                },
                kind => made.push(json!({"type": kind})),
            }
        }
        match made.is_empty() {
            true => Err("none of the auth_backends is left, so that nobody may log in"),
            false => Ok(Some(made.into())),
        }
    }

    fn made_http(&self) -> Json {
        let mut made = json!({"type": "http"});
        for (key, default) in HTTP_PATHS {
            made[key] = default.into();
        }
        for (key, value) in &self.http {
            made[key] = value.clone();
        }
        made
    }

    fn made_oauth2(&self, left_out: &mut Vec<String>) -> Result<Json, &'static str> {
        let mut made = json!({"type": "oauth2"});
        for (key, value) in &self.oauth2 {
            made[key] = value.clone();
        }
        if self.names_algorithms {
            let algorithms = self.algorithms.iter().map(|algorithm| algorithm.name());
            made["algorithms"] = algorithms.collect();
        }
        if self.names_algorithms && self.algorithms.is_empty() {
            return Err("none of its algorithms is left");
        }
        let has_url = self.oauth2.contains_key("jwks_url");
        match (has_url, self.keys.is_empty()) {
            (false, true) => return Err("it needs jwks_url or signing_keys"),
            (false, false) => made["jwks_file"] = KEYS.into(),
            (true, true) => {}
            (true, false) => {
                left_out.push("auth_oauth2.signing_keys: jwks_url has the keys".to_owned());
            }
        }
        if !has_url
            && let Some(made) = made.as_object_mut()
            && made.remove("jwks_ca_certificates").is_some()
        {
            left_out.push("auth_oauth2.https.cacertfile: no jwks_url is asked".to_owned());
        }
        Ok(made)
    }

    /// The text of the file of keys.
    pub(super) fn keys(&self) -> Json {
        json!({"keys": self.keys})
    }
}

/// The public key in a PEM file, as a JSON Web Key.
fn key_of_file(id: &str, path: &Path) -> Result<Json, String> {
    let pem = read(path, KEY_BYTES_MAX).map_err(|e| format!("{e:#}"))?;
    let members = members_of_pem(&pem).ok_or_else(|| {
        format!(
            "{}: expected a public key in PEM, RSA, EC on P-256 or P-384, or Ed25519",
            path.display()
        )
    })?;
    let mut key = json!({"kid": id});
    for (name, value) in members {
        key[name] = value.into();
    }
    Ok(key)
}
