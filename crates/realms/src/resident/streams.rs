//! Events and invocations that a session of the router's own receives.

use std::sync::Arc;

use crosstie_wamp::{
    Dict, Disclosed, EventDetails, InvocationDetails, Message, MessageType, Payload, PublicationId,
    RegistrationId, RequestId, SubscriptionId, YieldOptions,
};
use tokio::sync::{mpsc, oneshot};

use super::reply::Kept;
use super::session::{Resident, send};

/// Approximate overhead of an item beside its payload.
const ITEM_BYTES: usize = 256;

/// Events of one subscription; dropping this unsubscribes. A session has each subscription once.
pub struct Subscription {
    pub resident: Arc<Resident>,
    pub(super) id: SubscriptionId,
    pub events: mpsc::UnboundedReceiver<Event>,
}

/// An event.
pub struct Event {
    pub publication: PublicationId,
    /// Set for a subscription by pattern.
    pub topic: Option<String>,
    pub publisher: Option<Disclosed<'static>>,
    /// Attributes that a realm forwards unread.
    pub passthru: Option<Box<Dict>>,
    pub payload: Kept,
    untaken: Untaken,
}

/// Invocations of one registration; dropping this unregisters.
pub struct Registration {
    pub resident: Arc<Resident>,
    pub(super) id: RegistrationId,
    pub(super) invocations: mpsc::UnboundedReceiver<Invocation>,
}

/// An invocation. Dropping it unanswered makes it fail.
pub struct Invocation {
    /// Set for a registration by pattern.
    pub procedure: Option<String>,
    pub caller: Option<Disclosed<'static>>,
    /// Milliseconds; 0 means none.
    pub timeout_ms: u64,
    /// Attributes that a realm forwards unread.
    pub passthru: Option<Box<Dict>>,
    pub payload: Kept,
    request: RequestId,
    /// Signals an interruption; taken once that was reported.
    interrupted: Option<oneshot::Receiver<()>>,
    is_answered: bool,
    untaken: Untaken,
}

/// Bytes charged to a session until a receiver takes them.
struct Untaken {
    resident: Arc<Resident>,
    bytes: usize,
}

impl Untaken {
    fn new(resident: &Arc<Resident>, payload: &Kept) -> Self {
        let bytes = payload.len() + ITEM_BYTES;
        resident.note_untaken(bytes);
        let resident = Arc::clone(resident);
        Self { resident, bytes }
    }

    fn take(&mut self) {
        self.resident.note_taken(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.take();
    }
}

impl Subscription {
    /// The next event; `None` once the session or the subscription has ended.
    pub async fn next(&mut self) -> Option<Event> {
        let mut event = self.events.recv().await?;
        event.untaken.take();
        Some(event)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let is_there = self.resident.forget_subscription(self.id);
        if is_there {
            let subscription = self.id;
            let _ = self.resident.tell(|request| Message::Unsubscribe {
                request,
                subscription,
            });
            send();
        }
    }
}

impl Registration {
    /// The next invocation; `None` once the session or the registration has ended.
    pub async fn next(&mut self) -> Option<Invocation> {
        let mut invocation = self.invocations.recv().await?;
        invocation.untaken.take();
        Some(invocation)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let is_there = self.resident.forget_registration(self.id);
        if is_there {
            let registration = self.id;
            let _ = self.resident.tell(|request| Message::Unregister {
                request,
                registration,
            });
            send();
        }
    }
}

impl Event {
    pub fn new(
        resident: &Arc<Resident>,
        publication: PublicationId,
        details: EventDetails<'_>,
        payload: &Payload<'_>,
    ) -> Self {
        let payload = Kept::of(payload);
        Self {
            publication,
            topic: details.topic.map(|topic| topic.into_owned()),
            publisher: details.publisher.map(owned),
            passthru: details.passthru,
            untaken: Untaken::new(resident, &payload),
            payload,
        }
    }
}

impl Invocation {
    pub fn new(
        resident: &Arc<Resident>,
        request: RequestId,
        details: InvocationDetails<'_>,
        payload: &Payload<'_>,
    ) -> (Self, oneshot::Sender<()>) {
        let payload = Kept::of(payload);
        let (interrupt, interrupted) = oneshot::channel();
        let invocation = Self {
            procedure: details.procedure.map(|procedure| procedure.into_owned()),
            caller: details.caller.map(owned),
            timeout_ms: details.timeout_ms,
            passthru: details.passthru,
            untaken: Untaken::new(resident, &payload),
            payload,
            request,
            interrupted: Some(interrupted),
            is_answered: false,
        };
        (invocation, interrupt)
    }

    /// Answers it.
    pub fn answer(mut self, payload: Payload<'_>) {
        self.end(&Message::Yield {
            request: self.request,
            options: YieldOptions::default(),
            payload,
        });
    }

    /// Answers it with an error.
    pub fn fail(mut self, uri: &str, payload: Payload<'_>) {
        self.fail_with(uri, payload);
    }

    /// Waits until the caller no longer waits for the answer.
    pub async fn interrupted(&mut self) {
        if let Some(interrupted) = &mut self.interrupted {
            let _ = interrupted.await;
            self.interrupted = None;
        }
    }

    fn fail_with(&mut self, uri: &str, payload: Payload<'_>) {
        self.end(&Message::Error {
            request_type: MessageType::Invocation,
            request: self.request,
            details: Vec::new(),
            error: uri.into(),
            payload,
        });
    }

    fn end(&mut self, message: &Message<'_>) {
        self.is_answered = true;
        let resident = &self.untaken.resident;
        resident.line.lock().invoked.remove(&self.request);
        resident.say(message);
        send();
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        if !self.is_answered {
            self.fail_with("wamp.error.canceled", Payload::EMPTY);
        }
    }
}

impl Resident {
    pub(super) fn pass_event(&self, subscription: SubscriptionId, event: Event) {
        let events = self.line.lock().subscriptions.get(&subscription).cloned();
        if let Some(events) = events {
            // The receiver may have gone just now.
            let _ = events.send(event);
        }
    }

    pub(super) fn pass_invocation(
        &self,
        registration: RegistrationId,
        invocation: Invocation,
        interrupt: oneshot::Sender<()>,
    ) {
        let mut line = self.line.lock();
        line.invoked.insert(invocation.request, interrupt);
        let invocations = line.registrations.get(&registration).cloned();
        drop(line);
        // Without a receiver it is dropped, and thereby refused.
        if let Some(invocations) = invocations {
            let _ = invocations.send(invocation);
        }
    }

    pub(super) fn interrupt(&self, request: RequestId) {
        let interrupt = self.line.lock().invoked.remove(&request);
        if let Some(interrupt) = interrupt {
            let _ = interrupt.send(());
        }
    }

    /// Returns whether it existed.
    pub(super) fn forget_subscription(&self, id: SubscriptionId) -> bool {
        self.line.lock().subscriptions.remove(&id).is_some()
    }

    pub(super) fn forget_registration(&self, id: RegistrationId) -> bool {
        self.line.lock().registrations.remove(&id).is_some()
    }
}

fn owned(disclosed: Disclosed<'_>) -> Disclosed<'static> {
    Disclosed {
        session: disclosed.session,
        authid: disclosed.authid.into_owned().into(),
        authrole: disclosed.authrole.into_owned().into(),
    }
}
