//! The application's requests to the session.
//!
//! Request ids count up without gaps (WAMP basic profile, "IDs"), so an id is used only once its message is in the
//! queue.

use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Dict, Message, MessageType, Payload, PublishOptions,
    RegisterOptions, RequestId, SubscribeOptions, YieldOptions,
};

use super::{ANSWERED_EARLY_MAX, ListenerKey, Pending, Request, Session, Topic};
use crate::error::Unsendable;
use crate::outgoing::Outgoing;

impl<W, I> Session<W, I> {
    pub(crate) fn call(
        &mut self,
        procedure: &str,
        options: CallOptions,
        payload: Payload<'_>,
        waiter: W,
        out: &mut Outgoing,
    ) -> Result<RequestId, Unsendable> {
        let kind = Request::Call {
            open: options.progress,
        };
        self.request(kind, Some(waiter), out, |request| Message::Call {
            request,
            options,
            procedure: procedure.into(),
            payload,
        })
    }

    /// Sends a further chunk of a progressive call; `false` if it was answered already, or its last chunk was sent.
    pub(crate) fn call_further(
        &mut self,
        request: RequestId,
        procedure: &str,
        options: CallOptions,
        payload: Payload<'_>,
        out: &mut Outgoing,
    ) -> Result<bool, Unsendable> {
        let Some(Pending {
            kind: Request::Call { open },
            ..
        }) = self.pending.get_mut(&request)
        else {
            return Ok(false);
        };
        if !*open {
            return Ok(false);
        }
        let more = options.progress;
        out.push(&Message::Call {
            request,
            options,
            procedure: procedure.into(),
            payload,
        })?;
        *open = more;
        Ok(true)
    }

    /// Requests the cancellation of an unanswered call.
    pub(crate) fn cancel(
        &mut self,
        request: RequestId,
        mode: CancelMode,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        let Some(Pending {
            kind: Request::Call { open },
            ..
        }) = self.pending.get_mut(&request)
        else {
            return Ok(());
        };
        *open = false;
        out.push(&Message::Cancel {
            request,
            options: CancelOptions { mode },
        })
    }

    /// Publishes; the router answers if and only if there is a waiter.
    pub(crate) fn publish(
        &mut self,
        topic: &str,
        mut options: PublishOptions,
        payload: Payload<'_>,
        waiter: Option<W>,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        options.acknowledge = waiter.is_some();
        let acknowledge = options.acknowledge;
        let message = |request| Message::Publish {
            request,
            options,
            topic: topic.into(),
            payload,
        };
        let request = self.request(Request::Publish, waiter, out, message)?;
        if !acknowledge {
            self.pending.remove(&request);
        }
        Ok(())
    }

    pub(crate) fn register(
        &mut self,
        key: ListenerKey,
        procedure: &str,
        options: RegisterOptions,
        waiter: W,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        let kind = Request::Register {
            key,
            abandoned: false,
        };
        self.request(kind, Some(waiter), out, |request| Message::Register {
            request,
            options,
            procedure: procedure.into(),
        })?;
        Ok(())
    }

    /// Unregisters a registration. Without one there is nothing to do, and `waiter` is returned.
    pub(crate) fn unregister(
        &mut self,
        key: ListenerKey,
        waiter: Option<W>,
        out: &mut Outgoing,
    ) -> Result<Option<W>, Unsendable> {
        for pending in self.pending.values_mut() {
            if let Request::Register { key: of, abandoned } = &mut pending.kind
                && *of == key
            {
                *abandoned = true;
                return Ok(waiter);
            }
        }
        let mut registrations = self.registrations.iter();
        let Some(registration) = registrations.find_map(|(id, of)| (*of == key).then_some(*id))
        else {
            return Ok(waiter);
        };
        let kind = Request::Unregister(registration);
        self.request(kind, waiter, out, |request| Message::Unregister {
            request,
            registration,
        })?;
        Ok(None)
    }

