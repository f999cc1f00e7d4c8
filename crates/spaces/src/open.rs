//! A client's packets after CONNECT.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_mqtt::{
    Options, Packet, Publish, ReasonCode, Side, Subscribe, Unsubscribe, Version, topic,
};
use crosstie_topics::{Arrival, ConnectionKey, Content, Received, Reply, Wanted};

use crate::bridge::options;
use crate::client::Client;
use crate::conversation::{End, Step};
use crate::crossing::{Converted, Decoding, converted};
use crate::figures::{Dropped, Figures};
use crate::ground::Ground;
use crate::names;
use crate::payloads::Arguments;
use crate::replay::REPLAYS_MAX;
use crate::space::SharedSpace;
use crate::talk::{Said, Talk};
use crate::will;

/// A client that is connected to its space.
pub(crate) struct Open {
    talk: Talk,
    key: ConnectionKey,
    /// Maximum size of a packet.
    pub(crate) packet_bytes_max: u32,
    /// A bridge of another broker, which asks so for what MQTT 5 has options for.
    is_bridge: bool,
    /// The packet at the front of the input, which is handled in part.
    pending: Option<Box<Pending>>,
}

/// A packet that waits for an outcome.
enum Pending {
    /// The realm decides on a publication to this topic.
    Publish(Option<Arc<str>>),
    /// A procedure converts the payload.
    Decode(Option<Arc<str>>, Decoding),
    /// The realm decides on the next filter, if it is asked.
    Subscribe(Vec<Option<ReasonCode>>, bool),
}

/// When a packet has arrived, and its length.
type At = (Instant, usize);

/// Filters of one packet for which the space is locked at once.
const FILTERS_AT_ONCE: usize = 256;

/// Retained messages that are looked at with a SUBSCRIBE; the others follow in turns.
const RETAINED_STEPS: usize = 1_000;

impl Open {
    pub(crate) fn new(
        talk: Talk,
        key: ConnectionKey,
        packet_bytes_max: u32,
        is_bridge: bool,
    ) -> Self {
        Self {
            talk,
            key,
            packet_bytes_max,
            is_bridge,
            pending: None,
        }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.talk.client
    }

    pub(crate) fn version(&self) -> Version {
        self.talk.client.version
    }

    /// Whether an outcome is due before the next packet.
    pub(crate) fn waits(&self) -> bool {
        let client = &self.talk.client;
        let is_judged = || self.talk.waits() && client.mailbox.is_reading_paused();
        let is_decoded = || matches!(self.pending.as_deref(), Some(Pending::Decode(_, decoding)) if !decoding.is_there());
        client.is_paused() || is_judged() || is_decoded()
    }

    /// Handles the packet at the front of the input.
    pub(crate) fn handle(
        &mut self,
        packet: &Packet<'_>,
        consumed: usize,
        ground: &Ground,
        now: Instant,
    ) -> Result<Step, End> {
        if self.client().is_over() {
            return Err(End::Begun);
        }
        if self.pending.is_none() {
            // The pause after an earlier request is over.
            if self.talk.waits() && self.talk.go_on() == Said::Over {
                return Err(End::Silent);
            }
            Figures::get().count_received(packet.packet_type());
            let checked = packet.check_sender(Side::Client, self.version());
            checked.map_err(|e| {
                report::peer_fault(&self.client().connection, e.reason().name(), &e.to_string());
                End::Reason(e.reason())
            })?;
        }
        let space = &ground.space;
        let handled = match packet {
            Packet::Publish(publish) => self.publish(publish, ground, (now, consumed))?,
            Packet::Subscribe(subscribe) => self.subscribe(subscribe, ground, now)?,
            Packet::Unsubscribe(unsubscribe) => Some(self.unsubscribe(unsubscribe, space)),
            Packet::PingReq => {
                self.client().send(&Packet::PingResp);
                Some(0)
            }
            Packet::Disconnect(disconnect) => {
                let expiry_s = disconnect.properties.session_expiry();
                let (ended, _) = space.enter(|space, now, outbox| {
                    space.disconnect(now, self.key, disconnect.reason, expiry_s, outbox)
                });
                return Err(match ended {
                    Ok(()) => End::ByClient,
                    Err(violation) => self.violation(&violation),
                });
            }
            _ => Some(self.acknowledge(packet, space)?),
        };
        Ok(match handled {
            None => Step::Halt { consumed: 0 },
            Some(_) if self.waits() => Step::Halt { consumed },
            Some(steps) => {
                let steps = steps.saturating_add(self.talk.take_steps());
                Step::Done { consumed, steps }
            }
        })
    }

