//! `crosstie cluster add`: further nodes and NATS servers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;

use super::change::Change;
use super::directory::Directory;
use super::joining::Joining;
use super::plan::Node;
use super::steps;

/// Add nodes and NATS servers to a cluster in the directory that `init` has written.
///
/// Writes the files of the new machines, and changes those of the others: routes, users and addresses. Edits in other
/// lines stay; a change that touches an edited line is refused. Then prints what to copy, and what to reload, in order.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the cluster.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Name of a new node; may be repeated.
    #[arg(
        long = "node",
        value_name = "NAME",
        required_unless_present = "servers"
    )]
    nodes: Vec<String>,
    /// Address of a new NATS server for nodes; may be repeated.
    #[arg(long = "server", value_name = "HOST:PORT")]
    servers: Vec<String>,
    #[command(flatten)]
    joining: Joining,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments {
        directory,
        nodes,
        servers,
        joining,
    } = arguments;
    let directory = Directory::open(directory)?;
    let mut record = directory.record.clone();
    let plan = &mut record.plan;
    let servers = joining.servers(plan, servers)?;
    plan.servers.extend(servers.iter().cloned());
    plan.nodes.extend(nodes.iter().map(|name| Node::new(name)));
    plan.check()?;
    let loose = joining.loose(&directory, plan, &servers)?;
    let change = Change::of(&directory.path, &directory.record, record, loose)?;
    ensure!(!change.edits.is_empty(), "nothing is to be changed");
    if joining.dry_run {
        say!("{}", change.shown())?;
        return Ok(ExitCode::SUCCESS);
    }
    change.write(&directory.path)?;
    steps::say(&directory, &change, None)?;
    Ok(ExitCode::SUCCESS)
}
