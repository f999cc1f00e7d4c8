//! The router's messages to the session.

use crosstie_wamp::{
    Dict, EventDetails, Message, MessageType, Payload, PublicationId, RegistrationId, RequestId,
    ResultDetails, Revoked, SubscriptionId,
};

use super::{Answer, Effect, Phase, Request, Session, Topic, Violation};
use crate::arguments::Arguments;
use crate::error::{ApplicationError, Unsendable};
use crate::outgoing::Outgoing;

pub(super) type Handled<'a, W, I> = Result<Effect<'a, W, I>, Violation>;

impl<W, I> Session<W, I> {
    /// Handles one message of the router.
    pub(crate) fn handle<'a>(
        &'a mut self,
        message: Message<'a>,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        match self.phase {
            Phase::Joining => self.handle_joining(message),
            Phase::Joined | Phase::Leaving => self.handle_joined(message, out),
            Phase::Before | Phase::Over => Err(unexpected("nothing outside a session", &message)),
        }
    }

    fn handle_joining<'a>(&'a mut self, message: Message<'a>) -> Handled<'a, W, I> {
        match message {
            Message::Welcome { session, details } => {
                self.phase = Phase::Joined;
                self.id = session;
                Ok(Effect::Joined { session, details })
            }
            Message::Challenge { method, extra } => Ok(Effect::Challenged {
                method: method.into_owned(),
                extra,
            }),
            Message::Abort { details, reason } => {
                self.phase = Phase::Over;
                Ok(Effect::Aborted(reason_given(&reason, details)))
            }
            message => Err(unexpected("WELCOME, CHALLENGE or ABORT", &message)),
        }
    }

    fn handle_joined<'a>(
        &'a mut self,
        message: Message<'a>,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        match message {
            Message::Result {
                request,
                details,
                payload,
            } => self.handle_result(request, &details, payload),
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => Ok(self.handle_event(subscription, publication, details, payload)),
            Message::Invocation {
                request,
                registration,
                details,
                payload,
            } => self.handle_invocation(request, registration, details, payload, out),
            Message::Interrupt { request, options } => Ok(self.handle_interrupt(request, options)),
            Message::Published {
                request,
                publication,
            } => {
                let expected = |kind: &Request| matches!(kind, Request::Publish);
                self.answer(
                    request,
                    "PUBLISHED",
                    expected,
                    Answer::Published(publication),
                )
            }
            Message::Registered {
                request,
                registration,
            } => self.handle_registered(request, registration, out),
            Message::Unregistered {
                request: RequestId(0),
                revoked,
            } => Ok(self.handle_unregistered_unasked(revoked)),
            Message::Unregistered { request, .. } => self.handle_unregistered(request),
            Message::Subscribed {
                request,
                subscription,
            } => self.handle_subscribed(request, subscription, out),
            Message::Unsubscribed {
                request: RequestId(0),
                revoked,
            } => Ok(self.handle_unsubscribed_unasked(revoked)),
            Message::Unsubscribed { request, .. } => self.handle_unsubscribed(request),
            Message::Error {
                request_type,
                request,
                error,
                payload,
                ..
            } => self.handle_error(request_type, request, error.into_owned(), payload, out),
            Message::Goodbye { details, reason } => Ok(self.handle_goodbye(details, &reason, out)),
            Message::Abort { details, reason } => {
                self.phase = Phase::Over;
                Ok(Effect::Aborted(reason_given(&reason, details)))
            }
            message => Err(unexpected("a message that routers send", &message)),
        }
    }

    fn handle_event<'a>(
        &'a self,
        subscription: SubscriptionId,
        publication: PublicationId,
        details: EventDetails<'a>,
        payload: Payload<'a>,
    ) -> Effect<'a, W, I> {
        match self.subscriptions.get(&subscription) {
            Some(topic) if !topic.listeners.is_empty() => Effect::Event {
                listeners: &topic.listeners,
                topic: &topic.topic,
                publication,
                details,
                payload,
            },
            // It crossed an UNSUBSCRIBE.
            _ => Effect::None,
        }
    }

    fn handle_unregistered<'a>(&'a mut self, request: RequestId) -> Handled<'a, W, I> {
        if let Some(Request::Unregister(id)) = self.pending_kind(request) {
            let id = *id;
            self.registrations.remove(&id);
        }
        let expected = |kind: &Request| matches!(kind, Request::Unregister(_));
        self.answer(request, "UNREGISTERED", expected, Answer::Done)
    }

    fn handle_unsubscribed<'a>(&'a mut self, request: RequestId) -> Handled<'a, W, I> {
        if let Some(Request::Unsubscribe(id)) = self.pending_kind(request) {
            let id = *id;
            self.forget_subscription(id);
        }
        let expected = |kind: &Request| matches!(kind, Request::Unsubscribe(_));
        self.answer(request, "UNSUBSCRIBED", expected, Answer::Done)
    }

    fn handle_goodbye(
        &mut self,
        details: Dict,
        reason: &str,
        out: &mut Outgoing,
    ) -> Effect<'_, W, I> {
        let asked = self.phase == Phase::Leaving;
        if !asked {
            let reply = out.push(&Message::Goodbye {
                details: Dict::new(),
                reason: "wamp.close.goodbye_and_out".into(),
            });
            never_refused(reply);
        }
        self.phase = Phase::Over;
        let error = reason_given(reason, details);
        Effect::Left { asked, error }
    }

    /// Handles a revoked registration.
    fn handle_unregistered_unasked(
        &mut self,
        revoked: Option<Revoked<'_, RegistrationId>>,
    ) -> Effect<'_, W, I> {
        let key = revoked.and_then(|revoked| self.registrations.remove(&revoked.id));
        key.map_or(Effect::None, |key| Effect::Revoked(vec![key]))
    }

    /// Handles a revoked subscription.
    fn handle_unsubscribed_unasked(
        &mut self,
        revoked: Option<Revoked<'_, SubscriptionId>>,
    ) -> Effect<'_, W, I> {
        let topic = revoked.and_then(|revoked| self.subscriptions.remove(&revoked.id));
        topic.map_or(Effect::None, |topic| Effect::Revoked(topic.listeners))
    }

    fn handle_result<'a>(
        &'a mut self,
        request: RequestId,
        details: &ResultDetails<'_>,
        payload: Payload<'a>,
    ) -> Handled<'a, W, I> {
        if !details.progress {
            let expected = |kind: &Request| matches!(kind, Request::Call { .. });
            return self.answer(request, "RESULT", expected, Answer::Result(payload));
        }
        self.check_request(request, "RESULT")?;
        let Some(pending) = self.pending.get_mut(&request) else {
            return Ok(Effect::None);
        };
        if !matches!(pending.kind, Request::Call { .. }) {
            return Err(mismatch(&pending.kind, request, "RESULT"));
        }
        Ok(match &mut pending.waiter {
            Some(waiter) => Effect::Progress {
                request,
                waiter,
                payload,
            },
            None => Effect::None,
        })
    }

    fn handle_registered<'a>(
        &'a mut self,
        request: RequestId,
        registration: RegistrationId,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        if let Some(Request::Register { key, abandoned }) = self.pending_kind(request) {
            let (key, abandoned) = (*key, *abandoned);
            self.registrations.insert(registration, key);
            if abandoned {
                let kind = Request::Unregister(registration);
                let sent = self.request(kind, None, out, |request| Message::Unregister {
                    request,
                    registration,
                });
                never_refused(sent.map(drop));
            }
        }
        let expected = |kind: &Request| matches!(kind, Request::Register { .. });
        self.answer(request, "REGISTERED", expected, Answer::Done)
    }

    fn handle_subscribed<'a>(
        &'a mut self,
        request: RequestId,
        subscription: SubscriptionId,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        if let Some(Request::Subscribe {
            key,
            topic,
            match_policy,
            abandoned,
        }) = self.pending_kind(request)
        {
            let (key, abandoned) = (*key, *abandoned);
            let new = Topic {
                topic: topic.clone(),
                match_policy: *match_policy,
                listeners: Vec::new(),
            };
            let topic = self.subscriptions.entry(subscription).or_insert(new);
            if !abandoned {
                topic.listeners.push(key);
            }
        }
        // Answered first: other pending requests decide whether the subscription can end.
        let expected = |kind: &Request| matches!(kind, Request::Subscribe { .. });
        let waiter = self.settle(request, "SUBSCRIBED", expected)?;
        self.release(subscription, out);
        Ok(answered(waiter, Answer::Done))
    }

    fn handle_error<'a>(
        &'a mut self,
        request_type: MessageType,
        request: RequestId,
        uri: String,
        payload: Payload<'a>,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        let mut given_up = None;
        match self.pending_kind(request) {
            // The router does not have it; neither do we from now on.
            Some(Request::Unregister(id)) => {
                let id = *id;
                self.registrations.remove(&id);
            }
            Some(Request::Unsubscribe(id)) => {
                let id = *id;
                self.forget_subscription(id);
            }
            Some(Request::Subscribe {
                topic,
                match_policy,
                ..
            }) => {
                let same = |of: &Topic| of.topic == *topic && of.match_policy == *match_policy;
                let mut subscriptions = self.subscriptions.iter();
                given_up = subscriptions.find_map(|(id, of)| same(of).then_some(*id));
            }
            _ => {}
        }
        let expected = |kind: &Request| kind.message_type() == request_type;
        let waiter = self.settle(request, "ERROR", expected)?;
        if let Some(subscription) = given_up {
            self.release(subscription, out);
        }
        Ok(answered(waiter, Answer::Refused { uri, payload }))
    }

    /// Unsubscribes a subscription without listeners, unless one is about to be added.
    fn release(&mut self, subscription: SubscriptionId, out: &mut Outgoing) {
        let Some(topic) = self.subscriptions.get(&subscription) else {
            return;
        };
        let under_way = self
            .pending
            .values()
            .any(|pending| matches!(pending.kind, Request::Unsubscribe(id) if id == subscription));
        if topic.listeners.is_empty() && !under_way && !self.is_being_subscribed(topic) {
            let kind = Request::Unsubscribe(subscription);
            let sent = self.request(kind, None, out, |request| Message::Unsubscribe {
                request,
                subscription,
            });
            never_refused(sent.map(drop));
        }
    }

    /// A listener that was added while the UNSUBSCRIBE was in flight is the router's new subscriber.
    fn forget_subscription(&mut self, subscription: SubscriptionId) {
        let topic = self.subscriptions.get(&subscription);
        if topic.is_some_and(|topic| topic.listeners.is_empty()) {
            self.subscriptions.remove(&subscription);
        }
    }

    fn answer<'a>(
        &'a mut self,
        request: RequestId,
        name: &str,
        expected: impl Fn(&Request) -> bool,
        answer: Answer<'a>,
    ) -> Handled<'a, W, I> {
        let waiter = self.settle(request, name, expected)?;
        Ok(answered(waiter, answer))
    }

    /// Ends a request, and returns its waiter.
    fn settle(
        &mut self,
        request: RequestId,
        name: &str,
        expected: impl Fn(&Request) -> bool,
    ) -> Result<Option<W>, Violation> {
        self.check_request(request, name)?;
        let Some(pending) = self.pending.get(&request) else {
            // Answered before; a cancelled call may be answered twice.
            return Ok(None);
        };
        if !expected(&pending.kind) {
            return Err(mismatch(&pending.kind, request, name));
        }
        let pending = self.pending.remove(&request);
        Ok(pending.and_then(|pending| pending.waiter))
    }

    fn check_request(&self, request: RequestId, name: &str) -> Result<(), Violation> {
        if request.0 <= self.last_request {
            return Ok(());
        }
        Err(Violation {
            expected: format!("request ids up to {}", self.last_request),
            found: format!("{name} {request}"),
        })
    }

    fn pending_kind(&self, request: RequestId) -> Option<&Request> {
        self.pending.get(&request).map(|pending| &pending.kind)
    }
}

