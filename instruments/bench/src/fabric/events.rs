//! Events from a publisher on one node to a subscriber on another, or the same: each is an operation, and its EVENT the
//! answer.

use std::time::Instant;

use crosstie_wamp::{Message, Payload, PublishOptions, RequestId};
use serde::{Deserialize, Serialize};

use crate::load::{Answer, Exchange, Traffic, within_time};
use crate::process::WorkerError;
use crate::subject::Target;
use crate::wamp::argument::Arguments;
use crate::wamp::pipe::Pipe;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EventsOrder {
    pub(crate) publisher: Target,
    pub(crate) subscriber: Target,
    pub(crate) topic: String,
    pub(crate) payload_bytes: usize,
}

pub(crate) struct Events {
    publisher: Pipe,
    subscriber: Pipe,
    topic: String,
    arguments: Arguments,
    published: u64,
    heard: u64,
}

impl Events {
    pub(crate) fn subscribe(order: &EventsOrder) -> Result<Self, WorkerError> {
        let mut subscriber = Pipe::connect(&order.subscriber)?;
        subscriber.join(&order.subscriber.realm)?;
        subscriber.subscribe(&order.topic)?;
        let mut publisher = Pipe::connect(&order.publisher)?;
        publisher.join(&order.publisher.realm)?;
        Ok(Self {
            publisher,
            subscriber,
            topic: order.topic.clone(),
            arguments: Arguments::new(order.publisher.serializer, order.payload_bytes)?,
            published: 0,
            heard: 0,
        })
    }
}

impl Exchange for Events {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.published += 1;
        let serializer = self.arguments.serializer();
        self.publisher.push(&Message::Publish {
            request: RequestId(self.published),
            options: PublishOptions::default(),
            topic: self.topic.as_str().into(),
            payload: Payload::new(serializer, self.arguments.numbered(self.published), &[]),
        })
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.publisher.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let (heard, arguments) = (&mut self.heard, &self.arguments);
        let received = self.subscriber.receive_timed(|message, _| match message {
            Message::Event { payload, .. } => {
                // One that is lost, doubled or out of order makes all later ones wrong.
                *heard += 1;
                let is_right = arguments.matches(payload.args, *heard);
                answers.push(Answer::checked(is_right));
                Ok(())
            }
            other => Err(WorkerError::unexpected("EVENT", other)),
        });
        within_time(received)
    }

    fn traffic(&self) -> Traffic {
        self.subscriber.traffic()
    }
}
