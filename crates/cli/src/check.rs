//! `crosstie check`: judges a configuration file and prints every problem.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_config as config;
use crosstie_node::directory::NodeDirectory;

use crate::explain::{self, Form};
use crate::judgement::judge;

/// Prints every problem with its place; succeeds when there is no error.
#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    place: Place,
    /// Accept RabbitMQ definitions even if a part that restricts users or vhosts is not imported.
    #[arg(long)]
    allow_wider: bool,
    /// Check every configuration below these directories, and count the reasons of refusals.
    #[arg(long, value_name = "DIRECTORY", num_args = 1.., conflicts_with_all = ["cbdir", "config"])]
    explain: Vec<PathBuf>,
    /// Output format of `--explain`.
    #[arg(long, value_enum, default_value = "text", requires = "explain")]
    format: Form,
}

/// The place of a node's configuration.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Node directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current one if it has a node's
    /// configuration.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Node configuration, JSON or YAML in Crossbar.io's version 2; by default `config.json`, `config.yaml` or
    /// `config.yml` in the node's directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    /// The configuration's path, in the shortest form from here.
    pub(crate) fn config(&self) -> anyhow::Result<PathBuf> {
        Ok(self.find()?.config)
    }

    /// The node's directory and its configuration's path, the latter in the shortest form from here.
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
    if !arguments.explain.is_empty() {
        return explain::run(&arguments.explain, arguments.format);
    }
    let NodeDirectory {
        path: directory,
        config: path,
    } = arguments.place.find()?;
    let mut tell = |line: &str| {
        say!("{line}")?;
        Ok(())
    };
    match judge(&path, &directory, arguments.allow_wider, &mut tell)? {
        Ok((problems, source)) => {
            if !problems.is_empty() {
                complain!("{}", config::render(&problems, &source));
            }
            say!("{}: a valid node configuration", path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err((problems, source)) => {
            match source {
                Some(source) => complain!("{}", config::render(&problems, &source).trim_end()),
                None => problems.iter().for_each(|p| complain!("{}", p.message)),
            }
            Ok(ExitCode::FAILURE)
        }
    }
}
