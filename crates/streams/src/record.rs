//! A message as a segment has it.
//!
//! ```text
//! length  checksum  offset  time  properties' bytes, exchange's, routing key's │ exchange, key, properties, body
//!   4        4         8      8           4              1          1          │
//! └ of all behind the checksum, which is of the same                           │
//! ```
//!
//! The properties have the header `x-stream-offset` already, so that a delivery copies them as they are.

use crosstie_amqp::{Changes, TableBuf, Value};
use crosstie_queues::{MessageContent, StreamPage, StreamPlace};

use crate::bytes::{NUMBER_MAX, u32_at, u64_at};

/// Length and checksum.
const SUM_BYTES: usize = 8;
pub(crate) const HEAD_BYTES: usize = SUM_BYTES + 22;

/// A segment begins with these, its first offset, that of the segment before it and its bytes, and their checksum.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ctstrm01");
pub(crate) const SEGMENT_HEAD_BYTES: u64 = 4 * 8 + 4;

/// Maximum bytes of a record: those of the largest message, and its properties.
const RECORD_BYTES_MAX: usize = 1 << 30;

const OFFSET_HEADER: &str = "x-stream-offset";

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Of the whole record.
    pub(crate) bytes: usize,
    pub(crate) offset: u64,
    pub(crate) at_ms: u64,
    lengths: (u8, u8, u32),
}

/// The bytes at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Record(Head),
    /// A record with a wrong checksum. It takes so many bytes, if its length is right.
    Damaged {
        bytes: usize,
    },
    /// The record goes on behind the bytes; it takes so many, if its length is right.
    Cut {
        bytes: usize,
    },
    /// No record.
    Nothing,
}

/// Appends a record.
pub(crate) fn write(offset: u64, at_ms: u64, content: &MessageContent, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; SUM_BYTES]);
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&at_ms.to_le_bytes());
    let lengths_at = out.len();
    out.extend_from_slice(&[0; 4]);
    // A content's names have at most 255 bytes.
    out.push(content.exchange().len() as u8);
    out.push(content.routing_key().len() as u8);
    out.extend_from_slice(content.exchange().as_bytes());
    out.extend_from_slice(content.routing_key().as_bytes());
    let properties_at = out.len();
    write_properties(offset, content, out);
    let properties_bytes = (out.len() - properties_at) as u32;
    out[lengths_at..lengths_at + 4].copy_from_slice(&properties_bytes.to_le_bytes());
    out.extend_from_slice(content.body());
    let summed = start + SUM_BYTES;
    let sum = crc32fast::hash(&out[summed..]);
    let bytes = (out.len() - summed) as u32;
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
    out[start + 4..summed].copy_from_slice(&sum.to_le_bytes());
}

/// The properties, with the message's offset among the headers.
fn write_properties(offset: u64, content: &MessageContent, out: &mut Vec<u8>) {
    let properties = content.properties();
    let before = properties.parse_for_broker().headers.unwrap_or_default();
    let mut headers = TableBuf::new();
    for (name, value) in before.iter().filter(|(name, _)| *name != OFFSET_HEADER) {
        headers = headers.with(name, value);
    }
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    headers = headers.with(OFFSET_HEADER, Value::I64(offset));
    let changes = Changes {
        headers: Some(headers.as_table()),
        ..Changes::default()
    };
    properties.write_changed(&changes, out);
}

/// Reads the record at the start of the bytes.
pub(crate) fn read(bytes: &[u8]) -> Found {
    let Some(length) = u32_at(bytes, 0) else {
        return Found::Cut { bytes: HEAD_BYTES };
    };
    let length = length as usize;
    if !(HEAD_BYTES - SUM_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return Found::Nothing;
    }
    let whole = SUM_BYTES + length;
    let Some(record) = bytes.get(..whole) else {
        return Found::Cut { bytes: whole };
    };
    parse(record).map_or(Found::Damaged { bytes: whole }, Found::Record)
}

