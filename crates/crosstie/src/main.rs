//! `crosstie`: the server, its management and clients. The command line is in `crates/cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    crosstie_cli::main()
}
