//! Messages out: one encoder of heads for every serializer.

mod options;
mod welcome;

use std::borrow::Cow;

use super::transcode;
use super::value::{self, Unrepresentable};
use super::writer::{Opened, Result, Writer};
use crate::message::EVENT_RECEIVED_IN_USE;
use crate::{Dict, Message, Payload, RequestId, Serializer};

pub use welcome::Detail;
pub(super) use welcome::welcome;

/// Appends `message` with `payload` in the place of its own.
pub(super) fn message<W: Writer>(
    writer: W,
    message: &Message<'_>,
    payload: &Payload<'_>,
    into: Serializer,
    unrepresentable: Unrepresentable,
) -> Result<()> {
    let written = elements::<W, false>(writer, message, payload, into, unrepresentable);
    written.map(|_| ())
}

/// Appends `message` without the bytes of `payload`, which are in its serializer. Returns the places of the arguments
/// and, behind these, of the keyword arguments.
pub(super) fn around<W: Writer>(
    writer: W,
    message: &Message<'_>,
    payload: &Payload<'_>,
    unrepresentable: Unrepresentable,
) -> Result<[usize; 2]> {
    let into = payload.serializer;
    elements::<W, true>(writer, message, payload, into, unrepresentable)
}

fn elements<W: Writer, const IS_AROUND: bool>(
    writer: W,
    message: &Message<'_>,
    payload: &Payload<'_>,
    into: Serializer,
    unrepresentable: Unrepresentable,
) -> Result<[usize; 2]> {
    // Stands in until the message's own list is opened, with its count.
    let list = Opened {
        start: 0,
        count: 0,
        announced: None,
        dict: false,
    };
    let mut elements = Elements::<W, IS_AROUND> {
        writer,
        list,
        into,
        unrepresentable,
        places: [0; 2],
    };
    elements.message(message, payload)?;
    let Elements {
        mut writer,
        list,
        places,
        ..
    } = elements;
    writer.close(list);
    Ok(places)
}

struct Elements<W, const IS_AROUND: bool> {
    writer: W,
    list: Opened,
    into: Serializer,
    unrepresentable: Unrepresentable,
    /// The places of the omitted parts of the payload.
    places: [usize; 2],
}

