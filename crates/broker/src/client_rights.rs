//! Topic permissions with the variable `{client_id}`, for a client of another protocol that has an identifier.
//!
//! Clients choose their identifiers. So the identifier's text is matched as it is, and is no part of the expression. The
//! last decisions are kept, and so are the broker's last expressions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crosstie_auth::{Access, Judge, Permissions, ResourceKind};
use parking_lot::Mutex;

use crate::client::About;
use crate::client_patterns::ClientPatterns;

/// The topic permissions of one client.
#[derive(Debug)]
struct OfClient {
    topics: Arc<BTreeMap<Arc<str>, Permissions>>,
    client_id: Box<str>,
    patterns: Arc<ClientPatterns>,
    /// The newest last.
    decided: Mutex<VecDeque<Decided>>,
}

#[derive(Debug)]
struct Decided {
    access: Access,
    exchange: Box<str>,
    routing_key: Box<str>,
    may: bool,
}

/// The number of decisions that are kept, as in RabbitMQ's channels.
const DECIDED_MAX: usize = 12;

/// The identifier of a client of another protocol.
pub(crate) fn client_id(about: &About) -> Option<&str> {
    if about.protocol.is_empty() {
        // A client of AMQP, whose properties say nothing about that.
        return None;
    }
    about.properties.table().find("client_id")?.as_str()
}

/// The permissions of a client of a user: the same, unless they have the variable.
pub(crate) fn of_client(
    permissions: &Arc<Permissions>,
    about: &About,
    patterns: &Arc<ClientPatterns>,
) -> Arc<Permissions> {
    match (client_id(about), permissions.topics_of_clients()) {
        (Some(client_id), Some(topics)) => {
            let judge = OfClient {
                topics: Arc::clone(topics),
                client_id: client_id.into(),
                patterns: Arc::clone(patterns),
                decided: Mutex::default(),
            };
            Arc::new(permissions.with_judge(Arc::new(judge)))
        }
        _ => Arc::clone(permissions),
    }
}

impl Judge for OfClient {
    fn may(&self, _: Access, _: ResourceKind, _: &str) -> bool {
        // The patterns say all.
        false
    }

    fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        let Some(topics) = self.topics.get(exchange) else {
            return true;
        };
        let Some(pattern) = topics.pattern_of_clients(access) else {
            return topics.may_key(access, routing_key);
        };
        let is_it = |one: &Decided| {
            one.access == access && *one.exchange == *exchange && *one.routing_key == *routing_key
        };
        let mut decided = self.decided.lock();
        if let Some(known) = decided.iter().find(|one| is_it(one)) {
            return known.may;
        }
        let pattern = self.patterns.of(pattern, &self.client_id);
        let may = pattern.allows(routing_key);
        if decided.len() == DECIDED_MAX {
            decided.pop_front();
        }
        decided.push_back(Decided {
            access,
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            may,
        });
        may
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::{TableBuf, Value};
    use crosstie_auth::CLIENT_ID;

    use super::*;
    use crate::client::Properties;

    fn rights(protocol: &'static str, client_id: &str) -> Arc<Permissions> {
        let pattern = format!(r"^{CLIENT_ID}\.");
        let topics = Permissions::parse("", &pattern, "^a").expect("is valid");
        let topics = BTreeMap::from([("t".into(), topics)]);
        let permissions = Permissions::all().with_topics(topics);
        let sent = TableBuf::new().with("client_id", Value::LongString(client_id.as_bytes()));
        let about = About {
            protocol,
            properties: Properties::of(sent.as_table()),
            ..About::default()
        };
        of_client(&Arc::new(permissions), &about, &Arc::default())
    }

    #[test]
    fn an_identifier_is_matched_as_a_text() {
        #[track_caller]
        fn check(of: &Permissions, key: &str, expected: bool) {
            // Again, by the decision that was kept.
            for _ in 0..2 {
                assert_eq!(of.may_topic(Access::Write, "t", key), expected, "{key}");
            }
        }
        let mqtt = rights("MQTT 5.0", "c.*");
        check(&mqtt, "c.*.a", true);
        check(&mqtt, "cx.a", false);
        for number in 0..2 * DECIDED_MAX {
            check(&mqtt, &format!("c.*.{number}"), true);
        }
        assert!(mqtt.may_topic(Access::Read, "t", "a"));
        assert!(mqtt.may_topic(Access::Write, "other", "x"));
        assert!(mqtt.may(Access::Write, ResourceKind::Exchange, "t"));
        // It says what it likes, and has no identifier.
        let amqp = rights("", "c");
        check(&amqp, "c.a", false);
        check(&amqp, "{client_id}.a", true);
    }
}