fn parse(record: &[u8]) -> Option<Head> {
    if crc32fast::hash(&record[SUM_BYTES..]) != u32_at(record, 4)? {
        return None;
    }
    let lengths = (*record.get(28)?, *record.get(29)?, u32_at(record, 24)?);
    let names = usize::from(lengths.0) + usize::from(lengths.1);
    let head = HEAD_BYTES
        .checked_add(names)?
        .checked_add(lengths.2 as usize)?;
    let (offset, at_ms) = (u64_at(record, 8)?, u64_at(record, 16)?);
    let is_possible = head <= record.len() && offset.max(at_ms) <= NUMBER_MAX;
    is_possible.then_some(Head {
        bytes: record.len(),
        offset,
        at_ms,
        lengths,
    })
}

/// Adds a record that begins at that byte of the page. Returns whether it is a message.
pub(crate) fn add_to(page: &mut StreamPage, at: usize, head: &Head) -> bool {
    page.push(
        head.offset,
        (at + HEAD_BYTES, at + head.bytes),
        head.lengths,
    )
}

/// Appends the record of a message.
pub fn encode_record(offset: u64, at_ms: u64, content: &MessageContent, out: &mut Vec<u8>) {
    write(offset, at_ms, content, out);
}

/// Reads records from bytes until one is not whole or not valid; returns their page, and the byte at which it ends. For
/// tests of the decoder.
pub fn decode_page(bytes: Vec<u8>) -> (StreamPage, usize) {
    let mut heads = Vec::new();
    let mut at = 0;
    while let Found::Record(head) = read(&bytes[at..]) {
        heads.push((at, head));
        at += head.bytes;
    }
    let mut page = StreamPage::new(bytes, StreamPlace::default());
    let mut end = 0;
    for (at, head) in heads {
        if !add_to(&mut page, at, &head) {
            break;
        }
        end = at + head.bytes;
    }
    (page, end)
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::BasicProperties;

    use super::*;

    fn content(headers: Option<&TableBuf>, body: &[u8]) -> MessageContent {
        let named = BasicProperties {
            headers: headers.map(TableBuf::as_table),
            delivery_mode: Some(2),
            correlation_id: Some("c"),
            ..BasicProperties::default()
        };
        let mut properties = Vec::new();
        named.write(&mut properties);
        MessageContent::new("an exchange", "a.key", &properties, body)
    }

    #[test]
    fn a_message_comes_back_with_its_offset() {
        let array = TableBuf::new()
            .with("a", Value::I32(1))
            .with(OFFSET_HEADER, Value::LongString(b"of another stream"));
        let mut bytes = Vec::new();
        write(7, 1_000, &content(Some(&array), b"one"), &mut bytes);
        write(9, 2_000, &content(None, b""), &mut bytes);
        let whole = bytes.len();
        let (page, end) = decode_page(bytes);
        assert_eq!((page.len(), end), (2, whole));
        let found = page.message(0).expect("is there");
        let places = (found.offset, found.exchange, found.routing_key, found.body);
        assert_eq!(places, (7, "an exchange", "a.key", &b"one"[..]));
        let named = found.properties.parse();
        assert_eq!(named.correlation_id, Some("c"));
        let headers: Vec<_> = named.headers.expect("has some").iter().collect();
        assert_eq!(
            headers,
            [("a", Value::I32(1)), (OFFSET_HEADER, Value::I64(7))]
        );
        let second = page.message(1).expect("is there");
        let headers = second.properties.parse().headers.expect("has one");
        assert_eq!(headers.find(OFFSET_HEADER), Some(Value::I64(9)));
        assert!(page.message(2).is_none());
    }

    #[test]
    fn an_offset_without_a_next_one_is_no_message() {
        for (offset, at_ms) in [(NUMBER_MAX + 1, 0), (u64::MAX, 0), (0, u64::MAX)] {
            let mut bytes = Vec::new();
            write(offset, at_ms, &content(None, b"a body"), &mut bytes);
            assert!(
                matches!(read(&bytes), Found::Damaged { .. }),
                "{offset} {at_ms}"
            );
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_is_taken_for_a_message() {
        let mut bytes = Vec::new();
        write(3, 1_000, &content(None, b"a body"), &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_page(flipped).0.len(), 0, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(
                decode_page(bytes[..cut].to_vec()).0.len(),
                0,
                "cut at {cut}"
            );
        }
    }
}
