//! Records as octets: a tag, then the fields. Numbers have seven bits in each octet, texts and octets a length in front.

use std::fmt;
use std::sync::Arc;

use crosstie_mqtt::{PacketId, QoS};

use crate::subscribers::PackedOptions;
use crate::{Message, MessageNumber, Record, SessionNumber, Time};

/// Octets that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecord;

impl fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the octets are no record of a topic space")
    }
}

impl std::error::Error for InvalidRecord {}

const SESSION: u8 = 1;
const SESSION_ENDED: u8 = 2;
const SUBSCRIBED: u8 = 3;
const UNSUBSCRIBED: u8 = 4;
const MESSAGE: u8 = 5;
const MESSAGE_GONE: u8 = 6;
const QUEUED: u8 = 7;
const DEPARTED: u8 = 8;
const RECEIVED: u8 = 9;
const RELEASED: u8 = 10;
const WILL: u8 = 11;
const WILL_GONE: u8 = 12;
const RETAINED: u8 = 13;
const RETAINED_GONE: u8 = 14;

const IS_RETAINED: u8 = 4;
const IS_SHARED: u8 = 8;
const IS_FORWARDED: u8 = 16;

/// Beside the options of a subscription.
const IS_SCANNED: u8 = 0x80;

impl Record {
    /// Appends the octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Session { .. } => self.encode_session(out),
            Self::SessionEnded { session } => head(out, SESSION_ENDED, session.0),
            Self::Subscribed {
                session,
                filter,
                options,
                identifier,
                is_scanned,
            } => {
                head(out, SUBSCRIBED, session.0);
                bytes(out, filter.as_bytes());
                let scanned = if *is_scanned { IS_SCANNED } else { 0 };
                out.push(PackedOptions::of(*options).octet() | scanned);
                number(out, u64::from(*identifier));
            }
            Self::Unsubscribed { session, filter } => {
                head(out, UNSUBSCRIBED, session.0);
                bytes(out, filter.as_bytes());
            }
            Self::Message { message, content } => {
                head(out, MESSAGE, message.0);
                content.encode(out);
            }
            Self::MessageGone { message } => head(out, MESSAGE_GONE, message.0),
            Self::Queued { .. } => self.encode_queued(out),
            Self::Departed { session, place } => {
                head(out, DEPARTED, session.0);
                number(out, *place);
            }
            Self::Received { session, packet_id } => {
                head(out, RECEIVED, session.0);
                number(out, u64::from(packet_id.get()));
            }
            Self::Released { session, packet_id } => {
                head(out, RELEASED, session.0);
                number(out, u64::from(packet_id.get()));
            }
            Self::Will {
                session,
                content,
                expiry_s,
                delay_s,
            } => {
                head(out, WILL, session.0);
                number(out, u64::from(*delay_s));
                optional(out, expiry_s.map(u64::from));
                content.encode(out);
            }
            Self::WillGone { session } => head(out, WILL_GONE, session.0),
            Self::Retained { content } => {
                out.push(RETAINED);
                content.encode(out);
            }
            Self::RetainedGone { topic } => {
                out.push(RETAINED_GONE);
                bytes(out, topic.as_bytes());
            }
        }
    }

    fn encode_session(&self, out: &mut Vec<u8>) {
        if let Self::Session {
            session,
            client_id,
            expiry_s,
            ends_at,
            known_before,
            known_max,
        } = self
        {
            head(out, SESSION, session.0);
            bytes(out, client_id.as_bytes());
            number(out, u64::from(*expiry_s));
            optional(out, ends_at.map(|at| at.0));
            number(out, *known_before);
            number(out, u64::from(*known_max));
        }
    }

    fn encode_queued(&self, out: &mut Vec<u8>) {
        if let Self::Queued {
            session,
            place,
            message,
            qos,
            is_retained,
            is_shared,
            is_forwarded,
            identifiers,
        } = self
        {
            head(out, QUEUED, session.0);
            number(out, *place);
            number(out, message.0);
            let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
            let flags = flag(*is_retained, IS_RETAINED) | flag(*is_shared, IS_SHARED);
            out.push(qos.octet() | flags | flag(*is_forwarded, IS_FORWARDED));
            identifiers
                .iter()
                .for_each(|one| number(out, u64::from(*one)));
        }
    }

    /// Reads a record that takes all of the octets.
    pub fn decode(octets: &[u8]) -> Result<Self, InvalidRecord> {
        let mut reader = Reader(octets);
        let record = reader.record().ok_or(InvalidRecord)?;
        match reader.0.is_empty() {
            true => Ok(record),
            false => Err(InvalidRecord),
        }
    }
}