    /// Handles an acknowledgement. Other packets are a second CONNECT, or an AUTH that nothing has asked for.
    fn acknowledge(&self, packet: &Packet<'_>, space: &SharedSpace) -> Result<u32, End> {
        let key = self.key;
        let (known, sent) = space.enter(|space, now, outbox| {
            match packet {
                Packet::PubAck(ack) => space.handle_puback(now, key, ack.packet_id, outbox),
                Packet::PubRec(ack) => {
                    space.handle_pubrec(now, key, ack.packet_id, ack.reason, outbox);
                }
                Packet::PubRel(ack) => space.handle_pubrel(key, ack.packet_id, outbox),
                Packet::PubComp(ack) => space.handle_pubcomp(now, key, ack.packet_id, outbox),
                _ => return false,
            }
            true
        });
        match known {
            true => {
                self.client().replays.note_room();
                Ok(sent)
            }
            false => {
                let name = packet.packet_type().name();
                report::peer_fault(&self.client().connection, "protocol error", name);
                Err(End::Reason(ReasonCode::ProtocolError))
            }
        }
    }

    fn violation(&self, violation: &crosstie_topics::Violation) -> End {
        let reason = violation.reason.name();
        report::peer_fault(&self.client().connection, reason, violation.text);
        End::Reason(violation.reason)
    }

    /// Handles PUBLISH. Returns nothing while an outcome is due.
    fn publish(
        &mut self,
        publish: &Publish<'_>,
        ground: &Ground,
        at: At,
    ) -> Result<Option<u32>, End> {
        let space = &ground.space;
        let (topic, said) = match self.pending.take().map(|pending| *pending) {
            Some(Pending::Publish(topic)) => {
                let said = self.talk.go_on();
                (topic, said)
            }
            Some(Pending::Decode(topic, decoding)) => {
                let name = topic.as_deref().unwrap_or(publish.topic);
                let said = match decoding.take().flatten() {
                    Some(arguments) => self.route(name, publish, &arguments, at),
                    None => Said::Refused(ReasonCode::PayloadFormatInvalid),
                };
                (topic, said)
            }
            _ => {
                let arrival = Arrival {
                    topic: publish.topic,
                    alias: publish.properties.topic_alias(),
                    qos: publish.delivery.qos(),
                    packet_id: publish.delivery.packet_id(),
                };
                match self.receive(arrival, space)? {
                    Received::Answered => return Ok(Some(0)),
                    Received::New(topic) if space.refuses(arrival.qos) => {
                        // 3.x has no refusal: the client comes back, and sends it again.
                        if !self.version().is_v5() {
                            return Err(End::Silent);
                        }
                        (topic, Said::Refused(ReasonCode::QuotaExceeded))
                    }
                    Received::New(topic) => {
                        let name = topic.clone();
                        let name = name.as_deref().unwrap_or(publish.topic);
                        match self.ask(name, &topic, publish, ground, at) {
                            Some(said) => (topic, said),
                            None => return Ok(None),
                        }
                    }
                }
            }
        };
        self.conclude(topic, said, publish, space)
    }

    /// Registers a publication, if the space has to know of it before the realm decides.
    fn receive(&self, arrival: Arrival<'_>, space: &SharedSpace) -> Result<Received, End> {
        if arrival.packet_id.is_none() && arrival.alias.is_none() && space.takes(arrival.topic) {
            return Ok(Received::New(None));
        }
        let (received, _) =
            space.enter(|space, _, outbox| space.receive(self.key, arrival, outbox));
        received.map_err(|violation| self.violation(&violation))
    }

    /// Has the realm decide on a publication. Returns nothing if a procedure converts the payload first.
    fn ask(
        &mut self,
        name: &str,
        topic: &Option<Arc<str>>,
        publish: &Publish<'_>,
        ground: &Ground,
        at: At,
    ) -> Option<Said> {
        let nearest = names::nearest_uri(name);
        if names::is_own_uri(&nearest) {
            return Some(Said::Refused(ReasonCode::NotAuthorized));
        }
        let Some(uri) = names::uri(name) else {
            Figures::get().count_dropped(Dropped::NoUri);
            return Some(self.talk.may_publish(at, &nearest));
        };
        let (space, payload) = (&ground.space, publish.payload);
        let mapping = &ground.endpoint.options.mapping;
        let realm = space.bridge.realm();
        Some(
            match converted(mapping, realm, &uri, payload, &ground.limits()) {
                Converted::Arguments(arguments) => self.route(name, publish, &arguments, at),
                Converted::Stays => self.talk.may_publish(at, &uri),
                Converted::Unfit => {
                    Figures::get().count_dropped(Dropped::Payload);
                    Said::Refused(ReasonCode::PayloadFormatInvalid)
                }
                Converted::Later(dynamic) => {
                    let decoding = space.decode(self.client(), dynamic, (&uri, name), payload);
                    let pending = Pending::Decode(topic.clone(), decoding);
                    self.pending = Some(Box::new(pending));
                    return None;
                }
            },
        )
    }

