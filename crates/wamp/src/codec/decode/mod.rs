//! Messages in: one decoder of heads for every serializer.
//!
//! Fields that are not passed on raw are read straight into the fields of [`Message`]; only the
//! dictionaries of session messages, which a router looks into once per session, become values.

mod options;
mod passed_on;

use std::borrow::Cow;

use super::reader::{Kind, Open, Reader, Result, Token, enter};
use super::value::{self, Room};
use super::{DecodeError, Limits};
use crate::{
    Dict, ID_MAX, Message, MessageType, Payload, PublicationId, RegistrationId, RequestId, Revoked,
    Serializer, SessionId, SubscriptionId,
};

/// Values in one dictionary or list of a message's head. Far above any use; a message's payload
/// is not counted.
const HEAD_VALUES_MAX: usize = 65_536;

/// Reads one message, written in `serializer` (of which `R` is the reader).
pub(super) fn message<'a, R: Reader<'a>>(
    serializer: Serializer,
    bytes: &'a [u8],
    limits: &Limits,
    doubt: Option<&mut bool>,
) -> Result<Message<'a>> {
    let mut reader = R::new(bytes)?;
    reader.tolerate();
    let depth_left = enter(limits.depth_bound(), 0)?;
    let list = reader.open_list()?;
    let mut elements = Elements {
        reader,
        list,
        closed: false,
        depth_left,
        serializer,
        no_list: None,
    };
    let kind = elements.read("message type", message_type)?;
    elements
        .message(kind, doubt)
        .map_err(|error| error.of(kind))
}

fn message_type<'a, R: Reader<'a>>(reader: &mut R) -> Result<MessageType> {
    let offset = reader.value_offset();
    let code = reader.unsigned()?;
    MessageType::from_code(code)
        .ok_or_else(|| DecodeError::unexpected(offset, "type of a WAMP message", code.to_string()))
}

/// The realm of a HELLO: a client that leaves it to the router says null, as Autobahn's do, which counts as a
/// name without letters.
fn text_or_null<'a, R: Reader<'a>>(reader: &mut R) -> Result<Cow<'a, str>> {
    match reader.null() {
        true => Ok(Cow::Borrowed("")),
        false => reader.text(),
    }
}

/// The elements of one message's list.
struct Elements<R> {
    reader: R,
    list: Open,
    /// The list's end was read.
    closed: bool,
    /// Lists and dictionaries that may be inside one another within the message's own list.
    depth_left: usize,
    serializer: Serializer,
    /// The arguments are text or binary, which is this error unless the head names an `enc_algo`.
    no_list: Option<DecodeError>,
}

