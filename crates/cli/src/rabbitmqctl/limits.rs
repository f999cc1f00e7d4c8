//! Limits of vhosts and users.

use serde_json::{Value as Json, json};

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 6] = [
    ctl("set_vhost_limits", (1, 1), "<definition>", &[], set_of_vhost),
    ctl("clear_vhost_limits", (0, 0), "", &[], clear_of_vhost),
    ctl("list_vhost_limits", (0, 0), "", &["global", "table-headers"], list_of_vhosts).both(),
    ctl("set_user_limits", (2, 2), "<username> <definition>", &[], set_of_user),
    ctl("clear_user_limits", (2, 2), "<username> <limit_type | all>", &[], clear_of_user),
    ctl("list_user_limits", (0, 0), "", &["global", "user", "table-headers"], list_of_users).both(),
];

fn set_of_vhost(run: &Run) -> Result<Output, Failure> {
    let (vhost, definition) = (run.vhost(), run.argument(0));
    run.announce(&format!(
        "Setting vhost limits to \"{definition}\" for vhost \"{vhost}\" ..."
    ))?;
    let limits = run.json(0)?;
    run.session.check_vhost(vhost)?;
    run.put(&of_vhost(vhost), json!({"value": limits}))
}

fn clear_of_vhost(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    run.announce(&format!("Clearing vhost \"{vhost}\" limits ..."))?;
    run.delete(&of_vhost(vhost))
}

fn list_of_vhosts(run: &Run) -> Result<Output, Failure> {
    let vhost = run.vhost();
    if run.words.has("global") {
        run.announce("Listing limits for all vhosts ...")?;
        return table(run.session.entries("vhost-limits", None, None)?, "vhost");
    }
    run.announce(&format!("Listing limits for vhost \"{vhost}\" ..."))?;
    run.session.check_vhost(vhost)?;
    let limits = run.session.entries("vhost-limits", Some(vhost), None)?;
    let text = of_one(&limits).unwrap_or_default();
    let value = json!({"node": run.session.name()?, "result": "ok", "value": text});
    Ok(Output::Value(text, value))
}

fn set_of_user(run: &Run) -> Result<Output, Failure> {
    let (user, definition) = (run.argument(0), run.argument(1));
    run.announce(&format!(
        "Setting user limits to \"{definition}\" for user \"{user}\" ..."
    ))?;
    let limits = run.json(1)?;
    run.session.check_user_term(user)?;
    let Some(limits) = limits.as_object() else {
        return Err(Failure::refused(&format!(
            "user-limits not a list {limits}"
        )));
    };
    // Those that are not named stay.
    let mut present = run.session.entries("user-limits", None, Some(user))?;
    let mut all = present
        .first_mut()
        .map_or_else(|| json!({}), |row| row["value"].take());
    for (name, value) in limits {
        all[name] = value.clone();
    }
    let entry = json!({"kind": "user-limits", "user": user});
    run.put(&entry, json!({"value": all}))
}

fn clear_of_user(run: &Run) -> Result<Output, Failure> {
    let (user, name) = (run.argument(0), run.argument(1));
    let mut entry = json!({"kind": "user-limits", "user": user});
    match name {
        "all" => run.announce(&format!("Clearing all limits for user \"{user}\" ..."))?,
        name => {
            entry["name"] = name.into();
            run.announce(&format!(
                "Clearing \"{name}\" limit for user \"{user}\" ..."
            ))?;
        }
    }
    run.session.check_user_term(user)?;
    run.delete_if_there(&entry)
}

fn list_of_users(run: &Run) -> Result<Output, Failure> {
    if run.words.has("global") {
        run.announce("Listing limits for all users ...")?;
        return table(run.session.entries("user-limits", None, None)?, "user");
    }
    let user = run.words.option("user").unwrap_or("guest");
    run.announce(&format!("Listing limits for user \"{user}\" ..."))?;
    run.session.check_user_term(user)?;
    let limits = run.session.entries("user-limits", None, Some(user))?;
    Ok(Output::Text(
        of_one(&limits).unwrap_or_else(|| "{}".to_owned()),
    ))
}

fn table(mut rows: Vec<Json>, whose: &str) -> Result<Output, Failure> {
    for row in &mut rows {
        row["limits"] = row["value"].to_string().into();
    }
    Ok(Output::Table(Table::of(&[whose, "limits"], &rows)))
}

/// The limits alone, if there are any.
fn of_one(rows: &[Json]) -> Option<String> {
    Some(rows.first()?["value"].to_string())
}

fn of_vhost(vhost: &str) -> Json {
    json!({"kind": "vhost-limits", "vhost": vhost})
}
