//! One connection during its session: reading, writing and timers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::Message;
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::time::{Instant, sleep_until};

use crate::deliver::deliver;
use crate::dial::Stream;
use crate::error::Disconnected;
use crate::incoming::{Incoming, Malformed, Received};
use crate::keepalive::Keepalive;
use crate::restore::{RestoreRetries, restore};
use crate::session::Violation;
use crate::shared::{Active, Shared};
use crate::writer::Writer;

/// The stream under a session.
pub(crate) struct Connection {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: Writer,
    incoming: Incoming,
}

/// The end of a session.
pub(crate) struct Lost {
    pub(crate) cause: Disconnected,
    /// The last bytes for the router, which may still read them.
    farewell: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: Box<dyn Stream>, incoming: Incoming) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader,
            writer: Writer::new(writer),
            incoming,
        }
    }

    /// Moves bytes until the session is over.
    pub(crate) async fn run(&mut self, shared: &Arc<Shared>) -> Lost {
        let mut keepalive = Keepalive::new(shared.config.ping_interval);
        let mut leave_by = None;
        let mut retries = RestoreRetries::default();
        // The read with the WELCOME may have brought more.
        let mut handled = self.handle(shared, &mut retries);
        loop {
            if let Some(lost) = handled {
                return lost;
            }
            if let Some(lost) = self.take_outgoing(shared) {
                return lost;
            }
            let writing = !self.writer.is_idle();
            handled = tokio::select! {
                read = self.reader.read_buf(self.incoming.space()) => match read {
                    Ok(0) => Some(Lost::silently(Disconnected::Closed { reason: None })),
                    Ok(_) => {
                        keepalive.heard();
                        self.handle(shared, &mut retries)
                    }
                    Err(error) => Some(Lost::silently(Disconnected::Broken(error.into()))),
                },
                written = self.writer.write_out(), if writing => match written {
                    Ok(()) => None,
                    Err(error) => Some(Lost::silently(Disconnected::Broken(error.into()))),
                },
                () = shared.wake.notified() => {
                    if shared.is_leaving() && leave_by.is_none() {
                        leave_by = Some(Instant::now() + shared.config.leave_timeout);
                        say_goodbye(shared);
                    }
                    None
                }
                silent = keepalive.tick() => match silent {
                    Some(silence) => Some(Lost::silently(Disconnected::Silent(silence))),
                    None => {
                        with_active(shared, |active| active.outgoing.ping());
                        None
                    }
                },
                () = at(leave_by) => Some(Lost::silently(Disconnected::Left)),
                () = at(retries.due) => {
                    retries.due = None;
                    restore(&mut shared.inner.lock());
                    None
                }
            };
        }
    }

    /// Takes queued bytes once the previous ones are sent.
    fn take_outgoing(&mut self, shared: &Shared) -> Option<Lost> {
        let mut inner = shared.inner.lock();
        let active = inner.active.as_mut()?;
        if active.outgoing.unwaited() > shared.config.outgoing_bytes_max {
            let waiting = active.outgoing.len();
            return Some(Lost::silently(Disconnected::Stalled(waiting)));
        }
        if active.outgoing.len() > 0 && self.writer.is_idle() {
            self.writer.take(|bytes| active.outgoing.take(bytes));
            drop(inner);
            shared.room.notify_waiters();
        }
        None
    }

    /// Handles all received messages.
    fn handle(&mut self, shared: &Arc<Shared>, retries: &mut RestoreRetries) -> Option<Lost> {
        let mut inner = shared.inner.lock();
        let handled = self.incoming.next(|received| match received {
            Received::Message(message) => Ok(deliver(&mut inner, shared, message, retries)?),
            Received::Ping(payload) => {
                if let Some(active) = &mut inner.active {
                    active.outgoing.pong(payload);
                }
                Ok(None)
            }
            Received::Pong => Ok(None),
            Received::Close { code, reason } => {
                if let Some(active) = &mut inner.active {
                    active.outgoing.close(code.unwrap_or(1000), "");
                }
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                Ok(Some(Disconnected::Closed { reason }))
            }
        });
        let cause = match handled {
            Ok(cause) => cause?,
            Err(Broken { close_code, reason }) => {
                if let Some(active) = &mut inner.active {
                    abort(active, close_code, &reason);
                }
                Disconnected::Protocol(reason)
            }
        };
        let mut farewell = Vec::new();
        if let Some(active) = &mut inner.active {
            if matches!(cause, Disconnected::Left | Disconnected::Goodbye(_)) {
                active.outgoing.close(1000, "");
            }
            active.outgoing.take(&mut farewell);
        }
        Some(Lost { cause, farewell })
    }

    /// Ends the stream within `time`, including the farewell.
    pub(crate) async fn close(&mut self, lost: &Lost, time: Duration) {
        if let Disconnected::Broken(_) | Disconnected::Silent(_) | Disconnected::Stalled(_) =
            lost.cause
        {
            return;
        }
        let closing = async {
            self.writer.finish(&lost.farewell).await?;
            // If received bytes stay unread, a reset might destroy our last bytes on the way.
            while self.reader.read_buf(self.incoming.space()).await? > 0 {
                self.incoming.discard();
            }
            Ok::<(), io::Error>(())
        };
        // A stream that fails to close is dropped all the same.
        let _ = tokio::time::timeout(time, closing).await;
    }
}

impl Lost {
    fn silently(cause: Disconnected) -> Self {
        Self {
            cause,
            farewell: Vec::new(),
        }
    }
}

/// Bytes or messages that break the protocol.
struct Broken {
    close_code: u16,
    reason: String,
}

impl From<Malformed> for Broken {
    fn from(error: Malformed) -> Self {
        let Malformed { close_code, reason } = error;
        Self { close_code, reason }
    }
}

impl From<Violation> for Broken {
    fn from(error: Violation) -> Self {
        Self {
            close_code: 1002,
            reason: error.to_string(),
        }
    }
}

/// Sends an ABORT with the router's fault.
fn abort(active: &mut Active, close_code: u16, reason: &str) {
    let text = reason.chars().take(512).collect::<String>();
    // An ABORT fits into every size limit.
    let _ = active.outgoing.push(&Message::Abort {
        details: vec![("message".to_owned(), text.as_str().into())],
        reason: "wamp.error.protocol_violation".into(),
    });
    active.outgoing.close(close_code, &text);
}

fn say_goodbye(shared: &Shared) {
    with_active(shared, |active| {
        let out = &mut active.outgoing;
        // A GOODBYE fits into every size limit.
        let _ = active.session.goodbye("wamp.close.close_realm", out);
    });
}

fn with_active(shared: &Shared, act: impl FnOnce(&mut Active)) {
    if let Some(active) = &mut shared.inner.lock().active {
        act(active);
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
