//! The node behind the commands: reached when the first of them needs it, and asked one thing at a time.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crosstie_client::{Arguments, args};
use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};

use super::failure::Failure;
use super::words::Words;
use crate::amqp::{definitions, entries};
use crate::management::Place;
use crate::queues::lists::API_PART_MAX;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::service::unit::CBDIR;

/// A node.
pub(super) struct Session {
    place: Place,
    worker: Option<String>,
    /// The node that the caller means, if one is named.
    meant: Option<String>,
    timeout: Option<Duration>,
    began: Instant,
    reached: OnceCell<Reached>,
}

struct Reached {
    runtime: Runtime,
    realm: ManagementRealm,
    apps: Apps,
}

/// AMQP on the node.
struct Apps {
    /// As in the management API: `crosstie@node-1`.
    name: String,
    /// The workers that speak AMQP, each with whether it runs.
    workers: Vec<(String, bool)>,
}

impl Session {
    pub(super) fn new(words: &Words) -> Self {
        let path = |name| words.option(name).map(PathBuf::from);
        let timeout_s = words.number("timeout");
        let timeout_s = timeout_s.and_then(|s| u64::try_from(s).ok());
        Self {
            place: place(path("cbdir"), path("socket")),
            worker: words.option("worker").map(str::to_owned),
            meant: words.option("node").map(str::to_owned),
            timeout: timeout_s.map(Duration::from_secs),
            began: Instant::now(),
            reached: OnceCell::new(),
        }
    }

    /// The node's name.
    pub(super) fn name(&self) -> Result<&str, Failure> {
        Ok(&self.reached()?.apps.name)
    }

    /// Whether AMQP runs, as it was when the node was reached.
    pub(super) fn is_app_running(&self) -> Result<bool, Failure> {
        Ok(self.reached()?.apps.are_running())
    }

    /// The same as it is now, for a command that waits by itself.
    pub(super) fn is_app_running_now(&self) -> Result<bool, Failure> {
        let reached = self.reached()?;
        let apps = reached.runtime.block_on(Apps::of(&reached.realm))?;
        Ok(apps.are_running())
    }

    /// Calls a procedure of the only worker that speaks AMQP, which may be stopped.
    pub(super) fn app_call(&self, procedure: &str) -> Result<Json, Failure> {
        let workers = &self.reached()?.apps.workers;
        let [(worker, _)] = &workers[..] else {
            let names: Vec<&str> = workers.iter().map(|(worker, _)| worker.as_str()).collect();
            return Err(Failure::refused(&format!(
                "more than one worker speaks AMQP: name one of {} with --worker",
                names.join(", ")
            )));
        };
        let procedure = format!("crossbar.worker.{worker}.{procedure}");
        self.wait(async |realm: &ManagementRealm| realm.call_for_long(&procedure, args![]).await)
    }

    /// The entries of a kind.
    pub(super) fn entries(
        &self,
        kind: &str,
        vhost: Option<&str>,
        name: Option<&str>,
    ) -> Result<Vec<Json>, Failure> {
        self.wait(async |realm: &ManagementRealm| entries::rows(realm, kind, vhost, name).await)
    }

