//! `crosstie amqp user`.

use clap::{Args, Subcommand};
use crosstie_auth::PasswordHash;
use serde_json::{Value as Json, json};

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};
use crate::passwd::{password, salt};

/// List, add, change and delete the AMQP users of a running node.
///
/// A change takes effect at once and survives restarts. Users that the configuration names are read-only.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the users with their tags and limits.
    List {
        /// Name of the only user to list.
        name: Option<String>,
    },
    /// Add a user. Prompts for the password, or reads the first line of standard input if that is not a terminal.
    Add(User),
    /// Change the password or the tags of a user.
    Set(Changed),
    /// Delete a user with its permissions and limits. Its connections are closed.
    Delete {
        /// Name of the user.
        name: String,
    },
}

#[derive(Args)]
pub(super) struct User {
    /// Name of the user.
    name: String,
    /// Tag of the user, such as `administrator`; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    #[command(flatten)]
    secret: Secret,
}

#[derive(Args)]
pub(super) struct Changed {
    /// Name of the user.
    name: String,
    /// Tag of the user, in place of the present ones; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Remove all tags.
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    /// Change the password: prompt for it, or read the first line of standard input.
    #[arg(long)]
    password: bool,
    #[command(flatten)]
    secret: Secret,
}

#[derive(Args)]
#[group(multiple = false)]
struct Secret {
    /// Environment variable with the password.
    #[arg(long, value_name = "VARIABLE")]
    password_env: Option<String>,
    /// RabbitMQ's hash of the password, in Base64: SHA-256, or SHA-512 if it is as long.
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// The user has no password, and logs in with a certificate.
    #[arg(long)]
    no_password: bool,
}

/// Characters of a SHA-256 hash with its salt, in Base64.
const SHA256_CHARACTERS: usize = 48;

impl Action {
    pub(super) fn asked(self) -> anyhow::Result<Asked> {
        Ok(match self {
            Self::List { name } => Asked::List(Listing {
                kind: "user",
                vhost: None,
                name,
                columns: &COLUMNS,
            }),
            Self::Add(user) => {
                let mut body = user.secret.keys(true)?;
                body["tags"] = user.tags.into();
                Asked::Put {
                    entry: entry(&user.name),
                    body,
                    existence: Existence::New,
                }
            }
            Self::Set(changed) => {
                let mut keys = changed.secret.keys(changed.password)?;
                if changed.no_tags || !changed.tags.is_empty() {
                    keys["tags"] = changed.tags.into();
                }
                if keys == json!({}) {
                    anyhow::bail!(
                        "nothing to change: name --tag, --no-tags, --password, --hash or --no-password"
                    );
                }
                Asked::SetUser {
                    name: changed.name,
                    keys,
                }
            }
            Self::Delete { name } => Asked::Delete {
                entry: entry(&name),
            },
        })
    }
}

impl Secret {
    /// The keys of the password's hash; a password is read if it `is_wanted`, or if a variable has one.
    fn keys(&self, is_wanted: bool) -> anyhow::Result<Json> {
        if self.no_password {
            return Ok(json!({"password_hash": ""}));
        }
        if let Some(hash) = &self.hash {
            let algorithm = match hash.len() > SHA256_CHARACTERS {
                true => "rabbit_password_hashing_sha512",
                false => "rabbit_password_hashing_sha256",
            };
            return Ok(json!({"password_hash": hash, "hashing_algorithm": algorithm}));
        }
        if !is_wanted && self.password_env.is_none() {
            return Ok(json!({}));
        }
        let password = password::twice(self.password_env.as_deref())?;
        let hash = PasswordHash::of(password.as_bytes(), salt::salt()?);
        Ok(json!({"password_hash": hash.to_text(), "hashing_algorithm": hash.algorithm()}))
    }
}

fn entry(name: &str) -> Json {
    json!({"kind": "user", "name": name})
}

static COLUMNS: [Column; 4] = [
    column("user", Show::Text("name")),
    column("tags", Show::Words("tags")),
    column("limits", Show::Arguments("limits")),
    column("read-only by", Show::Text("configuration")),
];
