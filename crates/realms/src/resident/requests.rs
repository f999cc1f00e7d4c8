//! Requests of such a session, as futures. Dropping one cancels the wait; a dropped call is cancelled.

use std::sync::Arc;

use crosstie_wamp::{
    CallOptions, Message, Payload, PublicationId, PublishOptions, RegisterOptions, RequestId,
    SubscribeOptions,
};
use tokio::sync::{mpsc, oneshot};

use super::reply::{Failed, Kept, Reply};
use super::session::{Asked, Resident, Untaken, send, send_soon};
use super::streams::{Registration, Subscription};

/// Flushes sent messages even if a request is dropped.
struct Guard(Option<Asked>);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.take());
        send_soon();
    }
}

impl From<Untaken> for Failed {
    fn from(untaken: Untaken) -> Self {
        Self::Lost(untaken.text())
    }
}

impl Resident {
    /// Calls a procedure.
    pub async fn call(
        self: &Arc<Self>,
        procedure: &str,
        options: CallOptions,
        payload: Payload<'_>,
    ) -> Result<Kept, Failed> {
        let read = |reply: Reply<'_>| match reply {
            Reply::Result(payload) => Ok(Kept::of(&payload)),
            other => Err(Failed::of(other)),
        };
        let message = |request| Message::Call {
            request,
            options,
            procedure: procedure.into(),
            payload,
        };
        self.request(read, message).await
    }

    /// Publishes an event. Returns its id, if the options ask for an acknowledgement.
    pub async fn publish(
        self: &Arc<Self>,
        topic: &str,
        options: PublishOptions,
        payload: Payload<'_>,
    ) -> Result<Option<PublicationId>, Failed> {
        let is_acknowledged = options.acknowledge;
        let message = |request| Message::Publish {
            request,
            options,
            topic: topic.into(),
            payload,
        };
        if !is_acknowledged {
            self.tell(message)?;
            send();
            return Ok(None);
        }
        let read = |reply: Reply<'_>| match reply {
            Reply::Published(publication) => Ok(Some(publication)),
            other => Err(Failed::of(other)),
        };
        self.request(read, message).await
    }

    /// Subscribes to a topic that this session has not subscribed to.
    pub async fn subscribe(
        self: &Arc<Self>,
        topic: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, Failed> {
        let resident = Arc::clone(self);
        let read = move |reply: Reply<'_>| {
            let Reply::Subscribed(id) = reply else {
                return Err(Failed::of(reply));
            };
            // The first event may directly follow the answer.
            let (sender, events) = mpsc::unbounded_channel();
            let mut line = resident.line.lock();
            if line.subscriptions.contains_key(&id) {
                return Err(Failed::Lost("it is subscribed to that already".to_owned()));
            }
            line.subscriptions.insert(id, sender);
            drop(line);
            Ok(Subscription {
                resident,
                id,
                events,
            })
        };
        let message = |request| Message::Subscribe {
            request,
            options,
            topic: topic.into(),
        };
        self.request(read, message).await
    }

    /// Registers a procedure.
    pub async fn register(
        self: &Arc<Self>,
        procedure: &str,
        options: RegisterOptions,
    ) -> Result<Registration, Failed> {
        let resident = Arc::clone(self);
        let read = move |reply: Reply<'_>| {
            let Reply::Registered(id) = reply else {
                return Err(Failed::of(reply));
            };
            let (sender, invocations) = mpsc::unbounded_channel();
            resident.line.lock().registrations.insert(id, sender);
            Ok(Registration {
                resident,
                id,
                invocations,
            })
        };
        let message = |request| Message::Register {
            request,
            options,
            procedure: procedure.into(),
        };
        self.request(read, message).await
    }

    async fn request<'m, R: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(Reply<'_>) -> Result<R, Failed> + Send + 'static,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<R, Failed> {
        let (sender, answer) = oneshot::channel();
        let then = Box::new(move |reply: Reply<'_>| {
            // The requester may be gone.
            let _ = sender.send(read(reply));
        });
        let asked = self.ask(then, message);
        // An answer of the realm itself is present already.
        self.read_now();
        send_soon();
        let _guard = Guard(Some(asked?));
        let lost = || Failed::Lost("its session was closed".to_owned());
        answer.await.unwrap_or_else(|_| Err(lost()))
    }
}
