//! `crosstie publish`: one publication.

use std::process::ExitCode;

use anyhow::bail;
use crosstie_client::{PublishError, PublishOptions, Receivers, SessionId};

use crate::output::print_line;
use crate::wamp_arguments::{Connection, Given, print_error, session};

/// Publish to a topic.
///
/// With --acknowledge the publication's id is printed, a bare number on standard output, and the exit code is 1 after a
/// refusal. Without it nothing is printed, and the router does not report a refusal. The exit code is 2 if the router
/// cannot be reached.
#[derive(clap::Args)]
pub(crate) struct PublishArguments {
    /// URI of the topic.
    topic: String,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    connection: Connection,
    /// Wait for the router's answer and print the publication's id.
    #[arg(long)]
    acknowledge: bool,
    /// Have the router retain the event for later subscribers of its topic.
    #[arg(long)]
    retain: bool,
    /// Disclose the publisher to the subscribers.
    #[arg(long)]
    disclose_me: bool,
    /// Session that gets no event; may be repeated.
    #[arg(long, value_name = "SESSION", value_parser = session)]
    exclude: Vec<SessionId>,
    /// Authid whose sessions get no event; may be repeated.
    #[arg(long, value_name = "AUTHID")]
    exclude_authid: Vec<String>,
    /// Authrole whose sessions get no event; may be repeated.
    #[arg(long, value_name = "AUTHROLE")]
    exclude_authrole: Vec<String>,
    /// Only this session gets an event; may be repeated.
    #[arg(long, value_name = "SESSION", value_parser = session)]
    eligible: Vec<SessionId>,
    /// Only sessions of this authid get an event; may be repeated.
    #[arg(long, value_name = "AUTHID")]
    eligible_authid: Vec<String>,
    /// Only sessions of this authrole get an event; may be repeated.
    #[arg(long, value_name = "AUTHROLE")]
    eligible_authrole: Vec<String>,
}

pub(crate) async fn run(arguments: PublishArguments) -> anyhow::Result<ExitCode> {
    let receivers = Receivers {
        exclude: given(arguments.exclude),
        exclude_authid: given(arguments.exclude_authid),
        exclude_authrole: given(arguments.exclude_authrole),
        eligible: given(arguments.eligible),
        eligible_authid: given(arguments.eligible_authid),
        eligible_authrole: given(arguments.eligible_authrole),
    };
    let options = PublishOptions {
        acknowledge: arguments.acknowledge,
        disclose_me: arguments.disclose_me.then_some(true),
        retain: arguments.retain,
        receivers: (receivers != Receivers::default()).then(|| Box::new(receivers)),
        ..PublishOptions::default()
    };
    let client = arguments.connection.connect().await?;
    let topic = &arguments.topic;
    let published = client.publish_with(topic, arguments.given, options).await;
    // Leaving also waits until the publication is sent.
    client.leave().await;
    match published {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(publication)) => {
            print_line(&publication.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(PublishError::Refused(error)) => {
            print_error(&error);
            Ok(ExitCode::FAILURE)
        }
        Err(error) => bail!(error),
    }
}

fn given<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
