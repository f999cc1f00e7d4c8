//! Users and their permissions.

use std::sync::Arc;

use crosstie_auth::{Permissions, User, Users};
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};

pub(crate) fn users(call: &Call<'_>) -> Answer {
    listed(call, |_, _| true)
}

/// The users that may open no vhost.
pub(crate) fn without_permissions(call: &Call<'_>) -> Answer {
    listed(call, |users, user| granted(users, user).next().is_none())
}

fn listed(call: &Call<'_>, is_wanted: impl Fn(&Users, &User) -> bool) -> Answer {
    let users = &call.caller.users;
    let found = users.iter().filter(|user| is_wanted(users, user));
    let found: Vec<Arc<User>> = found.cloned().collect();
    list::list(&call.query, Source::of(found, |user, row| write(user, row)))
}

pub(crate) fn user(call: &Call<'_>, name: &str) -> Answer {
    let Some(user) = call.caller.users.find(name) else {
        return Answer::not_found();
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| write(user, row));
    Answer::of_bytes(out)
}

pub(crate) fn about(user: &User) -> Json {
    let mut out = Vec::new();
    row::whole(&mut out, |row| write(user, row));
    serde_json::from_slice(&out).unwrap_or_default()
}

fn write(user: &User, row: &mut Row<'_, '_>) {
    let password = user.password.as_ref();
    row.text("name", &user.name);
    let hash = password.map(crosstie_auth::PasswordHash::to_text);
    row.text("password_hash", hash.as_deref().unwrap_or_default());
    let algorithm = password.map(crosstie_auth::PasswordHash::algorithm);
    let algorithm = algorithm.unwrap_or("rabbit_password_hashing_sha256");
    row.text("hashing_algorithm", algorithm);
    row.texts("tags", user.tags.iter().map(String::as_str));
    row.json("limits", &json!({}));
}

/// The permissions of all users, those of one vhost, or those of one user.
pub(crate) fn permissions(call: &Call<'_>, vhost: Option<&str>, user: Option<&str>) -> Answer {
    let users = &call.caller.users;
    if let Some(vhost) = vhost
        && !call.api.operators.broker().has_vhost(vhost)
    {
        return Answer::not_found();
    }
    if user.is_some_and(|user| users.find(user).is_none()) {
        return Answer::not_found();
    }
    let found = all_permissions(users).into_iter().filter(|permission| {
        vhost.is_none_or(|vhost| permission["vhost"] == vhost)
            && user.is_none_or(|user| permission["user"] == user)
    });
    let found: Vec<Json> = found.collect();
    list::list(&call.query, Source::of(found, write_json))
}

/// The permissions of a user in a vhost.
pub(crate) fn permission(call: &Call<'_>, vhost: &str, user: &str) -> Answer {
    match call.caller.users.permissions(user, vhost) {
        Some(permissions) => Answer::json(&about_permissions(user, vhost, permissions)),
        None => Answer::not_found(),
    }
}

/// Every permission, by vhost and user.
pub(crate) fn all_permissions(users: &Users) -> Vec<Json> {
    let mut found: Vec<(Arc<str>, Arc<str>, Json)> = Vec::new();
    for user in users.iter() {
        for (vhost, permissions) in granted(users, user) {
            let about = about_permissions(&user.name, vhost, permissions);
            found.push((Arc::clone(vhost), Arc::clone(&user.name), about));
        }
    }
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    found.into_iter().map(|(_, _, about)| about).collect()
}

fn granted<'u>(
    users: &'u Users,
    user: &User,
) -> impl Iterator<Item = (&'u Arc<str>, &'u Arc<Permissions>)> {
    users.permissions_of(&user.name)
}

fn about_permissions(user: &str, vhost: &str, permissions: &Permissions) -> Json {
    let [configure, write, read] = permissions.patterns();
    json!({
        "user": user,
        "vhost": vhost,
        "configure": configure,
        "write": write,
        "read": read,
    })
}

fn write_json(value: &Json, row: &mut Row<'_, '_>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        row.json(name, value);
    }
}
