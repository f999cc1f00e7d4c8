//! Changes and what comes of them, as text: a line is `put|delete|list|configure|restart ENTRY [JSON] => ANSWER`, or
//! `own|leave VHOST` for a replicated vhost.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_auth::PasswordHash;
use crosstie_metadata::{
    Change, Effect, Entry, Json, Layers, Metadata, Origin, Outcome, Permission, PolicyKind,
    Refusal, Stored, User,
};

/// A state with the records that its store has.
pub(crate) struct Machine {
    pub(crate) state: Metadata,
    store: BTreeMap<String, String>,
    /// The same of the log of `far`.
    log: BTreeMap<Arc<str>, Arc<str>>,
    terms: u64,
    pub(crate) layers: Layers,
}

/// `guest` with all permissions in `/` by default; `config` and the vhosts by the configuration: `/`, `home`, and `far`,
/// which is replicated.
pub(crate) fn layers() -> Layers {
    let user = |name: &str, origin| {
        let user = User {
            password: Some(PasswordHash::of(b"pw", *b"salt")),
            tags: Vec::new(),
            is_remote_allowed: true,
        };
        (Arc::from(name), user, origin)
    };
    let configured = Origin::Configured("amqp.users");
    let pair = |vhost: &str, user: &str| (Arc::from(vhost), Arc::from(user));
    Layers {
        users: vec![user("guest", Origin::Default), user("config", configured)],
        vhosts: vec![
            ("/".into(), (), Origin::Configured("amqp.vhosts")),
            ("far".into(), (), Origin::Configured("amqp.vhosts")),
            ("home".into(), (), Origin::Configured("amqp.vhosts")),
        ],
        replicated: ["far".into()].into(),
        permissions: vec![
            (pair("/", "guest"), Permission::all(), Origin::Default),
            (
                pair("home", "config"),
                Permission::all(),
                Origin::Configured("amqp.vhosts"),
            ),
        ],
        global_parameters: vec![("cluster_name".into(), "x".into(), Origin::Default)],
        ..Layers::default()
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        let layers = layers();
        Self {
            state: Metadata::new(layers.clone()),
            store: BTreeMap::new(),
            log: BTreeMap::new(),
            terms: 0,
            layers,
        }
    }

    pub(crate) fn run(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "put" => {
                let (entry, body) = match rest.find(" {") {
                    Some(at) => (&rest[..at], &rest[at + 1..]),
                    None => (rest, "{}"),
                };
                let body: Json = serde_json::from_str(body).expect("JSON");
                let by = Some("guest");
                self.apply(Change::put(entry_of(entry), &body, by))
            }
            "delete" => self.apply(Ok(Change::Delete(entry_of(rest)))),
            "list" => self.list(rest),
            "restart" => self.restart(),
            "own" => self.own(rest),
            "leave" => {
                self.state.end_term(rest);
                String::new()
            }
            "configure" => self.configure(rest),
            other => panic!("no verb {other:?}"),
        }
    }

    fn apply(&mut self, change: Result<Change, Refusal>) -> String {
        let applied = change.and_then(|change| self.state.apply(change, &mut || *b"salt"));
        match applied {
            Ok((state, applied)) => {
                self.state = state;
                for effect in &applied.effects {
                    if let Effect::Vhost(name) = effect {
                        self.layers.vhosts.retain(|(known, ..)| known != name);
                        if self.state.has_vhost(name) {
                            let made = (Arc::clone(name), (), Origin::RunTime);
                            self.layers.vhosts.push(made);
                        }
                    }
                }
                for Stored { key, value } in applied.records {
                    let is_of_log = key.contains("\"far\"");
                    match value {
                        Some(value) if is_of_log => {
                            self.log.insert(key.into(), value.into());
                        }
                        None if is_of_log => assert!(self.log.remove(&*key).is_some()),
                        Some(value) => drop(self.store.insert(key, value)),
                        None => assert!(self.store.remove(&key).is_some(), "{key} was not there"),
                    }
                }
                match applied.outcome {
                    Outcome::Created => "201".to_owned(),
                    Outcome::Deleted | Outcome::Replaced => "204".to_owned(),
                }
            }
            Err(refusal) => {
                let reason = refusal.to_string().replace('\n', "\\n");
                format!("{} {reason}", refusal.status())
            }
        }
    }

    fn list(&self, what: &str) -> String {
        let rows = match what {
            "users" => self.state.list_users(None),
            "permissions" => self.state.list_permissions(None, None),
            "topic-permissions" => self.state.list_topic_permissions(None, None),
            "vhosts" => {
                let names = self.state.vhosts();
                names
                    .map(|name| self.state.vhost_json(name, false))
                    .collect()
            }
            "vhost-limits" => self.state.list_vhost_limits(None),
            "user-limits" => self.state.list_user_limits(None),
            "global-parameters" => self.state.list_global_parameters(None),
            "policies" => self.state.list_policies(PolicyKind::User, None),
            "operator-policies" => self.state.list_policies(PolicyKind::Operator, None),
            "parameters" => self.state.list_parameters(None, None),
            "records" => self.store.keys().map(|key| key.as_str().into()).collect(),
            other => panic!("no list {other:?}"),
        };
        let text = |row: &Json| match row {
            // A column each is enough.
            Json::Object(row) => {
                let shown = row.iter().filter(|(key, _)| *key != "metadata");
                let shown = shown.filter(|(key, _)| *key != "tracing");
                let shown = shown.map(|(key, value)| match value {
                    Json::String(text) if key == "password_hash" => password_of(text),
                    Json::String(text) => text.clone(),
                    other => other.to_string(),
                });
                shown.collect::<Vec<_>>().join(" ")
            }
            other => other.as_str().expect("text").to_owned(),
        };
        rows.iter().map(text).collect::<Vec<_>>().join("; ")
    }

    /// The state from the configuration and the store is the state from before.
    fn restart(&mut self) -> String {
        let before = format!("{:?}", self.state);
        let mut state = Metadata::new(self.layers.clone());
        let mut overridden = Vec::new();
        for (key, value) in &self.store {
            overridden.extend(state.restore(key, value).expect("readable"));
        }
        assert_eq!(state.forget_orphans(), []);
        self.state = state;
        assert_eq!(overridden, [], "the configuration is as before");
        assert_eq!(format!("{:?}", self.state), before);
        String::new()
    }

    /// The node owns a vhost whose log has these entries.
    fn own(&mut self, vhost: &str) -> String {
        self.terms += 1;
        let begun = self.state.begin_term(&vhost.into(), self.terms, &self.log);
        for key in &begun.overridden {
            self.log.remove(&*key.text());
        }
        let overridden = begun.overridden.iter().map(ToString::to_string);
        let unreadable = begun.unreadable.iter().map(ToString::to_string);
        overridden.chain(unreadable).collect::<Vec<_>>().join("; ")
    }

    /// The configuration names a user.
    fn configure(&mut self, name: &str) -> String {
        let (_, user, origin) = self.layers.users[1].clone();
        self.layers.users.push((name.into(), user, origin));
        let (state, overridden, orphans) = self.state.reconfigured(self.layers.clone());
        self.state = state;
        for key in overridden.iter().chain(&orphans) {
            self.store.remove(&key.text());
        }
        let overridden: Vec<_> = overridden.iter().map(ToString::to_string).collect();
        overridden.join("; ")
    }
}

