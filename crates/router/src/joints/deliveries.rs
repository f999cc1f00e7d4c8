//! The input of a joint's AMQP end: assembles frames into deliveries.

use std::sync::Arc;

use crosstie_amqp::frame::{Frame, FrameKind};
use crosstie_amqp::{ContentHeader, Method, Properties};
use crosstie_broker::resident::read_frames;
use crosstie_transport::{Outcome, Protocol};

use super::bond::Bond;

/// An input for a joint.
pub(super) enum Incoming {
    Delivery(Delivery),
    /// The publication with this `message-id` was returned: no queue matched.
    Returned {
        message_id: String,
    },
}

/// A delivered message.
pub(super) struct Delivery {
    pub(super) tag: u64,
    pub(super) exchange: String,
    pub(super) routing_key: String,
    /// Validated properties.
    properties: Vec<u8>,
    /// `None` if it is too long.
    pub(super) body: Option<Vec<u8>>,
    bond: Arc<Bond>,
    held: usize,
}

impl Delivery {
    pub(super) fn properties(&self) -> Properties<'_> {
        Properties::from_checked_bytes(&self.properties)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.bond.hold(-(self.held as isize));
    }
}

/// Approximate overhead of a delivery beside its body.
const DELIVERY_BYTES: usize = 512;

/// The reader of a bond.
pub(super) struct Frames<H> {
    bond: Arc<Bond>,
    body_bytes_max: usize,
    handle: H,
    content: Option<Content>,
}

/// An incomplete message.
struct Content {
    head: Head,
    header: Option<Header>,
}

enum Head {
    Delivery {
        tag: u64,
        exchange: String,
        routing_key: String,
    },
    Returned,
}

struct Header {
    properties: Vec<u8>,
    body_bytes_left: u64,
    /// `None` if it is skipped.
    body: Option<Vec<u8>>,
}

impl<H: FnMut(Incoming)> Frames<H> {
    pub(super) fn new(bond: Arc<Bond>, body_bytes_max: usize, handle: H) -> Self {
        Self {
            bond,
            body_bytes_max,
            handle,
            content: None,
        }
    }

    /// Handles a frame. Returns whether to go on. Unknown methods answer no request of this joint.
    fn handle_frame(&mut self, frame: &Frame<'_>) -> bool {
        match frame.kind {
            FrameKind::Heartbeat => true,
            FrameKind::Method => match Method::decode(frame.payload) {
                Ok(method) => self.handle_method(&method),
                Err(_) => false,
            },
            FrameKind::Header => self.handle_header(frame.payload),
            FrameKind::Body => self.handle_body(frame.payload),
        }
    }

    fn handle_method(&mut self, method: &Method<'_>) -> bool {
        match method {
            Method::BasicDeliver(deliver) => {
                self.content = Some(Content {
                    head: Head::Delivery {
                        tag: deliver.delivery_tag,
                        exchange: deliver.exchange.to_owned(),
                        routing_key: deliver.routing_key.to_owned(),
                    },
                    header: None,
                });
            }
            Method::BasicReturn(_) => {
                self.content = Some(Content {
                    head: Head::Returned,
                    header: None,
                });
            }
            Method::BasicAck(ack) => self.bond.confirmed(ack.delivery_tag, ack.multiple, true),
            Method::BasicNack(nack) => self.bond.confirmed(nack.delivery_tag, nack.multiple, false),
            Method::ConnectionClose(close) => {
                self.bond.closed(close.reply_text);
                return false;
            }
            Method::ConnectionCloseOk(_) => return false,
            // Its other channel is unusable too: the joint restarts.
            Method::ChannelClose(close) => {
                self.bond.end(close.reply_text);
                return false;
            }
            Method::BasicCancel(cancel) => {
                let tag = cancel.consumer_tag;
                self.bond
                    .end(&format!("the queue of consumer '{tag}' was deleted"));
                return false;
            }
            Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_) => {}
            _ => self.bond.answered(),
        }
        true
    }

    fn handle_header(&mut self, payload: &[u8]) -> bool {
        let (Some(content), Ok(header)) = (&mut self.content, ContentHeader::decode(payload))
        else {
            return false;
        };
        let is_kept = matches!(content.head, Head::Delivery { .. })
            && header.body_bytes <= self.body_bytes_max as u64;
        content.header = Some(Header {
            properties: header.properties.bytes().to_owned(),
            body_bytes_left: header.body_bytes,
            body: is_kept.then(|| Vec::with_capacity(header.body_bytes as usize)),
        });
        self.complete();
        true
    }

    fn handle_body(&mut self, payload: &[u8]) -> bool {
        let content = self.content.as_mut();
        let Some(header) = content.and_then(|content| content.header.as_mut()) else {
            return false;
        };
        let Some(left) = header.body_bytes_left.checked_sub(payload.len() as u64) else {
            return false;
        };
        header.body_bytes_left = left;
        if let Some(body) = &mut header.body {
            body.extend_from_slice(payload);
        }
        self.complete();
        true
    }

    /// Passes on a complete message.
    fn complete(&mut self) {
        let is_complete = |content: &mut Content| {
            let header = content.header.as_ref();
            header.is_some_and(|header| header.body_bytes_left == 0)
        };
        let Some(Content {
            head,
            header: Some(header),
        }) = self.content.take_if(is_complete)
        else {
            return;
        };
        let incoming = match head {
            Head::Returned => {
                let properties = Properties::from_checked_bytes(&header.properties).parse();
                let message_id = properties.message_id.unwrap_or_default().to_owned();
                Incoming::Returned { message_id }
            }
            Head::Delivery {
                tag,
                exchange,
                routing_key,
            } => {
                let held = header.body.as_ref().map_or(0, Vec::len) + DELIVERY_BYTES;
                self.bond.hold(held as isize);
                Incoming::Delivery(Delivery {
                    tag,
                    exchange,
                    routing_key,
                    properties: header.properties,
                    body: header.body,
                    bond: Arc::clone(&self.bond),
                    held,
                })
            }
        };
        (self.handle)(incoming);
    }
}

impl<H: FnMut(Incoming)> Protocol for Frames<H> {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        read_frames(input, |frame| self.handle_frame(frame))
    }
}

impl<H> Drop for Frames<H> {
    fn drop(&mut self) {
        self.bond.end("the connection to the broker was closed");
    }
}
