//! Lists and changes of users, vhosts, permissions, policies, limits and parameters, through the management realm.

use crosstie_client::args;
use serde_json::{Value as Json, json};

use crate::list::Column;
use crate::queues::lists::API_PART_MAX;
use crate::queues::realm::{Broker, ManagementRealm, Refused};

/// A request of a command.
pub(super) enum Asked {
    List(Listing),
    Put {
        entry: Json,
        body: Json,
        existence: Existence,
    },
    /// Replaces some keys of a user.
    SetUser {
        name: String,
        keys: Json,
    },
    Delete {
        entry: Json,
    },
}

/// A kind of entries, of one vhost or name if these are given.
pub(super) struct Listing {
    pub(super) kind: &'static str,
    pub(super) vhost: Option<String>,
    pub(super) name: Option<String>,
    pub(super) columns: &'static [Column],
}

/// Whether an entry may exist before it is put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Any,
    New,
    Present,
}

/// Lists or changes. Returns the output.
pub(super) async fn run(
    realm: &ManagementRealm,
    asked: Asked,
    is_json: bool,
) -> Result<String, Refused> {
    match asked {
        // A list is printed by its form.
        Asked::List(_) => Ok(String::new()),
        Asked::Put {
            entry,
            body,
            existence,
        } => put(realm, entry, body, existence, is_json).await,
        Asked::SetUser { name, keys } => {
            let answer = set_user(realm, &name, &keys).await?;
            Ok(told(
                &json!({"kind": "user", "name": name}),
                &answer,
                is_json,
            ))
        }
        Asked::Delete { entry } => {
            let answer = change(realm, &entry, None).await?;
            Ok(told(&entry, &answer, is_json))
        }
    }
}

impl Listing {
    pub(super) async fn rows(&self, realm: &ManagementRealm) -> Result<Vec<Json>, Refused> {
        rows(
            realm,
            self.kind,
            self.vhost.as_deref(),
            self.name.as_deref(),
        )
        .await
    }
}

/// The entries of a kind, of one vhost or name if these are given; each with its `worker`.
pub(crate) async fn rows(
    realm: &ManagementRealm,
    kind: &str,
    vhost: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<Json>, Refused> {
    let mut rows = Vec::new();
    for Broker { worker, .. } in realm.brokers().await? {
        let of_worker = of_worker(realm, &worker, (kind, vhost, name)).await?;
        rows.extend(of_worker.into_iter().map(|mut row| {
            row["worker"] = worker.as_str().into();
            // A hash is as good as a password to whoever tries many.
            if let Json::Object(keys) = &mut row {
                keys.shift_remove("password_hash");
                keys.shift_remove("hashing_algorithm");
            }
            row
        }));
    }
    Ok(rows)
}

/// The entries of a worker, which come in parts.
async fn of_worker(
    realm: &ManagementRealm,
    worker: &str,
    (kind, vhost, name): (&str, Option<&str>, Option<&str>),
) -> Result<Vec<Json>, Refused> {
    let procedure = format!("crossbar.worker.{worker}.get_amqp_entries");
    let mut rows = Vec::new();
    loop {
        let arguments = args![kind, vhost, name, rows.len()];
        let Json::Array(part) = realm.call(&procedure, arguments).await? else {
            return Ok(rows);
        };
        let is_last = part.len() < API_PART_MAX;
        rows.extend(part);
        if is_last {
            return Ok(rows);
        }
    }
}

async fn put(
    realm: &ManagementRealm,
    entry: Json,
    body: Json,
    existence: Existence,
    is_json: bool,
) -> Result<String, Refused> {
    if existence != Existence::Any {
        let (kind, name) = (text(&entry, "kind"), text(&entry, "name"));
        let found = find(realm, kind, name).await?;
        match (existence, found.is_some()) {
            (Existence::New, true) => {
                return Err(Refused::Here(format!("{kind} '{name}' exists already")));
            }
            (Existence::Present, false) => {
                return Err(Refused::Here(format!("there is no {kind} '{name}'")));
            }
            _ => {}
        }
    }
    let answer = change(realm, &entry, Some(body)).await?;
    Ok(told(&entry, &answer, is_json))
}

/// Replaces some keys of a user. Returns the node's answer.
pub(crate) async fn set_user(
    realm: &ManagementRealm,
    name: &str,
    keys: &Json,
) -> Result<Json, Refused> {
    let found = find(realm, "user", name).await?;
    let Some(mut body) = found else {
        return Err(Refused::Here(format!("there is no user '{name}'")));
    };
    for (key, value) in keys.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let entry = json!({"kind": "user", "name": name});
    change(realm, &entry, Some(body)).await
}

/// The user or vhost of that name.
async fn find(realm: &ManagementRealm, kind: &str, name: &str) -> Result<Option<Json>, Refused> {
    let worker = realm.only_worker().await?;
    let procedure = format!("crossbar.worker.{worker}.get_amqp_entries");
    let arguments = args![kind, Option::<String>::None, name];
    let found = realm.call(&procedure, arguments).await?;
    Ok(found.get(0).cloned())
}

/// Puts an entry, or deletes it if there is no body. Returns the node's answer.
pub(crate) async fn change(
    realm: &ManagementRealm,
    entry: &Json,
    body: Option<Json>,
) -> Result<Json, Refused> {
    let worker = match entry["vhost"].as_str() {
        Some(vhost) => realm.worker_with(vhost).await?,
        None => realm.only_worker().await?,
    };
    let of_worker = |procedure| format!("crossbar.worker.{worker}.{procedure}");
    let entry = entry.clone();
    let (procedure, arguments) = match body {
        Some(body) => (of_worker("put_amqp_entry"), args![entry, body]),
        None => (of_worker("delete_amqp_entry"), args![entry]),
    };
    realm.call_for_long(&procedure, arguments).await
}

fn told(entry: &Json, answer: &Json, is_json: bool) -> String {
    match is_json {
        true => answer.to_string(),
        false => format!("{}: {}", describe(entry), text(answer, "outcome")),
    }
}

/// `permission of user 'x' in vhost '/'`
fn describe(entry: &Json) -> String {
    let mut words = text(entry, "kind").replace('-', " ");
    let parts = [
        ("name", " '{}'"),
        ("user", " of user '{}'"),
        ("exchange", " for exchange '{}'"),
        ("vhost", " in vhost '{}'"),
    ];
    for (key, form) in parts {
        if let Some(name) = entry[key].as_str() {
            words.push_str(&form.replace("{}", name));
        }
    }
    words
}

fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json[key].as_str().unwrap_or_default()
}
