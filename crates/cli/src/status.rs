//! `crosstie status`: whether the node of a node directory runs.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_controller::directory::occupant;

use crate::stop::locate;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The node's directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current
    /// one.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Exit with 1 if it is not so.
    #[arg(long, value_enum, value_name = "STATE")]
    assert: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    Running,
    Stopped,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let directory = locate(arguments.cbdir)?;
    let found = occupant(&directory)?;
    let state = match &found {
        Some(_) => State::Running,
        None => State::Stopped,
    };
    say!(
        "{}",
        if state == State::Running {
            "running"
        } else {
            "stopped"
        }
    )?;
    say!("directory: {}", directory.display())?;
    if let Some(found) = found {
        let pid = found.pid.map(|pid| pid.to_string());
        let program = found.is_crossbar.then(|| "Crossbar.io".to_owned());
        let rows = [
            ("program", program),
            ("process", pid),
            ("since", found.started),
            ("management", found.management),
        ];
        for (what, value) in rows {
            if let Some(value) = value {
                say!("{what}: {value}")?;
            }
        }
    }
    let is_asserted = arguments.assert.is_none_or(|asserted| asserted == state);
    Ok(if is_asserted {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
