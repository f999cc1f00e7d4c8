//! A publication that one node hands to another to keep: the PUBLISH that a client could have sent, with the
//! publication's id as its request, and the publisher if disclosed.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, Dict, ID_MAX, Message, Payload, PublicationId, PublishOptions, RequestId,
    Serializer, SessionId, Value,
};

use crate::across::Publication;
use crate::identity::Identity;

/// Approximate memory beside its bytes and names.
const HANDED_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) publisher: Option<(SessionId, Identity)>,
    serializer: Serializer,
    bytes: Box<[u8]>,
}

/// The procedure for messages about retained events. No session can call it, and it has no answer.
pub(crate) const RETAINED: &str = "crosstie.node.retained";

/// The request id of messages without an answer; questions never count this far.
pub(crate) const UNANSWERED: u64 = ID_MAX;

/// Encodes a message to another node, as the keyword arguments of a question.
pub(crate) fn said(members: Dict) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Only NaN and infinities have no form in a serializer, and here are none.
    let written = codec::encode_value(&Value::Dict(members), Serializer::Cbor, &mut bytes);
    debug_assert!(written.is_ok(), "a value has no form");
    bytes
}

/// A question without an answer.
pub(crate) fn unanswered<'s>(procedure: &'s str, said: &'s [u8]) -> Message<'s> {
    question(UNANSWERED, procedure, said)
}

/// A question with that number.
pub(crate) fn question<'s>(number: u64, procedure: &'s str, said: &'s [u8]) -> Message<'s> {
    Message::Call {
        request: RequestId(number),
        options: CallOptions::default(),
        procedure: procedure.into(),
        payload: Payload::new(Serializer::Cbor, NOTHING, said),
    }
}

/// An empty list in CBOR.
const NOTHING: &[u8] = &[0x80];

/// The members of a question that hands a publication over, with the options that matter to another node.
pub(crate) fn write(publication: &Publication<'_>) -> Dict {
    let options = publication.options;
    let message = Message::Publish {
        request: RequestId(publication.id.0),
        options: PublishOptions {
            receivers: options.receivers.clone(),
            passthru: options.passthru.clone(),
            retain: options.retain,
            retain_ms: options.retain_ms,
            ..PublishOptions::default()
        },
        topic: publication.topic.into(),
        payload: publication.payload,
    };
    let mut bytes = Vec::new();
    codec::encode_with(&message, &publication.payload, &mut bytes);
    let serializer = publication.payload.serializer.index() as u64;
    let mut members = vec![
        ("serializer".to_owned(), Value::from(serializer)),
        ("message".to_owned(), Value::Binary(bytes)),
    ];
    if let Some(who) = &publication.publisher {
        members.extend([
            ("publisher".to_owned(), Value::from(who.session.0)),
            ("authid".to_owned(), Value::from(&*who.authid)),
            ("authrole".to_owned(), Value::from(&*who.authrole)),
        ]);
    }
    members
}

/// Parses a publication; `None` if it is malformed.
pub(crate) fn read(given: &Value) -> Option<Handed> {
    let number = |name: &str| given.get(name)?.as_u64();
    let text = |name: &str| given.get(name)?.as_str();
    let index = number("serializer")?;
    let mut serializers = Serializer::ALL.into_iter();
    let serializer = serializers.find(|known| known.index() as u64 == index)?;
    let Value::Binary(bytes) = given.get("message")? else {
        return None;
    };
    let publisher = number("publisher").map(|session| {
        let identity = Identity::new(
            text("authid").unwrap_or_default(),
            text("authrole").unwrap_or_default(),
            "",
            "",
        );
        (SessionId(session), identity)
    });
    let handed = Handed {
        publisher,
        serializer,
        bytes: bytes.as_slice().into(),
    };
    handed.message().is_some().then_some(handed)
}

impl Handed {
    /// The PUBLISH.
    pub(crate) fn message(&self) -> Option<Message<'_>> {
        let message = codec::decode(self.serializer, &self.bytes, &Limits::default());
        message
            .ok()
            .filter(|message| matches!(message, Message::Publish { .. }))
    }

    pub(crate) fn id(&self) -> Option<PublicationId> {
        match self.message()? {
            Message::Publish { request, .. } => Some(PublicationId(request.0)),
            _ => None,
        }
    }

    /// Memory of the publication.
    pub(crate) fn bytes(&self) -> usize {
        let publisher = self.publisher.as_ref();
        let names = publisher.map_or(0, |(_, who)| who.authid.len() + who.authrole.len());
        HANDED_BYTES + names + self.bytes.len()
    }
}
