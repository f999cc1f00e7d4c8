//! An outbox that writes down what connections are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crosstie_mqtt::{Decoded, Delivery, ReasonCode, Version, decode};
use crosstie_script::Stage;
use crosstie_topics::{Answer, Content, Outbox, Packet, Refused, Reply};

#[derive(Default)]
pub(super) struct Recorder {
    pub(super) stage: Stage,
    pub(super) versions: BTreeMap<char, Version>,
    pub(super) full: BTreeSet<char>,
    pub(super) held: BTreeMap<char, isize>,
    /// CONNACKs that are not due.
    pub(super) connecting: BTreeMap<char, String>,
    /// The space has ended these connections.
    pub(super) closed: Vec<char>,
    /// Interests and ends of sessions are written down.
    pub(super) tells_all: bool,
    /// Wills wait for the owner's authorization for ever.
    pub(super) keeps_wills: bool,
}

impl Outbox<char> for Recorder {
    type Shared = Vec<u8>;

    fn publish(
        &mut self,
        to: &char,
        packet: Packet<'_>,
        shared: &mut Option<Vec<u8>>,
    ) -> Result<(), Refused> {
        if self.full.contains(to) {
            return Err(Refused::Full);
        }
        // The same rest for all that pass the same place.
        let rest = shared.get_or_insert_with(|| packet.rest.to_vec());
        assert_eq!(rest, packet.rest);
        let octets = [packet.head, packet.rest].concat();
        let text = describe(&octets, self.versions[to]);
        self.stage.push(to, text);
        Ok(())
    }

    fn acknowledge(&mut self, to: &char, answer: Answer) {
        let (name, id, reason) = match answer {
            Answer::PubAck(id, reason) => ("puback", id, reason),
            Answer::PubRec(id, reason) => ("pubrec", id, reason),
            Answer::PubRel(id, reason) => ("pubrel", id, reason),
            Answer::PubComp(id, reason) => ("pubcomp", id, reason),
        };
        let text = match reason == ReasonCode::Success || !self.versions[to].is_v5() {
            true => format!("{name} {id}"),
            false => format!("{name} {id} {:#04x}", reason.octet()),
        };
        self.stage.push(to, text);
    }

    fn reply(&mut self, to: &char, reply: &Reply) {
        let text = match reply {
            Reply::ConnAck => self.connecting.remove(to).expect("is connecting"),
            Reply::SubAck(_, codes) => with_codes("suback", codes),
            Reply::UnsubAck(_, codes) => with_codes("unsuback", codes),
        };
        self.stage.push(to, text);
    }

    fn close(&mut self, connection: &char, reason: ReasonCode) {
        let text = format!("closed {:#04x}", reason.octet());
        self.stage.push(connection, text);
        self.closed.push(*connection);
    }

    fn hold(&mut self, to: &char, delta: isize) {
        *self.held.entry(*to).or_default() += delta;
    }

    fn pause(&mut self, connection: &char, is_paused: bool) {
        let text = if is_paused { "paused" } else { "continues" };
        self.stage.push(connection, text.to_owned());
    }

    fn publish_will(&mut self, client_id: &str, will: &Content<'_>) -> bool {
        if self.keeps_wills {
            let text = format!("will {client_id} {}", will.topic);
            self.stage.push('-', text);
        }
        !self.keeps_wills
    }

    fn interest(&mut self, filter: &str, begins: bool) {
        if self.tells_all {
            let sign = if begins { '+' } else { '-' };
            self.stage.push('-', format!("interest {sign}{filter}"));
        }
    }

    fn ended(&mut self, client_id: &str) {
        if self.tells_all {
            self.stage.push('-', format!("ended {client_id}"));
        }
    }
}

fn with_codes(packet: &str, codes: &[ReasonCode]) -> String {
    let codes = codes.iter().map(|code| match code.octet() {
        octet @ 0..0x10 => format!(" {octet}"),
        octet => format!(" {octet:#04x}"),
    });
    format!("{packet}{}", codes.collect::<String>())
}

/// A PUBLISH as it is written in a script.
fn describe(octets: &[u8], version: Version) -> String {
    let decoded = decode(octets, version, u32::MAX).expect("the space sends valid packets");
    let Decoded::Packet { packet, consumed } = decoded else {
        panic!("the space sends whole packets, not {decoded:?}");
    };
    assert_eq!(consumed, octets.len());
    let crosstie_mqtt::Packet::Publish(publish) = packet else {
        panic!("the space sends PUBLISH");
    };
    let payload = match publish.payload {
        [] => "-".to_owned(),
        payload => String::from_utf8_lossy(payload).into_owned(),
    };
    let topic = match publish.topic {
        "" => "-",
        topic => topic,
    };
    let mut text = format!("publish {topic} {payload}");
    match publish.delivery {
        Delivery::AtMostOnce => {}
        Delivery::AtLeastOnce(id) => write!(text, " q1 {id}").expect("a text takes all"),
        Delivery::ExactlyOnce(id) => write!(text, " q2 {id}").expect("a text takes all"),
    }
    for (word, is_set) in [(" dup", publish.dup), (" retain", publish.retain)] {
        text += if is_set { word } else { "" };
    }
    let properties = publish.properties;
    if let Some(alias) = properties.topic_alias() {
        write!(text, " alias={alias}").expect("a text takes all");
    }
    if let Some(expiry) = properties.message_expiry() {
        write!(text, " expiry={expiry}").expect("a text takes all");
    }
    let ids: Vec<_> = properties
        .subscription_ids()
        .map(|id| id.to_string())
        .collect();
    if !ids.is_empty() {
        write!(text, " ids={}", ids.join(",")).expect("a text takes all");
    }
    if let Some(content_type) = properties.content_type() {
        write!(text, " type={content_type}").expect("a text takes all");
    }
    for (key, value) in properties.user_properties() {
        write!(text, " user={key}:{value}").expect("a text takes all");
    }
    text
}
