//! A connection that has entered a vhost, as other threads see it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::{ConnectionBlocked, ConnectionClose, ConnectionUnblocked};
use crosstie_amqp::{Arguments, ReplyCode, Version};
use crosstie_front::report;
use crosstie_front::watch::WatchKey;
use crosstie_queues::ConnectionKey;
use crosstie_transport::Connection;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::backends::Rights;
use super::client::About;
use super::metadata::Seat;
use super::status::ConnectionStatus;
use super::vhost::SharedVhost;

/// A vhost's handle for a connection: where and in which form to send.
pub struct Peer {
    pub connection: Arc<Connection>,
    pub number: u64,
    /// The transport of the connection.
    pub transport: u32,
    pub watch: WatchKey,
    /// The client's time to answer `connection.close`.
    pub(crate) closing_timeout: Duration,
    pub version: Version,
    /// Maximum frame size, negotiated with the client.
    pub frame_bytes_max: u32,
    pub vhost: Arc<SharedVhost>,
    /// Set once the vhost has assigned it.
    pub key: OnceLock<ConnectionKey>,
    pub about: About,
    /// The client's rights, if another backend decides on them.
    pub(crate) rights: Option<Rights>,
    /// Asks for an answer about its rights or its new secret.
    pub(crate) question: Mutex<Option<AbortHandle>>,
    /// The client supports `connection.blocked`.
    pub(crate) is_told_of_blocking: bool,
    pub since: SystemTime,
    pub(crate) seat: Seat,
    /// A delivery was refused; a task waits until the output queue is sent.
    pub(crate) is_resume_awaited: AtomicBool,
    /// Bytes of the peer's incomplete messages and open transactions, as counted by [`Incomplete`].
    ///
    /// [`Incomplete`]: super::incomplete::Incomplete
    pub(super) incomplete_bytes: AtomicUsize,
    /// Time of the last sufficient progress of its slowest incomplete message, by [`crosstie_transport::now_s`]; 0 if
    /// it has none.
    unfinished_since_s: AtomicU32,
    /// Reading was paused by the broker, which excuses late messages.
    was_paused: AtomicBool,
    /// `connection.close` is about to be sent, or was.
    is_closing: AtomicBool,
    /// `connection.close` was sent.
    is_told_to_close: AtomicBool,
    /// Channels that the vhost has closed and that the conversation has not processed yet.
    closed_channels: Mutex<Vec<u16>>,
    has_closed_channels: AtomicBool,
}

/// The parts of a peer.
pub(crate) struct PeerParts {
    pub connection: Arc<Connection>,
    pub number: u64,
    pub transport: u32,
    pub watch: WatchKey,
    pub(crate) closing_timeout: Duration,
    pub version: Version,
    pub frame_bytes_max: u32,
    pub vhost: Arc<SharedVhost>,
    pub about: About,
    pub(crate) seat: Seat,
    pub(crate) rights: Option<Rights>,
    pub(crate) is_told_of_blocking: bool,
}

impl Peer {
    pub(crate) fn new(parts: PeerParts) -> Self {
        Self {
            connection: parts.connection,
            number: parts.number,
            transport: parts.transport,
            watch: parts.watch,
            closing_timeout: parts.closing_timeout,
            version: parts.version,
            frame_bytes_max: parts.frame_bytes_max,
            vhost: parts.vhost,
            key: OnceLock::new(),
            about: parts.about,
            rights: parts.rights,
            question: Mutex::default(),
            is_told_of_blocking: parts.is_told_of_blocking,
            since: SystemTime::now(),
            seat: parts.seat,
            is_resume_awaited: AtomicBool::new(false),
            incomplete_bytes: AtomicUsize::new(0),
            unfinished_since_s: AtomicU32::new(0),
            was_paused: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_told_to_close: AtomicBool::new(false),
            closed_channels: Mutex::default(),
            has_closed_channels: AtomicBool::new(false),
        }
    }

    /// Logs that the client has entered its vhost.
    pub(crate) fn report_opened(&self) {
        let About { user, name, .. } = &self.about;
        report::connection_opened(&self.connection, self.vhost.name(), user, name);
    }

    /// Queues a method of the connection itself. If the peer is gone or its queue is full, other code notices.
    pub(crate) fn send(&self, method: &impl Arguments) {
        send(&self.connection, self.version, method);
    }

    /// Sends `connection.close`, unless that was sent.
    pub(crate) fn force_close(&self, reason: &str) {
        let code = ReplyCode::ConnectionForced;
        self.force_close_with(&format!(
            "{code} - broker forced connection closure with reason '{reason}'"
        ));
    }

