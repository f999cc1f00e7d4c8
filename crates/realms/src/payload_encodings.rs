//! A message's payload in its receivers' serializers, each encoded once.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_routing::Refused;
use crosstie_transport::Connection;
use crosstie_wamp::codec::{self, TranscodeError};
use crosstie_wamp::framing::APART_BYTES_MIN;
use crosstie_wamp::{Message, Payload, Serializer};

/// The payload of the current message, in each serializer needed so far.
///
/// A realm forwards a payload as received. For receivers with another serializer, it is transcoded once, however many
/// they are.
pub(crate) struct PayloadEncodings<'p> {
    original: Payload<'p>,
    transcoded: [Option<Result<Transcoded, Refused>>; Serializer::ALL.len()],
    /// Large payloads that queues share instead of copying them under the realm's lock.
    shared: Option<Box<[Option<Shared>; Serializer::ALL.len()]>>,
}

/// Maximum size of a transcoded payload, or twice its original size if that is larger. Control characters are six times
/// as long in JSON, so that 16 MiB of them would become 96 MiB for each serializer. A longer payload is refused like a
/// message that is too long for its receiver.
const TRANSCODED_BYTES_MAX: usize = 16 << 20;

struct Transcoded {
    bytes: Vec<u8>,
    args_len: usize,
}

/// The source of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    /// The sender's connection, whose account is charged for shared bytes.
    pub connection: &'s Arc<Connection>,
    /// The buffer of the message's bytes, if others may keep it.
    pub bytes: Option<&'s Bytes>,
    /// Length of the message in bytes.
    pub len: usize,
}

/// A payload that any number of queues may share.
#[derive(Clone)]
pub struct Shared {
    serializer: Serializer,
    args: Bytes,
    kwargs: Bytes,
}

impl Shared {
    pub fn as_payload(&self) -> Payload<'_> {
        Payload::new(self.serializer, &self.args, &self.kwargs)
    }

    /// Its parts, each with its position in the message around them.
    pub fn parts(&self, places: [usize; 2]) -> [(usize, &Bytes); 2] {
        [
            (places[0], &self.args),
            (places[1].max(places[0]), &self.kwargs),
        ]
    }
}

impl<'p> PayloadEncodings<'p> {
    /// The encodings of this payload.
    pub(crate) fn new(original: Payload<'p>) -> Self {
        Self {
            original,
            transcoded: [const { None }; Serializer::ALL.len()],
            shared: None,
        }
    }

    /// The payload of `message` in `serializer`, if it is the payload held here and needs another encoding; `None` if
    /// the message can be encoded as it is.
    pub(crate) fn of(
        &mut self,
        message: &Message<'_>,
        serializer: Serializer,
    ) -> Result<Option<Payload<'_>>, Refused> {
        if !self.is_of(message)
            || serializer == self.original.serializer
            || self.original.is_empty()
        {
            return Ok(None);
        }
        self.transcode(serializer);
        match &self.transcoded[serializer.index()] {
            Some(Ok(Transcoded { bytes, args_len })) => {
                let (args, kwargs) = bytes.split_at(*args_len);
                Ok(Some(Payload::new(serializer, args, kwargs)))
            }
            Some(Err(refused)) => Err(*refused),
            None => Ok(None),
        }
    }

    /// The payload of `message` in `serializer`, if it is the payload held here and large.
    #[inline]
    pub(crate) fn shared(&self, message: &Message<'_>, serializer: Serializer) -> Option<&Shared> {
        let shared = self.shared.as_ref()?[serializer.index()].as_ref()?;
        self.is_of(message).then_some(shared)
    }

    /// Makes the encoding for `serializer` before the realm is locked.
    pub(crate) fn prepare(&mut self, serializer: Serializer, source: Source<'_>) {
        if serializer == self.original.serializer {
            if self.original.len() >= APART_BYTES_MIN {
                let encoding = share_original(self.original, source);
                self.set_shared(encoding);
            }
            return;
        }
        self.transcode(serializer);
        let transcoded = &mut self.transcoded[serializer.index()];
        if let Some(Ok(encoding)) = transcoded
            && encoding.bytes.len() >= APART_BYTES_MIN
        {
            let args_len = encoding.args_len;
            let bytes = source.connection.share(std::mem::take(&mut encoding.bytes));
            *transcoded = None;
            self.set_shared(Shared {
                serializer,
                args: bytes.slice(..args_len),
                kwargs: bytes.slice(args_len..),
            });
        }
    }

    fn set_shared(&mut self, encoding: Shared) {
        let shared = self.shared.get_or_insert_default();
        let index = encoding.serializer.index();
        shared[index] = Some(encoding);
    }

    fn is_of(&self, message: &Message<'_>) -> bool {
        message.payload().is_some_and(|payload| {
            std::ptr::eq(payload.args, self.original.args)
                && std::ptr::eq(payload.kwargs, self.original.kwargs)
        })
    }

    fn transcode(&mut self, serializer: Serializer) {
        let original = self.original;
        self.transcoded[serializer.index()]
            .get_or_insert_with(|| transcoded(original, serializer).map_err(unwritable));
    }
}

/// The original payload as shared bytes: a slice of its buffer, unless that is much larger.
fn share_original(payload: Payload<'_>, source: Source<'_>) -> Shared {
    let Payload {
        serializer,
        args,
        kwargs,
    } = payload;
    let within = source
        .bytes
        .filter(|bytes| 2 * payload.len() >= bytes.len());
    let parts = within.and_then(|bytes| Some((slice_of(bytes, args)?, slice_of(bytes, kwargs)?)));
    let (args, kwargs) = parts.unwrap_or_else(|| {
        let bytes = source.connection.share([args, kwargs].concat());
        (bytes.slice(..args.len()), bytes.slice(args.len()..))
    });
    Shared {
        serializer,
        args,
        kwargs,
    }
}

/// The slice of `bytes` that `part` points to, if any.
fn slice_of(bytes: &Bytes, part: &[u8]) -> Option<Bytes> {
    if part.is_empty() {
        return Some(Bytes::new());
    }
    let start = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}

fn transcoded(payload: Payload<'_>, into: Serializer) -> Result<Transcoded, TranscodeError> {
    let bytes_max = TRANSCODED_BYTES_MAX.max(2 * payload.len());
    let mut bytes = Vec::with_capacity(payload.len() * 2);
    let append = |bytes: &mut Vec<u8>, part: &[u8]| match part.is_empty() {
        true => Ok(()),
        false => codec::transcode_within(payload.serializer, part, into, bytes_max, bytes),
    };
    append(&mut bytes, payload.args)?;
    let args_len = bytes.len();
    append(&mut bytes, payload.kwargs)?;
    Ok(Transcoded { bytes, args_len })
}

/// The refusal of a payload that cannot be encoded.
pub(crate) fn unwritable(e: TranscodeError) -> Refused {
    match e == TranscodeError::TOO_LONG {
        true => Refused::TooLong,
        false => Refused::Unrepresentable(e.reason),
    }
}
