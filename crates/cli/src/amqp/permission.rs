//! `crosstie amqp permission` and `crosstie amqp topic-permission`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};

/// List, set and clear the permissions of users in vhosts.
///
/// A permission consists of three regular expressions over names of queues and exchanges. An empty one allows nothing.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the permissions.
    List(Filter),
    /// Let a user open a vhost, with these rights in it.
    Set {
        /// Name of the user.
        user: String,
        /// Names of queues and exchanges that the user may declare and delete.
        configure: String,
        /// Names of queues and exchanges that the user may publish to, or bind as the destination.
        write: String,
        /// Names of queues and exchanges that the user may consume from, or bind as the source.
        read: String,
        #[command(flatten)]
        home: Home,
    },
    /// Withdraw the permission of a user.
    Clear {
        /// Name of the user.
        user: String,
        #[command(flatten)]
        home: Home,
    },
}

/// List, set and clear the topic permissions of users in vhosts.
///
/// A topic permission consists of two regular expressions over the routing keys of a topic exchange. `{username}` and
/// `{vhost}` stand for the names of the user and the vhost, `{client_id}` for the identifier of an MQTT client.
#[derive(Subcommand)]
pub(super) enum TopicAction {
    /// List the topic permissions.
    List(Filter),
    /// Restrict the routing keys of a topic exchange for a user.
    Set {
        /// Name of the user.
        user: String,
        /// Name of the topic exchange.
        exchange: String,
        /// Routing keys that the user may publish with.
        write: String,
        /// Routing keys that the user may bind with.
        read: String,
        #[command(flatten)]
        home: Home,
    },
    /// Remove the restriction of a user.
    Clear {
        /// Name of the user.
        user: String,
        /// Name of the topic exchange; by default all.
        exchange: Option<String>,
        #[command(flatten)]
        home: Home,
    },
}

#[derive(Args)]
pub(super) struct Filter {
    /// Vhost; by default all.
    #[arg(long)]
    vhost: Option<String>,
    /// User; by default all.
    #[arg(long)]
    user: Option<String>,
}

#[derive(Args)]
pub(super) struct Home {
    /// Vhost.
    #[arg(long, default_value = "/")]
    pub(super) vhost: String,
}

impl Action {
    pub(super) fn asked(self) -> Asked {
        match self {
            Self::List(filter) => filter.list("permission", &COLUMNS),
            Self::Set {
                user,
                configure,
                write,
                read,
                home,
            } => Asked::Put {
                entry: json!({"kind": "permission", "user": user, "vhost": home.vhost}),
                body: json!({"configure": configure, "write": write, "read": read}),
                existence: Existence::Any,
            },
            Self::Clear { user, home } => Asked::Delete {
                entry: json!({"kind": "permission", "user": user, "vhost": home.vhost}),
            },
        }
    }
}

impl TopicAction {
    pub(super) fn asked(self) -> Asked {
        match self {
            Self::List(filter) => filter.list("topic-permission", &TOPIC_COLUMNS),
            Self::Set {
                user,
                exchange,
                write,
                read,
                home,
            } => Asked::Put {
                entry: json!({"kind": "topic-permission", "user": user, "vhost": home.vhost}),
                body: json!({"exchange": exchange, "write": write, "read": read}),
                existence: Existence::Any,
            },
            Self::Clear {
                user,
                exchange,
                home,
            } => Asked::Delete {
                entry: json!({
                    "kind": "topic-permission",
                    "user": user,
                    "exchange": exchange,
                    "vhost": home.vhost,
                }),
            },
        }
    }
}

impl Filter {
    fn list(self, kind: &'static str, columns: &'static [Column]) -> Asked {
        Asked::List(Listing {
            kind,
            vhost: self.vhost,
            name: self.user,
            columns,
        })
    }
}

static COLUMNS: [Column; 5] = [
    column("vhost", Show::Text("vhost")),
    column("user", Show::Text("user")),
    column("configure", Show::Text("configure")),
    column("write", Show::Text("write")),
    column("read", Show::Text("read")),
];

static TOPIC_COLUMNS: [Column; 5] = [
    column("vhost", Show::Text("vhost")),
    column("user", Show::Text("user")),
    column("exchange", Show::Text("exchange")),
    column("write", Show::Text("write")),
    column("read", Show::Text("read")),
];
