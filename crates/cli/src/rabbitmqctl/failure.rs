//! Why a command fails: a text and RabbitMQ's exit code.

use crosstie_client::ApplicationError;

use crate::queues::realm::Refused;

/// A failed command.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit_code: u8,
    pub(super) text: String,
    /// The object of the command does not exist.
    pub(super) is_absent: bool,
    /// The node finds the request wrong.
    pub(super) is_invalid: bool,
    /// The answer did not arrive.
    pub(super) is_lost: bool,
}

/// The exit codes of `sysexits.h`, as RabbitMQ uses them.
const NO_USER: u8 = 67;
const UNAVAILABLE: u8 = 69;
const SOFTWARE: u8 = 70;
const TIMED_OUT: u8 = 75;

impl Failure {
    /// The exit code for wrong words.
    pub(super) const USAGE: u8 = 64;

    /// The exit code for wrong input.
    pub(super) const DATA: u8 = 65;

    pub(super) fn new(exit_code: u8, text: impl Into<String>) -> Self {
        Self {
            exit_code,
            text: text.into(),
            is_absent: false,
            is_invalid: false,
            is_lost: false,
        }
    }

    /// The words are wrong.
    pub(super) fn usage(text: &str) -> Self {
        Self::new(Self::USAGE, text)
    }

    /// The refusal of a command that only RabbitMQ has.
    pub(super) fn not_here(name: &str) -> Self {
        Self::usage(&format!(
            "Error: '{name}' is a command of RabbitMQ that Crosstie does not have"
        ))
    }

    /// The input is wrong.
    pub(super) fn data(text: &str) -> Self {
        Self::new(Self::DATA, format!("Error:\n{text}"))
    }

    /// RabbitMQ's term for an absent user, which some of its commands print as it is.
    pub(super) fn no_user_term(user: &str) -> Self {
        Self::refused(&format!("{{:no_such_user, \"{user}\"}}"))
    }

    pub(super) fn no_user(text: &str) -> Self {
        Self::new(NO_USER, format!("Error:\n{text}"))
    }

    /// The node refuses.
    pub(super) fn refused(text: &str) -> Self {
        Self::new(UNAVAILABLE, format!("Error:\n{text}"))
    }

    /// A check fails.
    pub(super) fn check(text: &str) -> Self {
        Self::new(UNAVAILABLE, text)
    }

    pub(super) fn software(text: &str) -> Self {
        Self::new(SOFTWARE, format!("Error:\n{text}"))
    }

    pub(super) fn timed_out(text: &str) -> Self {
        Self::new(TIMED_OUT, text)
    }

    pub(super) fn no_vhost(vhost: &str) -> Self {
        Self::new(Self::DATA, format!("Virtual host '{vhost}' does not exist"))
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let text = refused.to_string();
        match &refused {
            Refused::Application(error) if is_software(error) => Self::software(&text),
            _ => Self {
                is_absent: refused.is_no_such_object(),
                is_invalid: matches!(
                    &refused,
                    Refused::Application(error) if error.uri == "wamp.error.invalid_argument"
                ),
                is_lost: matches!(refused, Refused::Lost(_)),
                ..Self::refused(&text)
            },
        }
    }
}

/// Whether the node failed, rather than refused.
fn is_software(error: &ApplicationError) -> bool {
    error.uri == "crosstie.error.not_stored"
}
