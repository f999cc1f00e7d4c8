//! `crosstie keys`: a node's key, or a client's, in the form of configurations.

mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use crosstie_node::directory::NodeKey;

use crate::management::locate;

/// Show a node's key; create keys for WAMP-cryptosign; show the content of credentials
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Node directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current one.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Print the private key too. It is the credential of this node.
    #[arg(long)]
    private: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Create a key pair, as key.priv and key.pub in a directory, or print it if none is given.
    Make {
        /// Directory without a key.
        directory: Option<PathBuf>,
    },
    /// Show the content of a file: a key (key.priv or key.pub, 64 hexadecimal digits, or 32 bytes), certificates in
    /// PEM, a JSON Web Key Set, or a token, which is not verified.
    Show {
        file: PathBuf,
        /// Print a private key too.
        #[arg(long)]
        private: bool,
    },
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => {
            let loaded = NodeKey::load(&locate(arguments.cbdir)?)?;
            for warning in loaded.warnings {
                complain!("crosstie: {warning}");
            }
            show(&loaded.key, arguments.private)?;
        }
        Some(Command::Make { directory: None }) => show(&NodeKey::generate()?, true)?,
        Some(Command::Make {
            directory: Some(directory),
        }) => show(&NodeKey::make(&directory)?, false)?,
        Some(Command::Show { file, private }) => show::show(&file, private)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(key: &NodeKey, private: bool) -> anyhow::Result<()> {
    say!("public-key-ed25519: {}", key.public_hexadecimal())?;
    if private {
        say!("private-key-ed25519: {}", key.private_hexadecimal())?;
    }
    Ok(())
}
