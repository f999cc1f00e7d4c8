//! A message's content as bytes, with a checksum.
//!
//! SQLite notices a page that is no page of its, not a byte that is another one; a body with a
//! wrong byte in it must not be delivered as if it had been published so.

use crosstie_queues::MessageContent;

const CHECKSUM_BYTES: usize = 4;

/// Checksum, lengths and bytes as a message; `None` if the bytes have changed.
pub(super) fn decode(bytes: &[u8]) -> Option<MessageContent> {
    let (checksum, mut rest) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut next = || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(bytes)
    };
    let exchange = str::from_utf8(next()?).ok()?;
    let routing_key = str::from_utf8(next()?).ok()?;
    let properties = next()?;
    crosstie_amqp::Properties::from_bytes(properties).ok()?;
    Some(MessageContent::new(exchange, routing_key, properties, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(content: &MessageContent, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&[0; CHECKSUM_BYTES]);
        for bytes in [
            content.exchange().as_bytes(),
            content.routing_key().as_bytes(),
            content.property_bytes(),
        ] {
            // Each arrived in one frame, whose length is 32 bits wide.
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out.extend_from_slice(content.body());
        let checksum = crc32fast::hash(&out[CHECKSUM_BYTES..]);
        out[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let properties = crosstie_amqp::Properties::EMPTY.bytes();
        let content = MessageContent::new("amq.topic", "a.b", properties, b"body");
        let mut bytes = Vec::new();
        encode(&content, &mut bytes);
        assert_eq!(decode(&bytes), Some(content));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(decode(&changed), None, "at {place}");
            assert_eq!(decode(&bytes[..place]), None, "cut at {place}");
        }
    }
}
