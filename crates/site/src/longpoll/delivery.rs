//! The body of an answer with messages: they belong to the session until the client's connection has taken them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use crosstie_front::cause::Cause;
use crosstie_transport::Connection;
use hyper::body::{Body, Frame, SizeHint};

/// Messages in transit. If they are not delivered, the session ends, as its client cannot learn what it missed.
pub(super) struct Delivery {
    bytes: Option<Bytes>,
    held: isize,
    mailbox: Arc<Connection>,
}

impl Delivery {
    pub(super) fn new(bytes: Vec<u8>, mailbox: &Arc<Connection>) -> Self {
        let held = isize::try_from(bytes.len()).unwrap_or(isize::MAX);
        mailbox.hold(held);
        Self {
            bytes: Some(bytes.into()),
            held,
            mailbox: Arc::clone(mailbox),
        }
    }
}

impl Body for Delivery {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.mailbox.hold(-self.held);
        if self.bytes.is_some() {
            Cause::Undelivered.note(&self.mailbox);
            self.mailbox.close();
        } else if self.mailbox.is_finishing() && self.mailbox.queued_bytes() == 0 {
            // These were the session's last messages.
            self.mailbox.close();
        }
    }
}