impl<'a, R: Reader<'a>> Elements<R> {
    fn message(mut self, kind: MessageType, doubt: Option<&mut bool>) -> Result<Message<'a>> {
        // The elements are read in the order in which the fields stand here.
        let message = match kind {
            MessageType::Hello => Message::Hello {
                realm: self.read("realm", text_or_null)?,
                details: self.dict("details")?,
            },
            MessageType::Welcome => Message::Welcome {
                session: SessionId(self.id("session")?),
                details: self.dict("details")?,
            },
            MessageType::Abort => {
                let details = self.dict("details")?;
                let reason = self.text("reason")?;
                // Arguments are allowed, and say nothing that a peer could act on.
                self.payload()?;
                Message::Abort { details, reason }
            }
            MessageType::Challenge => Message::Challenge {
                method: self.text("method")?,
                extra: self.dict("extra")?,
            },
            MessageType::Authenticate => Message::Authenticate {
                signature: self.text("signature")?,
                extra: self.dict("extra")?,
            },
            MessageType::Goodbye => Message::Goodbye {
                details: self.dict("details")?,
                reason: self.text("reason")?,
            },
            MessageType::Error => Message::Error {
                request_type: self.read("request type", failing_type)?,
                request: self.request()?,
                details: self.dict("details")?,
                error: self.text("error")?,
                payload: self.payload()?,
            },
            MessageType::Publish => Message::Publish {
                request: self.request()?,
                options: self.options("options", options::publish)?,
                topic: self.text("topic")?,
                payload: self.payload()?,
            },
            MessageType::Published => Message::Published {
                request: self.request()?,
                publication: PublicationId(self.id("publication")?),
            },
            MessageType::Subscribe => Message::Subscribe {
                request: self.request()?,
                options: self.options("options", options::subscribe)?,
                topic: self.text("topic")?,
            },
            MessageType::Subscribed => Message::Subscribed {
                request: self.request()?,
                subscription: self.subscription()?,
            },
            MessageType::Unsubscribe => Message::Unsubscribe {
                request: self.request()?,
                subscription: self.subscription()?,
            },
            MessageType::Unsubscribed => {
                let request = self.revocable()?;
                let revoked = self.revoked("subscription", SubscriptionId)?;
                Message::Unsubscribed { request, revoked }
            }
            MessageType::Event => Message::Event {
                subscription: self.subscription()?,
                publication: PublicationId(self.id("publication")?),
                details: self.options("details", options::event)?,
                payload: self.payload()?,
            },
            MessageType::EventReceived => Message::EventReceived {
                publication: PublicationId(self.id("publication")?),
            },
            MessageType::Call => Message::Call {
                request: self.request()?,
                options: self.options("options", options::call)?,
                procedure: self.text("procedure")?,
                payload: self.payload()?,
            },
            MessageType::Cancel => Message::Cancel {
                request: self.request()?,
                options: self.options("options", options::cancel)?,
            },
            MessageType::Result => Message::Result {
                request: self.request()?,
                details: self.options("details", options::result)?,
                payload: self.payload()?,
            },
            MessageType::Register => Message::Register {
                request: self.request()?,
                options: self.options("options", options::register)?,
                procedure: self.text("procedure")?,
            },
            MessageType::Registered => Message::Registered {
                request: self.request()?,
                registration: self.registration()?,
            },
            MessageType::Unregister => Message::Unregister {
                request: self.request()?,
                registration: self.registration()?,
            },
            MessageType::Unregistered => {
                let request = self.revocable()?;
                let revoked = self.revoked("registration", RegistrationId)?;
                Message::Unregistered { request, revoked }
            }
            MessageType::Invocation => Message::Invocation {
                request: self.request()?,
                registration: self.registration()?,
                details: self.options("details", options::invocation)?,
                payload: self.payload()?,
            },
            MessageType::Interrupt => Message::Interrupt {
                request: self.request()?,
                options: self.options("options", options::interrupt)?,
            },
            MessageType::Yield => Message::Yield {
                request: self.request()?,
                options: self.options("options", options::r#yield)?,
                payload: self.payload()?,
            },
        };
        if let Some(error) = self.no_list.take()
            && !message.is_encoded()
        {
            return Err(error);
        }
        if self.more()? {
            let offset = self.reader.value_offset();
            return Err(DecodeError::unexpected(
                offset,
                "the end of the message",
                "an element",
            ));
        }
        self.reader.end()?;
        if let Some(doubt) = doubt {
            *doubt = self.reader.is_doubtful();
        }
        Ok(message)
    }

    #[inline]
    fn more(&mut self) -> Result<bool> {
        self.closed = self.closed || !self.reader.more(&mut self.list)?;
        Ok(!self.closed)
    }

