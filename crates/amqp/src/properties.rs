//! A message's content header (section 4.2.6.1) and its properties.

use std::{fmt, str};

use crate::method::BASIC_CLASS;
use crate::reader::{ReadError, Reader};
use crate::table::Table;
use crate::writer::Writer;

/// A content header, which announces a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentHeader<'a> {
    pub body_bytes: u64,
    pub properties: Properties<'a>,
}

/// Properties as the bytes they came in, flags and values, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties<'a> {
    bytes: &'a [u8],
}

/// The properties of class `basic`, by name. A text that is not UTF-8 is passed on with the
/// message, as RabbitMQ does; here it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BasicProperties<'a> {
    pub content_type: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub headers: Option<Table<'a>>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<&'a str>,
    pub reply_to: Option<&'a str>,
    /// Milliseconds, in digits.
    pub expiration: Option<&'a str>,
    pub message_id: Option<&'a str>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    pub kind: Option<&'a str>,
    pub user_id: Option<&'a str>,
    pub app_id: Option<&'a str>,
    pub cluster_id: Option<&'a str>,
}

/// The property `delivery-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    Transient = 1,
    Persistent = 2,
}

/// Why the payload of a header frame is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertiesError {
    /// Of another class than the method before it: 505 `UNEXPECTED_FRAME`.
    Class { class_id: u16 },
    /// There are flags for properties that class `basic` does not have: 502 `SYNTAX_ERROR`.
    Flags { flags: u16 },
    /// 502 `SYNTAX_ERROR`.
    Read(ReadError),
}

// The flags of the properties that are there, from the highest bit down, in the order in which their values
// follow (section 4.2.6.1).
pub(crate) const CONTENT_TYPE: u16 = 1 << 15;
pub(crate) const CONTENT_ENCODING: u16 = 1 << 14;
pub(crate) const HEADERS: u16 = 1 << 13;
pub(crate) const DELIVERY_MODE: u16 = 1 << 12;
pub(crate) const PRIORITY: u16 = 1 << 11;
pub(crate) const CORRELATION_ID: u16 = 1 << 10;
pub(crate) const REPLY_TO: u16 = 1 << 9;
pub(crate) const EXPIRATION: u16 = 1 << 8;
pub(crate) const MESSAGE_ID: u16 = 1 << 7;
pub(crate) const TIMESTAMP: u16 = 1 << 6;
pub(crate) const KIND: u16 = 1 << 5;
pub(crate) const USER_ID: u16 = 1 << 4;
pub(crate) const APP_ID: u16 = 1 << 3;
pub(crate) const CLUSTER_ID: u16 = 1 << 2;
/// Bit 0 announces further flags, which the class `basic` has not; bit 1 is no property's.
const NO_PROPERTY: u16 = 0b11;
const FOR_BROKER: u16 = HEADERS | DELIVERY_MODE | REPLY_TO | EXPIRATION | USER_ID;

impl<'a> ContentHeader<'a> {
    /// Reads a header frame's payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, PropertiesError> {
        let mut reader = Reader::new(payload);
        let class_id = reader.short()?;
        if class_id != BASIC_CLASS {
            return Err(PropertiesError::Class { class_id });
        }
        let _weight = reader.short()?;
        Ok(Self {
            body_bytes: reader.longlong()?,
            properties: Properties::from_bytes(reader.rest())?,
        })
    }
}

impl<'a> Properties<'a> {
    /// None at all.
    pub const EMPTY: Properties<'static> = Properties { bytes: &[0, 0] };

    /// Checks flags and values.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, PropertiesError> {
        BasicProperties::read(bytes)?;
        Ok(Self { bytes })
    }

    /// Takes bytes that [`Self::from_bytes`] has checked or [`BasicProperties::write`] has written: a message is
    /// checked when it arrives, not each time it leaves a queue. Invalid bytes would be sent on unchanged; parsed they
    /// are empty.
    pub fn from_checked_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// By name.
    pub fn parse(self) -> BasicProperties<'a> {
        // Checked when this was made.
        BasicProperties::read(self.bytes).unwrap_or_default()
    }

    /// Parses the properties that concern a broker: headers, delivery mode, reply-to, expiration and user-id. The
    /// others are skipped, and absent.
    pub fn parse_for_broker(self) -> BasicProperties<'a> {
        match self.flags() & FOR_BROKER {
            0 => BasicProperties::default(),
            _ => BasicProperties::skim(self.bytes).unwrap_or_default(),
        }
    }

    /// The priority alone: only some queues look at it.
    pub fn priority(self) -> Option<u8> {
        match self.flags() & PRIORITY {
            0 => None,
            _ => BasicProperties::skim_priority(self.bytes).ok(),
        }
    }

    fn flags(self) -> u16 {
        self.bytes
            .first_chunk()
            .map_or(0, |flags| u16::from_be_bytes(*flags))
    }
}

