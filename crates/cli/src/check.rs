//! `crosstie check`: judges a configuration file without starting anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_config as config;
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
        Ok(short.unwrap_or(found.config))
    }
}

pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let path = arguments.place.config()?;
    match config::load(&path, &|name| std::env::var(name).ok()) {
        Ok(loaded) => {
            if !loaded.warnings.is_empty() {
                complain!("{}", config::render(&loaded.warnings, &loaded.source));
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
