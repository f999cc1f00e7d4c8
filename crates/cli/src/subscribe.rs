//! `crosstie subscribe`: the events of a topic, one line of JSON each.

use std::process::ExitCode;

use anyhow::bail;
use crosstie_client::{Event, SubscribeError, SubscribeOptions, Subscription, Value};

use crate::output::print_line;
use crate::signals::Signals;
use crate::wamp_arguments::{Connection, Match, in_json, print_error, text, to_object};

/// Subscribe to a topic and print each event as a line of JSON: {"args": […], "kwargs": {…}}. For a pattern the line
/// begins with "topic".
///
/// Stops when interrupted (Ctrl-C), and reconnects after a lost connection. The exit code is 1 after a refusal, and 2
/// if the router cannot be reached.
#[derive(clap::Args)]
pub(crate) struct SubscribeArguments {
    /// URI of the topic, or a pattern with --match.
    topic: String,
    #[command(flatten)]
    connection: Connection,
    /// Matching policy; in a wildcard pattern an empty component matches any one component.
    #[arg(long = "match", value_enum, default_value_t)]
    match_policy: Match,
    /// Begin with the retained events.
    #[arg(long)]
    get_retained: bool,
    /// Stop after this many events.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print also the topic, the publication's id, a disclosed publisher, and a trust level.
    #[arg(long)]
    details: bool,
}

pub(crate) async fn run(arguments: SubscribeArguments) -> anyhow::Result<ExitCode> {
    let client = arguments.connection.connect_to_stay().await?;
    let mut signals = Signals::catch()?;
    let mut options = SubscribeOptions::default();
    options.match_policy = arguments.match_policy.into();
    options.get_retained = arguments.get_retained;
    let subscribed = client.subscribe_with(&arguments.topic, options).await;
    let mut subscription = match subscribed {
        Ok(subscription) => subscription,
        Err(SubscribeError::Refused(error)) => {
            print_error(&error);
            client.leave().await;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => bail!(error),
    };
    complain!("crosstie: subscribed to {}", arguments.topic);
    let show = match arguments.match_policy {
        _ if arguments.details => with_details,
        Match::Exact => |event: &Event| to_object(&event.arguments),
        // A pattern matches several topics, so the topic is part of the event.
        Match::Prefix | Match::Wildcard => with_topic,
    };
    let ended = tokio::select! {
        ended = print_events(&mut subscription, arguments.count, show) => ended?,
        _ = signals.next() => Ended::Wanted,
    };
    if let Ended::Lost = ended {
        bail!(client.ended().await);
    }
    // Without a session there is nothing to unsubscribe from.
    let _ = subscription.unsubscribe().await;
    client.leave().await;
    Ok(ExitCode::SUCCESS)
}

enum Ended {
    Wanted,
    /// The client has given up.
    Lost,
}

async fn print_events(
    subscription: &mut Subscription,
    count: Option<u64>,
    show: fn(&Event) -> anyhow::Result<String>,
) -> anyhow::Result<Ended> {
    let mut missed_before = 0;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        let Some(event) = subscription.next().await else {
            return Ok(Ended::Lost);
        };
        if !print_line(&show(&event)?)? {
            break;
        }
        printed += 1;
        let missed = subscription.missed();
        if missed > missed_before {
            let more = missed - missed_before;
            complain!("crosstie: {more} events came faster than they were printed and are lost");
            missed_before = missed;
        }
    }
    Ok(Ended::Wanted)
}

fn with_topic(event: &Event) -> anyhow::Result<String> {
    let topic = text(&Value::from(event.topic.as_str()))?;
    let (args, kwargs) = in_json(&event.arguments)?;
    Ok(format!(
        r#"{{"topic":{topic},"args":{args},"kwargs":{kwargs}}}"#
    ))
}

fn with_details(event: &Event) -> anyhow::Result<String> {
    let topic = text(&Value::from(event.topic.as_str()))?;
    let publication = event.publication;
    let publisher = match &event.publisher {
        None => "null".to_owned(),
        Some(peer) => text(&Value::Dict(vec![
            ("session".to_owned(), peer.session.0.into()),
            ("authid".to_owned(), peer.authid.as_str().into()),
            ("authrole".to_owned(), peer.authrole.as_str().into()),
        ]))?,
    };
    let level = event
        .trustlevel
        .map(|level| format!(r#""trustlevel":{level},"#));
    let level = level.unwrap_or_default();
    let (args, kwargs) = in_json(&event.arguments)?;
    Ok(format!(
        r#"{{"topic":{topic},"publication":{publication},"publisher":{publisher},{level}"args":{args},"kwargs":{kwargs}}}"#
    ))
}
