//! The program under RabbitMQ's names `rabbitmqctl` and `rabbitmq-diagnostics`: the commands that automation uses, with
//! RabbitMQ's options, output and exit codes.
//!
//! ```text
//! words ─▶ Words (parsed by the command's options) ─▶ Command::run (Session) ─▶ Output ─▶ formatter
//!                                                          └▶ Failure: a text and an exit code
//! ```

mod bounds;
mod checks;
mod columns;
mod command;
mod connections;
mod definitions;
mod failure;
mod help;
mod limits;
mod lists;
mod node;
mod output;
mod parameters;
mod permissions;
mod policies;
mod program;
mod queues;
mod session;
mod table;
mod users;
mod vhosts;
mod words;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use self::command::Run;
use self::failure::Failure;
use self::output::Format;
pub(crate) use self::program::Program;
use self::session::Session;
use self::words::Words;

/// The program that a command line means, by its own name or by its first word, and the number of words that say so.
pub(crate) fn meant(given: &[OsString]) -> Option<(Program, usize)> {
    meant_of(given, Program::named)
}

/// The same for other programs of RabbitMQ.
pub(crate) fn meant_of<P>(
    given: &[OsString],
    named: impl Fn(&str) -> Option<P>,
) -> Option<(P, usize)> {
    let own = given.first().and_then(|word| Path::new(word).file_name());
    if let Some(program) = own.and_then(|name| named(name.to_str()?)) {
        return Some((program, 1));
    }
    let word = given.get(1)?.to_str()?;
    Some((named(word)?, 2))
}

pub(crate) fn run(program: Program, words: &[OsString]) -> ExitCode {
    match execute(program, words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain!("{}", failure.text.trim_end());
            ExitCode::from(failure.exit_code)
        }
    }
}

fn execute(program: Program, words: &[OsString]) -> Result<(), Failure> {
    let texts = words.iter().map(|word| word.to_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    let texts = texts.ok_or_else(|| Failure::usage("Error: expected words in UTF-8"))?;
    words::check_honoured(&texts)?;
    let Some(name) = words::command_of(&texts) else {
        return help::without_command(program, &texts);
    };
    if name == "help" {
        return help::asked(program, &texts);
    }
    let command = help::find(program, &name)?;
    let words = Words::parse(&command.grammar, &texts)?;
    if words.has("help") {
        return help::of_command(program, command);
    }
    let format = Format::of(&words)?;
    let run = Run {
        command,
        session: Session::new(&words),
        words,
        format,
    };
    // A node that cannot be reached fails the command itself.
    let is_stopped = command.needs_app && matches!(run.session.is_app_running(), Ok(false));
    let done = match is_stopped {
        true => Err(run.app_stopped(&texts)),
        false => (command.run)(&run),
    };
    let done = done.and_then(|output| output::print(&run.words, run.format, output));
    run.session.leave();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_counts() {
        let check = |line: &str, expected| {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(meant(&given), expected, "{line}");
        };
        check("/usr/sbin/rabbitmqctl status", Some((Program::Ctl, 1)));
        check("rabbitmq-diagnostics", Some((Program::Diagnostics, 1)));
        check("crosstie rabbitmqctl status", Some((Program::Ctl, 2)));
        check("crosstie call rabbitmqctl", None);
        check("rabbitmqctl rabbitmq-diagnostics", Some((Program::Ctl, 1)));
        check("crosstie", None);
    }
}
