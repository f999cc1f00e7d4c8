//! Users, vhosts, permissions, policies, limits and parameters: listed as the broker has them now, and changed.

use std::sync::Arc;

use crosstie_broker::vhost::SharedVhost;
use crosstie_metadata::{Change, Entry, Json, Outcome, PolicyKind, Refusal, RefusalKind};
use serde_json::json;

use crate::answer::Answer;
use crate::call::Call;
use crate::input::Input;
use crate::list::{self, Source};
use crate::route::Place;
use crate::row::Row;

/// The rows of a list, or a single object.
enum Shown {
    Rows(Vec<Json>),
    Object(Option<Json>),
}

/// Lists settings, or shows one.
pub(crate) fn show(call: &Call<'_>, place: &Place<'_>) -> Answer {
    let metadata = call.api.operators.metadata();
    if place
        .vhost()
        .is_some_and(|vhost| !metadata.has_vhost(vhost))
    {
        return Answer::not_found();
    }
    let one = |rows: Vec<Json>| Shown::Object(rows.into_iter().next());
    let named = |rows: Vec<Json>, name: &str| one(rows_named(rows, "name", name));
    let shown = match *place {
        Place::Policies(kind, vhost) => Shown::Rows(metadata.list_policies(kind, vhost)),
        Place::Policy(kind, vhost, name) => named(metadata.list_policies(kind, Some(vhost)), name),
        Place::TopicPermissions(vhost, user) => {
            if user.is_some_and(|user| metadata.user(user).is_none()) {
                return Answer::not_found();
            }
            Shown::Rows(metadata.list_topic_permissions(vhost, user))
        }
        Place::TopicPermission(vhost, user, _) => {
            let rows = metadata.list_topic_permissions(Some(vhost), Some(user));
            match rows.is_empty() {
                true => return Answer::not_found(),
                false => Shown::Rows(rows),
            }
        }
        Place::VhostLimits(vhost) => Shown::Rows(metadata.list_vhost_limits(vhost)),
        Place::UserLimits(user) => Shown::Rows(metadata.list_user_limits(user)),
        Place::GlobalParameters => Shown::Rows(metadata.list_global_parameters(None)),
        Place::GlobalParameter(name) => one(metadata.list_global_parameters(Some(name))),
        Place::Parameters(component, vhost) => {
            Shown::Rows(metadata.list_parameters(component, vhost))
        }
        Place::Parameter(component, vhost, name) => {
            named(metadata.list_parameters(Some(component), Some(vhost)), name)
        }
        Place::Users => Shown::Rows(metadata.list_users(None)),
        Place::User(name) => one(metadata.list_users(Some(name))),
        Place::UsersWithoutPermissions => {
            let mut rows = metadata.list_users(None);
            let has_none = |row: &Json| {
                let name = row["name"].as_str();
                metadata.list_permissions(None, name).is_empty()
            };
            rows.retain(has_none);
            Shown::Rows(rows)
        }
        Place::Permissions => Shown::Rows(metadata.list_permissions(None, None)),
        Place::VhostPermissions(vhost) => Shown::Rows(metadata.list_permissions(Some(vhost), None)),
        Place::UserPermissions(user) => match metadata.user(user) {
            Some(_) => Shown::Rows(metadata.list_permissions(None, Some(user))),
            None => return Answer::not_found(),
        },
        Place::Permission(vhost, user) => one(metadata.list_permissions(Some(vhost), Some(user))),
        _ => return Answer::not_found(),
    };
    match shown {
        Shown::Rows(mut rows) => {
            if is_filtered(place) {
                rows.retain(|row| row["vhost"].as_str().is_none_or(|v| call.caller.sees(v)));
            }
            list::list(&call.query, Source::of(rows, write))
        }
        Shown::Object(Some(row)) => Answer::json(&row),
        Shown::Object(None) => Answer::not_found(),
    }
}

/// Whether a list leaves out vhosts that the user does not see.
fn is_filtered(place: &Place<'_>) -> bool {
    matches!(
        place,
        Place::Policies(..) | Place::VhostLimits(_) | Place::Parameters(..)
    )
}

fn rows_named(mut rows: Vec<Json>, key: &str, name: &str) -> Vec<Json> {
    rows.retain(|row| row[key] == name);
    rows
}

fn write(value: &Json, row: &mut Row<'_, '_>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        row.json(name, value);
    }
}

/// The setting at a place, if it can be changed there.
fn entry(place: &Place<'_>) -> Option<Entry> {
    Some(match *place {
        Place::User(name) => Entry::User(name.into()),
        Place::Vhost(name) => Entry::Vhost(name.into()),
        Place::Permission(vhost, user) => Entry::Permission {
            vhost: vhost.into(),
            user: user.into(),
        },
        Place::TopicPermission(vhost, user, exchange) => Entry::TopicPermission {
            vhost: vhost.into(),
            user: user.into(),
            exchange: exchange.map(Arc::from),
        },
        Place::VhostLimit(vhost, name) => Entry::VhostLimits {
            vhost: vhost.into(),
            name: Some(name.to_owned()),
        },
        Place::UserLimit(user, name) => Entry::UserLimits {
            user: user.into(),
            name: Some(name.to_owned()),
        },
        Place::GlobalParameter(name) => Entry::GlobalParameter(name.into()),
        Place::Policy(kind, vhost, name) => Entry::Policy {
            kind,
            vhost: vhost.into(),
            name: name.into(),
        },
        Place::Parameter("vhost-limits", vhost, "limits") => Entry::VhostLimits {
            vhost: vhost.into(),
            name: None,
        },
        _ => return None,
    })
}

