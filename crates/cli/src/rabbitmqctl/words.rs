//! The words of a command line: the command, its arguments, and options anywhere between them.

use super::failure::Failure;

/// The words that a command takes.
pub(super) struct Grammar {
    pub(super) name: &'static str,
    /// The fewest and the most arguments.
    pub(super) least: usize,
    pub(super) most: usize,
    /// The arguments, as usage texts show them.
    pub(super) usage: &'static str,
    /// Options beside those of all commands.
    pub(super) options: &'static [&'static str],
}

impl Grammar {
    /// The words of an error. A password is not repeated: automation keeps the texts of errors.
    pub(super) fn shown(&self, words: &[String]) -> String {
        match self.usage.contains("<password>") {
            true => self.name.to_owned(),
            false => words.join(" "),
        }
    }

    pub(super) fn usage_text(&self) -> String {
        let mut text = format!("Usage\n\n{}", self.name);
        for option in self.options {
            text.push_str(&format!(" [--{option}]"));
        }
        if !self.usage.is_empty() {
            text.push(' ');
            text.push_str(self.usage);
        }
        text
    }
}

/// The words after the program's name.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) arguments: Vec<String>,
    pub(super) options: Vec<(&'static str, String)>,
}

/// The value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// None: `--name`, or `--no-name` for its opposite.
    Nothing,
    Number,
    Text,
    /// An option of RabbitMQ that has no meaning here.
    Refused,
}

use Takes::{Nothing, Number, Refused, Text};

/// Options of all commands, each with its letter.
const ALL: [(&str, &str, Takes); 24] = [
    ("node", "n", Text),
    ("quiet", "q", Nothing),
    ("silent", "s", Nothing),
    ("vhost", "p", Text),
    ("timeout", "t", Number),
    ("longnames", "l", Nothing),
    ("formatter", "", Text),
    ("help", "?", Nothing),
    // The place of a node, as of the other commands of Crosstie.
    ("cbdir", "", Text),
    ("socket", "", Text),
    ("worker", "", Text),
    ("aliases-file", "", Refused),
    ("dry-run", "", Refused),
    ("enabled-plugins-file", "", Refused),
    ("erlang-cookie", "", Refused),
    ("file", "", Refused),
    ("mnesia-dir", "", Refused),
    ("plugins-dir", "", Refused),
    ("print-stacktrace", "", Refused),
    ("printer", "", Refused),
    ("rabbitmq-home", "", Refused),
    ("script-name", "", Refused),
    ("auto-complete", "", Refused),
    ("version", "", Nothing),
];

/// Options of some commands.
const SOME: [(&str, &str, Takes); 18] = [
    ("apply-to", "", Text),
    ("default-queue-type", "", Text),
    ("description", "", Text),
    ("global", "", Nothing),
    ("if-empty", "e", Nothing),
    ("if-unused", "u", Nothing),
    ("limit", "", Number),
    ("local", "", Nothing),
    ("offline", "", Nothing),
    ("online", "", Nothing),
    ("per-connection-delay", "", Number),
    ("pid", "P", Number),
    ("priority", "", Number),
    ("table-headers", "", Nothing),
    ("tags", "", Text),
    ("unit", "", Text),
    ("user", "", Text),
    ("within", "", Number),
];

impl Words {
    /// Sorts the words of a command.
    pub(super) fn parse(command: &Grammar, words: &[String]) -> Result<Self, Failure> {
        let mut parsed = Self {
            arguments: Vec::new(),
            options: Vec::new(),
        };
        let mut invalid = Vec::new();
        let mut rest = words.iter();
        let mut is_command_past = false;
        while let Some(word) = rest.next() {
            match Switch::of(word) {
                Some(_) if word == "--" => {
                    parsed.arguments.extend(rest.cloned());
                    break;
                }
                Some(option) => {
                    let next = rest.as_slice().first();
                    match option.value(command, next) {
                        Some((name, value, takes_next)) => {
                            if takes_next {
                                rest.next();
                            }
                            parsed.options.push((name, value));
                        }
                        None => invalid.push(option.written(next)),
                    }
                }
                None if !is_command_past => is_command_past = true,
                None => parsed.arguments.push(word.clone()),
            }
        }
        if !invalid.is_empty() {
            let lines = invalid.join("\n");
            return Err(invalid_words(
                command,
                words,
                &format!("Invalid options for this command:\n{lines}"),
            ));
        }
        parsed.check_count(command, words)?;
        Ok(parsed)
    }

