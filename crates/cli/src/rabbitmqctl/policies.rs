//! Policies and operator policies.

use serde_json::{Value as Json, json};

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

const SET: &[&str] = &["priority", "apply-to"];
const NO_HEADERS: &[&str] = &["table-headers"];
const USAGE: &str = "<name> <pattern> <definition>";

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 6] = [
    ctl("set_policy", (3, 3), USAGE, SET, |run| set(run, &POLICY)),
    ctl("clear_policy", (1, 1), "<name>", &[], |run| clear(run, &POLICY)),
    ctl("list_policies", (0, 0), "", NO_HEADERS, |run| list(run, &POLICY)).both(),
    ctl("set_operator_policy", (3, 3), USAGE, SET, |run| set(run, &OPERATOR)),
    ctl("clear_operator_policy", (1, 1), "<name>", &[], |run| clear(run, &OPERATOR)),
    ctl("list_operator_policies", (0, 0), "", NO_HEADERS, |run| list(run, &OPERATOR)).both(),
];

/// The words for a kind of policy.
struct Kind {
    kind: &'static str,
    setting: &'static str,
    clearing: &'static str,
    listing: &'static str,
}

static POLICY: Kind = Kind {
    kind: "policy",
    setting: "policy",
    clearing: "policy",
    listing: "policies",
};

static OPERATOR: Kind = Kind {
    kind: "operator-policy",
    setting: "operator policy override",
    clearing: "operator policy",
    listing: "operator policy overrides",
};

fn set(run: &Run, kind: &Kind) -> Result<Output, Failure> {
    let (name, pattern, definition) = (run.argument(0), run.argument(1), run.argument(2));
    let (vhost, priority) = (run.vhost(), run.words.number("priority").unwrap_or(0));
    run.announce(&format!(
        "Setting {} \"{name}\" for pattern \"{pattern}\" to \"{definition}\" with priority \"{priority}\" for vhost \
         \"{vhost}\" ...",
        kind.setting
    ))?;
    let definition = run.json(2)?;
    run.session.check_vhost(vhost)?;
    let body = json!({
        "pattern": pattern,
        "definition": definition,
        "priority": priority,
        "apply-to": run.words.option("apply-to").unwrap_or("all"),
    });
    run.put(&kind.entry(name, vhost), body)
}

fn clear(run: &Run, kind: &Kind) -> Result<Output, Failure> {
    let (name, vhost) = (run.argument(0), run.vhost());
    run.announce(&format!(
        "Clearing {} \"{name}\" on vhost \"{vhost}\" ...",
        kind.clearing
    ))?;
    run.delete(&kind.entry(name, vhost))
}

fn list(run: &Run, kind: &Kind) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!(
        "Listing {} for vhost \"{vhost}\" ...",
        kind.listing
    ))?;
    run.session.check_vhost(vhost)?;
    let mut rows = run.session.entries(kind.kind, Some(vhost), None)?;
    for row in &mut rows {
        row["definition"] = row["definition"].to_string().into();
    }
    let columns = [
        "vhost",
        "name",
        "pattern",
        "apply-to",
        "definition",
        "priority",
    ];
    Ok(Output::Table(Table::of(&columns, &rows)))
}

impl Kind {
    fn entry(&self, name: &str, vhost: &str) -> Json {
        json!({"kind": self.kind, "name": name, "vhost": vhost})
    }
}
