//! A node's management realm, for queries about AMQP.

use crosstie_client::{Arguments, Client, args};
use serde_json::Value as Json;

use crate::list::Form;
use crate::management::{self, Place, Target};
pub(crate) use crate::refused::Refused;

/// Of which node, of what in it, and in which form.
#[derive(clap::Args)]
pub(super) struct Asked {
    /// Vhost; by default lists show all vhosts, and changes apply to `/`.
    #[arg(long, global = true)]
    vhost: Option<String>,
    /// Worker; by default all.
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    #[command(flatten)]
    pub(super) form: Form,
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

    /// For a change: the options of a list are refused.
    pub(super) async fn join_to_change(&self) -> anyhow::Result<ManagementRealm> {
        self.form.check_unused()?;
        self.join().await
    }

    pub(super) async fn join(&self) -> anyhow::Result<ManagementRealm> {
        ManagementRealm::join(&self.place.target()?, self.worker.clone()).await
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

impl ManagementRealm {
    /// Joins the realm; queries only that worker, if one is named.
    pub(crate) async fn join(target: &Target, worker: Option<String>) -> anyhow::Result<Self> {
        let client = target.join().await?;
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
    pub(crate) async fn routers(&self) -> Result<Vec<String>, Refused> {
        if let Some(worker) = &self.worker {
            return Ok(vec![worker.clone()]);
        }
        let types = Json::from(vec!["router"]);
        let workers = self.call("crossbar.get_workers", args![types]).await?;
        Ok(names(&workers, |worker| worker.as_str()))
    }

    /// The workers that speak AMQP.
    pub(crate) async fn brokers(&self) -> Result<Vec<Broker>, Refused> {
        let (mut brokers, mut stopped) = (Vec::new(), None);
        for worker in self.routers().await? {
            let procedure = format!("crossbar.worker.{worker}.get_amqp_vhosts");
            match self.call(&procedure, args![]).await {
                Ok(vhosts) => brokers.push(Broker {
                    worker,
                    vhosts: names(&vhosts, |vhost| vhost["name"].as_str()),
                }),
                // A router without AMQP, which was not named.
                Err(refused) if self.worker.is_none() && refused.is_no_such_object() => {}
                // The lists have the brokers of the other workers.
                Err(refused) if self.worker.is_none() && refused.is_not_running() => {
                    stopped = Some(refused);
                }
                Err(error) => return Err(error),
            }
        }
        match brokers.is_empty() {
            true => Err(stopped.unwrap_or_else(Refused::no_amqp)),
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
