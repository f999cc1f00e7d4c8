//! The common parts of `crosstie` and `crosstie-lab`: output, log, signals, logins, the place of the other program.

/// Prints a line, or returns the error. A closed reader is not an error.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::print_line(&format!($($text)*))
    };
}

/// Prints to standard error, if possible; the standard library's macro panics otherwise.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod companion;
pub mod credentials;
pub mod duration;
mod log_recent;
mod log_sink;
pub mod logging;
pub mod output;
pub mod signals;

use std::process::ExitCode;

/// The version of both programs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit from which both programs were built.
pub const COMMIT: &str = env!("CROSSTIE_COMMIT");

/// The exit code of a command that could not do its work at all.
pub const CANNOT_RUN: u8 = 2;

/// An error and its causes in one line. A cause that the line already contains is left out.
pub fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) {
            let separator = if line.is_empty() { "" } else { ": " };
            line = [&line, separator, &cause].concat();
        }
    }
    line
}

/// Ends a command: writes the log, then the error. `exit_code` chooses the code of an error.
pub fn end(
    outcome: anyhow::Result<ExitCode>,
    exit_code: impl FnOnce(&anyhow::Error) -> ExitCode,
) -> ExitCode {
    // If standard error takes no more, the error is not written there either.
    let is_heard = logging::finish();
    outcome.unwrap_or_else(|error| {
        if is_heard {
            complain!("crosstie: {}", chain(&error));
        }
        exit_code(&error)
    })
}

/// Runs a future of the client library on this thread.
pub fn wait_for(
    outcome: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(outcome);
    // A look-up of a name, or another call that blocks, may go on for long; the process ends without it.
    runtime.shutdown_background();
    outcome
}
