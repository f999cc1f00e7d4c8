//! New machines of a cluster: their arguments, and their place in its plan.

use std::path::PathBuf;

use anyhow::{bail, ensure};

use super::certificates;
use super::directory::Directory;
use super::files::Files;
use super::names::{AUTHORITIES, in_folder};
use super::plan::Plan;
use super::seeds;
use super::server::Server;

/// What both `add` and `replace` are given for new machines.
#[derive(clap::Args)]
pub(super) struct Joining {
    /// Port of a new server for other servers, in the order of --server [default: 2,000 above its port].
    #[arg(long = "route-port", value_name = "PORT")]
    route_ports: Vec<u16>,
    /// Certificate of the new servers (PEM) if the cluster has TLS: one with all their names, or one for each in the
    /// order of --server.
    #[arg(long = "certificate", value_name = "FILE", requires = "keys")]
    certificates: Vec<PathBuf>,
    /// Key of the certificate (PEM), in the same order.
    #[arg(long = "key", value_name = "FILE", requires = "certificates")]
    keys: Vec<PathBuf>,
    /// Print the difference, and write nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Joining {
    /// The new servers, with the next names.
    pub(super) fn servers(
        &self,
        plan: &mut Plan,
        addresses: &[String],
    ) -> anyhow::Result<Vec<Server>> {
        let ports = &self.route_ports;
        ensure!(
            ports.is_empty() || ports.len() == addresses.len(),
            "--route-port: expected one for each --server, or none"
        );
        let mut servers = Vec::new();
        for (place, address) in addresses.iter().enumerate() {
            plan.servers_named += 1;
            let port = ports.get(place).copied();
            servers.push(Server::parse(plan.servers_named, address, port)?);
        }
        Ok(servers)
    }

    /// The files that do not follow from the plan: seeds of new nodes, certificates of new servers.
    pub(super) fn loose(
        &self,
        directory: &Directory,
        plan: &mut Plan,
        servers: &[Server],
    ) -> anyhow::Result<Files> {
        let mut files = seeds::complete(plan)?;
        let is_given = !self.certificates.is_empty();
        match (plan.has_tls(), is_given) {
            (false, true) => bail!("--certificate: the cluster was made without TLS"),
            (true, false) if !servers.is_empty() => {
                bail!("--certificate: expected one for each new server, as the cluster has TLS")
            }
            (true, true) => {
                let folder = &directory.record.plan.servers[0].name;
                let authorities = directory.path.join(in_folder(folder, AUTHORITIES));
                let (certificates, keys) = (&self.certificates, &self.keys);
                files.extend(certificates::files(
                    servers,
                    certificates,
                    keys,
                    &authorities,
                )?);
            }
            _ => {}
        }
        Ok(files)
    }
}
