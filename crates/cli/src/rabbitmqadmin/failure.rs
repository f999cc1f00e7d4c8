//! Why a command fails: a text and an exit code.

/// A failed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) exit_code: u8,
    pub(super) text: String,
}

impl Failure {
    /// The words of a command are wrong.
    pub(super) fn usage(text: &str) -> Self {
        Self {
            exit_code: 1,
            text: format!("\nERROR: {text}\n\nrabbitmqadmin --help for help\n"),
        }
    }

    /// An option is wrong.
    pub(super) fn option(text: &str) -> Self {
        Self {
            exit_code: 2,
            text: format!(
                "Usage\n=====\n  rabbitmqadmin [options] subcommand\n\nrabbitmqadmin: error: {text}"
            ),
        }
    }

    /// The broker refuses, or cannot be reached.
    pub(super) fn died(text: &str) -> Self {
        Self {
            exit_code: 1,
            text: format!("*** {text}\n"),
        }
    }

    /// A value is no JSON.
    pub(super) fn no_json(text: &str) -> Self {
        Self {
            exit_code: 1,
            text: format!("ERROR: Could not parse JSON:\n  {text}"),
        }
    }
}
