//! The meaning of the word that a shell completes: pure, over the grammar of the command line.

use clap::{Arg, Command};

/// The kinds of words.
pub(super) enum Meaning<'a> {
    /// The value of an option or an argument, behind some text (`--realm=`).
    Value { arg: &'a Arg, before: String },
    /// A command, or the value of an argument.
    Word {
        command: &'a Command,
        arg: Option<&'a Arg>,
    },
    /// An option.
    Option(&'a Command),
}

/// The command, and the meaning of its last word.
pub(super) struct Place<'a> {
    pub(super) path: Vec<&'a str>,
    pub(super) meaning: Meaning<'a>,
}

/// Reads the words before the one to complete, which is the last.
pub(super) fn place<'a>(root: &'a Command, words: &[String]) -> Option<Place<'a>> {
    let (last, before) = words.split_last()?;
    let mut command = root;
    let mut path = Vec::new();
    let mut positionals = 0;
    let mut pending: Option<&Arg> = None;
    let mut is_literal = false;
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if is_literal || !word.starts_with('-') || word == "-" {
            match command.find_subcommand(word) {
                Some(found) if !is_literal => {
                    path.push(found.get_name());
                    (command, positionals) = (found, 0);
                }
                _ => positionals += 1,
            }
        } else if word == "--" {
            is_literal = true;
        } else if !word.contains('=') {
            pending = option(command, word).filter(|arg| takes_a_word(arg));
        }
    }
    let meaning = if let Some(arg) = pending {
        Meaning::Value {
            arg,
            before: String::new(),
        }
    } else if is_literal || !last.starts_with('-') {
        Meaning::Word {
            command,
            arg: positional(command, positionals),
        }
    } else if let Some((name, _)) = last.split_once('=') {
        Meaning::Value {
            arg: option(command, name)?,
            before: format!("{name}="),
        }
    } else {
        Meaning::Option(command)
    };
    Some(Place { path, meaning })
}

/// The option of a word such as `--realm` or `-h`.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    command.get_arguments().find(|arg| match long {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short() == short && short.is_some(),
    })
}

/// Whether the value of an option is the next word.
fn takes_a_word(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

/// The argument at a place; the last one takes all further words if it takes several.
fn positional(command: &Command, place: usize) -> Option<&Arg> {
    let mut last = None;
    for (number, arg) in command.get_positionals().enumerate() {
        if number == place {
            return Some(arg);
        }
        last = Some(arg);
    }
    let many = |arg: &&Arg| {
        arg.get_num_args()
            .is_some_and(|range| range.max_values() > 1)
    };
    last.filter(many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_placed() {
        let mut root = crate::command();
        root.build();
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = place(&root, &words).map(|found| {
                let id = |arg: &Arg| arg.get_id().to_string();
                let what = match found.meaning {
                    Meaning::Value { arg, before } => format!("value {before}{}", id(arg)),
                    Meaning::Word { arg: Some(arg), .. } => format!("word {}", id(arg)),
                    Meaning::Word { arg: None, .. } => "word".to_owned(),
                    Meaning::Option(_) => "option".to_owned(),
                };
                [&found.path.join(" "), ":", &what].concat()
            });
            assert_eq!(found.as_deref(), Some(expected), "{line}");
        };
        check("", ":word");
        check("queues ", "queues:word");
        check("queues purge ", "queues purge:word queue");
        check("queues --vhost / purge a", "queues purge:word queue");
        check("queues --vhost ", "queues:value vhost");
        check("queues --vhost=", "queues:value --vhost=vhost");
        check("queues --watch purge ", "queues purge:word queue");
        check("queues purge --w", "queues purge:option");
        check("kill 1 2 ", "kill:word ids");
        check("call com.example 1 ", "call:word args");
        check("call -- --x", "call:word procedure");
        check("amqp get --json ", "amqp get:word queue");
        check("context select ", "context select:word name");
    }
}