impl Request {
    fn message_type(&self) -> MessageType {
        match self {
            Self::Call { .. } => MessageType::Call,
            Self::Publish => MessageType::Publish,
            Self::Register { .. } => MessageType::Register,
            Self::Unregister(_) => MessageType::Unregister,
            Self::Subscribe { .. } => MessageType::Subscribe,
            Self::Unsubscribe(_) => MessageType::Unsubscribe,
        }
    }
}

fn answered<'a, W, I>(waiter: Option<W>, answer: Answer<'a>) -> Effect<'a, W, I> {
    match waiter {
        Some(waiter) => Effect::Answered { waiter, answer },
        None => Effect::None,
    }
}

/// ABORT and GOODBYE have a text in `Details.message`.
fn reason_given(uri: &str, details: Dict) -> ApplicationError {
    let message = details.into_iter().find(|(key, _)| key == "message");
    let args: Vec<_> = message.into_iter().map(|(_, value)| value).collect();
    ApplicationError::new(uri, Arguments::from(args))
}

/// The session's own messages are short and hold only values that every serializer can write.
pub(super) fn never_refused(sent: Result<(), Unsendable>) {
    debug_assert_eq!(sent, Ok(()), "a message without arguments fits everywhere");
}

fn mismatch(asked: &Request, request: RequestId, name: &str) -> Violation {
    let asked = asked.message_type().name();
    Violation {
        expected: format!("the answer to {asked} {request}"),
        found: name.to_owned(),
    }
}

fn unexpected(expected: &str, message: &Message<'_>) -> Violation {
    Violation {
        expected: expected.to_owned(),
        found: message.kind().name().to_owned(),
    }
}
