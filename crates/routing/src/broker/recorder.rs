//! Records publications, and reads the recordings.

use crosstie_wamp::{
    MatchPolicy, Message, MessageType, PublicationId, PublishOptions, Receivers, RequestId,
    SessionId, SubscriptionId,
};

use super::history::{History, LogIndex};
use super::retained::{Publication, effective};
use super::{Broker, Reach, Subscription, SubscriptionKey};
use crate::authz::{Action, Subject};
use crate::context::Context;
use crate::events::MetaEvents;
use crate::fault::{Fault, error};
use crate::identity::{Identity, SessionIndex};
use crate::recorded::{Recorded, weight};
use crate::{Acknowledgement, Note, Outbox, Realm, Recording, Time};

/// Bytes that are copied per step.
const BYTES_PER_STEP: usize = 128;

impl Broker {
    /// Starts to record publications to these topics and patterns, with or without subscribers.
    pub(crate) fn record(&mut self, recordings: &[Recording], meta_api: bool) -> MetaEvents {
        let mut events = MetaEvents::default();
        for recording in recordings {
            let Recording {
                uri,
                match_policy,
                events_max,
                age_ms_max,
            } = recording;
            if self.key_of_pattern(*match_policy, uri).is_some() {
                continue;
            }
            let watching = meta_api.then_some(&mut events);
            let SubscriptionKey(key) = self.create(watching, Time(0), *match_policy, uri);
            let log = self.history.get_mut().add(*events_max, *age_ms_max);
            self.subscriptions[key as usize].reach = Reach::Recorded(log);
        }
        events
    }