    /// The same, with the whole text.
    pub(crate) fn force_close_with(&self, text: &str) {
        if self.is_closing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.send(&ConnectionClose {
            reply_code: ReplyCode::ConnectionForced.code(),
            reply_text: &reply_text(text),
            class_id: 0,
            method_id: 0,
        });
        // Not earlier: what arrives until then was sent to a broker that is there.
        self.is_told_to_close.store(true, Ordering::Release);
        // The client's answer is read even if its reading was paused.
        self.connection.resume_reading();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    pub(super) fn is_told_to_close(&self) -> bool {
        self.is_told_to_close.load(Ordering::Acquire)
    }

    /// Pauses reading. Sends `connection.blocked` if the client supports it and a reason is given.
    pub(crate) fn block(&self, reason: Option<&str>) {
        self.was_paused.store(true, Ordering::Relaxed);
        self.connection.pause_reading();
        if let Some(reason) = reason {
            self.say_blocked(reason);
        }
    }

    /// Sends `connection.blocked`, if the client supports it.
    pub(crate) fn say_blocked(&self, reason: &str) {
        if self.is_told_of_blocking && !self.is_closing() {
            self.send(&ConnectionBlocked { reason });
        }
    }

    /// Resumes reading. Sends `connection.unblocked` if the client got `connection.blocked`.
    pub(crate) fn unblock(&self, was_told: bool) {
        if was_told && self.is_told_of_blocking && !self.is_closing() {
            self.send(&ConnectionUnblocked {});
        }
        self.connection.resume_reading();
    }

    /// Whether reading was paused by the broker and has not resumed, as far as the conversation has seen.
    pub(crate) fn is_blocked(&self) -> bool {
        self.was_paused.load(Ordering::Relaxed)
    }

    /// Whether reading was paused and has resumed since the last call.
    pub(super) fn has_resumed(&self) -> bool {
        self.was_paused.load(Ordering::Relaxed)
            && !self.connection.is_reading_paused()
            && self.was_paused.swap(false, Ordering::Relaxed)
    }

    /// Sets the time of the last sufficient progress of its slowest incomplete message, if it has one.
    pub(super) fn set_unfinished(&self, since_s: Option<u32>) {
        let since_s = since_s.map_or(0, |since_s| since_s.max(1));
        self.unfinished_since_s.store(since_s, Ordering::Relaxed);
    }

    /// Seconds for which its slowest message has made no progress; 0 while the broker pauses reading.
    pub(super) fn unfinished_for_s(&self, now_s: u32) -> u32 {
        match self.unfinished_since_s.load(Ordering::Relaxed) {
            0 => 0,
            _ if self.was_paused.load(Ordering::Relaxed) => 0,
            since_s => now_s.saturating_sub(since_s),
        }
    }

    /// Notes that the vhost has closed a channel and sent `channel.close`.
    pub(crate) fn note_closed_channel(&self, channel: u16) {
        let mut closed = self.closed_channels.lock();
        closed.push(channel);
        self.has_closed_channels.store(true, Ordering::Release);
    }

    /// Clears that note if the client closes the channel too. Called in the vhost.
    pub(crate) fn forget_closed_channel(&self, channel: u16) {
        if self.has_closed_channels.load(Ordering::Acquire) {
            self.closed_channels
                .lock()
                .retain(|closed| *closed != channel);
        }
    }

    /// Takes the channels that the vhost has closed since the last call.
    pub(crate) fn take_closed_channels(&self) -> Vec<u16> {
        if !self.has_closed_channels.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut closed = self.closed_channels.lock();
        self.has_closed_channels.store(false, Ordering::Release);
        std::mem::take(&mut closed)
    }

    pub fn status(&self) -> ConnectionStatus {
        ConnectionStatus {
            number: self.number,
            name: self.about.name.clone(),
            user: self.about.user.to_string(),
            vhost: self.vhost.name().to_string(),
            peer: match &self.about.from {
                Some(from) => from.to_string(),
                None => self.connection.peer().to_string(),
            },
            client: self.about.client(),
            channels: self.seat.channels(),
            state: match () {
                () if self.is_closing() => "closing",
                () if self.connection.is_reading_paused() => "blocked",
                () => "running",
            },
            since: self.since,
        }
    }
}

/// Shortens a text to the length of a reply text. A cut is marked, as in RabbitMQ.
pub(crate) fn reply_text(text: &str) -> Cow<'_, str> {
    match text.len() <= REPLY_TEXT_BYTES_MAX {
        true => text.into(),
        false => {
            let end = text.floor_char_boundary(REPLY_TEXT_BYTES_MAX - CUT_OFF.len());
            format!("{}{CUT_OFF}", &text[..end]).into()
        }
    }
}

/// Maximum length of a short string.
const REPLY_TEXT_BYTES_MAX: usize = 255;
const CUT_OFF: &str = "...";

/// Queues a method of the connection itself, on channel 0.
pub(crate) fn send(connection: &Arc<Connection>, version: Version, method: &impl Arguments) {
    let _ = connection.append(|out| {
        frame::write(FrameKind::Method, 0, out, |out| version.write(method, out));
        Ok::<(), ()>(())
    });
}