    fn check_count(&self, command: &Grammar, words: &[String]) -> Result<(), Failure> {
        if self.has("help") {
            return Ok(());
        }
        let count = self.arguments.len();
        match (count < command.least, count > command.most) {
            (true, _) => Err(invalid_words(command, words, "not enough arguments.")),
            (_, true) => Err(invalid_words(command, words, "too many arguments.")),
            _ => Ok(()),
        }
    }

    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut found = self.options.iter().rev();
        let (_, value) = found.find(|(known, _)| *known == name)?;
        Some(value)
    }

    /// Whether an option without a value is given, and not its opposite.
    pub(super) fn has(&self, name: &str) -> bool {
        self.option(name) == Some("true")
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.has("quiet") || self.has("silent")
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.option(name)?.parse().ok()
    }
}

fn invalid_words(command: &Grammar, words: &[String], what: &str) -> Failure {
    Failure::usage(&format!(
        "Error (argument validation): {what}\nArguments given:\n\t{}\n\n{}",
        command.shown(words),
        command.usage_text()
    ))
}

/// Refuses the first option that has no meaning here.
pub(super) fn check_honoured(words: &[String]) -> Result<(), Failure> {
    let options = words.iter().take_while(|word| *word != "--");
    let mut options = options.filter_map(|word| Switch::of(word)?.known(&ALL));
    match options.find(|(_, takes)| *takes == Refused) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::usage(&format!(
            "Error: --{name} is an option of RabbitMQ that Crosstie does not have"
        ))),
    }
}

/// The first word that is no option, nor the value of one.
pub(super) fn command_of(words: &[String]) -> Option<String> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(option) = Switch::of(word) else {
            return Some(word.clone()).filter(|word| !word.is_empty());
        };
        let known = option.known(&ALL);
        if known.is_some_and(|(_, takes)| matches!(takes, Text | Number)) && option.value.is_none()
        {
            rest.next();
        }
    }
    None
}

/// Whether one of the words asks for an option of all commands.
pub(super) fn asks_for(words: &[String], name: &str) -> bool {
    let mut options = words.iter().filter_map(|word| Switch::of(word));
    options.any(|option| option.known(&ALL).is_some_and(|(known, _)| known == name))
}

/// A word that begins with a dash.
struct Switch<'w> {
    name: &'w str,
    is_letter: bool,
    /// Behind an equals sign.
    value: Option<&'w str>,
}

impl<'w> Switch<'w> {
    fn of(word: &'w str) -> Option<Self> {
        let (rest, is_letter) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(rest), _) => (rest, false),
            // A negative number is an argument.
            (None, Some(rest)) if rest.parse::<f64>().is_err() && !rest.is_empty() => (rest, true),
            _ => return None,
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        Some(Self {
            name,
            is_letter,
            value,
        })
    }

    fn known(&self, options: &[(&'static str, &str, Takes)]) -> Option<(&'static str, Takes)> {
        let found = options
            .iter()
            .find(|(name, letter, _)| match self.is_letter {
                true => *letter == self.name && !letter.is_empty(),
                false => *name == self.name || format!("no-{name}") == self.name,
            });
        found.map(|(name, _, takes)| (*name, *takes))
    }

    /// The option's name and value, and whether the next word is the value; `None` if the command has no such option.
    fn value(
        &self,
        command: &Grammar,
        next: Option<&String>,
    ) -> Option<(&'static str, String, bool)> {
        let some = SOME.iter().copied();
        let some: Vec<_> = some
            .filter(|(name, ..)| command.options.contains(name))
            .collect();
        let known = self.known(&some).or_else(|| self.known(&ALL));
        // The version is asked for without a command.
        let (name, takes) = known.filter(|(name, _)| *name != "version")?;
        let next = next.filter(|next| Switch::of(next).is_none());
        let given = self.value.map(|value| (value, false));
        let given = given.or_else(|| Some((next?.as_str(), true)));
        match (takes, given) {
            (Nothing, _) if self.value.is_none() => {
                let is_opposite = !self.is_letter && self.name != name;
                Some((name, (!is_opposite).to_string(), false))
            }
            (Number, Some((value, takes_next))) if value.parse::<i64>().is_ok() => {
                Some((name, value.to_owned(), takes_next))
            }
            (Text, Some((value, takes_next))) => Some((name, value.to_owned(), takes_next)),
            _ => None,
        }
    }

    /// As errors show it: with the value of an option that is known.
    fn written(&self, next: Option<&String>) -> String {
        let dashes = if self.is_letter { "-" } else { "--" };
        let is_known = self.known(&ALL).or_else(|| self.known(&SOME)).is_some();
        let next = next.filter(|_| is_known).map(String::as_str);
        let value = self.value.or(next).unwrap_or_default();
        format!("{dashes}{} : {value}", self.name)
    }
}
