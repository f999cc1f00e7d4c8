//! Carries events and calls through a link. Payloads pass as received.

use crosstie_wamp::{
    CallOptions, CancelOptions, Dict, EventDetails, InterruptOptions, InvocationDetails, Message,
    MessageType, Payload, PublicationId, PublishOptions, Receivers, RegistrationId, RequestId,
    ResultDetails, SubscriptionId, Value, YieldOptions,
};

use crate::counts::Count;
use crate::leg::{Asked, Subscribed};
use crate::link::Link;
use crate::requests::{payload, written};
use crate::sides::{End, Ended, Outbox, Side, is_reserved};
use crate::trail::{extended, is_returned, trail};

impl Link {
    pub(crate) fn handle_event(
        &mut self,
        side: Side,
        subscription: SubscriptionId,
        (publication, details): (PublicationId, EventDetails<'_>),
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let subscribed = self.legs[side as usize].subscribed.get(&subscription);
        let topic = match subscribed {
            Some(Subscribed::Mirror(key)) => key.uri.clone(),
            Some(Subscribed::Meta(topic)) => {
                let topic = *topic;
                return self.handle_meta_event(side, topic, &payload, out);
            }
            Some(Subscribed::Announcements) => {
                return self.handle_announcement(side, &payload, out);
            }
            // It was given up meanwhile.
            None => return Ok(()),
        };
        let topic = details.topic.as_deref().map_or(topic, Into::into);
        let topic = &*topic;
        // A pattern may match a realm's meta events.
        if is_reserved(topic) {
            return Ok(());
        }
        let behind = trail(details.passthru.as_deref());
        if is_returned(behind, self.ends(), &self.settings) {
            out.count(Count::EventsReturned);
            return Ok(());
        }
        self.carry_event(side, topic, (publication, details), payload, out);
        Ok(())
    }

    /// Publishes an event of `side` on the other side.
    fn carry_event(
        &mut self,
        side: Side,
        topic: &str,
        (publication, details): (PublicationId, EventDetails<'_>),
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) {
        let to = side.other();
        let own = &self.legs[side as usize].end;
        let publisher = details.publisher.as_ref();
        let passthru = extended(details.passthru, publisher, own, Some(publication));
        let is_acknowledged = to == Side::Remote;
        let options = PublishOptions {
            acknowledge: is_acknowledged,
            receivers: self.receivers(to),
            passthru: Some(passthru),
            ..PublishOptions::default()
        };
        let calls_max = self.settings.calls_max;
        let leg = &mut self.legs[to as usize];
        let message = |request| Message::Publish {
            request,
            options,
            topic: topic.into(),
            payload,
        };
        let said = match is_acknowledged {
            true if leg.carried >= calls_max => {
                Err("too many publications await their acknowledgements".to_owned())
            }
            true => leg.ask(to, Asked::Publish, out, message).map(drop),
            false => {
                let request = leg.next_request();
                out.say(to, &message(request))
            }
        };
        match said {
            Ok(()) => out.count(match to {
                Side::Remote => Count::EventsToRemote,
                Side::Local => Count::EventsToLocal,
            }),
            Err(why) => {
                out.count(Count::EventsDropped);
                out.warn(&format!("an event of '{topic}' is dropped: {why}"));
            }
        }
    }

    pub(crate) fn handle_invocation(
        &mut self,
        side: Side,
        (request, registration): (RequestId, RegistrationId),
        details: InvocationDetails<'_>,
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let to = side.other();
        let Some(key) = self.legs[side as usize].registered.get(&registration) else {
            return self.refuse(side, request, UNAVAILABLE, "it was given up just now", out);
        };
        let key = key.uri.clone();
        let procedure = details.procedure.as_deref().unwrap_or(&key);
        if is_reserved(procedure) {
            return self.refuse(side, request, NO_SUCH, procedure, out);
        }
        let behind = trail(details.passthru.as_deref());
        if is_returned(behind, self.ends(), &self.settings) {
            out.count(Count::CallsReturned);
            let why = "the call has come through this link before, or through too many";
            return self.refuse(side, request, UNAVAILABLE, why, out);
        }
        let own = &self.legs[side as usize].end;
        let options = CallOptions {
            receive_progress: details.receive_progress,
            progress: details.progress,
            passthru: Some(extended(
                details.passthru,
                details.caller.as_ref(),
                own,
                None,
            )),
            ..CallOptions::default()
        };
        let further = self.legs[side as usize].invoked.get(&request).copied();
        let leg = &mut self.legs[to as usize];
        let message = |request| Message::Call {
            request,
            options,
            procedure: procedure.into(),
            payload,
        };
        if let Some(call) = further {
            // A further chunk of a progressive call.
            let said = out.say(to, &message(call));
            return said.or_else(|why| {
                self.handle_interrupt(side, request, &InterruptOptions::default(), out)?;
                self.refuse(side, request, INVALID, &why, out)
            });
        }
        if leg.carried >= self.settings.calls_max {
            let why = "too many calls are open through the link";
            return self.refuse(side, request, UNAVAILABLE, why, out);
        }
        let asked = Asked::Call {
            invocation: request,
        };
        match leg.ask(to, asked, out, message) {
            Ok(call) => {
                self.legs[side as usize].invoked.insert(request, call);
                out.count(match to {
                    Side::Remote => Count::CallsToRemote,
                    Side::Local => Count::CallsToLocal,
                });
                Ok(())
            }
            Err(why) => self.refuse(side, request, INVALID, &why, out),
        }
    }

    /// The caller no longer waits for an answer.
    pub(crate) fn handle_interrupt(
        &self,
        side: Side,
        request: RequestId,
        options: &InterruptOptions<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let Some(call) = self.legs[side as usize].invoked.get(&request).copied() else {
            return Ok(());
        };
        let cancel = Message::Cancel {
            request: call,
            options: CancelOptions {
                mode: options.mode.unwrap_or_default(),
            },
        };
        let to = side.other();
        out.say(to, &cancel)
            .map_err(|why| Ended(format!("{} side: {why}", to.name())))
    }

    /// Answers the invocation on the other side with a RESULT of `side`.
    pub(crate) fn carry_result(
        &mut self,
        side: Side,
        (call, invocation): (RequestId, RequestId),
        details: ResultDetails<'_>,
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let to = side.other();
        let is_last = !details.progress;
        if is_last {
            self.legs[side as usize].answered(call);
        }
        if !self.legs[to as usize].invoked.contains_key(&invocation) {
            // The link itself has answered it.
            return Ok(());
        }
        let answer = Message::Yield {
            request: invocation,
            options: YieldOptions {
                progress: details.progress,
                passthru: details.passthru,
            },
            payload,
        };
        let said = out.say(to, &answer);
        if is_last {
            self.legs[to as usize].invoked.remove(&invocation);
        }
        match said {
            Ok(()) => Ok(()),
            Err(why) => {
                if !is_last {
                    // Further results are dropped.
                    self.handle_interrupt(to, invocation, &InterruptOptions::default(), out)?;
                }
                self.refuse(to, invocation, INVALID, &why, out)
            }
        }
    }

    /// Answers the invocation on the other side with an ERROR of `side`, unchanged.
    pub(crate) fn carry_error(
        &mut self,
        side: Side,
        invocation: RequestId,
        (uri, details): (&str, Dict),
        payload: Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let to = side.other();
        let is_open = self.legs[to as usize].invoked.remove(&invocation);
        if is_open.is_none() {
            return Ok(());
        }
        let answer = Message::Error {
            request_type: MessageType::Invocation,
            request: invocation,
            details,
            error: uri.into(),
            payload,
        };
        match out.say(to, &answer) {
            Ok(()) => Ok(()),
            Err(why) => self.refuse(to, invocation, uri, &why, out),
        }
    }

    /// Answers an invocation with an error of the link itself.
    fn refuse(
        &mut self,
        side: Side,
        invocation: RequestId,
        uri: &str,
        why: &str,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        out.count(Count::CallsRefused);
        self.legs[side as usize].invoked.remove(&invocation);
        let serializer = self.legs[side as usize].end.serializer;
        let args = written(serializer, vec![Value::from(why)]);
        let answer = Message::Error {
            request_type: MessageType::Invocation,
            request: invocation,
            details: Dict::new(),
            error: uri.into(),
            payload: payload(serializer, &args),
        };
        out.say(side, &answer)
            .map_err(|why| Ended(format!("{} side: {why}", side.name())))
    }

    fn receivers(&self, to: Side) -> Option<Box<Receivers>> {
        let excluded = &self.settings.exclude_authid;
        (to == Side::Remote && !excluded.is_empty()).then(|| {
            Box::new(Receivers {
                exclude_authid: Some(excluded.clone()),
                ..Receivers::default()
            })
        })
    }

    fn ends(&self) -> [&End; 2] {
        let [local, remote] = &self.legs;
        [&local.end, &remote.end]
    }
}

const UNAVAILABLE: &str = "wamp.error.unavailable";
const NO_SUCH: &str = "wamp.error.no_such_procedure";
/// The message cannot be sent to the other side: too long, or without a form in its serializer.
const INVALID: &str = "wamp.error.invalid_argument";
