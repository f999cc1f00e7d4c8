//! The messages of the echo bench: frames that are made once, with a number that changes.
//!
//! The number is first in the payload, as bytes in a binary message and as digits in a text; the rest is a pattern. A
//! short payload holds the number's last part, an empty one none.

use serde::{Deserialize, Serialize};

use crate::floor::websocket::unmask;
use crate::load::Faults;
use crate::wamp::pipe::CLIENT_MASK;

/// The form of all messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub(super) struct Shape {
    /// Bytes of each message.
    #[arg(long = "payload", default_value_t = 64, value_name = "BYTES")]
    pub(super) payload_bytes: usize,
    /// Text messages instead of binary ones.
    #[arg(long = "text")]
    pub(super) is_text: bool,
}

/// The frames of one connection, in both directions.
#[derive(Debug)]
pub(super) struct Messages {
    shape: Shape,
    /// Bytes of the number in a payload.
    digits: usize,
    /// A masked frame to send, and the offset of its payload.
    sent: Vec<u8>,
    sent_payload: usize,
    /// The expected frame.
    received: Vec<u8>,
    received_payload: usize,
    next_sent: u64,
    next_received: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole message, in so many bytes.
    Message(usize),
    /// A frame that is not a message, in so many bytes: a ping, say.
    Other(usize),
    Partly,
    /// The server closes the connection.
    Close,
}

impl Messages {
    pub(super) fn new(shape: Shape) -> Self {
        let frame = |masked: bool| {
            let mut frame = vec![if shape.is_text { 0x81 } else { 0x82 }];
            let flag = if masked { 0x80 } else { 0 };
            match shape.payload_bytes {
                length @ 0..126 => frame.push(flag | length as u8),
                length @ 126..65_536 => {
                    frame.push(flag | 126);
                    frame.extend_from_slice(&(length as u16).to_be_bytes());
                }
                length => {
                    frame.push(flag | 127);
                    frame.extend_from_slice(&(length as u64).to_be_bytes());
                }
            }
            if masked {
                frame.extend_from_slice(&CLIENT_MASK);
            }
            let begin = frame.len();
            // Letters, so that a text is one.
            frame.extend((0..shape.payload_bytes).map(|at| b'a' + (at % 26) as u8));
            if masked {
                unmask(&mut frame[begin..], CLIENT_MASK);
            }
            (frame, begin)
        };
        let (sent, sent_payload) = frame(true);
        let (received, received_payload) = frame(false);
        let whole = if shape.is_text { 16 } else { 8 };
        Self {
            shape,
            digits: shape.payload_bytes.min(whole),
            sent,
            sent_payload,
            received,
            received_payload,
            next_sent: 0,
            next_received: 0,
        }
    }

    pub(super) fn push(&mut self, out: &mut Vec<u8>) {
        let mut number = self.number(self.next_sent);
        self.next_sent += 1;
        let number = &mut number[16 - self.digits..];
        unmask(number, CLIENT_MASK);
        let begin = self.sent_payload;
        self.sent[begin..begin + self.digits].copy_from_slice(number);
        out.extend_from_slice(&self.sent);
    }

    /// Checks the first frame of `bytes`, and counts its faults.
    pub(super) fn look(&mut self, bytes: &[u8], faults: &mut Faults) -> Found {
        let Some(frame) = bytes.get(..self.received.len()) else {
            return match bytes.get(..self.received_payload) {
                // The rest of a message is as expected.
                Some(head) if *head == self.received[..self.received_payload] => Found::Partly,
                _ => other(bytes, faults),
            };
        };
        let (head, payload) = frame.split_at(self.received_payload);
        if *head != self.received[..self.received_payload] {
            return other(bytes, faults);
        }
        let (number, rest) = payload.split_at(self.digits);
        let expected = self.number(self.next_received);
        if number == &expected[16 - self.digits..] {
            self.next_received += 1;
            if *rest != self.received[self.received_payload + self.digits..] {
                faults.wrong += 1;
            }
        } else {
            self.misplaced(number, faults);
        }
        Found::Message(frame.len())
    }

    /// Another number than expected: a superfluous echo, or an early one.
    fn misplaced(&mut self, number: &[u8], faults: &mut Faults) {
        let earlier = self.next_received.saturating_sub(1024)..self.next_received;
        let later = self.next_received + 1..self.next_sent;
        let is = |at: &u64| number == &self.number(*at)[16 - self.digits..];
        if let Some(at) = later.into_iter().find(is) {
            faults.reordered += 1;
            self.next_received = at + 1;
        } else if earlier.into_iter().any(|at| is(&at)) {
            faults.doubled += 1;
        } else {
            faults.wrong += 1;
            self.next_received += 1;
        }
    }

