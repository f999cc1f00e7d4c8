//! Cycles of joints: one joint's messages reach another, and so on, until they come back.

use crosstie_joints::{AmqpPlace, Circle, End, Uris};
use crosstie_wamp::MatchPolicy;

use crate::model::{Joint, JointKind, JointTarget};
use crate::tree::quoted;

/// The description of a cycle among these joints, if they have one.
pub fn joints_in_a_circle(joints: &[Joint]) -> Option<String> {
    circle(joints).map(|(_, message)| message)
}

/// The first joint of a cycle, and the message about the cycle.
pub(crate) fn circle(joints: &[Joint]) -> Option<(usize, String)> {
    let mut circle = Circle::default();
    for joint in joints {
        let (from, to) = ends(joint);
        circle.add(from, to);
    }
    let found = circle.find();
    let first = *found.first()?;
    let names: Vec<_> = found.iter().map(|&at| quoted(&joints[at].id)).collect();
    let message = match names.as_slice() {
        [one] => format!("the joint {one} leads back to itself"),
        _ => format!(
            "the joints {} lead back to the first of them: what goes in there could go round",
            names.join(", ")
        ),
    };
    Some((first, message))
}

/// The source and the target of a joint's messages.
fn ends(joint: &Joint) -> (End, End) {
    let wamp = |is_call, uris| End::Wamp {
        realm: joint.realm.clone(),
        is_call,
        uris,
    };
    let amqp = |is_call, exchange: &str, keys| End::Amqp {
        place: AmqpPlace {
            vhost: joint.vhost.clone(),
            exchange: exchange.to_owned(),
            keys,
        },
        is_call,
    };
    let taken = |uri: &str, match_policy| match match_policy {
        MatchPolicy::Exact => Uris::Exact(uri.to_owned()),
        MatchPolicy::Prefix => Uris::Prefix(uri.to_owned()),
        MatchPolicy::Wildcard => Uris::Wildcard(uri.to_owned()),
    };
    // Compared by topic: a server's own queue belongs to its topic.
    let topic = |target: &JointTarget| vec![target.topic.clone()];
    match &joint.kind {
        JointKind::ProcedureToTarget(one) => (
            wamp(true, taken(&one.procedure, one.match_policy)),
            amqp(true, &one.target.exchange, topic(&one.target)),
        ),
        JointKind::TargetToProcedure(one) => (
            amqp(true, &one.target.exchange, topic(&one.target)),
            wamp(true, Uris::Made(one.procedure.clone())),
        ),
        JointKind::TopicToExchange(one) => {
            let keys = match (one.routing_key.literal(), &*one.exchange.kind) {
                (Some(key), "direct" | "topic") => vec![key.to_owned()],
                _ => Vec::new(),
            };
            (
                wamp(false, taken(&one.topic, one.match_policy)),
                amqp(false, &one.exchange.name, keys),
            )
        }
        JointKind::ExchangeToTopic(one) => {
            let keys = match &*one.exchange.kind {
                "direct" | "topic" => one.binding_keys.clone(),
                _ => Vec::new(),
            };
            (
                amqp(false, &one.exchange.name, keys),
                wamp(false, Uris::Made(one.topic.clone())),
            )
        }
    }
}
