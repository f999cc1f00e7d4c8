//! Names of a running node, for completions.

use std::time::Duration;

use crosstie_client::args;
use serde_json::Value as Json;

use crate::context;
use crate::management::{Place, Target};
use crate::queues::lists::{
    CONNECTIONS, EXCHANGES, List, QUEUES, REGISTRATIONS, SESSIONS, SUBSCRIPTIONS, read,
};
use crate::queues::realm::{ManagementRealm, Refused};

/// A shell waits for so long, at most.
const PATIENCE: Duration = Duration::from_millis(800);

/// More names than a shell shows.
const NAMES_MAX: usize = 500;

/// A kind of names.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Contexts,
    Rows(&'static [Source]),
    Vhosts,
    Workers,
}

/// A list with names: the key of a name, and the keys that describe it.
pub(super) struct Source {
    list: &'static List,
    key: &'static str,
    about: &'static [&'static str],
}

static SESSION: [Source; 1] = [source(&SESSIONS, "session", &["authid", "peer"])];
static CONNECTION: [Source; 1] = [source(&CONNECTIONS, "connection", &["user", "peer"])];
static EITHER: [Source; 2] = [
    source(&SESSIONS, "session", &["authid", "peer"]),
    source(&CONNECTIONS, "connection", &["user", "peer"]),
];
static QUEUE: [Source; 1] = [source(&QUEUES, "name", &["vhost"])];
static EXCHANGE: [Source; 1] = [source(&EXCHANGES, "name", &["vhost"])];
static PROCEDURE: [Source; 1] = [source(&REGISTRATIONS, "uri", &["realm"])];
static TOPIC: [Source; 1] = [source(&SUBSCRIPTIONS, "uri", &["realm"])];
static REALM: [Source; 1] = [source(&SESSIONS, "realm", &[])];

const fn source(list: &'static List, key: &'static str, about: &'static [&'static str]) -> Source {
    Source { list, key, about }
}

/// The kind of names that an argument takes, by the command and the argument's id.
pub(super) fn kind(path: &[&str], id: &str) -> Option<Kind> {
    Some(match (path, id) {
        (["context", "select" | "remove"], "name") | (_, "context") => Kind::Contexts,
        (["kill"], "ids") | (["trace"], "id") => Kind::Rows(&EITHER),
        (["amqp", "publish"], "routing_key") | (_, "queue" | "queues") => Kind::Rows(&QUEUE),
        (_, "exchange") => Kind::Rows(&EXCHANGE),
        (["call"] | ["wait-for", "procedure"], "procedure") => Kind::Rows(&PROCEDURE),
        (["publish" | "subscribe"], "topic") => Kind::Rows(&TOPIC),
        (["connections", "close"], "connection") => Kind::Rows(&CONNECTION),
        (["sessions", "close"], "session") | (["publish"], "exclude" | "eligible") => {
            Kind::Rows(&SESSION)
        }
        (_, "realm") => Kind::Rows(&REALM),
        (_, "vhost") => Kind::Vhosts,
        (_, "worker") => Kind::Workers,
        _ => return None,
    })
}

/// Names that begin with `start`, each with a description; none if the node does not answer in time.
pub(super) fn names(kind: Kind, place: &Place, start: &str) -> Vec<(String, String)> {
    let mut found = Names {
        start,
        names: Vec::new(),
    };
    if matches!(kind, Kind::Contexts) {
        for name in context::names().unwrap_or_default() {
            found.add(&name, String::new());
        }
        return found.names;
    }
    let Ok(target) = place.target() else {
        return found.names;
    };
    let _ = crate::wait_for(async {
        let asked = ask(kind, &target, &mut found);
        let _ = tokio::time::timeout(PATIENCE, asked).await;
        Ok(std::process::ExitCode::SUCCESS)
    });
    found.names
}

struct Names<'a> {
    start: &'a str,
    names: Vec<(String, String)>,
}

impl Names<'_> {
    /// Returns whether there is room for another one.
    fn add(&mut self, name: &str, about: String) -> bool {
        // A name with a control character would do something else in a shell than a name. One that begins with a dash
        // would be an option.
        let is_harmless = !name.contains(char::is_control) && !name.starts_with('-');
        let is_meant = name.starts_with(self.start) && !name.is_empty();
        if is_meant && is_harmless && !self.names.iter().any(|(known, _)| known == name) {
            self.names.push((name.to_owned(), about));
        }
        self.names.len() < NAMES_MAX
    }

    fn add_rows(&mut self, rows: &[Json], key: &str, about: &[&str]) -> bool {
        let text = |row: &Json, key: &str| match &row[key] {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => String::new(),
        };
        rows.iter().all(|row| {
            let about: Vec<_> = about.iter().map(|key| text(row, key)).collect();
            self.add(
                &text(row, key),
                about.join(" ").replace(char::is_control, " "),
            )
        })
    }
}

async fn ask(kind: Kind, target: &Target, found: &mut Names<'_>) -> anyhow::Result<()> {
    let realm = ManagementRealm::join(target, None).await?;
    let asked = list(kind, &realm, found).await;
    asked.map_err(|refused| anyhow::anyhow!("{refused}"))
}

async fn list(kind: Kind, realm: &ManagementRealm, found: &mut Names<'_>) -> Result<(), Refused> {
    match kind {
        Kind::Contexts => {}
        Kind::Rows(sources) => {
            for Source { list, key, about } in sources {
                read(realm, list, None, &mut |rows| {
                    found.add_rows(&rows, key, about)
                })
                .await?;
            }
        }
        Kind::Vhosts => {
            for vhost in realm.brokers().await?.into_iter().flat_map(|b| b.vhosts) {
                found.add(&vhost, String::new());
            }
        }
        Kind::Workers => {
            let workers = realm.call("crossbar.get_workers", args![]).await?;
            for worker in workers.as_array().into_iter().flatten() {
                found.add(worker.as_str().unwrap_or_default(), String::new());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_take_for_another_word_are_left_out() {
        let mut found = Names {
            start: "",
            names: Vec::new(),
        };
        for name in ["jobs", "--ack", "-", "", "a\nb", "jobs", "a-b"] {
            assert!(found.add(name, String::new()));
        }
        let names: Vec<_> = found.names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["jobs", "a-b"]);
    }
}
