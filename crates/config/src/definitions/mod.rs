//! A RabbitMQ definitions file: what `rabbitmqctl export_definitions` and its management pages
//! write, versions 3 and 4.
//!
//! Supported parts are read. Others are listed with the reason ([`Definitions::skipped`]), because an operator who
//! moves a broker must know the differences. Only a file that RabbitMQ did not write is an error.

mod settings;
mod skipped;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};

use crosstie_auth::{PasswordHash, Permissions};

use crate::amqp::{GUEST, hash};
use crate::model::{
    AmqpPermission, AmqpUser, AmqpVhost, DefinedBinding, DefinedExchange, DefinedQueue,
    Definitions, Json, Present, Skipped,
};
use skipped::{reason_for_exchange, reason_for_queue, skip};
use value::Value;

/// Maximum size of a definitions file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The reason why a file is not a definitions file.
#[derive(Debug)]
pub struct NoDefinitions {
    pub path: PathBuf,
    /// With the path to the wrong part of the file.
    pub reason: String,
}

impl Definitions {
    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self, NoDefinitions> {
        let failed = |reason: String| NoDefinitions {
            path: path.into(),
            reason,
        };
        let bytes = crate::read(path, FILE_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
        Self::parse(&bytes).map_err(failed)
    }

    /// Reads a file's bytes. The error names the problem and its place.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        Self::read(bytes, None)
    }

    /// The same for a broker that runs. An absent vhost is an error, and users and permissions are settings
    /// like the others. Bindings may be between objects that the file does not have.
    pub fn parse_for(bytes: &[u8], present: Present<'_>) -> Result<Self, String> {
        Self::read(bytes, Some(present))
    }

    fn read(bytes: &[u8], present: Option<Present<'_>>) -> Result<Self, String> {
        let json: Json =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
        if !json.is_object() {
            return Err(
                "an object is expected, as `rabbitmqctl export_definitions` writes it".into(),
            );
        }
        let file = Value::whole(&json);
        let mut reading = Reading {
            version: version(&file)?,
            definitions: Self::default(),
            present,
        };
        reading.definitions.version = reading.version.clone();
        if present.is_none() {
            reading.users(&file)?;
        }
        reading.vhosts(&file)?;
        if present.is_none() {
            reading.permissions(&file)?;
        }
        reading.settings(&file)?;
        reading.exchanges(&file)?;
        reading.queues(&file)?;
        reading.bindings(&file)?;
        let more = skipped::in_file(&file, present.is_some_and(|present| present.only.is_some()))?;
        reading.definitions.skipped.extend(more);
        Ok(reading.definitions)
    }
}

struct Reading<'p> {
    version: Option<String>,
    definitions: Definitions,
    /// `None`: the file is read at the start.
    present: Option<Present<'p>>,
}

impl<'p> Reading<'p> {
    fn users(&mut self, file: &Value<'_>) -> Result<(), String> {
        for user in file.objects("users")? {
            self.definitions.names_users = true;
            let name = user.name("name")?.to_owned();
            let password = match self.password(&user, &name)? {
                Ok(password) => password,
                Err(why) => {
                    self.skip(format!("user '{name}'"), why);
                    continue;
                }
            };
            self.definitions.users.retain(|known| known.name != name);
            self.definitions.users.push(AmqpUser {
                password,
                tags: tags(&user),
                is_remote_allowed: name != GUEST,
                is_default: false,
                name,
            });
        }
        Ok(())
    }

    /// The hash of the password, or the reason for skipping the user.
    fn password(
        &self,
        user: &Value<'_>,
        name: &str,
    ) -> Result<Result<Option<PasswordHash>, String>, String> {
        let algorithm = match user.optional_text("hashing_algorithm")? {
            Some(algorithm) => algorithm,
            None => algorithm_of(self.version.as_deref()),
        };
        Ok(match user.optional_text("password_hash")? {
            // RabbitMQ writes a missing password this way.
            Some("") => Ok(None),
            Some(text) => PasswordHash::parse(text, Some(algorithm))
                .map(Some)
                .map_err(|error| error.to_string()),
            // Files written by hand may have a password in clear text.
            None => match user.optional_text("password")? {
                Some("") | None => Ok(None),
                Some(password) => Ok(Some(hash(name, password))),
            },
        })
    }

