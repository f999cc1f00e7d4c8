//! `crosstie cluster init`: all files for the NATS servers and the nodes of some realms.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use crosstie_config::{self as config, Failure, Format};
use crosstie_node::{check_peer, check_tls};
use serde_json::Value as Json;

use super::accounts::Single;
use super::plan::{File, Plan, Server, TlsFiles, USER};

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
    let plan = arguments.plan(config)?;
    let files = make(&plan, &directory)?;
    say!("In {} are:", directory.display())?;
    for file in &files {
        say!("    {}", file.path.display())?;
    }
    let server = &plan.servers[0].name;
    say!("Start each server in its directory, as in {server}: nats-server -c nats.conf")?;
    let first = directory.join(&plan.nodes[0]);
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
    let config = plan.config.as_ref();
    let id = config.and_then(|config| config["controller"]["id"].as_str());
    if let (Some(id), 2..) = (id, plan.nodes.len()) {
        complain!(
            "warning: --config: all nodes have the name '{id}' (\"controller\": {{\"id\": …}}), which makes them indistinguishable"
        );
    }
    if plan.tls.is_none() && !plan.servers.iter().all(Server::is_here) {
        complain!(
            "warning: without --certificate whatever nodes say crosses the network in the clear"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all files, or none if one of them exists.
pub(super) fn make(plan: &Plan, directory: &Path) -> anyhow::Result<Vec<File>> {
    plan.check()?;
    let files = plan.files()?;
    for file in &files {
        let path = directory.join(&file.path);
        if path.symlink_metadata().is_ok() {
            bail!("{} is there already; it is not overwritten", path.display());
        }
    }
    for file in &files {
        let path = directory.join(&file.path);
        put(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(files)
}

fn put(path: &Path, file: &File) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if file.is_secret { 0o600 } else { 0o644 };
    let mut options = fs::OpenOptions::new();
    let mut opened = options.write(true).create_new(true).mode(mode).open(path)?;
    opened.write_all(file.text.as_bytes())
}

impl Arguments {
    fn plan(self, config: Option<Json>) -> anyhow::Result<Plan> {
        let count = self.servers.len();
        let ports = &self.route_ports;
        ensure!(
            ports.is_empty() || ports.len() == count,
            "--route-port: expected one for each --server, or none"
        );
        let servers = self.servers.iter().enumerate();
        let servers =
            servers.map(|(place, text)| Server::parse(place, text, ports.get(place).copied()));
        let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
        let tls = match &self.authorities {
            None => None,
            Some(authorities) => Some(self.tls(&servers, authorities)?),
        };
        Ok(Plan {
            servers,
            nodes: self.nodes,
            realms: self.realms,
            single: self.single,
            vhosts: self.vhosts,
            tls,
            config,
        })
    }

    fn tls(&self, servers: &[Server], authorities: &Path) -> anyhow::Result<Vec<TlsFiles>> {
        let count = self.certificates.len();
        ensure!(
            count == self.keys.len() && (count == 1 || count == servers.len()),
            "--certificate and --key: expected one of each, or one of each for every --server"
        );
        let pairs = self.certificates.iter().zip(&self.keys);
        for ((certificate, key), server) in pairs.clone().cycle().zip(servers) {
            check((certificate, key), authorities, server)?;
        }
        pairs
            .map(|(certificate, key)| {
                Ok(TlsFiles {
                    certificate: text(certificate)?,
                    key: text(key)?,
                    authorities: text(authorities)?,
                })
            })
            .collect()
    }
}

/// Checks that the files work for a server, and among servers: otherwise only a log would show the fault.
fn check(
    (certificate, key): (&Path, &Path),
    authorities: &Path,
    server: &Server,
) -> anyhow::Result<()> {
    let named = |path: &Path| {
        let path = path.to_str().context("expected a path in UTF-8");
        path.map(str::to_owned)
    };
    let files = config::Tls {
        key: named(key)?,
        certificate: named(certificate)?,
        chain_certificates: Vec::new(),
        client_authorities: vec![named(authorities)?],
        is_certificate_optional: false,
    };
    check_tls(&files, Path::new(""))?;
    check_peer(certificate, authorities, &server.host)
        .with_context(|| format!("--server {}:{}", server.host, server.port))
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn read_config(path: &Path) -> anyhow::Result<Result<Json, Failure>> {
    let (source, format) = match config::read_source(path) {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure)),
    };
    match config::convert(&source, format, Format::Json) {
        Ok((text, _)) => Ok(Ok(serde_json::from_str(&text)?)),
        Err(problems) => Ok(Err(Failure::Invalid { source, problems })),
    }
}
