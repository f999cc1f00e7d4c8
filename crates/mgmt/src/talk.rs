//! AMQP for one request: a channel of a connection of the router itself, as the request's user.
//!
//! Rights, bounds, equivalence and texts are so those of any other client.

use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::frame::{self, Frame, FrameKind};
use crosstie_amqp::method::{ChannelOpen, ConnectionClose, ConnectionCloseOk};
use crosstie_amqp::{Arguments, ContentHeader, Method};
use crosstie_broker::inspection::REQUEST;
use crosstie_broker::resident::{FRAME_BYTES_MAX, Residence, let_in, read_frames};
use crosstie_transport::{Connection, Outcome, Protocol, pump, uncork};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::call::Call;

/// The only channel.
const CHANNEL: u16 = 1;
/// Maximum time for an answer of the broker, which may block publishers.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A channel in a vhost.
pub(crate) struct Talk {
    connection: Arc<Connection>,
    events: mpsc::UnboundedReceiver<Event>,
}

/// What the broker sends.
#[derive(Debug)]
pub(crate) enum Event {
    /// A method, which answers the last one.
    Answer,
    /// A method with a message.
    Message(Message),
    /// The outcome of a publication, by its number from 1 on.
    Confirm {
        number: u64,
        multiple: bool,
        is_accepted: bool,
    },
    /// The channel or the connection is closed.
    Refused(Refusal),
}

/// A method with a message.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) method: Vec<u8>,
    /// Checked.
    pub(crate) properties: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// Why the broker did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    /// `NOT_FOUND - no queue 'q' in vhost '/'`
    pub(crate) text: String,
}

impl Refusal {
    /// The text without the name of the code.
    pub(crate) fn reason(&self) -> &str {
        let rest = self.text.split_once(" - ");
        let is_code = |name: &str| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        match rest {
            Some((name, rest)) if is_code(name) => rest,
            _ => &self.text,
        }
    }

    fn of(code: u16, text: &str) -> Self {
        Self {
            code,
            text: text.to_owned(),
        }
    }
}

impl Talk {
    /// Enters a vhost, and opens the channel.
    pub(crate) async fn open(call: &Call<'_>, vhost: &str) -> Result<Self, Refusal> {
        let residence = Residence {
            user: call.caller.whose(vhost),
            vhost,
            name: REQUEST.to_owned(),
        };
        let runtime = Handle::current();
        let broker = call.api.operators.broker();
        let connection =
            let_in(broker, residence, &runtime).map_err(|why| Refusal::of(403, &why))?;
        let (sender, events) = mpsc::unbounded_channel();
        let reading = Arc::clone(&connection);
        runtime.spawn(async move {
            let mut frames = Frames {
                connection: Arc::clone(&reading),
                sender,
                content: None,
                left: None,
            };
            pump(&reading, &mut frames).await;
            reading.close();
        });
        let mut talk = Self { connection, events };
        talk.ask(&ChannelOpen { out_of_band: "" }).await?;
        Ok(talk)
    }

    /// Sends a method, and returns the answer.
    pub(crate) async fn ask(&mut self, method: &impl Arguments) -> Result<Event, Refusal> {
        self.say(method)?;
        self.answer().await
    }

    /// Sends a method that has no answer, or whose answer is read later.
    pub(crate) fn say(&self, method: &impl Arguments) -> Result<(), Refusal> {
        self.append(|out| frame::write_method(CHANNEL, method, out))
    }

    /// Sends a method with a message.
    pub(crate) fn send(
        &self,
        method: &impl Arguments,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), Refusal> {
        self.append(|out| {
            frame::write_method(CHANNEL, method, out);
            frame::write_content(CHANNEL, properties, body, FRAME_BYTES_MAX, out);
        })
    }

