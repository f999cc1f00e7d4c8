//! Publishes an exchange's messages as events of a topic.
//!
//! A delivery is acknowledged once the realm has acknowledged the publication: then the event is in the queue of every
//! subscriber's connection. If anything fails before that, the message stays in its queue, so that it is published at
//! least once. Messages that the realm refuses for good are rejected, and become dead letters if the queue has a target
//! for those. An authorizer that gives no answer (it is gone, fails, or the router stops) has refused nothing: the
//! joint restarts, and the message returns to its queue.

use std::convert::Infallible;
use std::sync::Arc;

use crosstie_config::ExchangeToTopic;
use crosstie_joints::uri_part;
use crosstie_realms::resident::Failed;
use crosstie_routing::error::AUTHORIZATION_FAILED;
use crosstie_wamp::PublishOptions;

use super::bond::Bond;
use super::course::Course;
use super::deliveries::Delivery;
use super::properties;
use super::setting::{Deliveries, Setting, identifier, payload};
use crate::joint_counts::Count;

/// Takes deliveries until the bond ends.
pub(super) async fn run(
    setting: &Arc<Setting>,
    joint: &ExchangeToTopic,
) -> Result<Infallible, String> {
    let (bond, deliveries) = setting.consuming_bond().await?;
    bond.declare_exchange(&joint.exchange).await?;
    let queue = match &joint.queue {
        Some(queue) => {
            bond.declare_queue(queue, true, Default::default()).await?;
            queue.clone()
        }
        None => {
            let queue = format!("joint.{}.{}", setting.joint.id, identifier());
            bond.declare_own_queue(&queue).await?;
            queue
        }
    };
    for key in &joint.binding_keys {
        bond.bind(&queue, &joint.exchange.name, key).await?;
    }
    bond.prefetch(joint.prefetch).await?;
    // The session must exist before the first delivery.
    setting.place.awaited().await;
    bond.consume(&queue, false).await?;
    setting.say_ready();
    tokio::select! {
        why = bond.ended() => Err(why),
        why = take(setting, joint, &bond, deliveries) => Err(why),
    }
}

async fn take(
    setting: &Arc<Setting>,
    joint: &ExchangeToTopic,
    bond: &Bond,
    mut deliveries: Deliveries,
) -> String {
    while let Some(delivery) = deliveries.recv().await {
        match pass(setting, joint, &delivery).await {
            Ok(()) => {
                setting.counts.count(Count::Passed);
                bond.acknowledge(delivery.tag);
            }
            Err(Unpassed::Undecided(why)) => return why,
            Err(Unpassed::Refused(why)) => {
                setting.counts.count(Count::Refused);
                tracing::debug!("Joint '{}' rejects a message: {why}", setting.joint.id);
                bond.reject(delivery.tag, false);
            }
        }
    }
    "the connection to the broker has ended".to_owned()
}

/// Why a message was not published.
enum Unpassed {
    /// Refused for good.
    Refused(String),
    /// The authorizer has not decided.
    Undecided(String),
}

impl From<&str> for Unpassed {
    fn from(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

/// Publishes a delivery.
async fn pass(
    setting: &Setting,
    joint: &ExchangeToTopic,
    delivery: &Delivery,
) -> Result<(), Unpassed> {
    let body = delivery.body.as_deref();
    let body = body.ok_or("its body is longer than body_bytes_max")?;
    let said = delivery.properties().parse();
    let course = setting.pass(Course::of_headers(said.headers));
    let course = course.ok_or("it has come through hops_max joints")?;
    let arguments = joint.body.read(body, said.content_encoding);
    let mut arguments = arguments.map_err(|e| Unpassed::Refused(e.to_string()))?;
    if let Some(name) = &joint.properties_argument {
        let properties = properties::of(delivery);
        arguments.kwargs.insert(name.clone(), properties);
    }
    let topic = joint.topic.fill(|name| match name {
        "exchange" => uri_part(&delivery.exchange).into(),
        _ => uri_part(&delivery.routing_key).into(),
    });
    let (args, kwargs) = (arguments.args_json(), arguments.kwargs_json());
    loop {
        let options = PublishOptions {
            acknowledge: true,
            passthru: course.options(),
            ..PublishOptions::default()
        };
        // A stopped realm may be started again.
        let session = setting.place.awaited().await;
        let published = session.publish(&topic, options, payload(&args, &kwargs));
        match published.await {
            Ok(_) => return Ok(()),
            Err(Failed::Error { uri, .. }) => {
                let why = format!("the realm says {uri}");
                return Err(match uri == AUTHORIZATION_FAILED {
                    true => Unpassed::Undecided(why),
                    false => Unpassed::Refused(why),
                });
            }
            Err(Failed::Lost(_) | Failed::NotLetIn(_)) if session.is_over() => {}
            Err(e) => return Err(Unpassed::Refused(e.to_string())),
        }
    }
}
