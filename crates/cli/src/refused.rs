//! A refusal of a running node.

use std::fmt;
use std::process::ExitCode;

use anyhow::bail;
use crosstie_client::{ApplicationError, CallError};

/// A refusal: an answer, not a failure of this program.
pub(crate) enum Refused {
    /// By the node.
    Application(Box<ApplicationError>),
    /// By this program: the object is ambiguous, or missing.
    Here(String),
    /// The answer did not arrive.
    Lost(anyhow::Error),
}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Application(error) => Self::Application(Box::new(error)),
            error => Self::Lost(error.into()),
        }
    }
}

impl Refused {
    pub(crate) fn no_amqp() -> Self {
        Self::Here("no worker of the node speaks AMQP".into())
    }

    /// Whether the node has no such object.
    pub(crate) fn is_no_such_object(&self) -> bool {
        matches!(self, Self::Application(error) if error.uri == "crossbar.error.no_such_object")
    }

    /// Whether the object is stopped.
    pub(crate) fn is_not_running(&self) -> bool {
        matches!(self, Self::Application(error) if error.uri == "crossbar.error.not_running")
    }

    /// Prints it. A missing answer is an error of the program.
    pub(crate) fn told(self) -> anyhow::Result<ExitCode> {
        if let Self::Lost(error) = self {
            bail!(error);
        }
        complain!("crosstie: {self}");
        Ok(ExitCode::FAILURE)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(error) => match error.arguments.argument::<String>(0) {
                Ok(text) => f.write_str(&text),
                Err(_) => error.fmt(f),
            },
            Self::Here(text) => f.write_str(text),
            Self::Lost(error) => error.fmt(f),
        }
    }
}
