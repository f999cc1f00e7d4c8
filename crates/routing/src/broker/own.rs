//! Publications of the realm itself: meta events, and testaments of sessions that have left. Also rejects forwarded
//! duplicates.

use crosstie_wamp::{
    Disclosed, Message, Payload, PublicationId, PublishOptions, RequestId, Serializer, SessionId,
};

use super::forwarded::{self, Forwarded};
use super::receivers::Filter;
use super::retained::{Publication, Retained};
use super::{Broker, judging, permit_publish};
use crate::across;
use crate::authz::Action;
use crate::context::{Context, is_reserved};
use crate::events::MetaEvent;
use crate::fault::{Fault, error};
use crate::handover::Handed;
use crate::identity::SessionIndex;
use crate::testaments::Testament;

/// Cost to read a testament and find its receivers, and bytes read per step.
const STEPS_PER_TESTAMENT: u32 = 10;
const BYTES_PER_STEP: usize = 128;

impl Broker {
    /// Whether a permitted publication goes no further. It is answered as if it had no subscribers.
    #[cold]
    #[inline(never)]
    pub(super) fn is_done<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &PublishOptions,
    ) -> bool {
        let is_elsewhere = context.sessions[from].features.subscribes_elsewhere();
        let is_done = is_elsewhere && judging::only_asks(options);
        if !is_done && !self.comes_again(context, options) {
            return false;
        }
        if options.acknowledge {
            let publication = context.random.publication_id();
            let published = Message::Published {
                request,
                publication,
            };
            let _ = context.reply(from, &published);
        }
        true
    }

    /// Whether a forwarded publication has reached this realm before, or began here.
    fn comes_again<H>(&mut self, context: &Context<'_, H>, options: &PublishOptions) -> bool {
        let origin = options.passthru.as_deref().and_then(forwarded::origin);
        let Some((session, publication)) = origin else {
            return false;
        };
        let began_here = context.sessions.find_id(SessionId(session)).is_some();
        let mut has_come = |publication| {
            let forwarded = self.forwarded.get_or_insert_with(Forwarded::new);
            forwarded.is_known(publication)
        };
        began_here || publication.is_some_and(&mut has_come)
    }

    /// Sends the EVENTs of the realm's own publication.
    pub(crate) fn publish_meta<H>(&mut self, context: &mut Context<'_, H>, event: &MetaEvent) {
        let exact = self.exact(event.topic);
        self.matched.clear();
        self.index
            .for_each_pattern(event.topic, context.steps, |key| self.matched.push(key));
        context.spend(1);
        let crosses = self.across.is_some() && !event.is_local;
        if exact.is_none() && self.matched.is_empty() && !crosses {
            return;
        }
        let options = PublishOptions {
            exclude_me: false,
            ..PublishOptions::default()
        };
        let publication = Publication {
            id: context.random.publication_id(),
            publisher: None,
            options: &options,
            topic: event.topic,
            payload: Payload::new(Serializer::Json, &event.arguments, &[]),
        };
        if crosses {
            // The realm's own publication has no publisher to refuse.
            let _ = self.publish_across(context, &publication);
        }
        for key in exact.iter().chain(&self.matched) {
            self.send_event(context, SessionIndex::NONE, *key, &publication, None);
        }
    }

    /// Whether a session's testament may be published. Its role is checked when the testament is added, so that the
    /// session learns of a refusal, and again when the testament is published.
    pub(crate) fn judge_testament<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &PublishOptions,
        topic: &str,
        payload: Payload<'_>,
    ) -> Result<bool, Fault> {
        let disclosed = permit_publish(context, from, options, topic, false)?;
        if let Some(attributes) = options.passthru.as_deref() {
            context.check_said(from, attributes)?;
        }
        if options.sharding.is_some() {
            let text = "a testament is for no shard";
            return Err(Fault::new(error::OPTION_NOT_ALLOWED, text));
        }
        if options.retain {
            Retained::check(context, options, topic, payload)?;
        }
        Ok(disclosed)
    }

    /// Publishes testaments of a session that has left, for that many steps; returns whether there were any. If other
    /// nodes may have published them already, they reach only this node's sessions.
    pub(crate) fn publish_testaments<H>(
        &mut self,
        context: &mut Context<'_, H>,
        (index, is_doubtful): (SessionIndex, bool),
        steps_max: u32,
    ) -> bool {
        let end = context.steps.saturating_add(steps_max);
        let mut was_any = false;
        while *context.steps < end || !was_any {
            let rare = context.sessions[index].rare.as_mut();
            let Some(testament) = rare.and_then(|rare| rare.testaments.take()) else {
                break;
            };
            was_any = true;
            context.hold(index, -(testament.bytes() as isize));
            context.spend(STEPS_PER_TESTAMENT + (testament.bytes() / BYTES_PER_STEP) as u32);
            let crosses = !(is_doubtful && testament.is_entrusted);
            self.publish_testament(context, (index, crosses), &testament);
        }
        was_any
    }

    /// Publishes a testament on behalf of the node that handed it over, as that node would have.
    pub(crate) fn publish_handed<H>(&mut self, context: &mut Context<'_, H>, handed: &Handed) {
        let Some(Message::Publish {
            request,
            options,
            topic,
            payload,
        }) = handed.message()
        else {
            return;
        };
        let is_taken = context.check_uri(Action::Publish, &topic).is_ok() && !is_reserved(&topic);
        let publisher = handed.publisher.as_ref();
        let publication = across::Publication {
            id: PublicationId(request.0),
            publisher: publisher.map(|(session, who)| Disclosed {
                session: *session,
                authid: (&*who.authid).into(),
                authrole: (&*who.authrole).into(),
            }),
            options: &options,
            topic: &topic,
            payload,
            retained: None,
        };
        let kept = Publication {
            id: publication.id,
            publisher: None,
            options: &options,
            topic: &topic,
            payload,
        };
        let retained = options.retain.then(|| self.retained.begin(context, &kept));
        let crossing = across::Publication {
            retained,
            ..publication.clone()
        };
        if !is_taken || context.out.publish_across(&crossing).is_err() {
            return;
        }
        if options.retain {
            let publisher = handed.publisher.clone();
            let _ = self.retained.keep_of(context, publisher, &kept);
        }
        self.publish_from_across(context, &publication);
    }

    /// Publishes one testament. If the session may not publish it any more, it is dropped, as without `acknowledge`
    /// while the session was there.
    fn publish_testament<H>(
        &mut self,
        context: &mut Context<'_, H>,
        (from, crosses): (SessionIndex, bool),
        testament: &Testament,
    ) {
        let Ok(Message::Publish {
            request,
            options,
            topic,
            payload,
        }) = testament.message()
        else {
            return;
        };
        let Ok(disclosed) = self.judge_testament(context, from, &options, &topic, payload) else {
            return;
        };
        let levelled = context.levelled(from, &options, &topic);
        let options = levelled.as_deref().unwrap_or(&options);
        let exact = self.exact(&topic);
        self.matched.clear();
        self.index
            .for_each_pattern(&topic, context.steps, |key| self.matched.push(key));
        let publication = Publication {
            id: PublicationId(request.0),
            publisher: disclosed.then_some(from),
            options,
            topic: &topic,
            payload,
        };
        let crosses = crosses && self.across.is_some();
        if crosses && self.publish_across(context, &publication).is_err() {
            return;
        }
        if options.retain && self.retained.keep(context, from, &publication).is_err() {
            return;
        }
        let filter = options
            .receivers
            .as_deref()
            .map(|lists| Filter::new(lists, Some(from), context));
        for key in exact.iter().chain(&self.matched) {
            self.send_event(context, from, *key, &publication, filter.as_ref());
        }
    }
}
