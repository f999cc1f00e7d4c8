//! `crosstie amqp vhost`.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};

/// List, add, describe and delete the vhosts of a running node.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the vhosts with their descriptions.
    List,
    /// Add a vhost. No user may open it before `permission set`.
    Add(Vhost),
    /// Replace the description and the tags of a vhost.
    Set(Vhost),
    /// Delete a vhost with its queues, messages, permissions and policies. Its connections are closed.
    Delete {
        /// Name of the vhost.
        name: String,
    },
}

#[derive(Args)]
pub(super) struct Vhost {
    /// Name of the vhost.
    name: String,
    /// Description of the vhost.
    #[arg(long, default_value = "")]
    description: String,
    /// Tag of the vhost; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Whether to copy each published and delivered message to the exchange amq.rabbitmq.trace, until the node stops. By
    /// default this stays as it is.
    #[arg(long, value_name = "BOOLEAN")]
    tracing: Option<bool>,
}

impl Action {
    pub(super) fn asked(self) -> Asked {
        match self {
            Self::List => Asked::List(Listing {
                kind: "vhost",
                vhost: None,
                name: None,
                columns: &COLUMNS,
            }),
            Self::Add(vhost) => vhost.put(Existence::New),
            Self::Set(vhost) => vhost.put(Existence::Present),
            Self::Delete { name } => Asked::Delete {
                entry: entry(&name),
            },
        }
    }
}

impl Vhost {
    fn put(self, existence: Existence) -> Asked {
        Asked::Put {
            entry: entry(&self.name),
            body: json!({"description": self.description, "tags": self.tags, "tracing": self.tracing}),
            existence,
        }
    }
}

fn entry(name: &str) -> Json {
    json!({"kind": "vhost", "name": name})
}

static COLUMNS: [Column; 5] = [
    column("vhost", Show::Text("name")),
    column("description", Show::Text("description")),
    column("tags", Show::Words("tags")),
    column("features", Show::Flags(&["tracing"])),
    column("read-only by", Show::Text("configuration")),
];