    /// Reads the next element with `read`.
    #[inline]
    fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&mut R) -> Result<T>) -> Result<T> {
        let element = match self.more() {
            Ok(true) => read(&mut self.reader),
            Ok(false) => {
                let offset = self.reader.offset();
                Err(DecodeError::unexpected(
                    offset,
                    "one more element",
                    "the end of the message",
                ))
            }
            Err(error) => Err(error),
        };
        element.map_err(|error| error.inside(name))
    }

    #[inline]
    fn text(&mut self, name: &'static str) -> Result<Cow<'a, str>> {
        self.read(name, R::text)
    }

    #[inline]
    fn id(&mut self, name: &'static str) -> Result<u64> {
        self.read(name, id)
    }

    #[inline]
    fn request(&mut self) -> Result<RequestId> {
        self.id("request").map(RequestId)
    }

    fn subscription(&mut self) -> Result<SubscriptionId> {
        self.id("subscription").map(SubscriptionId)
    }

    fn registration(&mut self) -> Result<RegistrationId> {
        self.id("registration").map(RegistrationId)
    }

    /// The request of an UNSUBSCRIBED or UNREGISTERED. A router may send these unasked, with the
    /// request 0 and the details behind it (WAMP "Subscription Revocation").
    fn revocable(&mut self) -> Result<RequestId> {
        let request = self.read("request", |reader| {
            let offset = reader.value_offset();
            match number(reader)? {
                0 => Ok(0),
                number => checked_id(number, offset),
            }
        })?;
        Ok(RequestId(request))
    }

    /// The details behind it, if there are any; `key` has the id.
    fn revoked<Id>(
        &mut self,
        key: &str,
        id: impl Fn(u64) -> Id,
    ) -> Result<Option<Revoked<'a, Id>>> {
        if !self.more()? {
            return Ok(None);
        }
        let mut room = Room::new(self.depth_left, HEAD_VALUES_MAX);
        let details = options::revoked(&mut self.reader, &mut room, key, id);
        details.map_err(|error| error.inside("details"))
    }

    fn dict(&mut self, name: &'static str) -> Result<Dict> {
        let depth_left = self.depth_left;
        self.read(name, |reader| {
            let mut room = Room::new(depth_left, HEAD_VALUES_MAX);
            let mut dict = Dict::new();
            options::all_entries(reader, &mut room, |reader, key, room| {
                dict.push((key.to_owned(), value::read(reader, room)?));
                Ok(())
            })?;
            Ok(dict)
        })
    }

    #[inline]
    fn options<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut R, &mut Room) -> Result<T>,
    ) -> Result<T> {
        let mut room = Room::new(self.depth_left, HEAD_VALUES_MAX);
        self.read(name, |reader| read(reader, &mut room))
    }

    /// Arguments and keyword arguments, if present. Some clients write null for absent ones.
    #[inline]
    fn payload(&mut self) -> Result<Payload<'a>> {
        let mut payload = Payload {
            serializer: self.serializer,
            args: &[],
            kwargs: &[],
        };
        if self.more()? {
            let offset = self.reader.value_offset();
            payload.args = match self.part("arguments", R::list_bytes) {
                Ok(args) => args,
                // Nothing stands behind a payload in place of the arguments.
                Err(error) => {
                    return self
                        .in_place(offset, error)
                        .map(|args| Payload { args, ..payload });
                }
            };
            if self.more()? {
                payload.kwargs = self.part("keyword arguments", R::dict_bytes)?;
            }
        }
        Ok(payload)
    }

    /// The one text or binary value at `offset` in place of the arguments. Its permission is checked once the message
    /// has been read.
    #[cold]
    fn in_place(&mut self, offset: usize, error: DecodeError) -> Result<&'a [u8]> {
        let is_there = self.reader.value_offset() == offset;
        let kind = self.reader.kind();
        if !is_there || !matches!(kind, Ok(Kind::Text | Kind::Binary)) {
            return Err(error);
        }
        let skipped = self.reader.skip(self.depth_left);
        skipped.map_err(|error| error.inside("payload"))?;
        self.no_list = Some(error);
        Ok(&self.reader.bytes()[offset..self.reader.offset()])
    }

    #[inline]
    fn part(
        &mut self,
        name: &'static str,
        bytes: impl FnOnce(&mut R, usize) -> Result<&'a [u8]>,
    ) -> Result<&'a [u8]> {
        let part = if self.reader.null() {
            Ok::<&[u8], _>(&[])
        } else {
            bytes(&mut self.reader, self.depth_left)
        };
        part.map_err(|error| error.inside(name))
    }
}

fn id<'a, R: Reader<'a>>(reader: &mut R) -> Result<u64> {
    let offset = reader.value_offset();
    let number = number(reader)?;
    checked_id(number, offset)
}

/// An integer that is not negative, also one that was written as a double.
#[inline]
fn number<'a, R: Reader<'a>>(reader: &mut R) -> Result<u64> {
    reader.unsigned().or_else(|error| double(reader, error))
}

#[cold]
fn double<'a, R: Reader<'a>>(reader: &mut R, error: DecodeError) -> Result<u64> {
    if reader.kind() != Ok(Kind::Float) {
        return Err(error);
    }
    match reader.token()? {
        Token::Float(number) => crate::value::whole(number).ok_or(error),
        _ => Err(error),
    }
}

fn checked_id(number: u64, offset: usize) -> Result<u64> {
    if (1..=ID_MAX).contains(&number) {
        return Ok(number);
    }
    Err(DecodeError::unexpected(
        offset,
        "id from 1 to 2^53",
        number.to_string(),
    ))
}

/// The type of a request that may be answered with an ERROR.
fn failing_type<'a, R: Reader<'a>>(reader: &mut R) -> Result<MessageType> {
    let offset = reader.value_offset();
    let kind = message_type(reader)?;
    match kind {
        MessageType::Publish
        | MessageType::Subscribe
        | MessageType::Unsubscribe
        | MessageType::Call
        | MessageType::Register
        | MessageType::Unregister
        | MessageType::Invocation => Ok(kind),
        _ => Err(DecodeError::unexpected(
            offset,
            "type of a request",
            kind.name(),
        )),
    }
}
