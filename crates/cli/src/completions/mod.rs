//! `crosstie completions`: scripts for shells, which ask the program itself about each word, with names of the running node.

mod live;
mod words;

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, ValueEnum};
use crosstie_terminal::output::print;

use self::words::{Meaning, Place};
use crate::management;

/// Print the completions of a shell, which include names of the running node: queues, procedures, sessions.
///
/// bash: `source <(crosstie completions bash)` in ~/.bashrc. zsh: `source <(crosstie completions zsh)` in ~/.zshrc, behind
/// `compinit`. fish: `crosstie completions fish > ~/.config/fish/completions/crosstie.fish`. The names are those of the node
/// that the command would reach; a node that does not answer within 0.8 s gives none.
#[derive(Args)]
pub(crate) struct Arguments {
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print the completions of the last word, one a line, each with a tabulator and a description.
#[derive(Args)]
pub(crate) struct CompleteArguments {
    /// The words behind the program's name; the last one may be empty.
    #[arg(last = true)]
    words: Vec<String>,
}

/// A name of a client's choice may be shell syntax, so that every word is quoted.
const BASH: &str = r#"_crosstie() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi
}
complete -F _crosstie crosstie
"#;

/// `compadd` quotes.
const ZSH: &str = r#"#compdef crosstie
_crosstie() {
    local line
    local -a names shown
    while IFS= read -r line; do
        names+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  }")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#names )); then compadd -l -d shown -a names; else _files; fi
}
compdef _crosstie crosstie
"#;

/// fish quotes, too.
const FISH: &str = r#"function __crosstie_complete
    set -l found (command crosstie complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c crosstie -f -a '(__crosstie_complete)'
"#;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    print(match arguments.shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Completes by the grammar of the program's commands.
pub(crate) fn complete(
    arguments: &CompleteArguments,
    mut root: Command,
) -> anyhow::Result<ExitCode> {
    root.build();
    let words = &arguments.words;
    let lines = lines(&root, words, |kind, start| {
        // With --url the command is for a router or a broker of which the node knows nothing.
        match has_url(words) && !matches!(kind, live::Kind::Contexts) {
            true => Vec::new(),
            false => live::names(kind, &management_place(words), start),
        }
    });
    print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// The completions, one a line.
fn lines(
    root: &Command,
    words: &[String],
    names: impl FnOnce(live::Kind, &str) -> Vec<(String, String)>,
) -> String {
    let Some(Place { path, meaning }) = words::place(root, words) else {
        return String::new();
    };
    let last = words.last().map_or("", String::as_str);
    let mut found = Vec::new();
    match meaning {
        Meaning::Option(command) => {
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            found.extend(shown.filter_map(|arg| {
                let name = format!("--{}", arg.get_long()?);
                Some((name, about(arg)))
            }));
        }
        Meaning::Value { arg, before } => {
            let start = last.strip_prefix(&before).unwrap_or(last);
            let values = values(&path, arg, start, names).into_iter();
            found.extend(values.map(|(value, about)| ([before.as_str(), &value].concat(), about)));
        }
        Meaning::Word { command, arg } => {
            let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            found.extend(commands.map(|sub| {
                let about = sub.get_about().map(ToString::to_string);
                (
                    sub.get_name().to_owned(),
                    first_sentence(&about.unwrap_or_default()),
                )
            }));
            if let Some(arg) = arg {
                found.extend(values(&path, arg, last, names));
            }
        }
    }
    let mut lines = String::new();
    for (word, about) in found.iter().filter(|(word, _)| word.starts_with(last)) {
        lines += &format!("{word}\t{about}\n");
    }
    lines
}

/// The values of an argument: those of its grammar, or names of the node.
fn values(
    path: &[&str],
    arg: &Arg,
    start: &str,
    names: impl FnOnce(live::Kind, &str) -> Vec<(String, String)>,
) -> Vec<(String, String)> {
    let possible = arg.get_possible_values();
    if possible.is_empty() {
        let kind = live::kind(path, arg.get_id().as_str());
        return kind.map_or_else(Vec::new, |kind| names(kind, start));
    }
    let shown = possible.iter().filter(|value| !value.is_hide_set());
    let pair = |value: &PossibleValue| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_owned(), help.unwrap_or_default())
    };
    shown.map(pair).collect()
}

fn about(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string);
    first_sentence(&help.unwrap_or_default())
}

fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find([';', ':']).unwrap_or(line.len());
    line[..end].trim_end_matches('.').to_owned()
}

fn has_url(words: &[String]) -> bool {
    let is_url = |word: &String| word == "--url" || word.starts_with("--url=");
    words.iter().any(is_url)
}

/// The node that the words name.
fn management_place(words: &[String]) -> management::Place {
    let mut place =
        ["--cbdir", "--socket", "--context"].map(|option| {
            let mut values = words.iter().enumerate().filter_map(|(at, word)| {
                match word.strip_prefix(option)? {
                    "" => words.get(at + 1).map(String::as_str),
                    rest => rest.strip_prefix('='),
                }
            });
            values.next().map(str::to_owned)
        });
    let [cbdir, socket, context] = &mut place;
    management::Place::named(
        cbdir.take().map(Into::into),
        socket.take().map(Into::into),
        context.take(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed() {
        let mut root = crate::command();
        root.build();
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let lines = lines(&root, &words, |kind, start| {
                let name = match kind {
                    live::Kind::Contexts => "context",
                    live::Kind::Rows(_) => "row",
                    live::Kind::Vhosts => "vhost",
                    live::Kind::Workers => "worker",
                };
                vec![(format!("{start}-{name}"), "live".to_owned())]
            });
            let found = lines.lines().map(|line| line.split('\t').next());
            let found: Vec<_> = found.map(Option::unwrap_or_default).collect();
            assert_eq!(found.join(" "), expected, "{line}");
        };
        check("que", "queues");
        check("queues pu", "purge");
        check("queues purge jo", "jo-row");
        check("queues --vhost=a", "--vhost=a-vhost");
        check("queues --vhost ", "-vhost");
        check("call --serializer m", "msgpack");
        check("call --progr", "--progress");
        check("call a.b", "a.b-row");
        check("context select ", "-context");
        check("completions z", "zsh");
        check("start --con", "--config");
    }
}