    fn route(&mut self, name: &str, publish: &Publish<'_>, arguments: &Arguments, at: At) -> Said {
        let Some(uri) = names::uri(name) else {
            return Said::Refused(ReasonCode::TopicNameInvalid);
        };
        let expiry_s = publish.properties.message_expiry();
        let is_empty = publish.payload.is_empty();
        let options = options(publish.retain, expiry_s, is_empty);
        self.talk.publish_arguments(at, &uri, options, arguments)
    }

    /// Publishes in the space what the realm has permitted.
    fn conclude(
        &mut self,
        topic: Option<Arc<str>>,
        said: Said,
        publish: &Publish<'_>,
        space: &SharedSpace,
    ) -> Result<Option<u32>, End> {
        let (qos, packet_id) = (publish.delivery.qos(), publish.delivery.packet_id());
        let sent = match said {
            Said::Waits => {
                self.pending = Some(Box::new(Pending::Publish(topic)));
                return Ok(None);
            }
            Said::Over => return Err(End::Silent),
            Said::Refused(reason) => {
                Figures::get().count_dropped(Dropped::Denied);
                let refused = space.enter(|space, _, outbox| {
                    space.refuse(self.key, qos, packet_id, reason, outbox);
                });
                refused.1
            }
            Said::Allowed => {
                let content = Content {
                    topic: topic.as_deref().unwrap_or(publish.topic),
                    qos,
                    retain: publish.retain,
                    expiry_s: publish.properties.message_expiry(),
                    properties: publish.properties,
                    payload: publish.payload,
                };
                let (_, sent, slow) = space.enter_as_publisher(|space, now, outbox| {
                    space.publish(now, self.key, packet_id, &content, outbox);
                });
                if let Some(slow) = slow {
                    self.client().hold_back(slow);
                }
                if let Some(durable) = space.store() {
                    durable.hold_back(self.client());
                }
                sent
            }
        };
        Ok(Some(sent))
    }

    /// Handles SUBSCRIBE. Returns nothing while an outcome is due.
    fn subscribe(
        &mut self,
        subscribe: &Subscribe<'_>,
        ground: &Ground,
        now: Instant,
    ) -> Result<Option<u32>, End> {
        let (mut refusals, mut said) = match self.pending.take().map(|pending| *pending) {
            Some(Pending::Subscribe(refusals, is_asked)) => match self.talk.go_on() {
                Said::Waits => {
                    self.pending = Some(Box::new(Pending::Subscribe(refusals, is_asked)));
                    return Ok(None);
                }
                Said::Over => return Err(End::Silent),
                said => (refusals, is_asked.then_some(said)),
            },
            _ => (Vec::new(), None),
        };
        let done = refusals.len();
        for subscription in subscribe.subscriptions.iter().skip(done) {
            let filter = subscription.filter;
            if names::is_own_filter(filter) {
                refusals.push(Some(ReasonCode::NotAuthorized));
                continue;
            }
            if self.client().replays.len() >= REPLAYS_MAX {
                refusals.push(Some(ReasonCode::QuotaExceeded));
                continue;
            }
            if said.is_none() && self.talk.waits() {
                // The pause after the filters before.
                self.pending = Some(Box::new(Pending::Subscribe(refusals, false)));
                return Ok(None);
            }
            let at = (now, filter.len());
            let asked = || self.talk.may_subscribe(at, &names::asked(filter));
            match said.take().unwrap_or_else(asked) {
                Said::Allowed => refusals.push(None),
                Said::Refused(reason) => refusals.push(Some(of_filter(reason))),
                Said::Waits => {
                    self.pending = Some(Box::new(Pending::Subscribe(refusals, true)));
                    return Ok(None);
                }
                Said::Over => return Err(End::Silent),
            }
        }
        let wanted = subscribe.subscriptions.iter().zip(&refusals);
        let wanted: Vec<_> = wanted
            .map(|(subscription, refusal)| Wanted {
                filter: subscription.filter,
                options: self.options(subscription.filter, subscription.options),
                refusal: *refusal,
            })
            .collect();
        let space = &ground.space;
        // The realm's subscriptions precede SUBACK.
        let granted = || wanted.iter().filter(|wanted| wanted.refusal.is_none());
        granted().for_each(|wanted| space.bridge.note_interest(wanted.filter, true));
        let steps = self.take_in(subscribe, &wanted, space);
        granted().for_each(|wanted| space.bridge.note_interest(wanted.filter, false));
        steps.map(Some)
    }

