//! An event as a frame: its publisher, and a PUBLISH that another node handles as if a session had sent it.
//!
//! The arguments thus pass as received, in their serializer, and are checked again by the code that checks clients'
//! messages. The PUBLISH's request is the publication id.

use std::borrow::Cow;

use crosstie_routing::{Publication, RetainedAs};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Disclosed, Message, PublicationId, PublishOptions, RequestId, SessionId};

use crate::fields::{self, Field, Fields};
use crate::{Frame, Head, Refusal};

/// A received event.
#[derive(Debug)]
pub struct Event<'f> {
    pub publisher: Option<Disclosed<'f>>,
    /// A PUBLISH.
    pub message: Message<'f>,
    pub retained: Option<RetainedAs>,
}

impl Event<'_> {
    /// The event as input for a realm.
    pub fn publication(&self) -> Option<Publication<'_>> {
        let Message::Publish {
            request,
            options,
            topic,
            payload,
        } = &self.message
        else {
            return None;
        };
        Some(Publication {
            id: PublicationId(request.0),
            publisher: self.publisher.clone(),
            options,
            topic,
            payload: *payload,
            retained: self.retained,
        })
    }
}

/// Appends the frame of an event.
pub fn write(head: &Head, publication: &Publication<'_>, out: &mut Vec<u8>) {
    head.write(out);
    if let Some(publisher) = &publication.publisher {
        put_disclosed(publisher, out);
    }
    if let Some(retained) = &publication.retained {
        let numbers = [Some(retained.number), retained.ends_us];
        let numbers = numbers.into_iter().flatten().flat_map(u64::to_be_bytes);
        fields::put(Field::Retained, &numbers.collect::<Vec<_>>(), out);
    }
    fields::end(out);
    let options = publication.options;
    let message = Message::Publish {
        request: RequestId(publication.id.0),
        // Options that concern the publisher and its own node are applied there.
        options: PublishOptions {
            receivers: options.receivers.clone(),
            passthru: options.passthru.clone(),
            ..PublishOptions::default()
        },
        topic: Cow::Borrowed(publication.topic),
        payload: publication.payload,
    };
    codec::encode_with(&message, &publication.payload, out);
}

/// Decodes the event of a frame.
pub fn read<'f>(frame: &Frame<'f>) -> Result<Event<'f>, Refusal> {
    let fields = &frame.fields;
    let publisher = disclosed(fields)?;
    let mut numbers = fields.numbers(Field::Retained);
    let retained = numbers.next().map(|number| RetainedAs {
        number,
        ends_us: numbers.next(),
    });
    let decoded = codec::decode(frame.head.serializer, frame.rest, &Limits::default());
    match decoded {
        Ok(message @ Message::Publish { .. }) => Ok(Event {
            publisher,
            message,
            retained,
        }),
        _ => Err(Refusal::Event),
    }
}

/// Appends the publisher or caller.
pub(crate) fn put_disclosed(who: &Disclosed<'_>, out: &mut Vec<u8>) {
    fields::put(Field::Publisher, &who.session.0.to_be_bytes(), out);
    fields::put(Field::PublisherAuthid, who.authid.as_bytes(), out);
    fields::put(Field::PublisherAuthrole, who.authrole.as_bytes(), out);
}

/// The publisher or caller in a frame, if disclosed.
pub(crate) fn disclosed<'f>(fields: &Fields<'f>) -> Result<Option<Disclosed<'f>>, Refusal> {
    if fields.find(Field::Publisher).is_none() {
        return Ok(None);
    }
    Ok(Some(Disclosed {
        session: SessionId(fields.number(Field::Publisher)?),
        authid: Cow::Borrowed(fields.text(Field::PublisherAuthid)?),
        authrole: Cow::Borrowed(fields.text(Field::PublisherAuthrole)?),
    }))
}
