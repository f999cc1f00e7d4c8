//! A node's management realm, for queries about AMQP.

use std::fmt;
use std::process::ExitCode;

use anyhow::bail;
use crosstie_client::{ApplicationError, Arguments, CallError, Client, args};
use serde_json::Value as Json;

use crate::management::{self, Place};

/// Of which node, of what in it, and in which form.
#[derive(clap::Args)]
pub(super) struct Asked {
    /// Vhost; by default lists show all vhosts, and changes apply to `/`.
    #[arg(long, global = true)]
    vhost: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    /// Print JSON: a list of objects.
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(flatten)]
    place: Place,
}

impl Asked {
    pub(super) fn vhost(&self) -> Option<&str> {
        self.vhost.as_deref()
    }

    pub(super) fn vhost_or_default(&self) -> &str {
        self.vhost().unwrap_or("/")
    }

    pub(super) async fn join(&self) -> anyhow::Result<ManagementRealm> {
        let url = self.place.management_url()?;
        ManagementRealm::join(&url, self.worker.clone()).await
    }
}

/// A session in it.
pub(crate) struct ManagementRealm {
    client: Client,
    /// The only worker to query.
    worker: Option<String>,
}

/// A worker and its vhosts, by name.
pub(crate) struct Broker {
    pub(crate) worker: String,
    pub(crate) vhosts: Vec<String>,
}

/// A refusal: an answer, not a failure of this program.
pub(crate) enum Refused {
    /// By the node.
    Application(Box<ApplicationError>),
    /// By this program: the object is ambiguous, or missing.
    Here(String),
    /// The answer did not arrive.
    Lost(anyhow::Error),
}

impl ManagementRealm {
    /// Joins the realm at `url`; queries only that worker, if one is named.
    pub(crate) async fn join(url: &str, worker: Option<String>) -> anyhow::Result<Self> {
        let client = management::join(url).await?;
        Ok(Self { client, worker })
    }

    pub(crate) async fn call(
        &self,
        procedure: &str,
        arguments: Arguments,
    ) -> Result<Json, Refused> {
        let answer = management::call(&self.client, procedure, arguments).await;
        answer.map_err(Refused::from)
    }

    /// Calls a procedure that may take long.
    pub(crate) async fn call_for_long(
        &self,
        procedure: &str,
        arguments: Arguments,
    ) -> Result<Json, Refused> {
        let answer = management::call_for_long(&self.client, procedure, arguments).await;
        answer.map_err(Refused::from)
    }

    pub(crate) async fn leave(self) {
        self.client.leave().await;
    }

    /// The workers that are routers, or the only one to query.
    pub(super) async fn routers(&self) -> Result<Vec<String>, Refused> {
        if let Some(worker) = &self.worker {
            return Ok(vec![worker.clone()]);
        }
        let types = Json::from(vec!["router"]);
        let workers = self.call("crossbar.get_workers", args![types]).await?;
        Ok(names(&workers, |worker| worker.as_str()))
    }

    /// The workers that speak AMQP.
    pub(crate) async fn brokers(&self) -> Result<Vec<Broker>, Refused> {
        let mut brokers = Vec::new();
        for worker in self.routers().await? {
            let procedure = format!("crossbar.worker.{worker}.get_amqp_vhosts");
            match self.call(&procedure, args![]).await {
                Ok(vhosts) => brokers.push(Broker {
                    worker,
                    vhosts: names(&vhosts, |vhost| vhost["name"].as_str()),
                }),
                // A router without AMQP, which was not named.
                Err(refused) if self.worker.is_none() && refused.is_no_such_object() => {}
                Err(error) => return Err(error),
            }
        }
        match brokers.is_empty() {
            true => Err(Refused::Here("no worker of the node speaks AMQP".into())),
            false => Ok(brokers),
        }
    }

    /// The one worker that has that vhost. One that may own it, and does not, knows the node that does.
    pub(crate) async fn worker_with(&self, vhost: &str) -> Result<String, Refused> {
        let mut brokers = self.brokers().await?;
        brokers.retain(|broker| broker.vhosts.iter().any(|name| name == vhost));
        if brokers.is_empty() {
            brokers = self.brokers_with_replicated(vhost).await?;
        }
        one(brokers, &format!("has a vhost '{vhost}'"))
    }

    /// The workers that speak AMQP, each with its replicated vhosts.
    pub(crate) async fn replicated(&self) -> Result<Vec<(String, Vec<Json>)>, Refused> {
        let mut found = Vec::new();
        for Broker { worker, .. } in self.brokers().await? {
            let procedure = format!("crossbar.worker.{worker}.get_amqp_replicated_vhosts");
            let vhosts = self.call(&procedure, args![]).await?;
            found.push((worker, vhosts.as_array().cloned().unwrap_or_default()));
        }
        Ok(found)
    }

    /// The one worker that has that vhost, which is replicated.
    pub(crate) async fn worker_with_replicated(&self, vhost: &str) -> Result<String, Refused> {
        let brokers = self.brokers_with_replicated(vhost).await?;
        if brokers.is_empty() && self.worker_with(vhost).await.is_ok() {
            let why = format!("vhost '{vhost}' is not replicated");
            return Err(Refused::Here(why));
        }
        one(brokers, &format!("has a vhost '{vhost}'"))
    }

    async fn brokers_with_replicated(&self, vhost: &str) -> Result<Vec<Broker>, Refused> {
        let replicated = self.replicated().await?.into_iter();
        let with = |(_, vhosts): &(String, Vec<Json>)| vhosts.iter().any(|v| v["name"] == vhost);
        let found = replicated.filter(with).map(|(worker, _)| Broker {
            worker,
            vhosts: Vec::new(),
        });
        Ok(found.collect())
    }

    /// The one worker that speaks AMQP.
    pub(crate) async fn only_worker(&self) -> Result<String, Refused> {
        one(self.brokers().await?, "speaks AMQP")
    }
}

fn one(mut brokers: Vec<Broker>, what: &str) -> Result<String, Refused> {
    match brokers.len() {
        0 => Err(Refused::Here(format!("no worker of the node {what}"))),
        1 => Ok(brokers.swap_remove(0).worker),
        _ => {
            let workers: Vec<_> = brokers.into_iter().map(|broker| broker.worker).collect();
            Err(Refused::Here(format!(
                "more than one worker {what}: name one of {} with --worker",
                workers.join(", ")
            )))
        }
    }
}

fn names(list: &Json, name: impl Fn(&Json) -> Option<&str>) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| name(item).map(str::to_owned))
        .collect()
}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Application(error) => Self::Application(Box::new(error)),
            error => Self::Lost(error.into()),
        }
    }
}

impl Refused {
    /// Whether the node has no such object.
    pub(crate) fn is_no_such_object(&self) -> bool {
        matches!(self, Self::Application(error) if error.uri == "crossbar.error.no_such_object")
    }

    /// Prints it. A missing answer is an error of the program.
    pub(crate) fn told(self) -> anyhow::Result<ExitCode> {
        if let Self::Lost(error) = self {
            bail!(error);
        }
        complain!("crosstie: {self}");
        Ok(ExitCode::FAILURE)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(error) => match error.arguments.argument::<String>(0) {
                Ok(text) => f.write_str(&text),
                Err(_) => error.fmt(f),
            },
            Self::Here(text) => f.write_str(text),
            Self::Lost(error) => error.fmt(f),
        }
    }
}
