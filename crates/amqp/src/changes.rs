//! Changes a few of a message's properties, and passes all others as the received bytes.
//!
//! Text properties need not be UTF-8 (a correlation id is often sixteen bytes of a UUID), so that rewriting the result
//! of [`Properties::parse`] would lose some.

use crate::properties::{self as property, Properties};
use crate::reader::{ReadError, Reader};
use crate::table::Table;
use crate::writer::Writer;

/// The changes that a broker makes to a message's properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Replaces the headers, or adds them.
    pub headers: Option<Table<'a>>,
    pub reply_to: Option<&'a str>,
    pub removes_expiration: bool,
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Table,
    Octet,
    Longlong,
}

/// In their order on the wire.
const FORMS: [(u16, Form); 14] = [
    (property::CONTENT_TYPE, Form::Text),
    (property::CONTENT_ENCODING, Form::Text),
    (property::HEADERS, Form::Table),
    (property::DELIVERY_MODE, Form::Octet),
    (property::PRIORITY, Form::Octet),
    (property::CORRELATION_ID, Form::Text),
    (property::REPLY_TO, Form::Text),
    (property::EXPIRATION, Form::Text),
    (property::MESSAGE_ID, Form::Text),
    (property::TIMESTAMP, Form::Longlong),
    (property::KIND, Form::Text),
    (property::USER_ID, Form::Text),
    (property::APP_ID, Form::Text),
    (property::CLUSTER_ID, Form::Text),
];

impl Properties<'_> {
    /// Appends the bytes of these properties with `changes`.
    pub fn write_changed(self, changes: &Changes<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        if self.try_write_changed(changes, out).is_err() {
            // Unchecked bytes are not valid properties.
            out.truncate(start);
            let _ = Properties::EMPTY.try_write_changed(changes, out);
        }
    }

    fn try_write_changed(self, changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let mut reader = Reader::new(self.bytes());
        let flags = reader.short()?;
        let start = out.len();
        let mut changed_flags = 0;
        Writer::new(out).short(0);
        for (flag, form) in FORMS {
            let before = reader.rest();
            if flags & flag != 0 {
                form.pass(&mut reader)?;
            }
            let value = &before[..before.len() - reader.rest().len()];
            match flag {
                property::HEADERS if let Some(headers) = changes.headers => {
                    Writer::new(out).table(headers);
                }
                property::REPLY_TO if let Some(reply_to) = changes.reply_to => {
                    Writer::new(out).shortstr(reply_to);
                }
                property::EXPIRATION if changes.removes_expiration => continue,
                _ if value.is_empty() => continue,
                _ => out.extend_from_slice(value),
            }
            changed_flags |= flag;
        }
        out[start..start + 2].copy_from_slice(&u16::to_be_bytes(changed_flags));
        Ok(())
    }
}

impl Form {
    fn pass(self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        match self {
            Self::Text => reader.shortstr_bytes().map(drop),
            Self::Table => reader.longstr().map(drop),
            Self::Octet => reader.octet().map(drop),
            Self::Longlong => reader.longlong().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BasicProperties, TableBuf, Value};

    #[test]
    fn unchanged_properties_keep_their_bytes() {
        let headers = TableBuf::new().with("a", Value::I32(1));
        let named = BasicProperties {
            headers: Some(headers.as_table()),
            delivery_mode: Some(2),
            correlation_id: Some("??"),
            reply_to: Some("amq.rabbitmq.reply-to"),
            expiration: Some("60"),
            timestamp: Some(7),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        // No text in any encoding.
        let place = bytes.windows(2).position(|pair| pair == b"??").unwrap();
        bytes[place..place + 2].copy_from_slice(&[0xff, 0xfe]);
        let properties = Properties::from_bytes(&bytes).unwrap();

        let mut same = Vec::new();
        properties.write_changed(&Changes::default(), &mut same);
        assert_eq!(same, bytes);

        let other = TableBuf::new().with("b", Value::Void);
        let changes = Changes {
            headers: Some(other.as_table()),
            reply_to: Some("token"),
            removes_expiration: true,
        };
        let mut changed = Vec::new();
        properties.write_changed(&changes, &mut changed);
        let checked = Properties::from_bytes(&changed).unwrap();
        let expected = BasicProperties {
            headers: changes.headers,
            correlation_id: None,
            reply_to: changes.reply_to,
            expiration: None,
            ..named
        };
        assert_eq!(checked.parse(), expected);
        assert!(changed.windows(2).any(|pair| pair == [0xff, 0xfe]));
    }

    #[test]
    fn missing_properties_are_added() {
        let headers = TableBuf::new().with("a", Value::I32(1));
        let changes = Changes {
            headers: Some(headers.as_table()),
            ..Changes::default()
        };
        for bytes in [&[0, 0][..], &[], &[0xff, 0xfc, 9]] {
            let mut changed = Vec::new();
            Properties::from_checked_bytes(bytes).write_changed(&changes, &mut changed);
            let expected = BasicProperties {
                headers: changes.headers,
                ..BasicProperties::default()
            };
            assert_eq!(Properties::from_bytes(&changed).unwrap().parse(), expected);
        }
    }
}
