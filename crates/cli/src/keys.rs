//! `crosstie keys`: a node's key, as other programs' configurations want it.

use std::path::PathBuf;
use std::process::ExitCode;

use crosstie_node::directory::NodeKey;

use crate::management::locate;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The node's directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current
    /// one.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Print the private key too. A program that has it can be this node.
    #[arg(long)]
    private: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let loaded = NodeKey::load(&locate(arguments.cbdir)?)?;
    for warning in loaded.warnings {
        complain!("crosstie: {warning}");
    }
    say!("public-key-ed25519: {}", loaded.key.public_hexadecimal())?;
    if arguments.private {
        say!("private-key-ed25519: {}", loaded.key.private_hexadecimal())?;
    }
    Ok(ExitCode::SUCCESS)
}
