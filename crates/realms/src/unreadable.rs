//! Messages with arguments that common WAMP libraries cannot decode: their receivers' sessions would end.
//!
//! The decoder marks possible cases as doubtful; other messages skip this code.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosstie_config::UnreadableValues;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_routing::{SessionKey, Violation};
use crosstie_wamp::codec::{self, TranscodeError, Unreadable};
use crosstie_wamp::{Message, Payload, Serializer};

use crate::message_counts::Direction;
use crate::payload_encodings::PayloadEncodings;
use crate::realm::SharedRealm;
use crate::session::{Session, State};

/// A payload in a serializer that can represent it.
pub(super) struct Converted {
    args: Vec<u8>,
    kwargs: Vec<u8>,
}

/// The serializer that can represent most values.
const WIDEST: Serializer = Serializer::Cbor;

impl Converted {
    fn of(payload: &Payload<'_>) -> Result<Self, TranscodeError> {
        // CBOR adds at most a few bytes for each value.
        let length_max = 1024 + 4 * payload.len();
        let convert = |part: &[u8]| {
            let mut out = Vec::new();
            match part.is_empty() {
                true => Ok(()),
                false => {
                    codec::transcode_within(payload.serializer, part, WIDEST, length_max, &mut out)
                }
            }?;
            Ok(out)
        };
        Ok(Self {
            args: convert(payload.args)?,
            kwargs: convert(payload.kwargs)?,
        })
    }

    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::new(WIDEST, &self.args, &self.kwargs)
    }
}

/// The payload to route instead of the message's own, if necessary.
pub(super) fn converted(message: &Message<'_>) -> Result<Option<Converted>, Unreadable> {
    let Some(payload) = message.payload() else {
        return Ok(None);
    };
    let Err(unreadable) = codec::check_readable(payload) else {
        return Ok(None);
    };
    // In its own serializer it is just as unreadable.
    match payload.serializer == WIDEST {
        true => Err(unreadable),
        false => Converted::of(payload).map(Some).map_err(|_| unreadable),
    }
}

impl SharedRealm {
    /// Answers one message of a session, received at `now`, that shall not be routed.
    pub(crate) fn decline(
        &self,
        now: Instant,
        from: SessionKey,
        message: &Message<'_>,
        text: impl Into<Cow<'static, str>>,
    ) -> Result<(), Violation> {
        let now = self.time(now);
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            let messages = outbox.messages;
            messages.count_alone(Direction::Received, message.kind());
            realm.decline(now, from, message, text, outbox)
        })
    }
}

impl Session {
    /// Handles a message that common libraries may be unable to decode.
    #[cold]
    pub(super) fn handle_doubtful(
        &mut self,
        message: &Message<'_>,
        bytes: &[u8],
        source: Option<&Bytes>,
        now: Instant,
    ) -> ControlFlow<()> {
        let State::Joined { realm, key } = &self.state else {
            return self.handle(message, bytes, source, now);
        };
        let (realm, key) = (Arc::clone(realm), *key);
        let unreadable = match realm.unreadable_values {
            UnreadableValues::Pass => None,
            UnreadableValues::Refuse => message
                .payload()
                .and_then(|payload| codec::check_readable(payload).err()),
            UnreadableValues::Convert => match converted(message) {
                Ok(Some(converted)) => {
                    counters().count(Counter::UnreadableConverted);
                    let message = message.with_payload(converted.payload());
                    return self.handle(&message, bytes, None, now);
                }
                Ok(None) => None,
                Err(unreadable) => Some(unreadable),
            },
        };
        let Some(unreadable) = unreadable else {
            return self.handle(message, bytes, source, now);
        };
        counters().count(Counter::UnreadableRefused);
        realm
            .log
            .unreadable_refused(&self.peer, message, &unreadable);
        let declined = realm.decline(now, key, message, unreadable.to_string());
        self.handled(declined)
    }
}
