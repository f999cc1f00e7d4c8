//! `crosstie cluster replace`: another machine in the place of one that is lost for good.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::change::{Change, keep};
use super::directory::Directory;
use super::joining::Joining;
use super::plan::{Node, Plan};
use super::record::Record;
use super::removal::Removal;
use super::server::Server;
use super::steps;
use crate::wait_for;

/// Replace the node, the NATS server, or both, of a machine that is lost for good.
///
/// Writes the files of the new machine, and takes the lost one out of those of the others. Once the new server runs,
/// `--finish` removes the lost one from JetStream, and waits until the new one has all of each stream. It refuses if no
/// majority of the other servers answers, or if they lack a part of a stream.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the cluster.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Lost node, and the name of the new one; by default the same name with new keys.
    #[arg(long, value_name = "OLD[=NEW]", value_parser = node_pair)]
    #[arg(required_unless_present_any = ["server", "finish"])]
    node: Option<Pair>,
    /// Lost server, and the address of the new one for nodes. The new one gets the next name: JetStream would count an
    /// empty server with a former name among those that have the data.
    #[arg(long, value_name = "OLD=HOST:PORT", value_parser = pair)]
    server: Option<Pair>,
    #[command(flatten)]
    joining: Joining,
    /// Remove the lost server from JetStream, once the new one runs, and wait for the copies of its streams.
    #[arg(long, conflicts_with_all = ["node", "server", "dry_run"])]
    finish: bool,
    /// Replace a server that still runs: its streams move first. Needs nats-server 2.15.
    #[arg(long, requires = "finish")]
    while_alive: bool,
    /// Maximum time for the copies, in seconds; the command can be repeated [default: 600].
    #[arg(long, value_name = "SECONDS", requires = "finish")]
    timeout: Option<u64>,
}

/// Time for the copies.
const TIMEOUT_S: u64 = 600;

/// A name, and what takes its place.
#[derive(Clone, Debug)]
struct Pair {
    old: String,
    new: String,
}

fn pair(text: &str) -> Result<Pair, &'static str> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok(Pair {
            old: old.to_owned(),
            new: new.to_owned(),
        }),
        _ => Err("expected OLD=NEW"),
    }
}

fn node_pair(text: &str) -> Result<Pair, &'static str> {
    match text.contains('=') {
        true => pair(text),
        false => Ok(Pair {
            old: text.to_owned(),
            new: text.to_owned(),
        }),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let directory = Directory::open(&arguments.directory)?;
    match arguments.finish {
        true => wait_for(arguments.finish(directory)),
        false => arguments.replace(&directory),
    }
}

impl Arguments {
    fn replace(&self, directory: &Directory) -> anyhow::Result<ExitCode> {
        let path = directory.path.display();
        let finish = format!("crosstie cluster replace {path} --finish");
        let mut record = directory.record.clone();
        let mut servers = Vec::new();
        if let Some(pair) = &self.node {
            put_node(&mut record.plan, pair)?;
        }
        if let Some(pair) = &self.server {
            if let Some(leaving) = record.leaving.first() {
                bail!("{leaving} is not replaced yet: first run `{finish}`");
            }
            servers = self.put_server(&mut record, pair)?;
        }
        record.plan.check()?;
        let loose = self.joining.loose(directory, &mut record.plan, &servers)?;
        let change = Change::of(&directory.path, &directory.record, record, loose)?;
        if self.joining.dry_run {
            say!("{}", change.shown())?;
            return Ok(ExitCode::SUCCESS);
        }
        change.write(&directory.path)?;
        let why = "removes the lost server from JetStream, and waits for the copies of its streams. A server that \
                   runs gives its copies away first, by --while-alive";
        let last = !servers.is_empty() && change.record.plan.has_streams();
        steps::say(directory, &change, last.then_some((finish, why)))?;
        for Pair { old, new } in [&self.server, &self.node].into_iter().flatten() {
            let then = match old == new {
                true => format!(
                    "The servers refuse the keys of the lost {old} after their reload: never start it again."
                ),
                false => format!(
                    "{old} is no longer part of the cluster: never start it again, and delete {path}/{old}."
                ),
            };
            say!("{then}")?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn put_server(&self, record: &mut Record, pair: &Pair) -> anyhow::Result<Vec<Server>> {
        let plan = &mut record.plan;
        let new = self
            .joining
            .servers(plan, std::slice::from_ref(&pair.new))?;
        let known = plan.servers.iter().map(|server| &server.name);
        let place = place("--server", &pair.old, known)?;
        plan.servers[place].clone_from(&new[0]);
        if plan.has_streams() {
            record.leaving.push(pair.old.clone());
        }
        Ok(new)
    }

    async fn finish(&self, mut directory: Directory) -> anyhow::Result<ExitCode> {
        ensure!(
            !directory.record.leaving.is_empty(),
            "--finish: no server with streams was replaced"
        );
        while let Some(leaving) = directory.record.leaving.first().cloned() {
            let removal = Removal {
                directory: &directory.path,
                plan: &directory.record.plan,
                leaving: &leaving,
                may_run: self.while_alive,
                timeout: Duration::from_secs(self.timeout.unwrap_or(TIMEOUT_S)),
            };
            if let Err(why) = removal.run().await? {
                complain!("{why}");
                return Ok(ExitCode::FAILURE);
            }
            directory.record.leaving.remove(0);
            keep(&directory.record, &directory.path)?;
            say!(
                "{leaving} is removed from JetStream. The other servers have all of each stream."
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn put_node(plan: &mut Plan, pair: &Pair) -> anyhow::Result<()> {
    let known = plan.nodes.iter().map(|node| &node.name);
    let place = place("--node", &pair.old, known)?;
    let mut others = plan.nodes.iter().filter(|node| node.name != pair.old);
    let is_new = others.all(|node| node.name != pair.new);
    ensure!(is_new, "--node {}: that name is in use", pair.new);
    plan.nodes[place] = Node::new(&pair.new);
    Ok(())
}

/// The place of a name in a list.
fn place<'n>(
    what: &str,
    name: &str,
    mut known: impl Iterator<Item = &'n String> + Clone,
) -> anyhow::Result<usize> {
    let names = known.clone().map(String::as_str).collect::<Vec<_>>();
    let place = known.position(|known| known == name);
    place.with_context(|| {
        let names = names.join(", ");
        format!("{what} {name}: expected one of {names}")
    })
}
