//! Dispatches the router's messages to their waiters and handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crosstie_wamp::{
    Dict, EventDetails, InvocationDetails, Message, Payload, PublicationId, RequestId, TRUSTLEVEL,
};
use tokio::sync::{mpsc, watch};

use crate::arguments::Arguments;
use crate::error::{ApplicationError, Disconnected, Failure};
use crate::event::Event;
use crate::handler::Running;
use crate::interrupt::{Interrupt, Interrupts};
use crate::invocation::{Delivery, Invocation, Progress, Responder, Unanswered};
use crate::lifecycle::LifecycleEvent;
use crate::peer::Peer;
use crate::restore::RestoreRetries;
use crate::session::{Answer, Effect, ListenerKey, Violation};
use crate::shared::{Active, Inner, ListenerKind, Listeners, Shared};
use crate::waiter::{Reply, Waiter};

/// Handles one message; `Some` ends the session.
pub(crate) fn deliver(
    inner: &mut Inner,
    shared: &Arc<Shared>,
    message: Message<'_>,
    retries: &mut RestoreRetries,
) -> Result<Option<Disconnected>, Violation> {
    let Inner {
        active, listeners, ..
    } = inner;
    let Some(active) = active else {
        return Ok(None);
    };
    let session = active.session.id();
    let effect = active.session.handle(message, &mut active.outgoing)?;
    match effect {
        Effect::None | Effect::Joined { .. } | Effect::Challenged { .. } => {}
        Effect::Aborted(error) => return Ok(Some(Disconnected::Aborted(error))),
        Effect::Left { asked: true, .. } => return Ok(Some(Disconnected::Left)),
        Effect::Left { error, .. } => return Ok(Some(Disconnected::Goodbye(error))),
        Effect::Answered { waiter, answer } => {
            settle(waiter, answer, listeners, shared, retries);
        }
        Effect::Progress {
            request,
            waiter,
            payload,
        } => {
            if !progress(waiter, &payload) {
                let out = &mut active.outgoing;
                // A CANCEL fits into every size limit.
                let _ = active.session.cancel(request, Default::default(), out);
            }
        }
        Effect::Event {
            listeners: keys,
            topic,
            publication,
            details,
            payload,
        } => {
            let event = event(topic, publication, &details, &payload);
            keys.iter()
                .for_each(|key| deliver_event(listeners, *key, &event));
        }
        // A handler's queue ends with it, and it is not restored.
        Effect::Revoked(keys) => {
            let removed = keys.iter().filter_map(|key| listeners.remove(key));
            removed.for_each(|own| shared.report(LifecycleEvent::Revoked(own.named())));
        }
        Effect::Interrupted { running, options } => {
            running
                .interrupt
                .send_replace(Some(Interrupt::new(&options)));
        }
        Effect::Continued {
            request,
            running,
            last,
            payload,
        } => {
            if !pass_chunk(running, last, &payload) {
                refuse(active, request);
            }
        }
        Effect::Invoked {
            request,
            key,
            details,
            payload,
        } => {
            let responder = Responder {
                shared: Arc::clone(shared),
                session,
                request,
            };
            let running = invoke(listeners, key, responder, details, &payload);
            match running {
                Some(running) => active.session.attach(request, running),
                None => refuse(active, request),
            }
        }
    }
    Ok(None)
}

/// Passes a chunk of a progressive invocation to its handler; returns whether the handler takes it, or wants no more.
fn pass_chunk(running: &mut Running, last: bool, payload: &Payload<'_>) -> bool {
    let chunks = match last {
        true => running.chunks.take(),
        false => running.chunks.clone(),
    };
    let arguments = Arguments::from_payload(payload);
    chunks.is_none_or(|chunks| chunks.try_send(arguments).is_ok())
}