    /// Puts an entry, or deletes it if there is no body.
    pub(super) fn change(&self, entry: &Json, body: Option<Json>) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| entries::change(realm, entry, body).await)
    }

    /// The definitions of the node.
    pub(super) fn export(&self) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| definitions::export(realm, None).await)
    }

    /// Imports definitions, or none of them.
    pub(super) fn import(&self, read: Json) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| {
            definitions::import(realm, read, None, false).await
        })
    }

    /// Replaces some keys of a user.
    pub(super) fn set_user(&self, name: &str, keys: &Json) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| entries::set_user(realm, name, keys).await)
    }

    /// The answer of the management API to a GET below `/api`.
    pub(super) fn read(&self, path: &str) -> Result<(u64, Json), Failure> {
        let mut answer = self.call("get_amqp_management", None, || args![path])?;
        let status = answer["status"].as_u64().unwrap_or_default();
        Ok((status, answer["body"].take()))
    }

    /// The same for an answer that must have one of these statuses.
    pub(super) fn read_only(&self, path: &str, statuses: &[u64]) -> Result<Json, Failure> {
        match self.read(path)? {
            (status, body) if statuses.contains(&status) => Ok(body),
            (_, body) => Err(Failure::refused(&reason(&body))),
        }
    }

    /// All rows of a list of the management API, of every worker; `None` if the list does not exist.
    pub(super) fn list(&self, path: &str) -> Result<Option<Vec<Json>>, Failure> {
        self.wait(async |realm: &ManagementRealm| listed(realm, path).await)
    }

    /// Calls a procedure of the worker with that vhost, or of the only worker.
    pub(super) fn call(
        &self,
        procedure: &str,
        vhost: Option<&str>,
        arguments: impl Fn() -> Arguments,
    ) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| {
            let worker = match vhost {
                Some(vhost) => realm.worker_with(vhost).await?,
                None => realm.only_worker().await?,
            };
            let procedure = format!("crossbar.worker.{worker}.{procedure}");
            realm.call(&procedure, arguments()).await
        })
    }

    /// Calls a procedure of the node that takes nothing.
    pub(super) fn node_call(&self, procedure: &str) -> Result<Json, Failure> {
        self.wait(async |realm: &ManagementRealm| realm.call(procedure, args![]).await)
    }

    pub(super) fn has_vhost(&self, vhost: &str) -> Result<bool, Failure> {
        Ok(!self.entries("vhost", None, Some(vhost))?.is_empty())
    }

    /// Fails as RabbitMQ does if the vhost does not exist.
    pub(super) fn check_vhost(&self, vhost: &str) -> Result<(), Failure> {
        match self.has_vhost(vhost)? {
            true => Ok(()),
            false => Err(Failure::no_vhost(vhost)),
        }
    }

    pub(super) fn has_user(&self, user: &str) -> Result<bool, Failure> {
        Ok(!self.entries("user", None, Some(user))?.is_empty())
    }

    /// Fails as most of RabbitMQ's commands do if the user does not exist.
    pub(super) fn check_user(&self, user: &str) -> Result<(), Failure> {
        match self.has_user(user)? {
            true => Ok(()),
            false => Err(Failure::no_user(&format!("User \"{user}\" does not exist"))),
        }
    }

    /// The same as other commands do.
    pub(super) fn check_user_term(&self, user: &str) -> Result<(), Failure> {
        match self.has_user(user)? {
            true => Ok(()),
            false => Err(Failure::no_user_term(user)),
        }
    }

    /// Ends the connection, if there is one.
    pub(super) fn leave(self) {
        if let Some(reached) = self.reached.into_inner() {
            reached.runtime.block_on(reached.realm.leave());
        }
    }

    fn wait<T>(
        &self,
        ask: impl AsyncFnOnce(&ManagementRealm) -> Result<T, Refused>,
    ) -> Result<T, Failure> {
        let reached = self.reached()?;
        let left = self.left();
        reached.runtime.block_on(async {
            let asked = ask(&reached.realm);
            let answer = match left {
                None => asked.await,
                Some(left) => tokio::time::timeout(left, asked)
                    .await
                    .map_err(|_| self.timed_out(&reached.apps.name))?,
            };
            Ok(answer?)
        })
    }

    fn reached(&self) -> Result<&Reached, Failure> {
        if let Some(reached) = self.reached.get() {
            return Ok(reached);
        }
        let reached = self.reach()?;
        Ok(self.reached.get_or_init(|| reached))
    }

    fn reach(&self) -> Result<Reached, Failure> {
        let shown = self.meant.as_deref().unwrap_or("crosstie");
        let unreachable = |why: &str| Failure::check(&unreachable(shown, why));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::software(&error.to_string()))?;
        let target = self.place.target();
        let target = target.map_err(|error| unreachable(&crate::chain(&error)))?;
        let limit = self.left().unwrap_or(Duration::MAX);
        let reached = runtime.block_on(async {
            tokio::time::timeout(limit, async {
                let joined = ManagementRealm::join(&target, self.worker.clone()).await;
                let realm = joined.map_err(|error| unreachable(&crate::chain(&error)))?;
                let apps = Apps::of(&realm).await.map_err(Failure::from)?;
                Ok::<_, Failure>((realm, apps))
            })
            .await
        });
        let (realm, apps) = reached.map_err(|_| self.timed_out(shown))??;
        if let Some(meant) = &self.meant
            && !is_meant(meant, &apps.name)
        {
            return Err(unreachable(&format!("this node is '{}'", apps.name)));
        }
        Ok(Reached {
            runtime,
            realm,
            apps,
        })
    }

    fn left(&self) -> Option<Duration> {
        Some(self.timeout?.saturating_sub(self.began.elapsed()))
    }

    fn timed_out(&self, node: &str) -> Failure {
        let used = self.timeout.unwrap_or_default().as_millis();
        Failure::timed_out(&format!(
            "Error: operation on node {node} timed out. Timeout value used: {used}"
        ))
    }
}

