//! Vhosts.

use serde_json::{Value as Json, json};

use super::columns;
use super::command::{Command, MANY, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 7] = [
    ctl("add_vhost", (1, 1), "<vhost>", &["description", "tags", "default-queue-type"], add),
    ctl("delete_vhost", (1, 1), "<vhost>", &[], delete),
    ctl("set_vhost_tags", (1, MANY), "<vhost> <tag> [...]", &[], set_tags),
    ctl("list_vhosts", (0, MANY), "[<column> ...]", &["table-headers"], list).both(),
    ctl("restart_vhost", (0, 0), "", &[], restart),
    ctl("trace_on", (0, 0), "", &[], trace_on),
    ctl("trace_off", (0, 0), "", &[], trace_off),
];

fn add(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Adding vhost \"{name}\" ..."))?;
    if run.session.has_vhost(name)? {
        return Ok(Output::Nothing);
    }
    let tags = run.words.option("tags").unwrap_or_default();
    let mut body = json!({
        "description": run.words.option("description").unwrap_or_default(),
        "tags": tags,
    });
    if let Some(kind) = run.words.option("default-queue-type") {
        body["default_queue_type"] = kind.into();
    }
    run.session.change(&entry(name), Some(body))?;
    Ok(Output::Nothing)
}

fn delete(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Deleting vhost \"{name}\" ..."))?;
    run.session.check_vhost(name)?;
    run.session.change(&entry(name), None)?;
    Ok(Output::Nothing)
}

fn set_tags(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    let tags = &run.words.arguments[1..];
    let shown = tags.join(", ");
    run.announce(&format!(
        "Setting tags for virtual host \"{name}\" to [{shown}] ..."
    ))?;
    change(run, name, "tags", json!(tags))?;
    Ok(Output::Nothing)
}

/// Changes one key of a vhost; the others stay.
fn change(run: &Run, name: &str, key: &str, value: Json) -> Result<(), Failure> {
    let found = run.session.entries("vhost", None, Some(name))?;
    let Some(found) = found.first() else {
        return Err(Failure::data(&format!(
            "Virtual host \"{name}\" does not exist"
        )));
    };
    let mut body = json!({"description": found["description"], "tags": found["tags"]});
    if found["default_queue_type"] != "undefined" {
        body["default_queue_type"] = found["default_queue_type"].clone();
    }
    body[key] = value;
    run.session.change(&entry(name), Some(body))?;
    Ok(())
}

const COLUMNS: [&str; 6] = [
    "name",
    "description",
    "tags",
    "default_queue_type",
    "tracing",
    "cluster_state",
];

fn list(run: &Run) -> Result<Output, Failure> {
    let wanted = columns::wanted(run, &COLUMNS, &["name"])?;
    run.announce("Listing vhosts ...")?;
    let path = format!("vhosts?columns={}", wanted.join(","));
    let rows = run.session.list(&path)?.unwrap_or_default();
    Ok(Output::Table(Table::of(&wanted, &rows)))
}

fn restart(run: &Run) -> Result<Output, Failure> {
    let (vhost, node) = (run.vhost(), run.session.name()?);
    run.announce(&format!(
        "Trying to restart vhost '{vhost}' on node '{node}' ..."
    ))?;
    run.session.check_vhost(vhost)?;
    Ok(Output::Text(format!(
        "Vhost '{vhost}' is already running on node '{node}'"
    )))
}

fn trace_on(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!("Starting tracing for vhost \"{vhost}\" ..."))?;
    run.session.check_vhost(vhost)?;
    change(run, vhost, "tracing", true.into())?;
    Ok(Output::Text(format!("Trace enabled for vhost {vhost}")))
}

fn trace_off(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!("Stopping tracing for vhost \"{vhost}\" ..."))?;
    run.session.check_vhost(vhost)?;
    change(run, vhost, "tracing", false.into())?;
    Ok(Output::Text(format!("Trace disabled for vhost {vhost}")))
}

fn entry(name: &str) -> Json {
    json!({"kind": "vhost", "name": name})
}