    fn vhosts(&mut self, file: &Value<'_>) -> Result<(), String> {
        if self.is_for_one() {
            return Ok(());
        }
        for vhost in file.objects("vhosts")? {
            let name = vhost.name("name")?;
            let more = skipped::of_vhost(&vhost, name);
            self.definitions.skipped.extend(more);
            if !self.has_vhost(name) {
                self.definitions.vhosts.push(AmqpVhost {
                    name: name.to_owned(),
                    permissions: Vec::new(),
                    replicated: None,
                    is_default: false,
                });
            }
        }
        Ok(())
    }

    fn permissions(&mut self, file: &Value<'_>) -> Result<(), String> {
        for permission in file.objects("permissions")? {
            let (user, vhost) = (permission.name("user")?, permission.name("vhost")?);
            let what = format!("permission of user '{user}' in vhost '{vhost}'");
            let [configure, write, read] = ["configure", "write", "read"]
                .map(|key| permission.optional_text(key).map(Option::unwrap_or_default));
            let (configure, write, read) = (configure?, write?, read?);
            if let Err(error) = Permissions::parse(configure, write, read) {
                self.skip(what, error.to_string());
                continue;
            }
            let mut vhosts = self.definitions.vhosts.iter_mut();
            let Some(found) = vhosts.find(|known| known.name == vhost) else {
                self.skip(what, "the file has no such vhost");
                continue;
            };
            found.permissions.retain(|known| known.user != user);
            found.permissions.push(AmqpPermission {
                user: user.to_owned(),
                configure: configure.to_owned(),
                write: write.to_owned(),
                read: read.to_owned(),
            });
        }
        Ok(())
    }

    fn exchanges(&mut self, file: &Value<'_>) -> Result<(), String> {
        for exchange in file.objects("exchanges")? {
            let (name, vhost) = (exchange.name("name")?, self.vhost_of(&exchange)?);
            if is_always_there(name) {
                continue;
            }
            let kind = exchange.text("type")?;
            let what = format!("exchange '{name}' in vhost '{vhost}'");
            if let Some(why) = self.no_home(vhost)?.or_else(|| reason_for_exchange(kind)) {
                self.skip(what, why);
                continue;
            }
            self.definitions.exchanges.push(DefinedExchange {
                vhost: vhost.to_owned(),
                name: name.to_owned(),
                kind: kind.to_owned(),
                is_durable: exchange.boolean("durable", true)?,
                is_auto_delete: exchange.boolean("auto_delete", false)?,
                is_internal: exchange.boolean("internal", false)?,
                arguments: exchange.arguments("arguments")?,
            });
        }
        Ok(())
    }

    fn queues(&mut self, file: &Value<'_>) -> Result<(), String> {
        for queue in file.objects("queues")? {
            let (name, vhost) = (queue.name("name")?, self.vhost_of(&queue)?);
            let arguments = queue.arguments("arguments")?;
            let kind = queue.optional_text("type")?;
            let why = self.no_home(vhost)?;
            if let Some(why) = why.or_else(|| reason_for_queue(kind, &arguments)) {
                self.skip(format!("queue '{name}' in vhost '{vhost}'"), why);
                continue;
            }
            self.definitions.queues.push(DefinedQueue {
                vhost: vhost.to_owned(),
                name: name.to_owned(),
                is_durable: queue.boolean("durable", true)?,
                is_auto_delete: queue.boolean("auto_delete", false)?,
                arguments,
            });
        }
        Ok(())
    }

    fn bindings(&mut self, file: &Value<'_>) -> Result<(), String> {
        for binding in file.objects("bindings")? {
            let vhost = self.vhost_of(&binding)?;
            let (source, destination) = (binding.name("source")?, binding.name("destination")?);
            if source.is_empty() {
                // Every queue has it.
                continue;
            }
            let is_to_exchange = binding.text("destination_type")? == "exchange";
            let key = binding.optional_text("routing_key")?.unwrap_or_default();
            let to = if is_to_exchange { "exchange" } else { "queue" };
            if let Some(why) = self.no_ends(vhost, source, destination, is_to_exchange)? {
                let what = format!(
                    "binding of {to} '{destination}' to exchange '{source}' by '{key}' in vhost '{vhost}'"
                );
                self.skip(what, why);
                continue;
            }
            self.definitions.bindings.push(DefinedBinding {
                vhost: vhost.to_owned(),
                source: source.to_owned(),
                destination: destination.to_owned(),
                is_to_exchange,
                routing_key: key.to_owned(),
                arguments: binding.arguments("arguments")?,
            });
        }
        Ok(())
    }