    /// The number's bytes, at the end of sixteen.
    fn number(&self, number: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        if self.shape.is_text {
            for (at, byte) in bytes.iter_mut().enumerate() {
                let digit = (number >> (60 - 4 * at)) & 15;
                *byte = b"0123456789abcdef"[digit as usize];
            }
        } else {
            bytes[8..].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}

/// A frame with an unexpected head: a control frame, or a wrong echo.
fn other(bytes: &[u8], faults: &mut Faults) -> Found {
    let (head, length) = match *bytes {
        [_, length @ 0..126, ..] => (2, u64::from(length)),
        [_, 126, a, b, ..] => (4, u64::from(u16::from_be_bytes([a, b]))),
        [_, 127, a, b, c, d, e, f, g, h, ..] => (10, u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        [_, 126 | 127, ..] | [_] | [] => return Found::Partly,
        // Masked, which no server may do.
        _ => {
            faults.wrong += 1;
            return Found::Close;
        }
    };
    let opcode = bytes[0] & 0x0f;
    if opcode == 8 {
        return Found::Close;
    }
    let whole = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(head))
        .filter(|whole| *whole <= FOREIGN_FRAME_BYTES_MAX);
    match whole {
        None => {
            faults.wrong += 1;
            Found::Close
        }
        Some(whole) if bytes.len() < whole => Found::Partly,
        Some(whole) if opcode >= 8 => Found::Other(whole),
        Some(whole) => {
            faults.wrong += 1;
            Found::Message(whole)
        }
    }
}

/// An unexpected frame that is longer than this is not awaited.
const FOREIGN_FRAME_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FAULT: Faults = Faults {
        failed: 0,
        wrong: 0,
        reordered: 0,
        doubled: 0,
        lost: 0,
    };

    /// A correct server's answers to `count` messages.
    fn echoes(messages: &mut Messages, count: usize) -> Vec<Vec<u8>> {
        let echo = |_| {
            let mut frame = Vec::new();
            messages.push(&mut frame);
            let begin = messages.sent_payload;
            let mask = frame[begin - 4..begin].try_into().unwrap();
            let payload = frame.split_off(begin);
            frame.truncate(begin - 4);
            frame[1] &= 0x7f;
            frame.extend(payload);
            unmask(&mut frame[begin - 4..], mask);
            frame
        };
        (0..count).map(echo).collect()
    }

    #[test]
    fn right_echoes_are_right() {
        for payload_bytes in [0, 1, 7, 8, 15, 16, 17, 64, 125, 126, 65_535, 65_536] {
            for is_text in [false, true] {
                let mut messages = Messages::new(Shape {
                    payload_bytes,
                    is_text,
                });
                let mut faults = Faults::default();
                let echoes = echoes(&mut messages, 300).concat();
                let mut rest = &echoes[..];
                while !rest.is_empty() {
                    let cut = messages.look(&rest[..1], &mut faults);
                    assert_eq!(cut, Found::Partly);
                    let Found::Message(length) = messages.look(rest, &mut faults) else {
                        panic!("{payload_bytes} bytes: no message");
                    };
                    rest = &rest[length..];
                }
                assert_eq!(faults, NO_FAULT);
                assert_eq!(messages.next_received, 300);
            }
        }
    }

    #[test]
    fn wrong_echoes_are_counted_by_kind() {
        #[track_caller]
        fn check(change: fn(&mut Vec<Vec<u8>>), expected: Faults) {
            let mut messages = Messages::new(Shape {
                payload_bytes: 64,
                is_text: false,
            });
            let mut echoes = echoes(&mut messages, 10);
            change(&mut echoes);
            let mut faults = Faults::default();
            for echo in &echoes {
                messages.look(echo, &mut faults);
            }
            assert_eq!(faults, expected);
        }
        check(|_| {}, NO_FAULT);
        check(
            |echoes| echoes[3][40] ^= 1,
            Faults {
                wrong: 1,
                ..NO_FAULT
            },
        );
        check(
            |echoes| echoes.insert(3, echoes[2].clone()),
            Faults {
                doubled: 1,
                ..NO_FAULT
            },
        );
        check(
            |echoes| echoes.swap(3, 4),
            Faults {
                reordered: 1,
                doubled: 1,
                ..NO_FAULT
            },
        );
        check(
            |echoes| echoes[3][0] = 0x81,
            Faults {
                wrong: 1,
                reordered: 1,
                ..NO_FAULT
            },
        );
    }

    #[test]
    fn frames_of_the_protocol_are_no_echoes() {
        #[track_caller]
        fn check(bytes: &[u8], expected: Found, expected_wrong: u64) {
            let mut messages = Messages::new(Shape {
                payload_bytes: 64,
                is_text: false,
            });
            let mut faults = Faults::default();
            assert_eq!(messages.look(bytes, &mut faults), expected);
            assert_eq!(faults.wrong, expected_wrong);
        }
        check(&[], Found::Partly, 0);
        check(&[0x89], Found::Partly, 0);
        check(&[0x89, 0], Found::Other(2), 0);
        check(&[0x8a, 2, 1], Found::Partly, 0);
        check(&[0x88, 2, 3, 0xe9], Found::Close, 0);
        check(&[0x82, 1, 7], Found::Message(3), 1);
        check(&[0x82, 0xc0, 1], Found::Close, 1);
        check(&[0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], Found::Close, 1);
    }
}