/// The password that a hash is of.
fn password_of(hash: &str) -> String {
    let passwords = ["pw", "x", ""].into_iter();
    let hash = PasswordHash::parse(hash, None);
    let mut passwords = passwords.filter(|password| {
        hash.as_ref()
            .is_ok_and(|hash| hash.verify(password.as_bytes()))
    });
    match passwords.next() {
        Some(found) => format!("'{found}'"),
        None => "no password".to_owned(),
    }
}

pub(crate) fn entry_of(text: &str) -> Entry {
    let words: Vec<&str> = text.split(' ').collect();
    match words[..] {
        ["user", name] => Entry::User(name.into()),
        ["vhost", name] => Entry::Vhost(name.into()),
        ["permission", vhost, user] => Entry::Permission {
            vhost: vhost.into(),
            user: user.into(),
        },
        ["topic-permission", vhost, user, ref exchange @ ..] => Entry::TopicPermission {
            vhost: vhost.into(),
            user: user.into(),
            exchange: exchange.first().map(|name| Arc::from(*name)),
        },
        ["vhost-limits", vhost, ref name @ ..] => Entry::VhostLimits {
            vhost: vhost.into(),
            name: name.first().map(|name| (*name).to_owned()),
        },
        ["user-limits", user, ref name @ ..] => Entry::UserLimits {
            user: user.into(),
            name: name.first().map(|name| (*name).to_owned()),
        },
        [kind @ ("policy" | "operator-policy"), vhost, name] => Entry::Policy {
            kind: match kind {
                "policy" => PolicyKind::User,
                _ => PolicyKind::Operator,
            },
            vhost: vhost.into(),
            name: name.into(),
        },
        ["global-parameter", name] => Entry::GlobalParameter(name.into()),
        _ => panic!("no entry {text:?}"),
    }
}

pub(crate) fn check(script: &str) {
    let mut machine = Machine::new();
    for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (input, expected) = line.split_once(" =>").unwrap_or((line, ""));
        let found = machine.run(input.trim());
        assert_eq!(found.trim(), expected.trim(), "{line}");
    }
}
