//! The task that moves a client's octets, and its sessions one after the other.
//!
//! ```text
//!            ┌──────────────── run ───────────────┐
//! join ──▶   │ out-queue ─▶ write   read ─▶ handle │ ──▶ lost ──▶ wait, join again ──▶ …
//!            │ wake, ping, leave, restore          │ ──▶ left ──▶ ended
//!            └────────────────────────────────────┘
//! ```

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crosstie_wamp::Message;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};

use crate::config::{Backoff, Config};
use crate::deliver::{deliver, restore};
use crate::dial::Stream;
use crate::error::{ApplicationError, ConnectError, Disconnected, Failure};
use crate::incoming::{Incoming, Malformed, Received};
use crate::join::{Joined, join};
use crate::session::Violation;
use crate::shared::{Active, Shared, State};

/// The first session; only with [`Backoff::from_start`] is it tried more than once.
pub(crate) async fn join_first(config: &Config) -> Result<Joined, ConnectError> {
    let backoff = config.reconnect.as_ref();
    let Some(backoff) = backoff.filter(|backoff| backoff.from_start) else {
        return join(config).await;
    };
    let mut attempt = 0;
    loop {
        let error = match join(config).await {
            Ok(joined) => return Ok(joined),
            Err(error) => error,
        };
        let Some(delay) = backoff.delay(attempt, chance()) else {
            return Err(error);
        };
        attempt += 1;
        sleep(delay).await;
    }
}

/// Serves a client until it ends.
pub(crate) async fn drive(shared: Arc<Shared>, mut connection: Connection) {
    loop {
        let lost = connection.run(&shared).await;
        end_session(&shared, &lost.cause);
        connection.close(&lost, shared.config.leave_timeout).await;
        let cause = match &shared.config.reconnect {
            Some(backoff) if !shared.is_leaving() => {
                match rejoin(&shared, backoff, lost.cause).await {
                    Ok(rejoined) => {
                        connection = rejoined;
                        continue;
                    }
                    Err(cause) => cause,
                }
            }
            _ => lost.cause,
        };
        end(&shared, cause);
        return;
    }
}

/// The stream under a session.
pub(crate) struct Connection {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: Writer,
    incoming: Incoming,
}