    fn take_in(
        &self,
        subscribe: &Subscribe<'_>,
        wanted: &[Wanted<'_>],
        space: &Arc<SharedSpace>,
    ) -> Result<u32, End> {
        let granted = || wanted.iter().filter(|wanted| wanted.refusal.is_none());
        let has_retained = space.bridge.retained_number() > 0;
        let replayed: Vec<_> = granted()
            .filter(|wanted| has_retained && space.wants_retained(self.key, wanted))
            .map(|wanted| wanted.filter)
            .collect();
        let steps = space.make_current(&replayed);
        let identifier = subscribe.properties.subscription_id().unwrap_or(0);
        let mut codes = Vec::new();
        let last = wanted.len().saturating_sub(1) / FILTERS_AT_ONCE * FILTERS_AT_ONCE;
        let (earlier, last) = wanted.split_at(last);
        for some in earlier.chunks(FILTERS_AT_ONCE) {
            let (subscribed, _) = space.enter(|space, now, outbox| {
                space.subscribe(now, self.key, identifier, some, &mut codes, outbox)
            });
            subscribed.map_err(|violation| self.violation(&violation))?;
        }
        let (subscribed, sent) = space.enter(|space, now, outbox| {
            space.subscribe(now, self.key, identifier, last, &mut codes, outbox)?;
            // Before the retained messages.
            let reply = Reply::SubAck(subscribe.packet_id, codes.as_slice().into());
            space.reply(now, self.key, reply, outbox);
            // Before what others publish, if it is not much.
            space.work(now, RETAINED_STEPS, outbox);
            Ok(())
        });
        subscribed.map_err(|violation| self.violation(&violation))?;
        let client = self.client();
        let refused = wanted
            .iter()
            .zip(&codes)
            .filter(|(_, code)| code.is_error());
        let refused: HashSet<_> = refused.map(|(wanted, _)| wanted.filter).collect();
        let granted = replayed.into_iter().filter(|one| !refused.contains(one));
        let replayed = space.replay(client, self.key, granted);
        Ok(sent.saturating_add(steps).saturating_add(replayed))
    }

    /// The options of a subscription. A shared one may not leave out local publications.
    fn options(&self, filter: &str, options: Options) -> Options {
        let is_shared = matches!(topic::split_share(filter), Ok(Some(_)));
        match self.is_bridge && !is_shared {
            true => Options {
                no_local: true,
                retain_as_published: true,
                ..options
            },
            false => options,
        }
    }

    fn unsubscribe(&self, unsubscribe: &Unsubscribe<'_>, space: &SharedSpace) -> u32 {
        let (mut codes, mut sent) = (Vec::new(), 0);
        let filters: Vec<_> = unsubscribe.filters.iter().collect();
        for some in filters.chunks(FILTERS_AT_ONCE) {
            let (_, more) = space.enter(|space, _, outbox| {
                let some = some.iter().copied();
                space.unsubscribe(self.key, some, &mut codes, outbox);
            });
            sent += more;
        }
        let reply = Reply::UnsubAck(unsubscribe.packet_id, codes.into());
        space.enter(|space, now, outbox| space.reply(now, self.key, reply, outbox));
        sent
    }

    /// Takes the client out of the space, then out of the realm, which decides on the will in between.
    ///
    /// A stop says no wills: the clients are there, and come back.
    pub(crate) fn leave(mut self, ground: &Arc<Ground>, why: EndReason, is_stop: bool) {
        let client = Arc::clone(self.client());
        client.note_over();
        ground.space.enter(|space, now, outbox| match is_stop {
            true => drop(space.disconnect(now, self.key, ReasonCode::Success, None, outbox)),
            false => {
                outbox.leaving = Some(Arc::clone(&client));
                space.lose(now, self.key, outbox);
            }
        });
        match client.take_will() {
            Some(will) if !is_stop => will::publish(will, self.talk, ground, why),
            _ => self.talk.leave(why),
        }
    }
}

/// A reason of SUBACK.
fn of_filter(reason: ReasonCode) -> ReasonCode {
    match reason {
        ReasonCode::TopicNameInvalid => ReasonCode::TopicFilterInvalid,
        ReasonCode::NotAuthorized | ReasonCode::QuotaExceeded => reason,
        ReasonCode::ImplementationSpecificError => reason,
        _ => ReasonCode::UnspecifiedError,
    }
}
