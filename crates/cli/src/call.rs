//! `crosstie call`: one call, its result as JSON.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use crosstie_client::{CallError, CallOptions, CallReply};
use crosstie_terminal::duration::duration;

use crate::output::print_line;
use crate::wamp_arguments::{Connection, Given, print_error, to_object, to_value};

/// Call a procedure and print its result as JSON.
///
/// A result of one argument is printed directly, an empty one as null, any other as {"args": […], "kwargs": {…}}.
/// Errors are printed on standard error. The exit code is 1 if the call fails or the router rejects the session, and 2
/// if the router cannot be reached.
#[derive(clap::Args)]
pub(crate) struct CallArguments {
    /// URI of the procedure.
    procedure: String,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    connection: Connection,
    /// Maximum wait for the result: 500ms, 5s, 2m; 0 waits for ever.
    #[arg(long, default_value = "5s", value_parser = duration)]
    timeout: Duration,
    /// Print progressive results as they arrive, one line each.
    #[arg(long)]
    progress: bool,
    /// Print every result as {"args": […], "kwargs": {…}}.
    #[arg(long)]
    full: bool,
    /// Disclose the caller to the callee.
    #[arg(long)]
    disclose_me: bool,
}

pub(crate) async fn run(arguments: CallArguments) -> anyhow::Result<ExitCode> {
    let CallArguments {
        procedure,
        given,
        connection,
        timeout,
        progress,
        full,
        disclose_me,
    } = arguments;
    let client = connection.connect().await?;
    let mut options = CallOptions::default();
    options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    options.disclose_me = disclose_me.then_some(true);
    options.receive_progress = progress;
    let show = if full { to_object } else { to_value };
    let mut call = client.start_call(&procedure, given, options).await?;
    let failed = loop {
        let result = match call.next().await {
            Ok(Some(CallReply::Progress(result) | CallReply::Result(result))) => result,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        if !print_line(&show(&result)?)? {
            break None;
        }
    };
    // A pending call is cancelled.
    drop(call);
    client.leave().await;
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some(CallError::Application(error) | CallError::Canceled(error)) => {
            print_error(&error);
            Ok(ExitCode::FAILURE)
        }
        Some(CallError::TimedOut) => {
            complain!("crosstie: no result of {procedure} within {timeout:?}");
            Ok(ExitCode::FAILURE)
        }
        Some(error) => bail!(error),
    }
}
