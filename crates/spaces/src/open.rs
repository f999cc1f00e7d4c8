//! A client's packets after CONNECT.

use std::sync::Arc;
use std::time::Instant;

use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_mqtt::{Packet, Publish, ReasonCode, Side, Version};
use crosstie_topics::{Arrival, ConnectionKey, Content, Received};

use crate::bridge::options;
use crate::client::Client;
use crate::conversation::{End, Step};
use crate::crossing::{Converted, Decoding, converted};
use crate::figures::{Dropped, Figures};
use crate::ground::Ground;
use crate::names;
use crate::payloads::Arguments;
use crate::reauthentication::Reauthentication;
use crate::space::SharedSpace;
use crate::subscribing::Subscribing;
use crate::talk::{Said, Talk};
use crate::will;

/// A client that is connected to its space.
pub(crate) struct Open {
    pub(crate) talk: Talk,
    pub(crate) key: ConnectionKey,
    /// Maximum size of a packet.
    pub(crate) packet_bytes_max: u32,
    /// A bridge of another broker, which asks so for what MQTT 5 has options for.
    pub(crate) is_bridge: bool,
    /// Set if CONNECT had an authentication method.
    pub(crate) enhanced: Option<Box<Enhanced>>,
    /// The packet at the front of the input, which is handled in part.
    pub(crate) pending: Option<Box<Pending>>,
}

/// A client that may log in again.
pub(crate) struct Enhanced {
    /// The client's maximum packet size.
    pub(crate) packet_bytes_max: u32,
    pub(crate) login: Option<Box<Reauthentication>>,
}

/// A packet that waits for an outcome, or for its next turn.
pub(crate) enum Pending {
    /// The realm decides on a publication to this topic.
    Publish(Option<Arc<str>>),
    /// A procedure converts the payload.
    Decode(Option<Arc<str>>, Decoding),
    Subscribe(Subscribing),
    /// The outcomes of its filters so far.
    Unsubscribe(Vec<ReasonCode>),
    /// The client logs in again.
    Auth,
}

/// How far a packet is handled.
pub(crate) enum Handled {
    /// At a cost of so many steps.
    Done(u32),
    /// A part of its filters. The rest follows in another turn.
    Part(u32),
    /// The rest follows once an outcome is there.
    Waits,
}

/// When a packet has arrived, and its length.
type At = (Instant, usize);

impl Enhanced {
    pub(crate) fn new(packet_bytes_max: u32) -> Box<Self> {
        Box::new(Self {
            packet_bytes_max,
            login: None,
        })
    }
}

impl Open {
    pub(crate) fn new(
        talk: Talk,
        key: ConnectionKey,
        packet_bytes_max: u32,
        (is_bridge, enhanced): (bool, Option<Box<Enhanced>>),
    ) -> Self {
        Self {
            talk,
            key,
            packet_bytes_max,
            is_bridge,
            enhanced,
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
        let login = self.enhanced.as_ref().and_then(|one| one.login.as_ref());
        let is_checked = || login.is_some_and(|login| login.waits());
        client.is_paused() || is_judged() || is_decoded() || is_checked()
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
            Packet::Unsubscribe(unsubscribe) => self.unsubscribe(unsubscribe, space),
            Packet::PingReq => {
                self.client().send(&Packet::PingResp);
                Handled::Done(0)
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
            Packet::Auth(auth) => self.reauthenticate(auth, ground)?,
            _ => Handled::Done(self.acknowledge(packet, space)?),
        };
        let (consumed, steps) = match handled {
            Handled::Waits => return Ok(Step::Halt { consumed: 0 }),
            Handled::Part(steps) => (0, steps),
            Handled::Done(steps) => (consumed, steps),
        };
        if self.waits() {
            return Ok(Step::Halt { consumed });
        }
        let steps = steps.saturating_add(self.talk.take_steps());
        Ok(Step::Done { consumed, steps })
    }

    /// Handles an acknowledgement. Another packet is a second CONNECT.
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

    pub(crate) fn violation(&self, violation: &crosstie_topics::Violation) -> End {
        let reason = violation.reason.name();
        report::peer_fault(&self.client().connection, reason, violation.text);
        End::Reason(violation.reason)
    }

    /// Handles PUBLISH.
    fn publish(&mut self, publish: &Publish<'_>, ground: &Ground, at: At) -> Result<Handled, End> {
        let space = &ground.space;
        let (topic, said) = match self.pending.take().map(|pending| *pending) {
            Some(Pending::Publish(topic)) => {
                let said = self.talk.go_on();
                (topic, said)
            }
            Some(Pending::Decode(topic, decoding)) => {
                let name = topic.as_deref().unwrap_or(publish.topic);
                let said = match (decoding.take().flatten(), names::uri(name)) {
                    (Some(arguments), Some(uri)) => {
                        self.route((name, &uri), publish, &arguments, at)
                    }
                    _ => Said::Refused(ReasonCode::PayloadFormatInvalid),
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
                    Received::Answered => return Ok(Handled::Done(0)),
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
                            None => return Ok(Handled::Waits),
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
        let own = names::uri(name);
        let has_uri = own.is_some();
        let uri = own.unwrap_or_else(|| names::nearest_uri(name));
        if names::is_own_uri(&uri) {
            return Some(Said::Refused(ReasonCode::NotAuthorized));
        }
        let content = content(name, publish);
        if !has_uri {
            Figures::get().count_dropped(Dropped::NoUri);
            return Some(self.talk.may_publish(at, &uri, options(&content)));
        }
        let (space, payload) = (&ground.space, publish.payload);
        let mapping = &ground.endpoint.options.mapping;
        let realm = space.bridge.realm();
        Some(
            match converted(mapping, realm, &uri, payload, &ground.limits()) {
                Converted::Arguments(arguments) => {
                    self.route((name, &uri), publish, &arguments, at)
                }
                Converted::Stays => self.talk.may_publish(at, &uri, options(&content)),
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

    fn route(
        &mut self,
        (name, uri): (&str, &str),
        publish: &Publish<'_>,
        arguments: &Arguments,
        at: At,
    ) -> Said {
        let options = options(&content(name, publish));
        self.talk.publish_arguments(at, uri, options, arguments)
    }

    /// Publishes in the space what the realm has permitted.
    fn conclude(
        &mut self,
        topic: Option<Arc<str>>,
        said: Said,
        publish: &Publish<'_>,
        space: &SharedSpace,
    ) -> Result<Handled, End> {
        let (qos, packet_id) = (publish.delivery.qos(), publish.delivery.packet_id());
        let sent = match said {
            Said::Waits => {
                self.pending = Some(Box::new(Pending::Publish(topic)));
                return Ok(Handled::Waits);
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
                let content = content(topic.as_deref().unwrap_or(publish.topic), publish);
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
        Ok(Handled::Done(sent))
    }

    /// Takes the client out of the space, then out of the realm, which decides on the will in between.
    ///
    /// A stop says no wills: the clients are there, and come back.
    pub(crate) fn leave(mut self, ground: &Arc<Ground>, why: EndReason, is_stop: bool) {
        self.enhanced = None;
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

/// The message of a publication to a topic, whose name may be an alias in the packet.
fn content<'a>(topic: &'a str, publish: &Publish<'a>) -> Content<'a> {
    Content {
        topic,
        qos: publish.delivery.qos(),
        retain: publish.retain,
        expiry_s: publish.properties.message_expiry(),
        properties: publish.properties,
        payload: publish.payload,
    }
}
