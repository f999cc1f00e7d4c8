//! What a realm publishes of itself.

use crosstie_wamp::{Payload, PublishOptions, Serializer};

use super::Broker;
use super::retained::Publication;
use crate::context::Context;
use crate::events::MetaEvent;
use crate::session::SessionIndex;

impl Broker {
    /// Sends the EVENTs of what the realm itself publishes.
    pub(crate) fn publish_meta<H>(&mut self, context: &mut Context<'_, H>, event: &MetaEvent) {
        let exact = self.by_topic.exact(event.topic);
        self.matched.clear();
        self.by_topic
            .for_each_pattern(event.topic, context.steps, |key| self.matched.push(key));
        context.spend(1);
        if exact.is_none() && self.matched.is_empty() {
            return;
        }
        let options = PublishOptions {
            exclude_me: false,
            ..PublishOptions::default()
        };
        let publication = Publication {
            id: context.random.publication_id(),
            publisher: None,
            options: &options,
            topic: event.topic,
            payload: Payload {
                serializer: Serializer::Json,
                args: &event.arguments,
                kwargs: &[],
            },
        };
        for key in exact.iter().chain(&self.matched) {
            self.send_event(context, SessionIndex::NOBODY, *key, &publication, None);
        }
    }
}