    pub(crate) fn subscribe(
        &mut self,
        key: ListenerKey,
        topic: &str,
        options: SubscribeOptions,
        waiter: W,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        let kind = Request::Subscribe {
            key,
            topic: topic.to_owned(),
            match_policy: options.match_policy,
            abandoned: false,
        };
        self.request(kind, Some(waiter), out, |request| Message::Subscribe {
            request,
            options,
            topic: topic.into(),
        })?;
        Ok(())
    }

    /// Ends a listener's subscription. If the topic has other listeners, the router is not involved, and `waiter` is
    /// returned.
    pub(crate) fn unsubscribe(
        &mut self,
        key: ListenerKey,
        waiter: Option<W>,
        out: &mut Outgoing,
    ) -> Result<Option<W>, Unsendable> {
        for pending in self.pending.values_mut() {
            if let Request::Subscribe {
                key: of, abandoned, ..
            } = &mut pending.kind
                && *of == key
            {
                *abandoned = true;
                return Ok(waiter);
            }
        }
        let mut subscriptions = self.subscriptions.iter_mut();
        let found = subscriptions.find(|(_, topic)| topic.listeners.contains(&key));
        let Some((&subscription, topic)) = found else {
            return Ok(waiter);
        };
        topic.listeners.retain(|of| *of != key);
        if !topic.listeners.is_empty() {
            return Ok(waiter);
        }
        let topic = &self.subscriptions[&subscription];
        if self.is_being_subscribed(topic) {
            // The router would end the subscription of the listener being added.
            return Ok(waiter);
        }
        let kind = Request::Unsubscribe(subscription);
        self.request(kind, waiter, out, |request| Message::Unsubscribe {
            request,
            subscription,
        })?;
        Ok(None)
    }

    /// Answers an invocation, for good unless `options.progress`; `false` if it is over.
    pub(crate) fn yield_result(
        &mut self,
        request: RequestId,
        options: YieldOptions,
        payload: Payload<'_>,
        out: &mut Outgoing,
    ) -> Result<bool, Unsendable> {
        if !self.invocations.contains_key(&request) {
            return Ok(false);
        }
        let last = !options.progress;
        out.push(&Message::Yield {
            request,
            options,
            payload,
        })?;
        if last {
            self.end_invocation(request);
        }
        Ok(true)
    }

    /// Answers an invocation with an error; `false` if it is over.
    pub(crate) fn yield_error(
        &mut self,
        request: RequestId,
        uri: &str,
        payload: Payload<'_>,
        out: &mut Outgoing,
    ) -> Result<bool, Unsendable> {
        if !self.invocations.contains_key(&request) {
            return Ok(false);
        }
        out.push(&Message::Error {
            request_type: MessageType::Invocation,
            request,
            details: Dict::new(),
            error: uri.into(),
            payload,
        })?;
        self.end_invocation(request);
        Ok(true)
    }

    /// Stores the running handler of an invocation.
    pub(crate) fn attach(&mut self, request: RequestId, running: I) {
        if let Some(invocation) = self.invocations.get_mut(&request) {
            invocation.running = Some(running);
        }
    }

    pub(super) fn is_being_subscribed(&self, wanted: &Topic) -> bool {
        self.pending.values().any(|pending| match &pending.kind {
            Request::Subscribe {
                topic,
                match_policy,
                abandoned,
                ..
            } => !abandoned && *topic == wanted.topic && *match_policy == wanted.match_policy,
            _ => false,
        })
    }

    pub(super) fn request<'m>(
        &mut self,
        kind: Request,
        waiter: Option<W>,
        out: &mut Outgoing,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<RequestId, Unsendable> {
        let request = RequestId(self.last_request + 1);
        out.push(&message(request))?;
        self.last_request = request.0;
        self.pending.insert(request, Pending { kind, waiter });
        Ok(request)
    }

    fn end_invocation(&mut self, request: RequestId) {
        if let Some(invocation) = self.invocations.remove(&request)
            && invocation.open
        {
            if self.answered_early.len() == ANSWERED_EARLY_MAX {
                self.answered_early.pop_front();
            }
            self.answered_early.push_back(request);
        }
    }
}
