//! `crosstie amqp policy`.

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};

use super::entries::{Asked, Existence, Listing};
use crate::list::{Column, Show, column};

/// List, set and clear the policies of vhosts.
///
/// A policy sets options of the queues and exchanges whose names match its pattern, also of those that exist.
#[derive(Subcommand)]
pub(super) enum Action {
    /// List the policies.
    List {
        #[command(flatten)]
        kind: Kind,
        /// Vhost; by default all.
        #[arg(long)]
        vhost: Option<String>,
    },
    Set(Policy),
    /// Clear a policy.
    Clear {
        /// Name of the policy.
        name: String,
        #[command(flatten)]
        kind: Kind,
        /// Vhost.
        #[arg(long, default_value = "/")]
        vhost: String,
    },
}

/// Set a policy, or replace the one of that name.
#[derive(Args)]
pub(super) struct Policy {
    /// Name of the policy.
    name: String,
    /// Regular expression over the names of queues and exchanges; it may match anywhere in a name.
    pattern: String,
    /// JSON object of options, such as `{"max-length": 1000}`.
    definition: String,
    /// Objects that the policy is for.
    #[arg(long, value_enum, default_value_t)]
    apply_to: ApplyTo,
    /// Of several policies for an object, the one with the highest priority applies.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    #[command(flatten)]
    kind: Kind,
    /// Vhost.
    #[arg(long, default_value = "/")]
    vhost: String,
}

#[derive(Args)]
pub(super) struct Kind {
    /// Operator policies: limits that hold whatever the others say.
    #[arg(long)]
    operator: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ApplyTo {
    #[default]
    All,
    Exchanges,
    Queues,
}

impl Action {
    pub(super) fn asked(self) -> anyhow::Result<Asked> {
        Ok(match self {
            Self::List { kind, vhost } => Asked::List(Listing {
                kind: kind.name(),
                vhost,
                name: None,
                columns: &COLUMNS,
            }),
            Self::Set(policy) => {
                let definition: Json = serde_json::from_str(&policy.definition)
                    .context("DEFINITION: expected a JSON object")?;
                let apply_to = match policy.apply_to {
                    ApplyTo::All => "all",
                    ApplyTo::Exchanges => "exchanges",
                    ApplyTo::Queues => "queues",
                };
                Asked::Put {
                    entry: policy.kind.entry(&policy.name, &policy.vhost),
                    body: json!({
                        "pattern": policy.pattern,
                        "definition": definition,
                        "apply-to": apply_to,
                        "priority": policy.priority,
                    }),
                    existence: Existence::Any,
                }
            }
            Self::Clear { name, kind, vhost } => Asked::Delete {
                entry: kind.entry(&name, &vhost),
            },
        })
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self.operator {
            true => "operator-policy",
            false => "policy",
        }
    }

    fn entry(&self, name: &str, vhost: &str) -> Json {
        json!({"kind": self.name(), "name": name, "vhost": vhost})
    }
}

static COLUMNS: [Column; 6] = [
    column("vhost", Show::Text("vhost")),
    column("policy", Show::Text("name")),
    column("pattern", Show::Text("pattern")),
    column("apply to", Show::Text("apply-to")),
    column("definition", Show::Arguments("definition")),
    column("priority", Show::Json("priority")),
];