impl Message {
    /// Its octets take the rest of a record.
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.qos.octet() | if self.retain { IS_RETAINED } else { 0 });
        optional(out, self.expires_at.map(|at| at.0));
        bytes(out, self.topic().as_bytes());
        bytes(out, self.properties().bytes());
        out.extend_from_slice(self.payload());
    }
}

fn head(out: &mut Vec<u8>, tag: u8, subject: u64) {
    out.push(tag);
    number(out, subject);
}

fn number(out: &mut Vec<u8>, value: u64) {
    let mut left = value;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// 0 for none, else one more.
fn optional(out: &mut Vec<u8>, value: Option<u64>) {
    number(out, value.map_or(0, |value| value.saturating_add(1)));
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The unread octets of a record.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn record(&mut self) -> Option<Record> {
        let tag = self.octet()?;
        Some(match tag {
            SESSION => Record::Session {
                session: self.session()?,
                client_id: self.text()?,
                expiry_s: self.short()?,
                ends_at: self.optional()?.map(Time),
                known_before: self.number()?,
                known_max: self.short()?,
            },
            SESSION_ENDED => Record::SessionEnded {
                session: self.session()?,
            },
            SUBSCRIBED => self.subscribed()?,
            UNSUBSCRIBED => Record::Unsubscribed {
                session: self.session()?,
                filter: self.text()?,
            },
            MESSAGE => {
                let message = MessageNumber(self.number()?);
                let content = self.message(message)?;
                Record::Message { message, content }
            }
            MESSAGE_GONE => Record::MessageGone {
                message: MessageNumber(self.number()?),
            },
            QUEUED => self.queued()?,
            DEPARTED => Record::Departed {
                session: self.session()?,
                place: self.number()?,
            },
            RECEIVED => Record::Received {
                session: self.session()?,
                packet_id: self.packet_id()?,
            },
            RELEASED => Record::Released {
                session: self.session()?,
                packet_id: self.packet_id()?,
            },
            WILL => Record::Will {
                session: self.session()?,
                delay_s: self.short()?,
                expiry_s: match self.optional()? {
                    Some(expiry_s) => Some(u32::try_from(expiry_s).ok()?),
                    None => None,
                },
                content: self.message(MessageNumber(0))?,
            },
            WILL_GONE => Record::WillGone {
                session: self.session()?,
            },
            RETAINED => Record::Retained {
                content: self.message(MessageNumber(0))?,
            },
            RETAINED_GONE => Record::RetainedGone {
                topic: self.text()?,
            },
            _ => return None,
        })
    }

    fn subscribed(&mut self) -> Option<Record> {
        let (session, filter) = (self.session()?, self.text()?);
        let octet = self.octet()?;
        Some(Record::Subscribed {
            session,
            filter,
            options: PackedOptions::from_octet(octet & !IS_SCANNED)?.unpack(),
            identifier: self.short()?,
            is_scanned: octet & IS_SCANNED != 0,
        })
    }

    fn queued(&mut self) -> Option<Record> {
        let (session, place) = (self.session()?, self.number()?);
        let (message, flags) = (MessageNumber(self.number()?), self.octet()?);
        let mut identifiers = Vec::new();
        while !self.0.is_empty() {
            identifiers.push(self.short()?);
        }
        let is_known = flags & !(3 | IS_RETAINED | IS_SHARED | IS_FORWARDED) == 0;
        is_known.then_some(Record::Queued {
            session,
            place,
            message,
            qos: QoS::from_octet(flags & 3)?,
            is_retained: flags & IS_RETAINED != 0,
            is_shared: flags & IS_SHARED != 0,
            is_forwarded: flags & IS_FORWARDED != 0,
            identifiers,
        })
    }

    fn message(&mut self, number: MessageNumber) -> Option<Arc<Message>> {
        let flags = self.octet()?;
        let expires_at = self.optional()?.map(Time);
        let topic = self.text()?;
        let properties = self.bytes()?;
        let payload = std::mem::take(&mut self.0);
        let qos = QoS::from_octet(flags & 3).filter(|_| flags & !(3 | IS_RETAINED) == 0)?;
        let retain = flags & IS_RETAINED != 0;
        let parts = (&*topic, properties, payload);
        let message = Message::from_parts(parts, (qos, retain), expires_at, number)?;
        Some(Arc::new(message))
    }

    fn octet(&mut self) -> Option<u8> {
        let (octet, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*octet)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for at in 0..10 {
            let octet = self.octet()?;
            let bits = u64::from(octet & 0x7f);
            if at == 9 && octet > 1 || at > 0 && octet == 0 {
                return None;
            }
            value |= bits << (7 * at);
            if octet & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        self.number().map(|number| number.checked_sub(1))
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn session(&mut self) -> Option<SessionNumber> {
        self.number().map(SessionNumber)
    }

    fn packet_id(&mut self) -> Option<PacketId> {
        PacketId::new(u16::try_from(self.number()?).ok()?)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<Arc<str>> {
        std::str::from_utf8(self.bytes()?).ok().map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use crosstie_collections::SplitMix;
    use crosstie_mqtt::{Options, Properties, PropertiesBuf, Property, RetainHandling};

    use super::*;
    use crate::Content;

    fn message(properties: Properties<'_>, expiry_s: Option<u32>) -> Arc<Message> {
        let content = Content {
            topic: "a/ü",
            qos: QoS::ExactlyOnce,
            retain: true,
            expiry_s,
            properties,
            payload: b"\0payload",
        };
        Arc::new(Message::new(&content, MessageNumber(0), Time(3)))
    }

    fn records() -> Vec<Record> {
        let mut properties = PropertiesBuf::new();
        properties.push(Property::ContentType("text"));
        let with = |expiry_s| message(properties.as_properties(), expiry_s);
        let session = SessionNumber(300);
        let packet_id = PacketId::new(65_535).expect("is not 0");
        vec![
            Record::Session {
                session,
                client_id: "client".into(),
                expiry_s: u32::MAX,
                ends_at: Some(Time(1 << 40)),
                known_before: 1 << 50,
                known_max: 700,
            },
            Record::SessionEnded { session },
            Record::Subscribed {
                session,
                filter: "$share/g/a/#".into(),
                options: Options {
                    qos: QoS::ExactlyOnce,
                    no_local: true,
                    retain_as_published: true,
                    retain_handling: RetainHandling::Never,
                },
                identifier: 268_435_455,
                is_scanned: true,
            },
            Record::Unsubscribed {
                session,
                filter: "".into(),
            },
            Record::Message {
                message: MessageNumber(u64::MAX),
                content: with(Some(7)),
            },
            Record::MessageGone {
                message: MessageNumber(0),
            },
            Record::Queued {
                session,
                place: u64::MAX,
                message: MessageNumber(1),
                qos: QoS::AtLeastOnce,
                is_retained: true,
                is_shared: false,
                is_forwarded: true,
                identifiers: vec![1, 128, 1 << 20],
            },
            Record::Departed { session, place: 5 },
            Record::Received { session, packet_id },
            Record::Released { session, packet_id },
            Record::Will {
                session,
                content: message(Properties::EMPTY, None),
                expiry_s: Some(0),
                delay_s: 9,
            },
            Record::WillGone { session },
            Record::Retained {
                content: with(None),
            },
            Record::RetainedGone {
                topic: "a/b".into(),
            },
        ]
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for record in records() {
            let mut octets = Vec::new();
            record.encode(&mut octets);
            assert_eq!(Record::decode(&octets), Ok(record.clone()), "{octets:?}");
            // A part of a record is none, unless it ends within octets that take the rest.
            for end in 0..octets.len() {
                if let Ok(shorter) = Record::decode(&octets[..end]) {
                    assert!(matches!(
                        (&shorter, &record),
                        (Record::Message { .. }, Record::Message { .. })
                            | (Record::Retained { .. }, Record::Retained { .. })
                            | (Record::Will { .. }, Record::Will { .. })
                            | (Record::Queued { .. }, Record::Queued { .. })
                    ));
                }
            }
        }
    }

    #[test]
    fn any_octets_are_a_record_that_is_written_the_same_or_none() {
        let mut random = SplitMix(9);
        let mut valid = 0;
        for round in 0..20_000 {
            let all = records();
            let mut octets = Vec::new();
            all[round % all.len()].encode(&mut octets);
            for _ in 0..random.number() % 3 {
                let at = random.number() as usize % octets.len();
                octets[at] = random.number() as u8;
            }
            let Ok(record) = Record::decode(&octets) else {
                continue;
            };
            valid += 1;
            let mut again = Vec::new();
            record.encode(&mut again);
            assert_eq!(Record::decode(&again), Ok(record));
        }
        assert!(valid > 5_000, "{valid}");
    }
}
