//! One session of the router's own, from its joining to its end.
//!
//! To its realm it is as any other: what it is sent is framed into its connection's queue. Behind that is no socket
//! but a task that takes the answers. What it says goes into the realm directly, from whichever thread says it.

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
use super::judging::{self, Judged};
use super::reply::{Reply, Then};
use super::room::{NotLetIn, Room};
use super::streams::{Event, Invocation};
use crate::wamp::handled::Handled;
use crate::wamp::peer::{Peer, Wire};

/// How such a session is.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) identity: Identity,
    /// Others are told of it, as of any session.
    pub(crate) is_shown: bool,
    /// What it says and is told is encoded so.
    pub(crate) serializer: Serializer,
    /// The longest answer: beyond, its caller is told so in its place.
    pub(crate) message_bytes_max: usize,
    /// Whether its role's authorizer is asked. Otherwise what that would be asked about is refused.
    pub(crate) is_judged: bool,
    /// Where its answers are read, and its authorizer is awaited.
    pub(crate) runtime: Handle,
}

/// One session.
pub(crate) struct Resident {
    pub(super) room: Arc<dyn Room>,
    pub(super) key: SessionKey,
    /// What the realm sends is in its connection, a mailbox.
    pub(super) peer: Peer,
    /// Whoever has it handles what the realm has sent, in order.
    pub(super) unread: Mutex<Unread>,
    pub(super) runtime: Handle,
    is_judged: bool,
    pub(super) line: Mutex<Line>,
    /// Bytes of events and invocations that nobody has taken yet.
    untaken: AtomicUsize,
    ended: watch::Sender<bool>,
}

/// What waits, and in which order it was said: the realm wants ids in the order in which they are drawn.
#[derive(Default)]
pub(super) struct Line {
    is_over: bool,
    request_last: u64,
    pub(super) waiting: HashMap<u64, Then>,
    /// What was said behind a message that is being judged.
    pub(super) judged: Option<Judged>,
    pub(super) subscriptions: HashMap<SubscriptionId, mpsc::UnboundedSender<Event>>,
    pub(super) registrations: HashMap<RegistrationId, mpsc::UnboundedSender<Invocation>>,
    /// Invocations that are not answered: who is told when nobody waits for them any more.
    pub(super) invoked: HashMap<RequestId, oneshot::Sender<()>>,
}

/// A request that somebody waits for. Whoever drops it does so no more.
pub(crate) struct Asked {
    resident: Arc<Resident>,
    request: u64,
    is_call: bool,
}

/// Why a request was not taken.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// The session is over.
    Over,
    /// Its role has an authorizer, which is not asked for such a session.
    Judged,
    /// Too much waits for an authorizer.
    Busy,
    /// It has said what no session may say, and is over.
    Violation(String),
}

/// What may wait to be read of answers: larger than a client's, because many requests share one session.
const QUEUE_BYTES_MIN: usize = 64 << 20;
/// Events and invocations beyond so many bytes are left where they are until some are taken: what comes
/// then waits in the session's queue, with the bound and the policy that every session's has.
const UNTAKEN_BYTES_MAX: usize = 1 << 20;

impl Untaken {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Over => "its realm was stopped".to_owned(),
            Self::Judged => "whoever asks has a role with an authorizer".to_owned(),
            Self::Busy => "too many requests wait for an authorizer".to_owned(),
            Self::Violation(text) => text.clone(),
        }
    }
}

impl Resident {
    /// Joins a realm.
    pub(crate) fn join(
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

    pub(crate) fn is_over(&self) -> bool {
        self.line.lock().is_over
    }

    /// Waits until it is over.
    pub(crate) async fn over(&self) {
        let mut is_over = self.ended.subscribe();
        // It lives as long as this session.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// Says something that is answered; `then` is told the answer.
    pub(crate) fn ask<'m>(
        self: &Arc<Self>,
        then: Then,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<Asked, Untaken> {
        // From one lock to the other: ids are to come in order.
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

    /// Says something that has a number and no answer.
    pub(crate) fn tell<'m>(
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

    /// Says something that has no number of its own.
    pub(crate) fn say(self: &Arc<Self>, message: &Message<'_>) {
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
                line.judged = Some(judging::begin(self, message, *question)?);
                Ok(())
            }
        }
    }

    fn end_for(&self, untaken: &Untaken) {
        if let Untaken::Violation(text) = untaken {
            self.end(text);
        }
    }

    /// Tells whoever waits for it what the answer is.
    pub(super) fn answer(&self, request: RequestId, reply: Reply<'_>) {
        let then = self.line.lock().waiting.remove(&request.0);
        if let Some(then) = then {
            then(reply);
        }
    }

    /// Nothing more comes, and nothing is asked any more.
    pub(super) fn end(&self, text: &str) {
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

    /// Notes bytes that somebody is to take.
    pub(super) fn note_untaken(&self, bytes: usize) {
        let before = self.untaken.fetch_add(bytes, Ordering::Relaxed);
        if before <= UNTAKEN_BYTES_MAX && before + bytes > UNTAKEN_BYTES_MAX {
            self.peer.connection.pause_reading();
            // Some of it may have been taken meanwhile, by whoever did not find the reader paused.
            if self.untaken.load(Ordering::SeqCst) <= UNTAKEN_BYTES_MAX {
                self.peer.connection.resume_reading();
            }
        }
    }

    /// Notes that somebody has.
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

/// Has what this thread said reach those whom it was said to. Inside a pump that is done when its input has been
/// handled.
pub(crate) fn send() {
    if Handle::try_current().is_ok() {
        uncork();
    }
}

/// The same once others have said what they have to say, where many ask at once.
pub(super) fn send_soon() {
    if Handle::try_current().is_ok() {
        uncork_soon();
    }
}

/// Messages that wait, with their bytes.
pub(super) type Queue = VecDeque<Vec<u8>>;
