//! Users: their names, passwords and tags.

use crosstie_auth::PasswordHash;
use crosstie_client::args;
use serde_json::{Value as Json, json};

use super::command::{Command, MANY, Run, ctl};
use super::failure::Failure;
use super::output::{self, Output, Table};
use crate::passwd::{password, salt};

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 8] = [
    ctl("add_user", (1, 2), "<username> <password>", &[], add),
    ctl("delete_user", (1, 1), "<username>", &[], delete),
    ctl("change_password", (1, 2), "<username> <password>", &[], change_password),
    ctl("clear_password", (1, 1), "<username>", &[], clear_password),
    ctl("set_user_tags", (1, MANY), "<username> <tag> [...]", &[], set_tags),
    ctl("authenticate_user", (1, 2), "<username> <password>", &[], authenticate),
    ctl("hash_password", (0, 1), "<password>", &[], hash_password).also_stopped(),
    ctl("list_users", (0, 0), "", &["table-headers"], list).both(),
];

fn add(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    if name.is_empty() {
        return Err(run.bad_argument("user cannot be an empty string"));
    }
    run.announce(&format!("Adding user \"{name}\" ..."))?;
    let mut body = keys(&password(run, 1)?)?;
    body["tags"] = json!([]);
    if run.session.has_user(name)? {
        return Err(Failure::software(&format!(
            "User \"{name}\" already exists"
        )));
    }
    run.session.change(&entry(name), Some(body))?;
    if run.words.is_quiet() {
        return Ok(Output::Nothing);
    }
    Ok(Output::Text(ADDED.to_owned()))
}

const ADDED: &str = "Done. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help \
                     set_permissions' to learn more.";

fn delete(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Deleting user \"{name}\" ..."))?;
    run.session.check_user(name)?;
    run.session.change(&entry(name), None)?;
    Ok(Output::Nothing)
}

fn change_password(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Changing password for user \"{name}\" ..."))?;
    let keys = keys(&password(run, 1)?)?;
    run.session.check_user(name)?;
    run.session.set_user(name, &keys)?;
    Ok(Output::Nothing)
}

fn clear_password(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Clearing password for user \"{name}\" ..."))?;
    run.session.check_user_term(name)?;
    run.session.set_user(name, &json!({"password_hash": ""}))?;
    Ok(Output::Nothing)
}

fn set_tags(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    let tags = &run.words.arguments[1..];
    let shown = tags.join(", ");
    run.announce(&format!(
        "Setting tags for user \"{name}\" to [{shown}] ..."
    ))?;
    run.session.check_user(name)?;
    run.session.set_user(name, &json!({"tags": tags}))?;
    Ok(Output::Nothing)
}

fn authenticate(run: &Run) -> Result<Output, Failure> {
    let name = run.argument(0);
    run.announce(&format!("Authenticating user \"{name}\" ..."))?;
    let password = password(run, 1)?;
    let answer = run
        .session
        .call("get_amqp_login", None, || args![name, password.as_str()])?;
    match answer["accepted"] == true {
        true => Ok(Output::Text("Success".to_owned())),
        false => Err(Failure::data(&format!(
            "Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials"
        ))),
    }
}

fn hash_password(run: &Run) -> Result<Output, Failure> {
    let hash = hashed(&password(run, 0)?)?;
    Ok(Output::Text(hash.to_text()))
}

fn list(run: &Run) -> Result<Output, Failure> {
    run.announce("Listing users ...")?;
    let users = run.session.entries("user", None, None)?;
    let rows = users.iter();
    let rows = rows.map(|user| vec![user["name"].clone(), user["tags"].clone()]);
    Ok(Output::Table(Table {
        columns: vec!["user".to_owned(), "tags".to_owned()],
        rows: rows.collect(),
        is_stream: false,
        has_header: true,
    }))
}

/// An argument, or the first line of the input.
fn password(run: &Run, index: usize) -> Result<String, Failure> {
    match run.words.arguments.get(index) {
        Some(password) => Ok(password.clone()),
        None => {
            output::line("Password: ")?;
            password::once(None).map_err(|_| {
                let what = "not enough arguments. Password is not provided via argument or stdin";
                run.bad_words(what)
            })
        }
    }
}

/// The keys of a user's password. An empty one is none.
fn keys(password: &str) -> Result<Json, Failure> {
    if password.is_empty() {
        return Ok(json!({"password_hash": ""}));
    }
    let hash = hashed(password)?;
    Ok(json!({"password_hash": hash.to_text(), "hashing_algorithm": hash.algorithm()}))
}

fn hashed(password: &str) -> Result<PasswordHash, Failure> {
    let salt = salt::salt().map_err(|error| Failure::software(&error.to_string()))?;
    Ok(PasswordHash::of(password.as_bytes(), salt))
}

fn entry(name: &str) -> Json {
    json!({"kind": "user", "name": name})
}
