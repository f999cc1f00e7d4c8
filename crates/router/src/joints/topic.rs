//! Publishes a topic's events to an exchange.
//!
//! An event is published once, when it arrives, as WAMP does not repeat events. While the broker blocks publishers,
//! events wait in the session's queue, with the limit and the policy of any session.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use crosstie_amqp::{BasicProperties, Value as Field};
use crosstie_config::{MatchPolicy, TopicToExchange};
use crosstie_joints::Arguments;
use crosstie_realms::resident::Event;
use crosstie_wamp::SubscribeOptions;

use super::bond::{Bond, Publication};
use super::course::Course;
use super::setting::{SERIALIZER, Setting};
use crate::joint_counts::Count;

/// Maximum length of a short string in AMQP.
pub(super) const SHORT_BYTES_MAX: usize = 255;

/// Takes events until the session or the bond ends.
pub(super) async fn run(
    setting: &Arc<Setting>,
    joint: &TopicToExchange,
) -> Result<Infallible, String> {
    let session = setting.place.awaited().await;
    // This end receives no deliveries.
    let bond = setting.bond(|_| {}).await?;
    bond.declare_exchange(&joint.exchange).await?;
    let options = SubscribeOptions::matching(joint.match_policy);
    let subscribed = session.subscribe(&joint.topic, options).await;
    let mut events = subscribed.map_err(|e| format!("cannot subscribe: {e}"))?;
    setting.say_ready();
    loop {
        let event = tokio::select! {
            why = bond.ended() => return Err(why),
            event = events.next() => event,
        };
        let event = event.ok_or("its session has ended")?;
        if let Err(why) = pass(setting, joint, &bond, &event) {
            setting.counts.count(Count::Dropped);
            tracing::debug!("Joint '{}' drops an event: {why}", setting.joint.id);
        } else {
            setting.counts.count(Count::Passed);
        }
        tokio::select! {
            why = bond.ended() => return Err(why),
            () = bond.room() => {}
        }
    }
}

fn pass(
    setting: &Setting,
    joint: &TopicToExchange,
    bond: &Bond,
    event: &Event,
) -> Result<(), String> {
    let course = setting.pass(Course::of_options(event.passthru.as_deref()));
    let course = course.ok_or("it has come through hops_max joints")?;
    if event.payload.serializer != SERIALIZER {
        return Err("its payload is encoded".to_owned());
    }
    let arguments = Arguments::read(&event.payload.args, &event.payload.kwargs);
    let arguments = arguments.map_err(|e| e.to_string())?;
    let written = joint.body.write(arguments).map_err(|e| e.to_string())?;
    if written.body.len() > setting.joint.body_bytes_max {
        return Err("its body is longer than body_bytes_max".to_owned());
    }
    let topic = event.topic.as_deref().unwrap_or(&joint.topic);
    let routing_key = joint.routing_key.fill(|name| match name {
        "rest" => rest(topic, &joint.topic, joint.match_policy),
        _ => Cow::Borrowed(topic),
    });
    if routing_key.len() > SHORT_BYTES_MAX {
        return Err("its routing key is longer than 255 bytes".to_owned());
    }
    let mut headers = course.headers();
    let publisher = event.publisher.as_ref();
    if let Some(publisher) = publisher {
        let session = Field::I64(publisher.session.0 as i64);
        headers = headers
            .with("wamp-publisher", session)
            .with("wamp-publisher-authid", text(&publisher.authid))
            .with("wamp-publisher-authrole", text(&publisher.authrole));
    }
    let user_id = publisher.map(|publisher| &*publisher.authid);
    let user_id = user_id.filter(|id| joint.is_impersonator && id.len() <= SHORT_BYTES_MAX);
    let message_id = event.publication.0.to_string();
    let mut properties = Vec::new();
    let said = BasicProperties {
        content_type: Some(written.content_type),
        content_encoding: written.content_encoding,
        headers: Some(headers.as_table()),
        delivery_mode: Some(if joint.is_persistent { 2 } else { 1 }),
        message_id: Some(&message_id),
        user_id,
        ..BasicProperties::default()
    };
    said.write(&mut properties);
    bond.publish(Publication {
        exchange: &joint.exchange.name,
        routing_key: &routing_key,
        is_mandatory: false,
        properties: &properties,
        body: &written.body,
    })
}

/// The part behind a prefix; all of any other URI.
pub(super) fn rest<'u>(uri: &'u str, pattern: &str, policy: MatchPolicy) -> Cow<'u, str> {
    let rest = match policy {
        MatchPolicy::Prefix => uri.strip_prefix(pattern).unwrap_or(uri),
        MatchPolicy::Exact | MatchPolicy::Wildcard => uri,
    };
    // A prefix may end in front of a dot.
    Cow::Borrowed(rest.strip_prefix('.').unwrap_or(rest))
}

pub(super) fn text(text: &str) -> Field<'_> {
    Field::LongString(text.as_bytes())
}
