//! Usage texts.

use super::command::Command;
use super::failure::Failure;
use super::node::VERSION;
use super::output;
use super::program::Program;
use super::table::{COMMANDS, INSTEAD, OTHERS};
use super::words::asks_for;

/// `help`, with a command or without one.
pub(super) fn asked(program: Program, words: &[String]) -> Result<(), Failure> {
    match words
        .iter()
        .find(|word| *word != "help" && !word.starts_with('-'))
    {
        None => output::line(&all(program)),
        Some(name) => of_command(program, find(program, name)?),
    }
}

/// No command is named: `--version`, `--help`, or an error.
pub(super) fn without_command(program: Program, words: &[String]) -> Result<(), Failure> {
    if asks_for(words, "version") {
        return output::line(VERSION);
    }
    match asks_for(words, "help") {
        true => output::line(&all(program)),
        false => Err(Failure::usage(&all(program))),
    }
}

pub(super) fn of_command(program: Program, command: &Command) -> Result<(), Failure> {
    output::line(&format!(
        "{} of {}\n\n{}",
        command.grammar.name,
        program.name(),
        command.grammar.usage_text()
    ))
}

/// The list of all commands.
fn all(program: Program) -> String {
    let commands = COMMANDS.iter().flat_map(|commands| commands.iter());
    let of_program = commands.filter(|command| command.is_of(program));
    let mut names: Vec<&str> = of_program.map(|command| command.grammar.name).collect();
    names.sort_unstable();
    format!(
        "Usage\n\n{} [--node <node>] [--timeout <timeout>] [--quiet] <command> [<command options>]\n\nCommands:\n   {}",
        program.name(),
        names.join("\n   ")
    )
}

/// The command of that name.
pub(super) fn find(program: Program, name: &str) -> Result<&'static Command, Failure> {
    let mut all = COMMANDS.iter().flat_map(|commands| commands.iter());
    if let Some(found) = all.find(|command| command.grammar.name == name && command.is_of(program))
    {
        return Ok(found);
    }
    if OTHERS.contains(&name) {
        let text = Failure::not_here(name).text;
        let instead = INSTEAD.iter().find(|(other, _)| *other == name);
        return Err(Failure::usage(&match instead {
            Some((_, instead)) => format!("{text}. {instead}"),
            None => text,
        }));
    }
    Err(unknown(program, name))
}

/// There is no such command.
fn unknown(program: Program, name: &str) -> Failure {
    let commands = COMMANDS.iter().flat_map(|commands| commands.iter());
    let similar = commands.filter(|command| command.is_of(program));
    let similar = similar.min_by_key(|command| distance(command.grammar.name, name));
    let similar = similar.filter(|command| distance(command.grammar.name, name) <= SIMILAR_MAX);
    let rest = match similar {
        Some(similar) => format!("Did you mean '{}'? ", similar.grammar.name),
        None => all(program),
    };
    Failure::usage(&format!("\nCommand '{name}' not found. \n{rest}"))
}

/// Edits between two names that are alike.
const SIMILAR_MAX: usize = 3;

/// The number of single-character edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::words::{Words, check_honoured, command_of};
    use super::*;

    fn parsed(line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        check_honoured(&words).map_err(|failure| failure.text)?;
        let name = command_of(&words).ok_or("no command")?;
        let found = find(Program::Ctl, &name).map_err(|failure| failure.text)?;
        let parsed = Words::parse(&found.grammar, &words).map_err(|failure| failure.text)?;
        let options = parsed.options.iter();
        let options: Vec<String> = options
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(format!(
            "{name} {} | {}",
            parsed.arguments.join(","),
            options.join(" ")
        ))
    }

    #[test]
    fn options_are_anywhere() {
        for (line, expected) in [
            ("list_users", "list_users  | "),
            (
                "-q -p / list_vhost_limits -n rabbit",
                "list_vhost_limits  | quiet=true vhost=/ node=rabbit",
            ),
            (
                "set_policy -p=v a .* {} --priority -3 --apply-to queues",
                "set_policy a,.*,{} | vhost=v priority=-3 apply-to=queues",
            ),
            (
                "list_queues --no-table-headers name -s",
                "list_queues name | table-headers=false silent=true",
            ),
            ("add_user -- -x -y", "add_user -x,-y | "),
            (
                "delete_queue q -e -u",
                "delete_queue q | if-empty=true if-unused=true",
            ),
        ] {
            assert_eq!(parsed(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, expected) in [
            ("list_users --nonsense", "--nonsense :"),
            ("list_users --apply-to queues", "--apply-to :"),
            ("set_policy a b c --priority x", "--priority :"),
            ("list_users -p", "-p :"),
            (
                "list_users --erlang-cookie x",
                "--erlang-cookie is an option of RabbitMQ",
            ),
            ("list_users extra", "too many arguments."),
            ("add_vhost", "not enough arguments."),
            ("exec 1", "'exec' is a command of RabbitMQ"),
            ("reset", "does not have. It would delete"),
            ("list_quues", "Did you mean 'list_queues'?"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_book_has_every_command() {
        let page = include_str!("../../../../docs/rabbitmqctl.md");
        let commands = COMMANDS.iter().flat_map(|commands| commands.iter());
        let names = commands.map(|command| command.grammar.name);
        let absent: Vec<&str> = names
            .filter(|name| !page.contains(&format!("`{name}`")))
            .collect();
        assert_eq!(absent, Vec::<&str>::new());
    }
}