impl<'a> BasicProperties<'a> {
    /// The properties that are texts, by the names that RabbitMQ's tools give them.
    pub fn texts(&self) -> [(&'static str, Option<&'a str>); 10] {
        [
            ("content_type", self.content_type),
            ("content_encoding", self.content_encoding),
            ("correlation_id", self.correlation_id),
            ("reply_to", self.reply_to),
            ("expiration", self.expiration),
            ("message_id", self.message_id),
            ("type", self.kind),
            ("user_id", self.user_id),
            ("app_id", self.app_id),
            ("cluster_id", self.cluster_id),
        ]
    }

    /// Those that are numbers.
    pub fn numbers(&self) -> [(&'static str, Option<u64>); 3] {
        [
            ("delivery_mode", self.delivery_mode.map(u64::from)),
            ("priority", self.priority.map(u64::from)),
            ("timestamp", self.timestamp),
        ]
    }

    fn read(bytes: &'a [u8]) -> Result<Self, PropertiesError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.short()?;
        if flags & NO_PROPERTY != 0 {
            return Err(PropertiesError::Flags { flags });
        }
        let mut properties = Self::default();
        macro_rules! read {
            ($flag:ident, $field:ident, $read:expr) => {
                if flags & $flag != 0 {
                    properties.$field = Some($read(&mut reader)?);
                }
            };
        }
        macro_rules! read_text {
            ($flag:ident, $field:ident) => {
                if flags & $flag != 0 {
                    properties.$field = str::from_utf8(reader.shortstr_bytes()?).ok();
                }
            };
        }
        read_text!(CONTENT_TYPE, content_type);
        read_text!(CONTENT_ENCODING, content_encoding);
        read!(HEADERS, headers, Table::read);
        read!(DELIVERY_MODE, delivery_mode, Reader::octet);
        read!(PRIORITY, priority, Reader::octet);
        read_text!(CORRELATION_ID, correlation_id);
        read_text!(REPLY_TO, reply_to);
        read_text!(EXPIRATION, expiration);
        read_text!(MESSAGE_ID, message_id);
        read!(TIMESTAMP, timestamp, Reader::longlong);
        read_text!(KIND, kind);
        read_text!(USER_ID, user_id);
        read_text!(APP_ID, app_id);
        read_text!(CLUSTER_ID, cluster_id);
        reader.end()?;
        Ok(properties)
    }

    /// The properties that a broker looks at, of bytes that were checked; reading ends behind the last of them.
    fn skim(bytes: &'a [u8]) -> Result<Self, PropertiesError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.short()?;
        let mut properties = Self::default();
        let has = |flag: u16| flags & flag != 0;
        if has(CONTENT_TYPE) {
            reader.shortstr_bytes()?;
        }
        if has(CONTENT_ENCODING) {
            reader.shortstr_bytes()?;
        }
        if has(HEADERS) {
            properties.headers = Some(Table::read(&mut reader)?);
        }
        if has(DELIVERY_MODE) {
            properties.delivery_mode = Some(reader.octet()?);
        }
        if !has(REPLY_TO | EXPIRATION | USER_ID) {
            return Ok(properties);
        }
        if has(PRIORITY) {
            reader.octet()?;
        }
        if has(CORRELATION_ID) {
            reader.shortstr_bytes()?;
        }
        if has(REPLY_TO) {
            properties.reply_to = str::from_utf8(reader.shortstr_bytes()?).ok();
        }
        if has(EXPIRATION) {
            properties.expiration = str::from_utf8(reader.shortstr_bytes()?).ok();
        }
        if !has(USER_ID) {
            return Ok(properties);
        }
        if has(MESSAGE_ID) {
            reader.shortstr_bytes()?;
        }
        if has(TIMESTAMP) {
            reader.longlong()?;
        }
        if has(KIND) {
            reader.shortstr_bytes()?;
        }
        properties.user_id = str::from_utf8(reader.shortstr_bytes()?).ok();
        Ok(properties)
    }

    /// Of bytes that were checked, and that have one.
    fn skim_priority(bytes: &[u8]) -> Result<u8, PropertiesError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.short()?;
        for text in [CONTENT_TYPE, CONTENT_ENCODING] {
            if flags & text != 0 {
                reader.shortstr_bytes()?;
            }
        }
        if flags & HEADERS != 0 {
            reader.longstr()?;
        }
        if flags & DELIVERY_MODE != 0 {
            reader.octet()?;
        }
        Ok(reader.octet()?)
    }

