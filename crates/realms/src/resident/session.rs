//! One session of the router's own, from joining to its end.
//!
//! To its realm it is like any other: its messages are framed into its connection's queue. A task reads that queue in
//! place of a socket. Its own messages enter the realm directly, from the calling thread.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crosstie_routing::{ClientFeature, ClientFeatures, Identity, SessionKey};
use crosstie_transport::{Connection, ConnectionLimits, PeerAddress, uncork, uncork_soon};
use crosstie_wamp::framing::Framing;
use crosstie_wamp::{
    CancelMode, CancelOptions, Message, RegistrationId, RequestId, Serializer, SubscriptionId,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::answers::{self, Unread};
use super::authorization::{self, Judged};
use super::reply::{Reply, Then};
use super::room::{NotLetIn, Room};
use super::streams::{Event, Invocation};
use crate::handled::Handled;
use crate::peer::{Peer, Wire};

/// The properties of such a session.
#[derive(Clone)]
pub struct Manner {
    pub identity: Identity,
    /// Whether the meta API shows it, like any session.
    pub is_shown: bool,
    /// The serializer of its messages, in both directions.
    pub serializer: Serializer,
    /// Maximum size of an answer. A longer one becomes an error for the caller.
    pub message_bytes_max: usize,
    /// Whether its role's authorizer is asked. Otherwise requests that need a verdict are refused.
    pub is_judged: bool,
    /// The runtime that reads its answers and waits for its authorizer.
    pub runtime: Handle,
}

/// One session.
pub struct Resident {
    pub(super) room: Arc<dyn Room>,
    pub(super) key: SessionKey,
    /// Its connection is a mailbox for the realm's messages.
    pub(super) peer: Peer,
    /// The holder handles the realm's messages, in order.
    pub(super) unread: Mutex<Unread>,
    pub runtime: Handle,
    is_judged: bool,
    pub(super) line: Mutex<Line>,
    /// Bytes of events and invocations that their receivers have not taken yet.
    untaken: AtomicUsize,
    ended: watch::Sender<bool>,
}

/// Waiting requests, in the order of their messages: the realm expects ascending request ids.
#[derive(Default)]
pub(super) struct Line {
    is_over: bool,
    request_last: u64,
    pub waiting: HashMap<u64, Then>,
    /// Messages behind one that is being judged.
    pub judged: Option<Judged>,
    pub subscriptions: HashMap<SubscriptionId, mpsc::UnboundedSender<Event>>,
    pub(super) registrations: HashMap<RegistrationId, mpsc::UnboundedSender<Invocation>>,
    /// Unanswered invocations, each with a signal for its cancellation.
    pub(super) invoked: HashMap<RequestId, oneshot::Sender<()>>,
}

/// A pending request. Dropping it cancels the wait.
pub struct Asked {
    resident: Arc<Resident>,
    request: u64,
    is_call: bool,
}

/// Why a request was not accepted.
#[derive(Debug)]
pub enum Untaken {
    /// The session is over.
    Over,
    /// Its role has an authorizer, which is not asked for such a session.
    Judged,
    /// Too many requests wait for an authorizer.
    Busy,
    /// It violated the protocol, and is over.
    Violation(String),
}

/// Minimum size of the answers' queue, larger than a client's, because many requests share one session.
const QUEUE_BYTES_MIN: usize = 64 << 20;
/// Maximum bytes of events and invocations that wait for their receivers. Further ones stay in the session's queue,
/// with the bound and the policy of any session.
const UNTAKEN_BYTES_MAX: usize = 1 << 20;

impl Untaken {
    pub fn text(&self) -> String {
        match self {
            Self::Over => "its realm was stopped".to_owned(),
            Self::Judged => "the role of this session has an authorizer".to_owned(),
            Self::Busy => "too many requests wait for an authorizer".to_owned(),
            Self::Violation(text) => text.clone(),
        }
    }
}

impl Resident {
    /// Joins a realm.
    pub fn join(
        room: Arc<dyn Room>,
        limits: &ConnectionLimits,
        manner: &Manner,
    ) -> Result<Arc<Self>, NotLetIn> {
        let limits = Arc::new(ConnectionLimits {
            queue_bytes_max: limits.queue_bytes_max.max(QUEUE_BYTES_MIN),
            account: Arc::clone(&limits.account),
            ..*limits
        });
        let here = PeerAddress::Unix(None);
        let connection = Arc::new(Connection::mailbox(here, None, usize::MAX, limits));
        let peer = Peer {
            connection,
            wire: Wire {
                serializer: manner.serializer,
                framing: Framing::RawSocket,
                message_bytes_max: u32::try_from(manner.message_bytes_max).unwrap_or(u32::MAX),
            },
        };
        let identity = manner.identity.clone();
        let features = ClientFeatures::from_iter([
            ClientFeature::CalleeCallCanceling,
            ClientFeature::CalleeRegistrationRevocation,
            ClientFeature::SubscriberSubscriptionRevocation,
            ClientFeature::CallerPayloadPassthruMode,
            ClientFeature::CalleePayloadPassthruMode,
            ClientFeature::PublisherPayloadPassthruMode,
        ]);
        let (key, _) = room.let_in(peer.clone(), identity, features, manner.is_shown)?;
        let resident = Arc::new(Self {
            room,
            key,
            peer,
            unread: Mutex::new(Unread::new(manner.message_bytes_max)),
            runtime: manner.runtime.clone(),
            is_judged: manner.is_judged,
            line: Mutex::default(),
            untaken: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
        });
        manner.runtime.spawn(answers::read(Arc::clone(&resident)));
        Ok(resident)
    }

    /// Whether it is in the realm of that number, as far as it knows.
    pub(crate) fn is_in(&self, number: u32) -> bool {
        self.room.number() == number && !self.is_over()
    }

    pub fn is_over(&self) -> bool {
        self.line.lock().is_over
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        let mut is_over = self.ended.subscribe();
        // The sender lives as long as this session.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// Sends a request; `then` gets the answer.
    pub fn ask<'m>(
        self: &Arc<Self>,
        then: Then,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<Asked, Untaken> {
        // One lock inside the other: request ids must be in order.
        let mut line = self.line.lock();
        let request = line.request_last + 1;
        line.waiting.insert(request, then);
        let message = message(RequestId(request));
        let is_call = matches!(message, Message::Call { .. });
        match self.say_in(&mut line, &message) {
            Ok(()) => {
                line.request_last = request;
                Ok(Asked {
                    resident: Arc::clone(self),
                    request,
                    is_call,
                })
            }
            Err(untaken) => {
                line.waiting.remove(&request);
                drop(line);
                self.end_for(&untaken);
                Err(untaken)
            }
        }
    }

    /// Sends a message with a request id and without an answer.
    pub fn tell<'m>(
        self: &Arc<Self>,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<(), Untaken> {
        let mut line = self.line.lock();
        let request = line.request_last + 1;
        let said = self.say_in(&mut line, &message(RequestId(request)));
        if said.is_ok() {
            line.request_last = request;
        }
        drop(line);
        said.inspect_err(|untaken| self.end_for(untaken))
    }

    /// Sends a message without a request id of its own.
    pub fn say(self: &Arc<Self>, message: &Message<'_>) {
        let said = self.say_in(&mut self.line.lock(), message);
        if let Err(untaken) = said {
            self.end_for(&untaken);
        }
    }

    fn say_in(self: &Arc<Self>, line: &mut Line, message: &Message<'_>) -> Result<(), Untaken> {
        if line.is_over {
            return Err(Untaken::Over);
        }
        if let Some(judged) = &mut line.judged {
            return judged.push(message, &self.peer);
        }
        let handled = self.room.route(self.key, message, &self.peer.connection);
        match handled {
            Handled {
                outcome: Err(violation),
                ..
            } => Err(Untaken::Violation(violation.message.into())),
            Handled { asked: None, .. } => Ok(()),
            Handled { asked: Some(_), .. } if !self.is_judged => Err(Untaken::Judged),
            Handled {
                asked: Some(question),
                ..
            } => {
                line.judged = Some(authorization::begin(self, message, *question)?);
                Ok(())
            }
        }
    }

    fn end_for(&self, untaken: &Untaken) {
        if let Untaken::Violation(text) = untaken {
            self.end(text);
        }
    }

    /// Passes the answer to its request.
    pub fn answer(&self, request: RequestId, reply: Reply<'_>) {
        let then = self.line.lock().waiting.remove(&request.0);
        if let Some(then) = then {
            then(reply);
        }
    }

    /// Ends the session and its pending requests.
    pub fn end(&self, text: &str) {
        let mut line = self.line.lock();
        line.is_over = true;
        let gone = std::mem::take(&mut *line);
        line.is_over = true;
        drop(line);
        self.ended.send_replace(true);
        self.room.let_out(self.key);
        self.peer.connection.close();
        let Line {
            waiting, judged, ..
        } = gone;
        for then in waiting.into_values() {
            then(Reply::Lost(text));
        }
        if let Some(judged) = judged {
            judged.release(&self.peer);
        }
    }

    /// Counts bytes that a receiver shall take.
    pub(super) fn note_untaken(&self, bytes: usize) {
        let before = self.untaken.fetch_add(bytes, Ordering::Relaxed);
        if before <= UNTAKEN_BYTES_MAX && before + bytes > UNTAKEN_BYTES_MAX {
            self.peer.connection.pause_reading();
            // Some may have been taken meanwhile, by a receiver that did not find the reader paused.
            if self.untaken.load(Ordering::SeqCst) <= UNTAKEN_BYTES_MAX {
                self.peer.connection.resume_reading();
            }
        }
    }

    /// Subtracts bytes that a receiver has taken.
    pub(super) fn note_taken(&self, bytes: usize) {
        let before = self.untaken.fetch_sub(bytes, Ordering::SeqCst);
        if before > UNTAKEN_BYTES_MAX && before - bytes <= UNTAKEN_BYTES_MAX {
            self.peer.connection.resume_reading();
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let is_open = self.resident.line.lock().waiting.remove(&self.request);
        if is_open.is_some() && self.is_call {
            self.resident.say(&Message::Cancel {
                request: RequestId(self.request),
                options: CancelOptions {
                    mode: CancelMode::KillNoWait,
                },
            });
        }
    }
}

/// Flushes this thread's messages to their receivers. Inside a pump, that happens after its input is handled.
pub fn send() {
    if Handle::try_current().is_ok() {
        uncork();
    }
}

/// The same after other tasks have sent theirs, for many requests at once.
pub(super) fn send_soon() {
    if Handle::try_current().is_ok() {
        uncork_soon();
    }
}

/// Waiting messages, as bytes.
pub(super) type Queue = VecDeque<Vec<u8>>;