/// The place that the words name, or that of other commands; beyond those the directory of the packages.
fn place(cbdir: Option<PathBuf>, socket: Option<PathBuf>) -> Place {
    let place = Place::new(cbdir, socket);
    match place.is_known() || !Path::new(CBDIR).is_dir() {
        true => place,
        false => Place::new(Some(CBDIR.into()), None),
    }
}

impl Apps {
    async fn of(realm: &ManagementRealm) -> Result<Self, Refused> {
        let mut apps = Self {
            name: String::new(),
            workers: Vec::new(),
        };
        for worker in realm.routers().await? {
            let procedure = format!("crossbar.worker.{worker}.get_amqp_state");
            let answer = realm.call(&procedure, args![]).await?;
            let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            let state = text("state");
            if state != "none" {
                apps.name = text("node");
                apps.workers.push((worker, state == "running"));
            }
        }
        match apps.workers.is_empty() {
            true => Err(Refused::no_amqp()),
            false => Ok(apps),
        }
    }

    fn are_running(&self) -> bool {
        self.workers.iter().any(|(_, is_running)| *is_running)
    }
}

/// The reason in the body of a refusal.
fn reason(body: &Json) -> String {
    let reason = body["reason"].as_str();
    reason
        .unwrap_or("the node does not answer as expected")
        .to_owned()
}

async fn listed(realm: &ManagementRealm, path: &str) -> Result<Option<Vec<Json>>, Refused> {
    let mut rows = Vec::new();
    let mut is_there = false;
    for broker in realm.brokers().await? {
        let procedure = format!("crossbar.worker.{}.get_amqp_management", broker.worker);
        let from = rows.len();
        loop {
            let arguments = args![path, rows.len() - from];
            let mut answer = realm.call(&procedure, arguments).await?;
            match answer["status"].as_u64() {
                Some(200) => {}
                Some(404) if rows.len() == from => break,
                _ => return Err(Refused::Here(reason(&answer["body"]))),
            }
            is_there = true;
            let Json::Array(part) = answer["body"].take() else {
                break;
            };
            let is_last = part.len() < API_PART_MAX;
            rows.extend(part);
            if is_last {
                break;
            }
        }
    }
    Ok(is_there.then_some(rows))
}

/// Whether a name means this node. The default name of RabbitMQ's nodes means the node of this machine.
fn is_meant(meant: &str, name: &str) -> bool {
    if meant == name || Some(meant) == name.split('@').next() {
        return true;
    }
    let (short, host) = meant.split_once('@').unwrap_or((meant, "localhost"));
    let own = rustix::system::uname();
    let own = own.nodename().to_string_lossy();
    let is_here = host == "localhost" || host == own || Some(host) == own.split('.').next();
    short == "rabbit" && is_here
}

fn unreachable(node: &str, why: &str) -> String {
    format!(
        "Error: unable to perform an operation on node '{node}'. Please see diagnostics information and suggestions \
         below.\n\n{why}"
    )
}
