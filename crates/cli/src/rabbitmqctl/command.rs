//! The commands: names, words, options.

use serde_json::Value as Json;

use super::failure::Failure;
use super::output::{Format, Output, line};
use super::program::Program;
use super::session::Session;
use super::words::{Grammar, Words};

/// A command.
pub(super) struct Command {
    pub(super) grammar: Grammar,
    of: Of,
    /// Whether AMQP must run on the node.
    pub(super) needs_app: bool,
    pub(super) run: fn(&Run) -> Result<Output, Failure>,
}

/// The programs that have a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Both,
    Ctl,
    Diagnostics,
}

/// A command of `rabbitmqctl`.
pub(super) const fn ctl(
    name: &'static str,
    (least, most): (usize, usize),
    usage: &'static str,
    options: &'static [&'static str],
    run: fn(&Run) -> Result<Output, Failure>,
) -> Command {
    Command {
        grammar: Grammar {
            name,
            least,
            most,
            usage,
            options,
        },
        of: Of::Ctl,
        needs_app: true,
        run,
    }
}

impl Command {
    /// The same for both programs.
    pub(super) const fn both(self) -> Self {
        Self {
            of: Of::Both,
            ..self
        }
    }

    /// The same for `rabbitmq-diagnostics` alone.
    pub(super) const fn diagnostics(self) -> Self {
        Self {
            of: Of::Diagnostics,
            ..self
        }
    }

    /// The same while AMQP is stopped, too.
    pub(super) const fn also_stopped(self) -> Self {
        Self {
            needs_app: false,
            ..self
        }
    }

    pub(super) fn is_of(&self, program: Program) -> bool {
        match self.of {
            Of::Both => true,
            Of::Ctl => program == Program::Ctl,
            Of::Diagnostics => program == Program::Diagnostics,
        }
    }
}

/// Any number of arguments.
pub(super) const MANY: usize = usize::MAX;

/// RabbitMQ's text for most absent entries.
pub(super) const NO_PARAMETER: &str = "Parameter does not exist";

/// A command that runs.
pub(super) struct Run {
    pub(super) command: &'static Command,
    pub(super) words: Words,
    pub(super) session: Session,
    pub(super) format: Format,
}

impl Run {
    /// Says what is about to be done, unless that is unwanted.
    pub(super) fn announce(&self, banner: &str) -> Result<(), Failure> {
        match self.words.is_quiet() || self.format.is_for_machines() {
            true => Ok(()),
            false => line(banner),
        }
    }

    pub(super) fn argument(&self, index: usize) -> &str {
        self.words.arguments.get(index).map_or("", String::as_str)
    }

    pub(super) fn vhost(&self) -> &str {
        self.words.option("vhost").unwrap_or("/")
    }

    /// An argument as JSON.
    pub(super) fn json(&self, index: usize) -> Result<Json, Failure> {
        let text = self.argument(index);
        serde_json::from_str(text)
            .map_err(|error| Failure::refused(&format!("JSON decoding error. Reason: {error}")))
    }

    pub(super) fn put(&self, entry: &Json, body: Json) -> Result<Output, Failure> {
        self.session.change(entry, Some(body))?;
        Ok(Output::Nothing)
    }

    /// Deletes an entry that must exist.
    pub(super) fn delete(&self, entry: &Json) -> Result<Output, Failure> {
        if let Some(vhost) = entry["vhost"].as_str()
            && !self.session.has_vhost(vhost)?
        {
            return Err(Failure::refused(NO_PARAMETER));
        }
        match self.session.change(entry, None) {
            Ok(_) => Ok(Output::Nothing),
            Err(failure) if failure.is_absent => Err(Failure::refused(NO_PARAMETER)),
            Err(failure) => Err(failure),
        }
    }

    pub(super) fn delete_if_there(&self, entry: &Json) -> Result<Output, Failure> {
        match self.session.change(entry, None) {
            Err(failure) if !failure.is_absent => Err(failure),
            _ => Ok(Output::Nothing),
        }
    }

    /// Wrong words, with the usage.
    pub(super) fn bad_words(&self, what: &str) -> Failure {
        Failure::usage(&format!(
            "Error (argument validation): {what}\nArguments given:\n\t{}\n\n{}",
            self.command.grammar.shown(&self.words.arguments),
            self.command.grammar.usage_text()
        ))
    }

    /// AMQP is stopped on the node.
    pub(super) fn app_stopped(&self, given: &[String]) -> Failure {
        Failure::usage(&format!(
            "Error: this command requires the 'rabbit' app to be running on the target node. Start it with \
             'rabbitmqctl start_app'.\nArguments given:\n\t{}\n\n{}",
            self.command.grammar.shown(given),
            self.command.grammar.usage_text()
        ))
    }

    pub(super) fn bad_argument(&self, what: &str) -> Failure {
        Failure {
            exit_code: Failure::DATA,
            ..self.bad_words(&format!("Bad argument: {what}"))
        }
    }
}
