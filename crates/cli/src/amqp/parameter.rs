//! `crosstie amqp parameter` and `crosstie amqp global-parameter`.

use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};

/// List the parameters of vhosts: operator policies and limits.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the parameters.
    List {
        /// Vhost; by default all.
        #[arg(long)]
        vhost: Option<String>,
    },
}

/// List, set and clear global parameters.
///
/// `cluster_name` is the name that clients see. Other parameters have no effect; plugins of RabbitMQ read them.
#[derive(Subcommand)]
pub(super) enum GlobalAction {
    /// List the global parameters.
    List,
    /// Set a global parameter.
    Set {
        /// Name of the parameter.
        name: String,
        /// Value in JSON; anything else is a text.
        value: String,
    },
    /// Clear a global parameter.
    Clear {
        /// Name of the parameter.
        name: String,
    },
}

impl Action {
    pub(super) fn asked(self) -> Asked {
        let Self::List { vhost } = self;
        Asked::List(Listing {
            kind: "parameter",
            vhost,
            name: None,
            columns: &COLUMNS,
        })
    }
}

impl GlobalAction {
    pub(super) fn asked(self) -> Asked {
        let entry = |name: &str| json!({"kind": "global-parameter", "name": name});
        match self {
            Self::List => Asked::List(Listing {
                kind: "global-parameter",
                vhost: None,
                name: None,
                columns: &GLOBAL_COLUMNS,
            }),
            Self::Set { name, value } => {
                let json = serde_json::from_str(&value);
                let value = json.unwrap_or(Json::String(value));
                Asked::Put {
                    entry: entry(&name),
                    body: json!({"value": value}),
                    existence: Existence::Any,
                }
            }
            Self::Clear { name } => Asked::Delete {
                entry: entry(&name),
            },
        }
    }
}

static COLUMNS: [Column; 4] = [
    column("vhost", Show::Text("vhost")),
    column("component", Show::Text("component")),
    column("name", Show::Text("name")),
    column("value", Show::Json("value")),
];

static GLOBAL_COLUMNS: [Column; 2] = [
    column("name", Show::Text("name")),
    column("value", Show::Json("value")),
];