    /// Records a publication; returns whether its EVENT carries the topic.
    #[cold]
    #[inline(never)]
    pub(super) fn keep<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        (log, subscription): (LogIndex, &Subscription),
        publication: &Publication<'_>,
    ) -> bool {
        // The realm's own events are not recorded.
        if from != SessionIndex::NONE {
            let publisher = publication.publisher.map(|index| {
                let session = &context.sessions[index];
                (session.id, session.identity.clone())
            });
            self.keep_of(context, publisher, log, publication);
        }
        subscription.match_policy != MatchPolicy::Exact
    }

    /// Records a publication with its publisher, if disclosed.
    pub(super) fn keep_of<H>(
        &self,
        context: &mut Context<'_, H>,
        publisher: Option<(SessionId, Identity)>,
        log: LogIndex,
        publication: &Publication<'_>,
    ) {
        let options = publication.options;
        let lists = options.receivers.as_deref();
        let receivers = lists.and_then(|lists| effective(lists, context.config.empty_eligible));
        // Session ids do not outlive their sessions, so that a later query could not check these lists.
        if let Some(Receivers {
            eligible, exclude, ..
        }) = receivers.as_deref()
            && (eligible.is_some()
                || exclude.as_ref().is_some_and(|ids| {
                    let index = |id: &SessionId| context.sessions.find_id(*id);
                    // Those for whom it subscribes are sent the event otherwise.
                    let is_for_others = |id: &SessionId| {
                        let index = index(id);
                        index
                            .is_some_and(|at| context.sessions[at].features.subscribes_for_others())
                    };
                    !ids.iter().all(is_for_others)
                }))
        {
            return;
        }
        let payload = publication.payload;
        let passthru = options.passthru.as_deref();
        let bytes = weight(
            passthru,
            publication.topic,
            payload.len(),
            receivers.as_deref(),
        );
        context.spend((bytes / BYTES_PER_STEP) as u32);
        let bytes_max = context.config.limits.history_bytes_max;
        if bytes > bytes_max {
            self.is_unrecorded.set(true);
            return context.out.note(Note::HistoryNotKept, 1);
        }
        let event = Recorded {
            publication: publication.id,
            unix_us: context.unix_us(),
            publisher,
            topic: publication.topic.into(),
            receivers,
            passthru: options.passthru.clone(),
            serializer: payload.serializer,
            payload: [payload.args, payload.kwargs].concat().into(),
            args_bytes: payload.args.len(),
        };
        if context.config.is_stored {
            if context.out.record(log.place(), event).is_err() {
                self.is_unrecorded.set(true);
                context.out.note(Note::HistoryNotKept, 1);
            }
            return;
        }
        let evicted = self.history.borrow_mut().push(log, event, bytes_max);
        if evicted > 0 {
            context.out.note(Note::HistoryEvicted, evicted);
        }
    }

    /// Whether a publication will be stored, by its topic and options. If so, it is answered once it is stored. A client
    /// that subscribes elsewhere waits for the realm's answer before it is read on, and so is answered at once.
    #[inline]
    pub(super) fn will_store<H>(
        &self,
        context: &Context<'_, H>,
        from: SessionIndex,
        options: &PublishOptions,
        exact: Option<SubscriptionKey>,
    ) -> bool {
        context.config.is_stored
            && !context.sessions[from].features.subscribes_elsewhere()
            && self.begin_record(context, options, exact)
    }

    #[cold]
    #[inline(never)]
    fn begin_record<H>(
        &self,
        context: &Context<'_, H>,
        options: &PublishOptions,
        exact: Option<SubscriptionKey>,
    ) -> bool {
        self.is_unrecorded.set(false);
        if options.retain && context.config.stores_retained {
            return true;
        }
        let mut keys = exact.iter().chain(&self.matched);
        keys.any(|SubscriptionKey(key)| {
            let reach = self.subscriptions[*key as usize].reach;
            matches!(reach, Reach::Recorded(_))
        })
    }

    /// Defers the answer to a publication until the store has written it.
    #[cold]
    #[inline(never)]
    pub(super) fn end_record<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        publication: PublicationId,
    ) {
        if self.is_unrecorded.get() {
            return context.refuse(from, MessageType::Publish, request, &unrecorded(NO_ROOM));
        }
        context.out.acknowledge(Acknowledgement {
            session: context.sessions.key(from),
            request,
            publication,
        });
    }

    /// The log of a subscription, for a session that may see it.
    pub(crate) fn log<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        id: SubscriptionId,
    ) -> Result<(&mut History, LogIndex), Fault> {
        let Some(key) = self.key_of(id) else {
            let text = format!("no subscription with ID {id} exists on this broker");
            return Err(Fault::new(error::NO_SUCH_SUBSCRIPTION, text));
        };
        let subscription = &self.subscriptions[key.0 as usize];
        let (topic, policy) = (&subscription.topic, subscription.match_policy);
        let session = &context.sessions[from];
        // A subscriber may read the history. For other sessions no authorizer is asked: that would be a second question
        // about one call.
        if !session.subscriptions.contains(&key) {
            if context.roles.authorizer(session.role).is_some() {
                let text = format!("subscribe to {topic} to be shown its history");
                return Err(Fault::new(error::NOT_AUTHORIZED, text));
            }
            let subject = Subject {
                action: Action::Subscribe,
                uri: topic,
                match_policy: policy,
            };
            context.authorize_besides(from, &subject)?;
        }
        let Some(log) = subscription.log() else {
            let text = format!("no history is kept of subscription {id}");
            return Err(Fault::new(error::HISTORY_UNAVAILABLE, text));
        };
        Ok((self.history.get_mut(), log))
    }

    /// Number of recorded events, and their weight against the bound.
    pub(crate) fn recorded(&self) -> (usize, usize) {
        let history = self.history.borrow();
        (history.len(), history.bytes())
    }

    /// Number of subscriptions that exist only for their history.
    pub(super) fn unattended(&self) -> usize {
        let recorded = self.history.borrow().logs();
        // They were created first, and stay.
        let mut first = self.subscriptions.iter().take(recorded);
        let count = first.by_ref().filter(|(_, s)| s.subscribers.is_empty());
        count.count()
    }
}

impl<H> Realm<H> {
    /// Answers a publication that was handed out by [`Outbox::acknowledge`]: everything recorded before it is stored,
    /// or the store failed.
    pub fn handle_stored(
        &mut self,
        now: Time,
        acknowledgement: Acknowledgement,
        outcome: Result<(), &str>,
        out: &mut dyn Outbox<H>,
    ) {
        let Acknowledgement {
            session,
            request,
            publication,
        } = acknowledgement;
        let Some(to) = self.sessions.find(session) else {
            return;
        };
        let (_, _, mut context) = self.split(now, out);
        match outcome {
            Ok(()) => {
                let published = Message::Published {
                    request,
                    publication,
                };
                let _ = context.reply(to, &published);
            }
            Err(why) => context.refuse(to, MessageType::Publish, request, &unrecorded(why)),
        }
        self.remove_closed(now, out);
    }
}

/// Why the store refused an event.
const NO_ROOM: &str = "the store has as much to write as it may";

/// The fault of a publication that was sent to its subscribers but not stored.
fn unrecorded(why: &str) -> Fault {
    let text = format!("the event was published, and is not recorded: {why}");
    Fault::new(error::NOT_RECORDED, text)
}
