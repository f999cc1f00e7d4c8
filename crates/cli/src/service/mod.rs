//! `crosstie service`: the unit by which systemd runs a node.

pub(crate) mod unit;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;

use self::unit::Parts;
use crate::output::print;

/// Print or install the unit by which systemd runs a node.
#[derive(Subcommand)]
pub(crate) enum Service {
    /// Print the unit.
    ///
    /// The node notifies systemd when its transports listen, and feeds the watchdog while every thread of its routers
    /// takes turns. The unit hides the homes of users, and lets the node write into its own directory alone.
    Print(UnitArguments),
    /// Write the unit, a user for `systemd-sysusers`, and a first configuration.
    ///
    /// An existing unit or user that differs is not overwritten without --force, an existing configuration never.
    Install(InstallArguments),
}

#[derive(clap::Args)]
pub(crate) struct UnitArguments {
    /// Path of the program; by default this one's.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Node configuration; by default /etc/crosstie/config.json, or with --cbdir the configuration of that directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Node directory, for its key, its stores and its sockets; by default /var/lib/crosstie.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// User and group of the node.
    #[arg(long, value_name = "NAME", default_value = "crosstie")]
    user: String,
}

#[derive(clap::Args)]
pub(crate) struct InstallArguments {
    #[command(flatten)]
    unit: UnitArguments,
    /// Directory to install in, in place of the root directory. The unit's paths stay as they are.
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    root: PathBuf,
    /// Overwrite the unit and the user.
    #[arg(long)]
    force: bool,
}

const UNIT: &str = "/etc/systemd/system/crosstie.service";
const USER: &str = "/etc/sysusers.d/crosstie.conf";

pub(crate) fn run(command: Service) -> anyhow::Result<ExitCode> {
    match command {
        Service::Print(arguments) => {
            print(&parts(arguments)?.unit()?)?;
        }
        Service::Install(arguments) => install(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn parts(arguments: UnitArguments) -> anyhow::Result<Parts> {
    let own = std::env::current_exe();
    let program = match arguments.program {
        Some(program) => program,
        None => own.context("cannot find the path of this program")?,
    };
    Ok(Parts {
        program,
        config: arguments
            .config
            .or_else(|| arguments.cbdir.is_none().then(|| unit::CONFIG.into())),
        cbdir: arguments.cbdir.unwrap_or_else(|| unit::CBDIR.into()),
        user: arguments.user,
    })
}

fn install(arguments: InstallArguments) -> anyhow::Result<()> {
    let parts = parts(arguments.unit)?;
    // Nothing is written if any part is refused.
    let files = [(UNIT, parts.unit()?), (USER, parts.sysuser())];
    let place = |path: &str| arguments.root.join(path.trim_start_matches('/'));
    for (path, text) in &files {
        check(&place(path), text, arguments.force)?;
    }
    for (path, text) in &files {
        put(&place(path), text)?;
        say!("{}", place(path).display())?;
    }
    if let Some(config) = parts.config.as_ref().and_then(|config| config.to_str()) {
        let config = place(config);
        if config.extension().is_some_and(|kind| kind == "json") && !config.exists() {
            put(&config, crosstie_config::EMBEDDED)?;
            say!("{}", config.display())?;
        }
    }
    say!("Next: systemd-sysusers; systemctl daemon-reload; systemctl enable --now crosstie")?;
    Ok(())
}

/// Refuses to replace a file with another text.
fn check(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    match fs::read(path) {
        Ok(present) if present != text.as_bytes() && !force => bail!(
            "{} exists and differs; --force overwrites it",
            path.display()
        ),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a file beside its place, and renames it: a reader never sees half of it.
fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let directory = path.parent().unwrap_or_else(|| Path::new("/"));
        fs::create_dir_all(directory)?;
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
