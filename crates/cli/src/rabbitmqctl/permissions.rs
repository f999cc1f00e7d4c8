//! Permissions and topic permissions.

use serde_json::{Value as Json, json};

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

const NO_HEADERS: &[&str] = &["table-headers"];

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 8] = [
    ctl("set_permissions", (4, 4), "<username> <conf> <write> <read>", &[], set),
    ctl("clear_permissions", (1, 1), "<username>", &[], clear),
    ctl("list_permissions", (0, 0), "", NO_HEADERS, list).both(),
    ctl("list_user_permissions", (1, 1), "<username>", NO_HEADERS, list_of_user).both(),
    ctl("set_topic_permissions", (4, 4), "<username> <exchange> <write> <read>", &[], set_topic),
    ctl("clear_topic_permissions", (1, 2), "<username> [<exchange>]", &[], clear_topic),
    ctl("list_topic_permissions", (0, 0), "", NO_HEADERS, list_topic).both(),
    ctl("list_user_topic_permissions", (1, 1), "<username>", NO_HEADERS, list_topic_of_user).both(),
];

fn set(run: &Run) -> Result<Output, Failure> {
    let (user, vhost) = (run.argument(0), run.vhost());
    run.announce(&format!(
        "Setting permissions for user \"{user}\" in vhost \"{vhost}\" ..."
    ))?;
    check(run)?;
    let body = json!({
        "configure": run.argument(1),
        "write": run.argument(2),
        "read": run.argument(3),
    });
    run.put(&entry("permission", user, vhost), body)
}

fn clear(run: &Run) -> Result<Output, Failure> {
    let (user, vhost) = (run.argument(0), run.vhost());
    run.announce(&format!(
        "Clearing permissions for user \"{user}\" in vhost \"{vhost}\" ..."
    ))?;
    check(run)?;
    run.delete_if_there(&entry("permission", user, vhost))
}

fn list(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!("Listing permissions for vhost \"{vhost}\" ..."))?;
    run.session.check_vhost(vhost)?;
    let rows = run.session.entries("permission", Some(vhost), None)?;
    let columns = ["user", "configure", "write", "read"];
    Ok(Output::Table(Table::of(&columns, &rows)))
}

fn list_of_user(run: &Run) -> Result<Output, Failure> {
    let user = run.argument(0);
    run.announce(&format!("Listing permissions for user \"{user}\" ..."))?;
    run.session.check_user_term(user)?;
    let rows = run.session.entries("permission", None, Some(user))?;
    let columns = ["vhost", "configure", "write", "read"];
    Ok(Output::Table(Table::of(&columns, &rows)))
}

fn set_topic(run: &Run) -> Result<Output, Failure> {
    let (user, exchange, vhost) = (run.argument(0), run.argument(1), run.vhost());
    run.announce(&format!(
        "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ..."
    ))?;
    check(run)?;
    let body = json!({
        "exchange": exchange,
        "write": run.argument(2),
        "read": run.argument(3),
    });
    run.put(&entry("topic-permission", user, vhost), body)
}

fn clear_topic(run: &Run) -> Result<Output, Failure> {
    let (user, vhost) = (run.argument(0), run.vhost());
    let mut topic = entry("topic-permission", user, vhost);
    let on = match run.words.arguments.get(1) {
        None => String::new(),
        Some(exchange) => {
            topic["exchange"] = exchange.as_str().into();
            format!("on \"{exchange}\" ")
        }
    };
    run.announce(&format!(
        "Clearing topic permissions {on}for user \"{user}\" in vhost \"{vhost}\" ..."
    ))?;
    check(run)?;
    run.delete_if_there(&topic)
}

fn list_topic(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!(
        "Listing topic permissions for vhost \"{vhost}\" ..."
    ))?;
    run.session.check_vhost(vhost)?;
    let rows = run.session.entries("topic-permission", Some(vhost), None)?;
    let columns = ["user", "exchange", "write", "read"];
    Ok(Output::Table(Table::of(&columns, &rows)))
}

fn list_topic_of_user(run: &Run) -> Result<Output, Failure> {
    let user = run.argument(0);
    run.announce(&format!(
        "Listing topic permissions for user \"{user}\" ..."
    ))?;
    run.session.check_user_term(user)?;
    let rows = run.session.entries("topic-permission", None, Some(user))?;
    let columns = ["vhost", "exchange", "write", "read"];
    // RabbitMQ writes no header here.
    Ok(Output::Table(Table {
        has_header: false,
        ..Table::of(&columns, &rows)
    }))
}

/// The vhost and the user must exist.
fn check(run: &Run) -> Result<(), Failure> {
    let (user, vhost) = (run.argument(0), run.vhost());
    if !run.session.has_vhost(vhost)? {
        return Err(Failure::refused(&format!(
            "Virtual host {vhost} does not exist"
        )));
    }
    match run.session.has_user(user)? {
        true => Ok(()),
        false => Err(Failure::no_user(&format!("User {user} does not exist"))),
    }
}

fn entry(kind: &str, user: &str, vhost: &str) -> Json {
    json!({"kind": kind, "user": user, "vhost": vhost})
}
