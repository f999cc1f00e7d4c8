//! `crosstie cluster rotate`: new keys and certificates, in steps that interrupt nothing.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use crosstie_node::{NatsCredentials, check_peer};

use super::certificates;
use super::change::Change;
use super::directory::Directory;
use super::files::Files;
use super::names::{AUTHORITIES, CERTIFICATE, SYSTEM, in_folder};
use super::record::Record;
use super::seeds;
use super::steps::{self, Last};

/// Renew the keys of the nodes and of the operator, or the certificates of the NATS servers.
///
/// The servers accept the former keys beside the new ones until `--finish` drops them. A new authority is trusted
/// beside the former one, too: first --authority, then --certificate and --key, then --finish.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the cluster.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Renew certificates in place of keys: one with the names of all servers (PEM), or one for each in their order.
    #[arg(long = "certificate", value_name = "FILE", requires = "keys")]
    certificates: Vec<PathBuf>,
    /// Key of the certificate (PEM), in the same order.
    #[arg(long = "key", value_name = "FILE", requires = "certificates")]
    keys: Vec<PathBuf>,
    /// Trust a further authority (PEM), in place of renewing keys.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["certificates", "finish"])]
    authority: Option<PathBuf>,
    /// Drop former keys and authorities, once all machines have the new ones.
    #[arg(long, conflicts_with = "certificates")]
    finish: bool,
    /// Print the difference, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let directory = Directory::open(&arguments.directory)?;
    let mut record = directory.record.clone();
    let (loose, last) = arguments.rotate(&directory, &mut record)?;
    let change = Change::of(&directory.path, &directory.record, record, loose)?;
    ensure!(!change.edits.is_empty(), "nothing is to be changed");
    if arguments.dry_run {
        say!("{}", change.shown())?;
        return Ok(ExitCode::SUCCESS);
    }
    change.write(&directory.path)?;
    steps::say(&directory, &change, last)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Changes the plan. Returns the files that do not follow from it, and the command for later.
    fn rotate(
        &self,
        directory: &Directory,
        record: &mut Record,
    ) -> anyhow::Result<(Files, Option<Last>)> {
        let path = directory.path.display();
        let plan = &mut record.plan;
        let has_former = seeds::has_former(plan) || plan.authorities.len() > 1;
        let finish = format!("crosstie cluster rotate {path} --finish");
        if self.finish {
            ensure!(
                has_former,
                "--finish: nothing is to be dropped: `crosstie cluster rotate {path}` begins"
            );
            if plan.authorities.len() > 1 {
                plan.authorities.truncate(1);
                check_certificates(directory, &plan.authorities[0])?;
            }
            seeds::drop_former(plan);
            return Ok((Files::new(), None));
        }
        if !self.certificates.is_empty() {
            let (certificates, keys) = (&self.certificates, &self.keys);
            ensure!(
                plan.has_tls(),
                "--certificate: the cluster was made without TLS"
            );
            let authorities = in_folder(&plan.servers[0].name, AUTHORITIES);
            let authorities = directory.path.join(authorities);
            let files = certificates::files(&plan.servers, certificates, keys, &authorities)?;
            let last = (plan.authorities.len() > 1).then_some((
                finish,
                "drops the former authority once all servers are reloaded",
            ));
            return Ok((files, last));
        }
        if let Some(file) = &self.authority {
            ensure!(
                plan.has_tls(),
                "--authority: the cluster was made without TLS"
            );
            ensure!(
                plan.authorities.len() == 1,
                "--authority: the former authority is still trusted: first run `{finish}`"
            );
            let text = certificates::authority(file)?;
            ensure!(
                !plan.authorities.contains(&text),
                "--authority: {} is trusted already",
                file.display()
            );
            plan.authorities.insert(0, text);
            let next = format!("crosstie cluster rotate {path} --certificate FILE --key FILE");
            let why = "puts certificates of the new authority in place, once all machines trust it";
            return Ok((Files::new(), Some((next, why))));
        }
        ensure!(
            !seeds::has_former(plan),
            "the former keys are still accepted: first run `{finish}`"
        );
        check_seeds(directory)?;
        let files = seeds::renew(plan)?;
        let why = "drops the former keys, once all machines have the new ones";
        Ok((files, Some((finish, why))))
    }
}

/// Checks that the seeds in the directory are those whose public halves the servers know: others are not overwritten.
fn check_seeds(directory: &Directory) -> anyhow::Result<()> {
    let plan = &directory.record.plan;
    let nodes = plan.nodes.iter().flat_map(|node| {
        let keys = node.keys.iter();
        keys.map(|(file, keys)| (in_folder(&node.name, file), keys))
    });
    let system = (SYSTEM.to_owned(), &plan.system_keys);
    for (path, keys) in nodes.chain([system]).filter(|(_, keys)| !keys.is_empty()) {
        let path = directory.path.join(path);
        let found = NatsCredentials::read(&path).map_err(anyhow::Error::msg)?;
        ensure!(
            keys.first() == Some(&found.public_key()),
            "{}: expected the seed of {}, found another one",
            path.display(),
            keys[0]
        );
    }
    Ok(())
}

/// Checks that each server's certificate is signed by the authority that stays.
fn check_certificates(directory: &Directory, authority: &str) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new().context("no temporary file")?;
    file.write_all(authority.as_bytes())?;
    for server in &directory.record.plan.servers {
        let certificate = directory.path.join(in_folder(&server.name, CERTIFICATE));
        check_peer(&certificate, file.path(), &server.host).with_context(|| {
            "the new authority has not signed this certificate: first `rotate` with --certificate and --key"
        })?;
    }
    Ok(())
}
