//! The list of commands in `crosstie --help`, in groups: one of thirty is hard to find in one list.

use std::fmt::Write;

use clap::{Command, builder::StyledStr};

/// Commands, each with a line that fits a terminal; its own help is longer.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// In the order of `docs/commands.md`.
const GROUPS: [Group; 4] = [
    (
        "A node",
        &[
            ("start", "Start a node: its routers, containers and guests"),
            ("check", "Check a configuration without starting anything"),
            ("init", "Create a node directory from a template"),
            (
                "convert",
                "Convert a configuration from JSON to YAML, or back",
            ),
            (
                "status",
                "Show whether a node runs, its URLs and its faults",
            ),
            ("stop", "Stop a node"),
            ("keys", "Show or create keys; show credentials"),
            ("service", "Print or install the systemd unit of a node"),
            ("passwd", "Create a principal's entry from a password"),
            (
                "store",
                "Check a stopped node's store; salvage a damaged one",
            ),
            ("restore", "Put a backup in the place of a store"),
            ("completions", "Print the completions of a shell"),
            ("version", "Print the version and the platform"),
        ],
    ),
    (
        "A running node",
        &[
            ("reload", "Apply a changed configuration"),
            ("drain", "Have the clients leave one after another"),
            ("undrain", "Undo a drain: open the listeners again"),
            ("log-level", "Change how much a running node logs"),
            ("tail", "Print the log of a running node"),
            ("upgrade", "Let another program take over without a gap"),
            ("queues", "List, purge or delete AMQP queues"),
            ("exchanges", "List or delete AMQP exchanges"),
            ("bindings", "List AMQP bindings"),
            ("connections", "List or close AMQP connections"),
            ("channels", "List AMQP channels"),
            ("consumers", "List AMQP consumers"),
            ("sessions", "List or close WAMP sessions"),
            ("top", "Show the busiest WAMP sessions"),
            ("registrations", "List WAMP registrations: procedures"),
            ("subscriptions", "List WAMP subscriptions: topics"),
            ("kill", "End WAMP sessions and AMQP connections"),
            ("trace", "Print the messages of a session or connection"),
            (
                "cluster",
                "Set up and watch several nodes of the same realms",
            ),
            (
                "amqp",
                "Change users, permissions and policies; move replicated vhosts",
            ),
            ("backup", "Copy durable queues and messages to a file"),
        ],
    ),
    (
        "Clients",
        &[
            (
                "context",
                "Keep addresses and logins under names, for every command",
            ),
            ("call", "Call a procedure"),
            ("register", "Register a procedure and answer its calls"),
            ("publish", "Publish to a topic"),
            ("subscribe", "Subscribe to a topic and print its events"),
            ("wait-for", "Wait for a procedure, a queue or a node"),
            ("oslo", "Serve and call by oslo.messaging's RPC"),
            ("roundtrip", "Run a caller or a callee, one call at a time"),
        ],
    ),
    (
        "The laboratory",
        &[
            (
                "bench",
                "Measure this router, others, and the machine's floor",
            ),
            ("conformance", "Judge any WAMP router by scenarios"),
            ("report", "Write one page of the benches' results"),
            ("analyze", "Summarize handshake logs"),
            ("testee", "Run an echo server to be measured"),
            (
                "link",
                "Relay a stream with a delay, as a longer line would",
            ),
        ],
    ),
];

/// The program's command with its subcommands listed by group.
pub(crate) fn grouped(command: Command) -> Command {
    command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
        )
        .after_help(list())
}

fn list() -> StyledStr {
    let commands = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    let width = commands.map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for (name, about) in commands {
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
        text.push('\n');
    }
    text += "See `crosstie help COMMAND` for the options of a command.";
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::command();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let commands = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
        let mut listed: Vec<&str> = commands.map(|(name, _)| *name).collect();
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, visible);
    }
}