    /// The broker's next event; a refusal is an error.
    pub(crate) async fn answer(&mut self) -> Result<Event, Refusal> {
        let next = tokio::time::timeout(ANSWER_WITHIN, self.events.recv()).await;
        match next {
            Err(_) => Err(Refusal::of(
                504,
                "the broker did not answer in time: it may block publishers",
            )),
            Ok(None) => Err(Refusal::of(541, "the connection to the broker has ended")),
            Ok(Some(Event::Refused(refusal))) => Err(refusal),
            Ok(Some(event)) => Ok(event),
        }
    }

    fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refusal> {
        let appended = self.connection.append(|out| {
            write(out);
            Ok::<(), ()>(())
        });
        uncork();
        appended.map_err(|_| Refusal::of(541, "the connection to the broker has ended"))
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let close = ConnectionClose {
            reply_code: 200,
            reply_text: "",
            class_id: 0,
            method_id: 0,
        };
        let _ = self.append(|out| frame::write_method(0, &close, out));
    }
}

/// Reads what the broker sends.
struct Frames {
    connection: Arc<Connection>,
    sender: mpsc::UnboundedSender<Event>,
    content: Option<Message>,
    /// Bytes of the body that are to come.
    left: Option<u64>,
}

impl Frames {
    /// Handles a frame. Returns whether to go on.
    fn handle(&mut self, frame: &Frame<'_>) -> bool {
        match frame.kind {
            FrameKind::Heartbeat => true,
            FrameKind::Method => self.handle_method(frame.payload),
            FrameKind::Header => {
                let (Some(content), Ok(header)) =
                    (&mut self.content, ContentHeader::decode(frame.payload))
                else {
                    return false;
                };
                content.properties = header.properties.bytes().to_vec();
                self.left = Some(header.body_bytes);
                self.complete();
                true
            }
            FrameKind::Body => {
                let left = self.left.unwrap_or_default();
                let (Some(content), Some(left)) = (
                    &mut self.content,
                    left.checked_sub(frame.payload.len() as u64),
                ) else {
                    return false;
                };
                content.body.extend_from_slice(frame.payload);
                self.left = Some(left);
                self.complete();
                true
            }
        }
    }

    fn handle_method(&mut self, payload: &[u8]) -> bool {
        match Method::decode(payload) {
            Ok(Method::BasicGetOk(_) | Method::BasicReturn(_)) => {
                self.content = Some(Message {
                    method: payload.to_vec(),
                    ..Message::default()
                });
            }
            Ok(Method::ChannelClose(close)) => {
                self.refuse(close.reply_code, close.reply_text);
            }
            Ok(Method::ConnectionClose(close)) => {
                self.refuse(close.reply_code, close.reply_text);
                let _ = self.connection.append(|out| {
                    frame::write_method(0, &ConnectionCloseOk {}, out);
                    Ok::<(), ()>(())
                });
                uncork();
                return false;
            }
            Ok(Method::ConnectionCloseOk(_)) | Err(_) => return false,
            Ok(Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_)) => {}
            Ok(Method::BasicAck(ack)) => self.pass(Event::Confirm {
                number: ack.delivery_tag,
                multiple: ack.multiple,
                is_accepted: true,
            }),
            Ok(Method::BasicNack(nack)) => self.pass(Event::Confirm {
                number: nack.delivery_tag,
                multiple: nack.multiple,
                is_accepted: false,
            }),
            Ok(_) => self.pass(Event::Answer),
        }
        true
    }

    fn refuse(&self, code: u16, text: &str) {
        self.pass(Event::Refused(Refusal::of(code, text)));
    }

    fn complete(&mut self) {
        if self.left == Some(0)
            && let Some(content) = self.content.take()
        {
            self.left = None;
            self.pass(Event::Message(content));
        }
    }

    fn pass(&self, event: Event) {
        // The request may have ended.
        let _ = self.sender.send(event);
    }
}

impl Protocol for Frames {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        read_frames(input, |frame| self.handle(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_no_code() {
        for (text, expected) in [
            ("NOT_FOUND - no queue 'q'", "no queue 'q'"),
            ("PRECONDITION_FAILED - a - b", "a - b"),
            ("access - refused", "access - refused"),
        ] {
            assert_eq!(Refusal::of(404, text).reason(), expected);
        }
    }
}
