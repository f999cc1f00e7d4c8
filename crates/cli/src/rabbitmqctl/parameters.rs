//! Parameters of vhosts, and global ones.

use serde_json::{Value as Json, json};

use super::command::{Command, NO_PARAMETER, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

const NO_HEADERS: &[&str] = &["table-headers"];

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 7] = [
    ctl("set_parameter", (3, 3), "<component_name> <name> <value>", &[], set),
    ctl("clear_parameter", (2, 2), "<component_name> <name>", &[], clear),
    ctl("list_parameters", (0, 0), "", NO_HEADERS, list).both(),
    ctl("set_global_parameter", (2, 2), "<name> <value>", &[], set_global),
    ctl("clear_global_parameter", (1, 1), "<name>", &[], clear_global),
    ctl("list_global_parameters", (0, 0), "", NO_HEADERS, list_global).both(),
    ctl("set_cluster_name", (1, 1), "<name>", &[], set_cluster_name),
];

fn set(run: &Run) -> Result<Output, Failure> {
    let (component, name, value) = (run.argument(0), run.argument(1), run.argument(2));
    let vhost = run.vhost();
    run.announce(&format!(
        "Setting runtime parameter \"{name}\" for component \"{component}\" to \"{value}\" in vhost \"{vhost}\" ..."
    ))?;
    let value = run.json(2)?;
    run.session.check_vhost(vhost)?;
    match limits(component, name, vhost) {
        Some(entry) => run.put(&entry, json!({"value": value})),
        None => Err(no_component(component)),
    }
}

fn clear(run: &Run) -> Result<Output, Failure> {
    let (component, name, vhost) = (run.argument(0), run.argument(1), run.vhost());
    run.announce(&format!(
        "Clearing runtime parameter \"{name}\" for component \"{component}\" on vhost \"{vhost}\" ..."
    ))?;
    match limits(component, name, vhost) {
        Some(entry) => run.delete(&entry),
        None => Err(Failure::refused(NO_PARAMETER)),
    }
}

fn list(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!(
        "Listing runtime parameters for vhost \"{vhost}\" ..."
    ))?;
    run.session.check_vhost(vhost)?;
    let mut rows = run.session.entries("parameter", Some(vhost), None)?;
    // Operator policies have a list of their own.
    rows.retain(|row| row["component"] != "operator_policy");
    as_texts(&mut rows);
    let columns = ["component", "name", "value"];
    Ok(Output::Table(Table::of(&columns, &rows)))
}

fn set_global(run: &Run) -> Result<Output, Failure> {
    let (name, value) = (run.argument(0), run.argument(1));
    run.announce(&format!(
        "Setting global runtime parameter \"{name}\" to \"{value}\" ..."
    ))?;
    let value = run.json(1)?;
    run.put(&global(name), json!({"value": value}))
}

fn clear_global(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Clearing global runtime parameter \"{name}\" ..."))?;
    run.delete(&global(name))
}

fn list_global(run: &Run) -> Result<Output, Failure> {
    run.announce("Listing global runtime parameters ...")?;
    let mut rows = run.session.entries("global-parameter", None, None)?;
    as_texts(&mut rows);
    Ok(Output::Table(Table::of(&["name", "value"], &rows)))
}

fn set_cluster_name(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Setting cluster name to {name} ..."))?;
    run.put(&global("cluster_name"), json!({"value": name}))
}

/// The only parameter of a vhost that can be set so.
fn limits(component: &str, name: &str, vhost: &str) -> Option<Json> {
    let is_limits = component == "vhost-limits" && name == "limits";
    is_limits.then(|| json!({"kind": "vhost-limits", "vhost": vhost}))
}

fn no_component(component: &str) -> Failure {
    match component {
        "policy" | "operator_policy" => {
            Failure::refused("policies may not be set using this method")
        }
        _ => Failure::refused(&format!(
            "Validation failed\n\ncomponent {component} not found\n"
        )),
    }
}

fn global(name: &str) -> Json {
    json!({"kind": "global-parameter", "name": name})
}

/// Values are shown as texts of JSON.
fn as_texts(rows: &mut [Json]) {
    for row in rows {
        row["value"] = row["value"].to_string().into();
    }
}
