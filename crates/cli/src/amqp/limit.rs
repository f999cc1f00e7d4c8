//! `crosstie amqp limit`.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};

/// List, set and clear the limits of vhosts and users.
///
/// A vhost has the limits `max-connections` and `max-queues`, a user `max-connections` and `max-channels`. A negative
/// value is no limit.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the limits of vhosts, or those of users.
    List {
        /// List the limits of users.
        #[arg(long)]
        users: bool,
    },
    /// Set a limit of a vhost or a user.
    Set {
        /// Name of the limit.
        name: String,
        /// Maximum number.
        #[arg(allow_negative_numbers = true)]
        value: i64,
        #[command(flatten)]
        of: Of,
    },
    /// Clear the limits of a vhost or a user.
    Clear {
        /// Name of the limit; by default all.
        name: Option<String>,
        #[command(flatten)]
        of: Of,
    },
}

#[derive(Args)]
#[group(multiple = false)]
pub(super) struct Of {
    /// Vhost; `/` without --user.
    #[arg(long)]
    vhost: Option<String>,
    /// User.
    #[arg(long)]
    user: Option<String>,
}

impl Action {
    pub(super) fn asked(self) -> Asked {
        match self {
            Self::List { users } => {
                let (kind, columns) = match users {
                    true => ("user-limits", &OF_USERS),
                    false => ("vhost-limits", &OF_VHOSTS),
                };
                Asked::List(Listing {
                    kind,
                    vhost: None,
                    name: None,
                    columns,
                })
            }
            Self::Set { name, value, of } => Asked::Put {
                entry: of.entry(Some(name)),
                body: json!({"value": value}),
                existence: Existence::Any,
            },
            Self::Clear { name, of } => Asked::Delete {
                entry: of.entry(name),
            },
        }
    }
}

impl Of {
    fn entry(self, name: Option<String>) -> Json {
        match self.user {
            Some(user) => json!({"kind": "user-limits", "name": name, "user": user}),
            None => {
                let vhost = self.vhost.unwrap_or_else(|| "/".to_owned());
                json!({"kind": "vhost-limits", "name": name, "vhost": vhost})
            }
        }
    }
}

static OF_VHOSTS: [Column; 2] = [
    column("vhost", Show::Text("vhost")),
    column("limits", Show::Arguments("value")),
];

static OF_USERS: [Column; 2] = [
    column("user", Show::Text("user")),
    column("limits", Show::Arguments("value")),
];
