//! The program under RabbitMQ's name `rabbitmqadmin`: a client of the management API, of this broker or any other, with
//! the options, output and exit codes of version 3.10.
//!
//! ```text
//! words ─▶ Options (words, a section of a file, defaults) ─▶ verb ─▶ Objects: a path and a body ─▶ Api ─▶ Format
//!                                                              └▶ Failure: a text and an exit code
//! ```

mod api;
mod arguments;
mod failure;
mod file;
mod formats;
mod help;
mod known;
mod objects;
mod options;
mod output;
mod python;
mod rows;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use self::failure::Failure;
use self::known::Given;
use self::options::Options;
use self::output::print;

pub(crate) const NAME: &str = "rabbitmqadmin";

pub(crate) fn run(words: &[OsString]) -> ExitCode {
    match execute(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain!("{}", failure.text);
            ExitCode::from(failure.exit_code)
        }
    }
}

fn execute(words: &[OsString]) -> Result<(), Failure> {
    let texts = words.iter().map(|word| word.to_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    let texts = texts.ok_or_else(|| Failure::usage("Expected words in UTF-8"))?;
    let given = Given::parse(&texts)?;
    if given.has("help") {
        return print(help::OPTIONS);
    }
    if given.has("version") {
        let version = env!("CARGO_PKG_VERSION");
        return print(&format!("rabbitmqadmin 3.10.8 (Crosstie {version})"));
    }
    let options = Options::resolve(&given)?;
    verbs::run(&options, &given.arguments)
}
