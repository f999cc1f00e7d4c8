//! `crosstie check`: judges a configuration file without starting anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_config::{self as config, Config, Definitions, Worker};
use crosstie_controller::directory::NodeDirectory;

/// Prints every problem with its place; succeeds when there is no error.
#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    place: Place,
}

/// Where a node's configuration is.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// The node's directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current
    /// one if there is a node's configuration in it.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Node configuration, Crossbar.io's version 2, JSON or YAML; by default `config.json`,
    /// `config.yaml` or `config.yml` in the node's directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    /// The configuration's path, as short as it can be said from here.
    pub(crate) fn config(&self) -> anyhow::Result<PathBuf> {
        Ok(self.find()?.config)
    }

    /// The node's directory and its configuration's path, this as short as it can be said from here.
    fn find(&self) -> anyhow::Result<NodeDirectory> {
        let current = std::env::current_dir().context("no current directory")?;
        let variable = |name: &str| std::env::var_os(name);
        let (cbdir, config) = (self.cbdir.as_deref(), self.config.as_deref());
        let Some(found) = NodeDirectory::find(cbdir, config, &current, &variable)? else {
            bail!(
                "no node's configuration in {}: name one with --config, or a node's directory \
                 with --cbdir",
                current.display()
            );
        };
        let short = found.config.strip_prefix(&current).map(Path::to_owned);
        Ok(NodeDirectory {
            config: short.unwrap_or(found.config),
            path: found.path,
        })
    }
}

pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let NodeDirectory {
        path: directory,
        config: path,
    } = arguments.place.find()?;
    match config::load(&path, &|name| std::env::var(name).ok()) {
        Ok(loaded) => {
            if !loaded.warnings.is_empty() {
                complain!("{}", config::render(&loaded.warnings, &loaded.source));
            }
            let good = definitions(&loaded.config, &directory)?;
            if !good {
                return Ok(ExitCode::FAILURE);
            }
            say!("{}: a valid node configuration", path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            complain!("{failure}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Says what would be imported from definitions, and what would not. `false`: they cannot be used.
fn definitions(config: &Config, directory: &Path) -> anyhow::Result<bool> {
    let mut is_good = true;
    for worker in &config.workers {
        let Worker::Router(router) = worker else {
            continue;
        };
        let Some((amqp, path)) = router
            .amqp
            .as_ref()
            .and_then(|amqp| Some((amqp, amqp.definitions.as_ref()?)))
        else {
            continue;
        };
        let definitions = match Definitions::load(&directory.join(path)) {
            Ok(definitions) => definitions,
            Err(error) => {
                complain!("{error}");
                is_good = false;
                continue;
            }
        };
        say!("{path}: {}", summary(&definitions))?;
        for skipped in &definitions.skipped {
            say!("  {skipped}")?;
        }
        let mut amqp = amqp.clone();
        amqp.import(&definitions);
        for (user, vhost) in amqp.unknown_users() {
            complain!(
                "{path}: vhost '{vhost}' has a permission of user '{user}', whom there is not"
            );
            is_good = false;
        }
    }
    Ok(is_good)
}

fn summary(definitions: &Definitions) -> String {
    let counts = [
        (definitions.users.len(), "users"),
        (definitions.vhosts.len(), "vhosts"),
        (definitions.exchanges.len(), "exchanges"),
        (definitions.queues.len(), "queues"),
        (definitions.bindings.len(), "bindings"),
        (definitions.skipped.len(), "not imported"),
    ];
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    let version = definitions.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!(" of RabbitMQ {version}"));
    format!("definitions{version}: {}", counts.join(", "))
}