    /// Appends flags and values.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut writer = Writer::new(out);
        writer.short(0);
        let mut flags = 0;
        macro_rules! write {
            ($flag:ident, $field:ident, $write:ident) => {
                if let Some(value) = self.$field {
                    flags |= $flag;
                    writer.$write(value);
                }
            };
        }
        write!(CONTENT_TYPE, content_type, shortstr);
        write!(CONTENT_ENCODING, content_encoding, shortstr);
        write!(HEADERS, headers, table);
        write!(DELIVERY_MODE, delivery_mode, octet);
        write!(PRIORITY, priority, octet);
        write!(CORRELATION_ID, correlation_id, shortstr);
        write!(REPLY_TO, reply_to, shortstr);
        write!(EXPIRATION, expiration, shortstr);
        write!(MESSAGE_ID, message_id, shortstr);
        write!(TIMESTAMP, timestamp, longlong);
        write!(KIND, kind, shortstr);
        write!(USER_ID, user_id, shortstr);
        write!(APP_ID, app_id, shortstr);
        write!(CLUSTER_ID, cluster_id, shortstr);
        out[start..start + 2].copy_from_slice(&flags.to_be_bytes());
    }
}

impl From<ReadError> for PropertiesError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class { class_id } => {
                write!(
                    f,
                    "a content header of class {class_id}, expected 60 (basic)"
                )
            }
            Self::Flags { flags } => write!(f, "unknown property flags {flags:#06x}"),
            Self::Read(error) => write!(f, "in a content header: {error}"),
        }
    }
}

impl std::error::Error for PropertiesError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each set of properties there is, with and without a header.
    #[test]
    fn a_broker_finds_its_properties_among_all_others() {
        let table = [1, b'a', b't', 1];
        let table = Table::from_bytes(&table).unwrap();
        for flags in (0..=u16::MAX).filter(|flags| flags & NO_PROPERTY == 0) {
            let has = |flag: u16| flags & flag != 0;
            let looked_for = BasicProperties {
                headers: has(HEADERS).then_some(table),
                delivery_mode: has(DELIVERY_MODE).then_some(2),
                reply_to: has(REPLY_TO).then_some("reply"),
                expiration: has(EXPIRATION).then_some("60"),
                user_id: has(USER_ID).then_some("guest"),
                ..BasicProperties::default()
            };
            let all = BasicProperties {
                content_type: has(CONTENT_TYPE).then_some("type"),
                content_encoding: has(CONTENT_ENCODING).then_some("encoding"),
                priority: has(PRIORITY).then_some(1),
                correlation_id: has(CORRELATION_ID).then_some("correlation"),
                message_id: has(MESSAGE_ID).then_some("id"),
                timestamp: has(TIMESTAMP).then_some(7),
                kind: has(KIND).then_some("kind"),
                app_id: has(APP_ID).then_some("app"),
                cluster_id: has(CLUSTER_ID).then_some("cluster"),
                ..looked_for
            };
            let mut bytes = Vec::new();
            all.write(&mut bytes);
            let properties = Properties::from_checked_bytes(&bytes);
            assert_eq!(properties.parse(), all);
            assert_eq!(properties.parse_for_broker(), looked_for);
            assert_eq!(properties.priority(), all.priority);
        }
    }

    #[test]
    fn unchecked_bytes_are_no_properties() {
        for bytes in [
            &[][..],
            &[0xff],
            &[0x20, 0],
            &[0x30, 0, 0, 0],
            &[1, 0, 9, b'1'],
            &[0x08, 0],
            &[0x28, 0, 0, 0, 0, 9, 1],
        ] {
            let properties = Properties::from_checked_bytes(bytes);
            assert_eq!(properties.parse(), BasicProperties::default());
            assert_eq!(properties.parse_for_broker(), BasicProperties::default());
            assert_eq!(properties.priority(), None);
        }
    }
}