/// How a session ended.
struct Lost {
    cause: Disconnected,
    /// The last octets for the router; it may still read them.
    farewell: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: Box<dyn Stream>, incoming: Incoming) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader,
            writer: Writer {
                stream: writer,
                octets: Vec::new(),
                written: 0,
                flushed: true,
            },
            incoming,
        }
    }

    /// Moves octets until the session is over.
    async fn run(&mut self, shared: &Arc<Shared>) -> Lost {
        let mut pinging = Pinging::new(shared.config.ping_interval);
        let mut leave_by = None;
        let mut restoring = Restoring::default();
        // The WELCOME may have come with more behind it.
        let mut handled = self.handle(shared, &mut restoring);
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
                        pinging.heard();
                        self.handle(shared, &mut restoring)
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
                silent = pinging.tick() => match silent {
                    Some(silence) => Some(Lost::silently(Disconnected::Silent(silence))),
                    None => {
                        with_active(shared, |active| active.outgoing.ping());
                        None
                    }
                },
                () = at(leave_by) => Some(Lost::silently(Disconnected::Left)),
                () = at(restoring.due) => {
                    restoring.due = None;
                    restore(&mut shared.inner.lock());
                    None
                }
            };
        }
    }

    /// Takes what waits to be sent, once what was taken before is sent.
    fn take_outgoing(&mut self, shared: &Shared) -> Option<Lost> {
        let mut inner = shared.inner.lock();
        let active = inner.active.as_mut()?;
        let waiting = active.outgoing.len();
        if waiting > shared.config.outgoing_bytes_max.saturating_mul(2) {
            return Some(Lost::silently(Disconnected::Stalled(waiting)));
        }
        if waiting > 0 && self.writer.is_idle() {
            self.writer.take(|octets| active.outgoing.take(octets));
            drop(inner);
            shared.room.notify_waiters();
        }
        None
    }

    /// Handles everything that has come.
    fn handle(&mut self, shared: &Arc<Shared>, restoring: &mut Restoring) -> Option<Lost> {
        let mut inner = shared.inner.lock();
        let handled = self.incoming.next(|received| match received {
            Received::Message(message) => Ok(deliver(&mut inner, shared, message, restoring)?),
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

    /// Ends the stream, giving what is still to be said a bounded time.
    async fn close(&mut self, lost: &Lost, time: Duration) {
        if let Disconnected::Broken(_) | Disconnected::Silent(_) | Disconnected::Stalled(_) =
            lost.cause
        {
            return;
        }
        let closing = async {
            while !self.writer.is_idle() {
                self.writer.write_out().await?;
            }
            self.writer.stream.write_all(&lost.farewell).await?;
            self.writer.stream.shutdown().await?;
            // A router that is left unread might lose our last octets to a reset.
            while self.reader.read_buf(self.incoming.space()).await? > 0 {
                self.incoming.discard();
            }
            Ok::<(), io::Error>(())
        };
        // There is nothing to be done about a stream that does not even end well.
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

/// Octets on their way into the stream; what was begun survives a dropped future.
struct Writer {
    stream: WriteHalf<Box<dyn Stream>>,
    octets: Vec<u8>,
    written: usize,
    flushed: bool,
}

/// What a writer that was busy once keeps of its buffer.
const WRITE_BYTES_KEPT: usize = 64 << 10;

impl Writer {
    fn is_idle(&self) -> bool {
        self.octets.is_empty() && self.flushed
    }

    fn take(&mut self, take: impl FnOnce(&mut Vec<u8>)) {
        self.octets.shrink_to(WRITE_BYTES_KEPT);
        take(&mut self.octets);
        self.flushed = false;
    }

    async fn write_out(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_write_out(context)).await
    }

    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.octets.len() {
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write(context, &self.octets[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.octets.clear();
        self.written = 0;
        // TLS keeps records of its own until it is told to send them.
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }
}

/// Finds out whether the router is still there.
struct Pinging {
    ticks: Option<tokio::time::Interval>,
    period: Duration,
    heard: bool,
    pinged: bool,
}

impl Pinging {
    fn new(period: Option<Duration>) -> Self {
        let period = period.filter(|period| !period.is_zero());
        let ticks = period.map(|period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self {
            ticks,
            period: period.unwrap_or_default(),
            heard: false,
            pinged: false,
        }
    }

    fn heard(&mut self) {
        self.heard = true;
    }

    /// Ends when it is time to ping; with how long the router was silent after the last ping,
    /// if it was.
    async fn tick(&mut self) -> Option<Duration> {
        let Some(ticks) = &mut self.ticks else {
            return std::future::pending().await;
        };
        ticks.tick().await;
        let silent = self.pinged && !self.heard;
        self.heard = false;
        self.pinged = true;
        silent.then_some(self.period)
    }
}

/// When to ask again for the listeners that the router refused to restore: a router that has not
/// noticed yet that the last session is dead still has them registered.
#[derive(Default)]
pub(crate) struct Restoring {
    due: Option<Instant>,
    attempt: u32,
}

impl Restoring {
    pub(crate) fn refused(&mut self, config: &Config) {
        if self.due.is_some() {
            return;
        }
        let delay = config
            .reconnect
            .as_ref()
            .and_then(|backoff| backoff.delay(self.attempt, chance()));
        self.attempt += 1;
        self.due = delay.map(|delay| Instant::now() + delay);
    }
}

/// Octets or messages that break the protocol.
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

/// Tells the router what it did wrong.
fn abort(active: &mut Active, close_code: u16, reason: &str) {
    let text = reason.chars().take(512).collect::<String>();
    // An ABORT fits into every message.
    let _ = active.outgoing.push(&Message::Abort {
        details: vec![("message".to_owned(), text.as_str().into())],
        reason: "wamp.error.protocol_violation".into(),
    });
    active.outgoing.close(close_code, &text);
}

fn say_goodbye(shared: &Shared) {
    with_active(shared, |active| {
        let out = &mut active.outgoing;
        // A GOODBYE fits into every message.
        let _ = active.session.goodbye("wamp.close.close_realm", out);
    });
}

fn with_active(shared: &Shared, act: impl FnOnce(&mut Active)) {
    if let Some(active) = &mut shared.inner.lock().active {
        act(active);
    }
}

/// Tells everybody who waits that there is no session any more.
fn end_session(shared: &Shared, cause: &Disconnected) {
    let active = {
        let mut inner = shared.inner.lock();
        inner.cause = cause.clone();
        for listener in inner.listeners.values_mut() {
            listener.asked = false;
        }
        inner.active.take()
    };
    shared.room.notify_waiters();
    if let Some(active) = active {
        for waiter in active.session.into_waiters() {
            waiter.settle(Err(Failure::Disconnected(cause.clone())));
        }
    }
}

/// Tells everybody that there will be no session any more.
fn end(shared: &Shared, cause: Disconnected) {
    let listeners = {
        let mut inner = shared.inner.lock();
        inner.cause = cause.clone();
        std::mem::take(&mut inner.listeners)
    };
    // Their queues end with them, outside the lock.
    drop(listeners);
    shared.state.send_replace(State::Ended(cause));
}

/// Joins again and asks for all listeners, or says why not.
async fn rejoin(
    shared: &Shared,
    backoff: &Backoff,
    cause: Disconnected,
) -> Result<Connection, Disconnected> {
    let mut attempt = 0;
    let mut last = None;
    loop {
        let Some(delay) = backoff.delay(attempt, chance()) else {
            return Err(match last {
                Some(last) => Disconnected::GivenUp {
                    attempts: attempt,
                    last: Arc::new(last),
                },
                None => cause,
            });
        };
        attempt += 1;
        shared.state.send_replace(State::Reconnecting {
            attempt,
            cause: cause.clone(),
        });
        let joined = tokio::select! {
            joined = async {
                sleep(delay).await;
                join(&shared.config).await
            } => joined,
            () = left(shared) => return Err(Disconnected::Left),
        };
        match joined {
            Ok(Joined {
                link,
                session,
                welcome,
            }) => {
                let mut inner = shared.inner.lock();
                inner.active = Some(Active {
                    session,
                    outgoing: link.outgoing,
                });
                restore(&mut inner);
                drop(inner);
                shared.state.send_replace(State::Joined(Arc::new(welcome)));
                // Whoever left in between was heard by nobody.
                shared.wake.notify_one();
                return Ok(Connection::new(link.stream, link.incoming));
            }
            Err(error) => last = Some(error),
        }
    }
}

async fn left(shared: &Shared) {
    while !shared.is_leaving() {
        shared.wake.notified().await;
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// From 0 to 1.
fn chance() -> f64 {
    let drawn = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(drawn) / f64::from(u32::MAX)
}

/// What a session's end means for the client.
pub(crate) fn cause_of(asked: bool, error: ApplicationError) -> Disconnected {
    match asked {
        true => Disconnected::Left,
        false => Disconnected::Goodbye(error),
    }
}
