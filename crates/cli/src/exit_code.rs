//! The exit codes of commands that fail.

use std::process::ExitCode;

use crosstie_node::StartError;
use crosstie_terminal::CANNOT_RUN;

use crate::output::NotPrinted;
use crate::wamp_arguments::Refused;

/// The exit code for an error: 1 if the node or its peer refuses.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let is_refusal = error.is::<NotPrinted>() || error.is::<Refused>() || error.is::<StartError>();
    ExitCode::from(if is_refusal { 1 } else { CANNOT_RUN })
}
