//! `crosstie cluster init`: all files for the NATS servers and the nodes of some realms.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;
use crosstie_config::{self as config, Failure, Format};
use serde_json::Value as Json;

use super::accounts::Single;
use super::certificates;
use super::change::Change;
use super::files::{Files, USER};
use super::names::SYSTEM;
use super::nats_server::password;
use super::plan::{Node, Plan};
use super::record::Record;
use super::seeds;
use super::server::Server;

/// Create configurations for NATS servers, with an account for each realm and a key for each node, and for the nodes.
/// Existing files are not overwritten.
///
/// Each server and each node gets a directory. Copy it as a whole to its machine. Keys are new, and only their owner
/// may read them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Target directory, created if missing.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Realm of all nodes; may be repeated.
    #[arg(long = "realm", value_name = "NAME", default_value = "realm1")]
    realms: Vec<String>,
    /// Grants of single-callee procedures in these realms; `strict`: by a majority of the servers.
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    single: Single,
    /// AMQP vhost to replicate, which the nodes' configuration must contain too; may be repeated.
    #[arg(long = "vhost", value_name = "NAME")]
    vhosts: Vec<String>,
    /// Name of a node; may be repeated.
    #[arg(long = "node", value_name = "NAME", default_values = ["node1", "node2", "node3"])]
    nodes: Vec<String>,
    /// Address of a NATS server for nodes; may be repeated.
    #[arg(
        long = "server",
        value_name = "HOST:PORT",
        default_values = ["127.0.0.1:4222", "127.0.0.1:4223", "127.0.0.1:4224"]
    )]
    servers: Vec<String>,
    /// Port of a server for other servers, in the order of --server [default: 2,000 above its port].
    #[arg(long = "route-port", value_name = "PORT")]
    route_ports: Vec<u16>,
    /// Configuration of the nodes, JSON or YAML, whose realms of these names get a fabric; without it each node gets a
    /// fabric.json to merge by hand.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Certificate of the servers (PEM), for TLS: one with all their names, or one for each in the order of --server.
    #[arg(long = "certificate", value_name = "FILE", requires_all = ["keys", "authorities"])]
    certificates: Vec<PathBuf>,
    /// Key of the certificate (PEM), in the same order.
    #[arg(long = "key", value_name = "FILE", requires = "certificates")]
    keys: Vec<PathBuf>,
    /// Authority that signed the certificates (PEM), the only one that nodes and servers trust.
    #[arg(long = "authority", value_name = "FILE", requires = "certificates")]
    authorities: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let config = match &arguments.config {
        None => None,
        Some(path) => match read_config(path)? {
            Ok(config) => Some(config),
            Err(failure) => {
                complain!("{failure}");
                return Ok(ExitCode::FAILURE);
            }
        },
    };
    let directory = arguments.directory.clone();
    let (plan, certificates) = arguments.plan(config)?;
    let change = make(plan, certificates, &directory)?;
    let plan = &change.record.plan;
    say!("In {} are:", directory.display())?;
    for path in change.paths(true) {
        say!("    {path}")?;
    }
    let server = &plan.servers[0].name;
    say!("Start each server in its directory, as in {server}: nats-server -c nats.conf")?;
    let first = directory.join(&plan.nodes[0].name);
    match plan.config {
        Some(_) => say!(
            "Start each node: crosstie start --cbdir {}\n\
             Beside its configuration bring what that names by relative paths: nothing of it is copied.",
            first.display()
        )?,
        None => say!(
            "Put each node's fabric.json into its configuration, and its keys into the directory of that."
        )?,
    };
    if plan.config.is_none() && !plan.vhosts.is_empty() {
        say!("The AMQP user '{USER}' may use the vhosts; fabric.json has the password.")?;
    }
    if plan.has_streams() {
        say!("Keep {SYSTEM} here, away from the machines: `crosstie cluster replace` needs it.")?;
    }
    let config = plan.config.as_ref();
    let id = config.and_then(|config| config["controller"]["id"].as_str());
    if let (Some(id), 2..) = (id, plan.nodes.len()) {
        complain!(
            "warning: --config: all nodes have the name '{id}' (\"controller\": {{\"id\": …}}), which makes them indistinguishable"
        );
    }
    if !plan.has_tls() && !plan.servers.iter().all(Server::is_here) {
        complain!(
            "warning: without --certificate whatever nodes say crosses the network in the clear"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all files, or none if one of them exists.
pub(super) fn make(
    mut plan: Plan,
    certificates: Files,
    directory: &Path,
) -> anyhow::Result<Change> {
    plan.check()?;
    let mut loose = seeds::complete(&mut plan)?;
    loose.extend(certificates);
    let change = Change::first(directory, Record::new(plan), loose)?;
    change.write(directory)?;
    Ok(change)
}

impl Arguments {
    /// The plan, and the files of the servers' certificates.
    fn plan(self, config: Option<Json>) -> anyhow::Result<(Plan, Files)> {
        let count = self.servers.len();
        let ports = &self.route_ports;
        ensure!(
            ports.is_empty() || ports.len() == count,
            "--route-port: expected one for each --server, or none"
        );
        let servers = self.servers.iter().enumerate();
        let servers =
            servers.map(|(place, text)| Server::parse(place + 1, text, ports.get(place).copied()));
        let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
        let (mut authorities, mut certificates) = (Vec::new(), Files::new());
        if let Some(path) = &self.authorities {
            certificates = certificates::files(&servers, &self.certificates, &self.keys, path)?;
            authorities.push(certificates::authority(path)?);
        }
        let plan = Plan {
            servers_named: servers.len(),
            servers,
            nodes: self.nodes.iter().map(|name| Node::new(name)).collect(),
            system_keys: Vec::new(),
            realms: self.realms,
            single: self.single,
            vhosts: self.vhosts,
            authorities,
            routes_password: password()?,
            user_password: password()?,
            config,
        };
        Ok((plan, certificates))
    }
}

/// A configuration of nodes, or the problems in it.
pub(super) fn read_config(path: &Path) -> anyhow::Result<Result<Json, Failure>> {
    let (source, format) = match config::read_source(path) {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure)),
    };
    match config::convert(&source, format, Format::Json) {
        Ok((text, _)) => Ok(Ok(serde_json::from_str(&text)?)),
        Err(problems) => Ok(Err(Failure::Invalid { source, problems })),
    }
}
