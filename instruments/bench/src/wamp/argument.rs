//! The arguments of a measured call: a number that changes with each call, so that each answer can be matched to its
//! call, and a text that makes up the wanted size.

use crosstie_wamp::{Serializer, Value, codec};

use crate::process::WorkerError;

/// Numbers begin here, so that they all have the same length in every serializer.
const NUMBER_BASE: u64 = 1_000_000_000;
/// ... and stay below 2^32.
const NUMBERS: u64 = 1_000_000_000;

/// An encoded argument list whose number can be exchanged in place.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    serializer: Serializer,
    bytes: Vec<u8>,
    number_at: usize,
    number_length: usize,
}

impl Arguments {
    /// `[number]`, or `[number, text]` with a text of `payload_bytes`.
    pub(crate) fn new(serializer: Serializer, payload_bytes: usize) -> Result<Self, WorkerError> {
        let mut list = vec![Value::from(NUMBER_BASE)];
        if payload_bytes > 0 {
            list.push(Value::String("x".repeat(payload_bytes)));
        }
        let mut bytes = Vec::new();
        codec::encode_value(&Value::List(list), serializer, &mut bytes)
            .map_err(|error| WorkerError::Encode(format!("{error:?}")))?;
        let number = NumberBytes::new(serializer, NUMBER_BASE);
        let number_at = bytes
            .windows(number.as_slice().len())
            .position(|window| window == number.as_slice())
            .ok_or_else(|| WorkerError::Encode(format!("no number found in {serializer}")))?;
        let number_length = number.as_slice().len();
        Ok(Self {
            serializer,
            bytes,
            number_at,
            number_length,
        })
    }

    /// The list with that call's number.
    pub(crate) fn numbered(&mut self, call: u64) -> &[u8] {
        let number = NumberBytes::new(self.serializer, number_of(call));
        let end = self.number_at + self.number_length;
        self.bytes[self.number_at..end].copy_from_slice(number.as_slice());
        &self.bytes
    }

    /// The list's serializer.
    pub(crate) fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// Whether `received` is the list with that call's number.
    pub(crate) fn matches(&self, received: &[u8], call: u64) -> bool {
        let number = NumberBytes::new(self.serializer, number_of(call));
        let end = self.number_at + self.number_length;
        let same_bytes = received.len() == self.bytes.len()
            && received[..self.number_at] == self.bytes[..self.number_at]
            && received[self.number_at..end] == *number.as_slice()
            && received[end..] == self.bytes[end..];
        same_bytes || self.same_value(received, call)
    }

    /// A router may encode the same list differently: a wider integer, a space in JSON.
    #[cold]
    fn same_value(&self, received: &[u8], call: u64) -> bool {
        let mut expected = self.clone();
        expected.numbered(call);
        let limits = codec::Limits::default();
        let decode = |bytes| codec::decode_value(self.serializer, bytes, &limits).ok();
        decode(received).is_some_and(|value| Some(value) == decode(&expected.bytes))
    }
}

fn number_of(call: u64) -> u64 {
    NUMBER_BASE + call % NUMBERS
}

/// A number in its serializer's encoding: ten digits, or four bytes.
struct NumberBytes {
    bytes: [u8; 10],
    length: usize,
}

impl NumberBytes {
    fn new(serializer: Serializer, mut number: u64) -> Self {
        let mut bytes = [0; 10];
        if serializer.is_binary() {
            bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
            return Self { bytes, length: 4 };
        }
        for digit in bytes.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Self { bytes, length: 10 }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exchanged_in_place() {
        for serializer in Serializer::ALL {
            for payload_bytes in [0, 1, 300, 70_000] {
                let mut arguments = Arguments::new(serializer, payload_bytes).unwrap();
                let length = arguments.numbered(0).len();
                assert!(length > payload_bytes && length < payload_bytes + 20);
                for call in [1, 7, 999_999_999, 1_000_000_001] {
                    let bytes = arguments.numbered(call).to_vec();
                    assert_eq!(bytes.len(), length);
                    assert!(arguments.matches(&bytes, call));
                    assert!(!arguments.matches(&bytes, call + 1));
                    assert!(!arguments.matches(&bytes[1..], call));
                }
            }
        }
    }

    #[test]
    fn the_same_list_in_other_bytes_matches() {
        #[track_caller]
        fn check(serializer: Serializer, received: &[u8], expected: bool) {
            let arguments = Arguments::new(serializer, 0).unwrap();
            assert_eq!(arguments.matches(received, 5), expected);
        }
        check(Serializer::Json, b"[1000000005]", true);
        check(Serializer::Json, b"[ 1000000005 ]", true);
        check(Serializer::Json, b"[1000000006]", false);
        check(Serializer::Json, b"[1000000005,1]", false);
        check(Serializer::Json, b"", false);
        // As an unsigned 64-bit integer, which some routers write for every integer.
        check(
            Serializer::MsgPack,
            &[0x91, 0xcf, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x05],
            true,
        );
        check(
            Serializer::Cbor,
            &[0x81, 0x1b, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x05],
            true,
        );
        check(Serializer::MsgPack, &[0x91, 0x05], false);
    }
}