fn settle(
    waiter: Waiter,
    answer: Answer<'_>,
    listeners: &mut Listeners,
    shared: &Shared,
    retries: &mut RestoreRetries,
) {
    let outcome = match answer {
        Answer::Result(payload) => Ok(Reply::Result(Arguments::from_payload(&payload))),
        Answer::Published(publication) => Ok(Reply::Published(publication)),
        Answer::Done => Ok(Reply::Done),
        Answer::Refused { uri, payload } => {
            let arguments = Arguments::from_payload(&payload);
            Err(Failure::Refused(ApplicationError::new(uri, arguments)))
        }
    };
    if let Waiter::Restoration(key) = &waiter
        && let Some(listener) = listeners.get_mut(key)
    {
        let own = listener.named();
        shared.report(match &outcome {
            Err(Failure::Refused(error)) => {
                listener.asked = false;
                LifecycleEvent::RestoreRefused {
                    listener: own,
                    error: error.clone(),
                    retry_in: retries.refused(&shared.config),
                }
            }
            _ => LifecycleEvent::Restored(own),
        });
    }
    waiter.settle(outcome);
}

/// Passes on a progressive result; `false` if the call has to be cancelled.
fn progress(waiter: &mut Waiter, payload: &Payload<'_>) -> bool {
    let Waiter::Results { results, overflow } = waiter else {
        // The caller did not request progressive results.
        return true;
    };
    if overflow.load(Ordering::Relaxed) {
        return true;
    }
    // The last place is reserved for the last result.
    if results.capacity() <= 1 {
        overflow.store(true, Ordering::Relaxed);
        return false;
    }
    let arguments = Arguments::from_payload(payload);
    // If the receiver is gone, the call is being cancelled already.
    let _ = results.try_send(Ok(Reply::Progress(arguments)));
    true
}

fn event(
    topic: &str,
    publication: PublicationId,
    details: &EventDetails<'_>,
    payload: &Payload<'_>,
) -> Event {
    Event {
        publication,
        topic: details.topic.as_deref().unwrap_or(topic).to_owned(),
        publisher: details.publisher.as_ref().map(Peer::of),
        retained: details.retained,
        trustlevel: trustlevel(details.passthru.as_deref()),
        arguments: Arguments::from_payload(payload),
    }
}

fn deliver_event(listeners: &Listeners, key: ListenerKey, event: &Event) {
    let listener = listeners.get(&key).map(|listener| &listener.kind);
    if let Some(ListenerKind::Subscription { queue, missed, .. }) = listener
        && queue.try_send(event.clone()).is_err()
    {
        missed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Queues an invocation for its handler; `None` without room or handler.
fn invoke(
    listeners: &Listeners,
    key: ListenerKey,
    responder: Responder,
    details: InvocationDetails<'_>,
    payload: &Payload<'_>,
) -> Option<Running> {
    let Some(ListenerKind::Registration {
        procedure,
        queue,
        chunks_max,
        ..
    }) = listeners.get(&key).map(|listener| &listener.kind)
    else {
        return None;
    };
    // Reserved first: a delivery without room would have to be dropped under the lock, and its drop answers the
    // invocation.
    let place = queue.try_reserve().ok()?;
    let (interrupt, receiver) = watch::channel(None);
    let (chunks, chunks_receiver) = match details.progress {
        true => {
            let (sender, receiver) = mpsc::channel(*chunks_max);
            (Some(sender), Some(receiver))
        }
        false => (None, None),
    };
    let invocation = Invocation {
        arguments: Arguments::from_payload(payload),
        procedure: match details.procedure {
            Some(called) => called.as_ref().into(),
            None => Arc::clone(procedure),
        },
        caller: details.caller.as_ref().map(Peer::of),
        trustlevel: trustlevel(details.passthru.as_deref()),
        timeout: Some(Duration::from_millis(details.timeout_ms)).filter(|time| !time.is_zero()),
        chunks: chunks_receiver,
        progress: Progress {
            wanted: details.receive_progress,
            responder: responder.clone(),
        },
        interrupts: Interrupts { receiver },
    };
    place.send(Delivery {
        invocation,
        unanswered: Unanswered::new(responder),
    });
    Some(Running { interrupt, chunks })
}

fn trustlevel(passthru: Option<&Dict>) -> Option<u64> {
    let mut passed_on = passthru.into_iter().flatten();
    let (_, level) = passed_on.find(|(key, _)| key == TRUSTLEVEL)?;
    level.as_u64()
}

/// Answers that the callee has no room for an invocation, or for a chunk of it.
fn refuse(active: &mut Active, request: RequestId) {
    let out = &mut active.outgoing;
    let uri = "wamp.error.unavailable";
    // An ERROR without arguments fits into every size limit.
    let _ = active
        .session
        .yield_error(request, uri, Payload::EMPTY, out);
}
