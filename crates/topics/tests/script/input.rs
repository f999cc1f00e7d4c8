//! What connections send.

use crosstie_mqtt::{Options, PacketId, PropertiesBuf, Property, QoS, ReasonCode, RetainHandling};
use crosstie_script::{number, pairs};
use crosstie_topics::{Arrival, ConnectionKey, Content, Received, Reply, Wanted};

use super::{Player, reason};

/// A message of a script.
#[derive(Clone, Default)]
pub(super) struct Publication {
    topic: String,
    payload: String,
    qos: QoS,
    packet_id: Option<PacketId>,
    retain: bool,
    alias: Option<u16>,
    expiry_s: Option<u32>,
    verdict: Option<ReasonCode>,
    is_held: bool,
    properties: PropertiesBuf,
}

impl Publication {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split(' ');
        let mut next = || words.next().filter(|word| *word != "-").unwrap_or_default();
        let mut one = Self {
            topic: next().to_owned(),
            payload: next().to_owned(),
            ..Self::default()
        };
        let rest: Vec<_> = words.collect();
        for (key, value) in pairs(&rest.join(" ")) {
            match key {
                "q1" => one.qos = QoS::AtLeastOnce,
                "q2" => one.qos = QoS::ExactlyOnce,
                "retain" => one.retain = true,
                "held" => one.is_held = true,
                "expiry" => one.expiry_s = Some(number(key, value)?),
                "alias" => one.alias = Some(number(key, value)?),
                "verdict" => one.verdict = Some(reason(value)?),
                "type" => one.properties.push(Property::ContentType(value)),
                "user" => {
                    let pair = value.split_once(':').ok_or("user needs a colon")?;
                    one.properties.push(Property::User(pair));
                }
                id => one.packet_id = PacketId::new(number("packet id", id)?),
            }
        }
        Ok(one)
    }

    pub(super) fn with<T>(&self, use_content: impl FnOnce(&Content<'_>) -> T) -> T {
        use_content(&Content {
            topic: &self.topic,
            qos: self.qos,
            retain: self.retain,
            expiry_s: self.expiry_s,
            properties: self.properties.as_properties(),
            payload: self.payload.as_bytes(),
        })
    }
}

impl Player {
    pub(super) fn send(&mut self, who: char, text: &str) -> Result<(), String> {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        if verb == "authorized" {
            // Also after the connection has ended.
            let publication = self.held.remove(&who).ok_or("nothing is held")?;
            let key = self.keys_of_held.remove(&who).ok_or("nothing is held")?;
            self.authorize(key, &publication);
            return Ok(());
        }
        let key = self.key(who)?;
        let mut words = rest.split(' ');
        let id = || {
            let id = rest.split(' ').next().unwrap_or_default();
            PacketId::new(number("packet id", id)?).ok_or_else(|| "0 is no packet id".to_owned())
        };
        match verb {
            "publish" => return self.publish(who, key, &Publication::parse(rest)?),
            "subscribe" => return self.subscribe(who, key, rest),
            "unsubscribe" => {
                let mut codes = Vec::new();
                self.with(|space, _, out| space.unsubscribe(key, words, &mut codes, out));
                let reply = Reply::UnsubAck(PacketId::FIRST, codes.into());
                self.with(|space, now, out| space.reply(now, key, reply, out));
            }
            "puback" => {
                let id = id()?;
                self.with(|space, now, out| space.handle_puback(now, key, id, out));
            }
            "pubrec" => {
                let id = id()?;
                let code = words.nth(1).map_or(Ok(ReasonCode::Success), reason)?;
                self.with(|space, now, out| space.handle_pubrec(now, key, id, code, out));
            }
            "pubrel" => {
                let id = id()?;
                self.with(|space, _, out| space.handle_pubrel(key, id, out));
            }
            "pubcomp" => {
                let id = id()?;
                self.with(|space, now, out| space.handle_pubcomp(now, key, id, out));
            }
            "disconnect" => {
                let (mut code, mut expiry_s) = (ReasonCode::Success, None);
                for (word, value) in pairs(rest) {
                    match word {
                        "expiry" => expiry_s = Some(number(word, value)?),
                        word => code = reason(word)?,
                    }
                }
                let ended =
                    self.with(|space, now, out| space.disconnect(now, key, code, expiry_s, out));
                self.connections.remove(&who);
                if let Err(violation) = ended {
                    self.fail(who, key, violation);
                }
            }
            _ => return Err(format!("{verb} is no packet")),
        }
        Ok(())
    }

    fn publish(
        &mut self,
        who: char,
        key: ConnectionKey,
        publication: &Publication,
    ) -> Result<(), String> {
        let arrival = Arrival {
            topic: &publication.topic,
            alias: publication.alias,
            qos: publication.qos,
            packet_id: publication.packet_id,
        };
        match self.with(|space, _, out| space.receive(key, arrival, out)) {
            Err(violation) => self.fail(who, key, violation),
            Ok(Received::Answered) => {}
            Ok(Received::New(topic)) => {
                let mut publication = publication.clone();
                if let Some(topic) = topic {
                    publication.topic = topic.to_string();
                }
                if publication.is_held {
                    self.held.insert(who, publication);
                    self.keys_of_held.insert(who, key);
                } else {
                    self.authorize(key, &publication);
                }
            }
        }
        Ok(())
    }

    fn authorize(&mut self, key: ConnectionKey, publication: &Publication) {
        let (qos, id) = (publication.qos, publication.packet_id);
        self.with(|space, now, out| match publication.verdict {
            Some(reason) => space.refuse(key, qos, id, reason, out),
            None => publication.with(|content| space.publish(now, key, id, content, out)),
        });
    }

    fn subscribe(&mut self, who: char, key: ConnectionKey, text: &str) -> Result<(), String> {
        let mut identifier = 0;
        let mut wanted = Vec::new();
        for part in text.split(" & ") {
            let (filter, words) = part.split_once(' ').unwrap_or((part, ""));
            let mut one = Wanted {
                filter,
                options: Options::default(),
                refusal: None,
            };
            for (word, value) in pairs(words) {
                let options = &mut one.options;
                match word {
                    "q1" => options.qos = QoS::AtLeastOnce,
                    "q2" => options.qos = QoS::ExactlyOnce,
                    "nl" => options.no_local = true,
                    "rap" => options.retain_as_published = true,
                    "rh" => {
                        options.retain_handling = match value {
                            "1" => RetainHandling::New,
                            "2" => RetainHandling::Never,
                            _ => RetainHandling::Always,
                        }
                    }
                    "id" => identifier = number(word, value)?,
                    "verdict" => one.refusal = Some(reason(value)?),
                    _ => return Err(format!("{word} is no option")),
                }
            }
            wanted.push(one);
        }
        let mut codes = Vec::new();
        let is_work_manual = std::mem::replace(&mut self.is_work_manual, true);
        let result = self.with(|space, now, out| {
            space.subscribe(now, key, identifier, &wanted, &mut codes, out)
        });
        match result {
            Ok(()) => {
                let reply = Reply::SubAck(PacketId::FIRST, codes.into());
                self.with(|space, now, out| space.reply(now, key, reply, out));
            }
            Err(violation) => self.fail(who, key, violation),
        }
        self.is_work_manual = is_work_manual;
        self.with(|_, _, _| ());
        Ok(())
    }
}