impl<W: Writer, const IS_AROUND: bool> Elements<W, IS_AROUND> {
    fn message(&mut self, message: &Message<'_>, payload: &Payload<'_>) -> Result<()> {
        let code = message.kind().code();
        match message {
            Message::Hello { realm, details } => {
                self.open(code, 3);
                self.text(realm);
                self.dict(details)
            }
            Message::Welcome { session, details } => {
                self.open(code, 3);
                self.number(session.0);
                self.dict(details)
            }
            Message::Abort { details, reason } | Message::Goodbye { details, reason } => {
                self.open(code, 3);
                self.dict(details)?;
                self.text(reason);
                Ok(())
            }
            Message::Challenge {
                method: text,
                extra,
            }
            | Message::Authenticate {
                signature: text,
                extra,
            } => {
                self.open(code, 3);
                self.text(text);
                self.dict(extra)
            }
            Message::Error {
                request_type,
                request,
                details,
                error,
                ..
            } => {
                self.open_with(code, 5, payload);
                self.number(request_type.code());
                self.number(request.0);
                self.dict(details)?;
                self.text(error);
                self.payload(payload)
            }
            Message::Publish {
                request,
                options,
                topic,
                ..
            } => {
                self.open_with(code, 4, payload);
                self.number(request.0);
                self.options(|entries| entries.publish(options))?;
                self.text(topic);
                self.payload(payload)
            }
            Message::Published {
                request,
                publication,
            } => {
                self.open(code, 3);
                self.number(request.0);
                self.number(publication.0);
                Ok(())
            }
            Message::Subscribe {
                request,
                options,
                topic,
            } => {
                self.open(code, 4);
                self.number(request.0);
                self.options(|entries| entries.subscribe(options))?;
                self.text(topic);
                Ok(())
            }
            Message::Subscribed {
                request,
                subscription,
            }
            | Message::Unsubscribe {
                request,
                subscription,
            } => {
                self.open(code, 3);
                self.number(request.0);
                self.number(subscription.0);
                Ok(())
            }
            Message::Unsubscribed {
                request,
                revoked: None,
            }
            | Message::Unregistered {
                request,
                revoked: None,
            } => {
                self.open(code, 2);
                self.number(request.0);
                Ok(())
            }
            Message::Unsubscribed {
                request,
                revoked: Some(revoked),
            } => {
                let id = ("subscription", revoked.id.0);
                self.revoked(code, *request, id, revoked.reason.as_ref())
            }
            Message::Unregistered {
                request,
                revoked: Some(revoked),
            } => {
                let id = ("registration", revoked.id.0);
                self.revoked(code, *request, id, revoked.reason.as_ref())
            }
            Message::Event {
                subscription,
                publication,
                details,
                ..
            } => {
                self.open_with(code, 4, payload);
                self.number(subscription.0);
                self.number(publication.0);
                self.options(|entries| entries.event(details))?;
                self.payload(payload)
            }
            Message::EventReceived { publication } => {
                self.open(EVENT_RECEIVED_IN_USE, 2);
                self.number(publication.0);
                Ok(())
            }
            Message::Call {
                request,
                options,
                procedure,
                ..
            } => {
                self.open_with(code, 4, payload);
                self.number(request.0);
                self.options(|entries| entries.call(options))?;
                self.text(procedure);
                self.payload(payload)
            }
            Message::Cancel { request, options } => {
                self.open(code, 3);
                self.number(request.0);
                self.options(|entries| entries.cancel(options))
            }
            Message::Result {
                request, details, ..
            } => {
                self.open_with(code, 3, payload);
                self.number(request.0);
                self.options(|entries| entries.result(details))?;
                self.payload(payload)
            }
            Message::Register {
                request,
                options,
                procedure,
            } => {
                self.open(code, 4);
                self.number(request.0);
                self.options(|entries| entries.register(options))?;
                self.text(procedure);
                Ok(())
            }
            Message::Registered {
                request,
                registration,
            }
            | Message::Unregister {
                request,
                registration,
            } => {
                self.open(code, 3);
                self.number(request.0);
                self.number(registration.0);
                Ok(())
            }
            Message::Invocation {
                request,
                registration,
                details,
                ..
            } => {
                self.open_with(code, 4, payload);
                self.number(request.0);
                self.number(registration.0);
                self.options(|entries| entries.invocation(details))?;
                self.payload(payload)
            }
            Message::Interrupt { request, options } => {
                self.open(code, 3);
                self.number(request.0);
                self.options(|entries| entries.interrupt(options))
            }
            Message::Yield {
                request, options, ..
            } => {
                self.open_with(code, 3, payload);
                self.number(request.0);
                self.options(|entries| entries.r#yield(options))?;
                self.payload(payload)
            }
        }
    }

    /// Writes the id of a revoked registration or subscription, and the reason.
    fn revoked(
        &mut self,
        code: u64,
        request: RequestId,
        id: (&str, u64),
        reason: Option<&Cow<'_, str>>,
    ) -> Result<()> {
        self.open(code, 3);
        self.number(request.0);
        self.options(|entries| entries.revoked(id, reason))
    }

    /// Begins a message of `count` elements, the type among them.
    #[inline]
    fn open(&mut self, code: u64, count: usize) {
        self.list = self.writer.open_list(Some(count));
        self.number(code);
    }

    /// Begins a message of `count` elements and a payload.
    #[inline]
    fn open_with(&mut self, code: u64, count: usize, payload: &Payload<'_>) {
        let parts = match (payload.args.is_empty(), payload.kwargs.is_empty()) {
            (true, true) => 0,
            (false, true) => 1,
            (_, false) => 2,
        };
        let left_out = if IS_AROUND { payload.len() } else { 0 };
        self.writer.out().reserve(64 + payload.len() - left_out);
        self.open(code, count + parts);
    }

    #[inline]
    fn number(&mut self, number: u64) {
        self.writer.element(&mut self.list);
        self.writer.unsigned(number);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.writer.element(&mut self.list);
        self.writer.own_text(text);
    }

    fn dict(&mut self, dict: &Dict) -> Result<()> {
        self.writer.element(&mut self.list);
        value::write_dict(&mut self.writer, dict, self.unrepresentable)
    }

    #[inline]
    fn options(
        &mut self,
        write: impl FnOnce(&mut options::Entries<'_, W>) -> Result<()>,
    ) -> Result<()> {
        self.writer.element(&mut self.list);
        let mut entries = options::Entries::open(&mut self.writer, self.unrepresentable);
        write(&mut entries)?;
        entries.close();
        Ok(())
    }

    #[inline]
    fn payload(&mut self, payload: &Payload<'_>) -> Result<()> {
        if !payload.args.is_empty() {
            self.part(0, payload.serializer, payload.args)?;
        }
        if !payload.kwargs.is_empty() {
            if payload.args.is_empty() {
                self.writer.element(&mut self.list);
                let list = self.writer.open_list(Some(0));
                self.writer.close(list);
            }
            self.part(1, payload.serializer, payload.kwargs)?;
        }
        Ok(())
    }

    #[inline]
    fn part(&mut self, index: usize, from: Serializer, bytes: &[u8]) -> Result<()> {
        self.writer.element(&mut self.list);
        if IS_AROUND {
            self.places[index] = self.writer.out().len();
            return Ok(());
        }
        if from == self.into {
            self.writer.raw(bytes);
            return Ok(());
        }
        transcode::value(from, bytes, usize::MAX, &mut self.writer)
    }
}