pub(crate) async fn put(
    call: &Call<'_>,
    place: &Place<'_>,
    input: Input,
) -> Result<Answer, Answer> {
    if let Place::ClusterName = place {
        let name = input.text("name")?.ok_or_else(|| missing("name"))?;
        let change = Change::PutGlobalParameter {
            name: "cluster_name".into(),
            value: name.into(),
        };
        changed(call, change)
            .await
            .map_err(|e| refused(&e, place))?;
        return Ok(Answer::no_content());
    }
    let entry = entry(place).ok_or_else(|| no_component(place))?;
    let change = Change::put(entry, &input.into_json(), Some(call.caller.name()));
    let change = change.map_err(|e| refused(&e, place))?;
    let outcome = changed(call, change)
        .await
        .map_err(|e| refused(&e, place))?;
    let is_limit = matches!(place, Place::VhostLimit(..) | Place::UserLimit(..));
    Ok(Answer::put(
        matches!(outcome, Outcome::Created) && !is_limit,
    ))
}

pub(crate) async fn delete(call: &Call<'_>, place: &Place<'_>) -> Result<Answer, Answer> {
    let entry = entry(place).ok_or_else(Answer::not_found)?;
    let deleted = changed(call, Change::Delete(entry)).await;
    let is_limit = matches!(place, Place::VhostLimit(..) | Place::UserLimit(..));
    match deleted {
        Ok(_) => Ok(Answer::no_content()),
        Err(refusal) if is_limit && refusal.kind == RefusalKind::Absent => Ok(Answer::no_content()),
        Err(refusal) => Err(refused(&refusal, place)),
    }
}

/// Deletes several users, or none of them.
pub(crate) async fn delete_users(call: &Call<'_>, input: &Input) -> Result<Answer, Answer> {
    let users = input.get("users").ok_or_else(|| missing("users"))?;
    let names = users.as_array().into_iter().flatten();
    let names: Option<Vec<&str>> = names.map(Json::as_str).collect();
    let names = names.filter(|_| users.is_array());
    let names = names.ok_or_else(|| Answer::bad_request("users: expected a list of names"))?;
    let metadata = call.api.operators.metadata();
    if let Some(absent) = names.iter().find(|name| metadata.user(name).is_none()) {
        return Err(Answer::bad_request(&format!("no_such_user: {absent}")));
    }
    let deletes = names
        .into_iter()
        .map(|name| Change::Delete(Entry::User(name.into())));
    let change = Change::All(deletes.collect());
    let done = changed(call, change).await;
    done.map_err(|e| refused(&e, &Place::Users))?;
    Ok(Answer::no_content())
}

/// Makes a change. It waits for the store, and no other request waits for that.
async fn changed(call: &Call<'_>, change: Change) -> Result<Outcome, Refusal> {
    let api = Arc::clone(call.api);
    let made = tokio::task::spawn_blocking(move || api.operators.change(change)).await;
    made.unwrap_or_else(|_| {
        let reason = "the router is stopping";
        Err(Refusal::new(RefusalKind::NotStored, reason))
    })
}

fn missing(key: &str) -> Answer {
    Answer::bad_request(&format!("[{{key_missing,{key}}}]"))
}

fn no_component(place: &Place<'_>) -> Answer {
    match place {
        Place::Parameter("policy" | "operator_policy", ..) => {
            Answer::bad_request("policies may not be set using this method")
        }
        Place::Parameter(component, ..) => Answer::bad_request(&format!(
            "Validation failed\n\ncomponent {component} not found\n"
        )),
        _ => Answer::not_found(),
    }
}

/// RabbitMQ escapes the texts of policies for a browser.
fn refused(refusal: &Refusal, place: &Place<'_>) -> Answer {
    let reason = refusal.to_string();
    let reason = match place {
        Place::Policy(PolicyKind::User, ..) => reason.replace('<', "&lt;").replace('>', "&gt;"),
        _ => reason,
    };
    Answer::error(refusal.status(), refusal.error(), &reason)
}

/// The keys of a vhost that its users decide on.
pub(crate) fn of_vhost(call: &Call<'_>, vhost: &SharedVhost) -> Json {
    let metadata = call.api.operators.metadata();
    metadata.vhost_json(vhost.name(), vhost.is_traced())
}

/// The name of the cluster: as it was set, or as configured.
pub(crate) fn cluster_name(call: &Call<'_>) -> Answer {
    let api = call.api;
    let set = api
        .operators
        .metadata()
        .list_global_parameters(Some("cluster_name"));
    let set = set.into_iter().next().map(|row| row["value"].clone());
    let configured = || {
        api.operators
            .broker()
            .particulars
            .cluster_name
            .as_str()
            .into()
    };
    Answer::json(&json!({"name": set.unwrap_or_else(configured)}))
}
