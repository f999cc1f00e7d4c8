//! The commands of `crosstie-lab`: `crosstie` becomes that program, with the same arguments.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};

use anyhow::Context as _;
use clap::Command;
use crosstie_terminal::companion::{LABORATORY, find};

/// The commands, each with its purpose.
const COMMANDS: [(&str, &str); 8] = [
    (
        "bench",
        "Measure this router, another one, and the machine's own floor",
    ),
    ("oslo", "Serve and call by oslo.messaging's RPC"),
    ("report", "Write one page of the benches' results files"),
    (
        "analyze",
        "Summarize handshake logs in the source document's form",
    ),
    ("testee", "Run an echo server to be measured"),
    ("conformance", "Judge any WAMP router by scenarios"),
    (
        "link",
        "Relay a stream with a delay, as a longer line would",
    ),
    ("roundtrip", "Run a caller or a callee, one call at a time"),
];

/// The program's command with these among its subcommands, so that help and suggestions know their names.
pub(crate) fn listed(command: Command) -> Command {
    command.subcommands(COMMANDS.map(|(name, about)| Command::new(name).about(about)))
}

/// Whether a command line, with the program's name first, is for the other program. `help` comes before the command
/// that it explains.
pub(crate) fn are_meant(given: &[OsString]) -> bool {
    let mut words = given.iter().skip(1);
    let first = words.next().filter(|word| *word != "help");
    let command = first.or_else(|| words.next());
    command.is_some_and(|word| COMMANDS.iter().any(|(name, _)| word == name))
}

/// Becomes the other program. It keeps the process, and the name of this one.
pub(crate) fn run(given: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut words = given.iter().map(OsString::as_os_str);
    let name = words.next().unwrap_or_default();
    let words: Vec<_> = words.collect();
    let shown = words.first().copied().unwrap_or_default().display();
    let program =
        find(LABORATORY).with_context(|| format!("`crosstie {shown}` is not installed"))?;
    let error = process::Command::new(&program)
        .arg0(name)
        .args(words)
        .exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_laboratory() {
        let check = |line: &str, expected: bool| {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(are_meant(&given), expected, "{line}");
        };
        check("crosstie bench rpc --runs 1", true);
        check("crosstie help bench", true);
        check("crosstie link --help", true);
        check("crosstie", false);
        check("crosstie help", false);
        check("crosstie start", false);
        check("crosstie help start", false);
        check("crosstie call bench", false);
        check("crosstie --help bench", false);
    }
}