    /// The reason for skipping a binding: RabbitMQ's files have no internal exchanges, and skipped exchanges and
    /// queues do not exist.
    fn no_ends(
        &self,
        vhost: &str,
        source: &str,
        destination: &str,
        is_to_exchange: bool,
    ) -> Result<Option<String>, String> {
        if self.present.is_some() {
            return self.no_home(vhost);
        }
        let definitions = &self.definitions;
        let has_exchange = |name: &str| {
            let mut known = definitions.exchanges.iter();
            is_always_there(name) || known.any(|known| known.name == name && known.vhost == vhost)
        };
        let has_queue = |name: &str| {
            let mut known = definitions.queues.iter();
            known.any(|known| known.name == name && known.vhost == vhost)
        };
        if !has_exchange(source) {
            return Ok(Some(format!("exchange '{source}' is not imported")));
        }
        let (has_destination, to) = match is_to_exchange {
            true => (has_exchange(destination), "exchange"),
            false => (has_queue(destination), "queue"),
        };
        Ok((!has_destination).then(|| format!("{to} '{destination}' is not imported")))
    }

    fn is_for_one(&self) -> bool {
        self.present.is_some_and(|present| present.only.is_some())
    }

    /// The vhost that an object is for.
    fn vhost_of<'v>(&self, object: &Value<'v>) -> Result<&'v str, String>
    where
        'p: 'v,
    {
        match self.present.and_then(|present| present.only) {
            Some(only) => Ok(only),
            None => object.name("vhost"),
        }
    }

    fn has_vhost(&self, name: &str) -> bool {
        let mut vhosts = self.definitions.vhosts.iter();
        vhosts.any(|vhost| vhost.name == name)
    }

    /// The reason for skipping what is in an absent vhost: an error if the broker runs.
    fn no_home(&self, vhost: &str) -> Result<Option<String>, String> {
        match self.present {
            _ if self.has_vhost(vhost) => Ok(None),
            Some(present) if present.vhosts.contains(vhost) => Ok(None),
            Some(_) => Err(format!("no_such_vhost: {vhost}")),
            None => Ok(Some("the file has no such vhost".to_owned())),
        }
    }

    fn skip(&mut self, what: String, why: impl Into<String>) {
        self.definitions.skipped.push(skip(what, why));
    }
}

/// Exchanges that every vhost has.
fn is_always_there(exchange: &str) -> bool {
    const ALWAYS: &[&str] = &[
        "",
        "amq.direct",
        "amq.fanout",
        "amq.headers",
        "amq.match",
        "amq.rabbitmq.trace",
        "amq.topic",
    ];
    ALWAYS.contains(&exchange)
}

/// The version that wrote the file, if it says.
fn version(file: &Value<'_>) -> Result<Option<String>, String> {
    let version = match file.optional_text("rabbitmq_version")? {
        Some(version) => Some(version),
        None => file.optional_text("rabbit_version")?,
    };
    Ok(version.map(str::to_owned))
}

/// The algorithm of hashes without a name: before version 3.6 RabbitMQ had only one.
fn algorithm_of(version: Option<&str>) -> &'static str {
    let mut numbers = version.unwrap_or("4").split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(3)), Some(Ok(0..=5))) => "rabbit_password_hashing_md5",
        _ => "rabbit_password_hashing_sha256",
    }
}

/// A list, or in older files a text with commas.
fn tags(user: &Value<'_>) -> Vec<String> {
    match user.get("tags") {
        Some(Json::Array(tags)) => {
            let tags = tags.iter().filter_map(Json::as_str);
            tags.map(str::to_owned).collect()
        }
        Some(Json::String(tags)) => {
            let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            tags.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

impl fmt::Display for NoDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, reason) = (self.path.display(), &self.reason);
        write!(f, "cannot import the definitions of {path}: {reason}")
    }
}

impl std::error::Error for NoDefinitions {}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not imported: {}", self.what, self.why)
    }
}
