//! `crosstie version`: the program's version and its environment, for fault reports.

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: Arguments) -> anyhow::Result<ExitCode> {
    let libc = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "glibc"
    };
    let system = rustix::system::uname();
    #[rustfmt::skip]
    let rows = [
        ("Crosstie", crosstie_terminal::VERSION.to_owned()),
        ("Commit", crosstie_terminal::COMMIT.to_owned()),
        ("Built for", format!("{} {} ({libc})", std::env::consts::ARCH, std::env::consts::OS)),
        ("Running on", format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy())),
    ];
    for (what, value) in rows {
        say!("{what:<10} : {value}")?;
    }
    Ok(ExitCode::SUCCESS)
}
