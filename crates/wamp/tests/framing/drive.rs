//! Drives a decoder as a connection would, with the input cut up in many ways.

use crosstie_wamp::framing::{FramingError, Item, Step};
use crosstie_wamp::framing::{rawsocket, websocket};

/// What came out of a decoder, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    Fault(FramingError),
}

impl From<Item<'_>> for Out {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Message { bytes, text: true } => Self::Text(bytes.to_vec()),
            Item::Message { bytes, .. } => Self::Binary(bytes.to_vec()),
            Item::Ping(bytes) => Self::Ping(bytes.to_vec()),
            Item::Pong(bytes) => Self::Pong(bytes.to_vec()),
            Item::Close(close) => Self::Close(close.code, close.reason.to_owned()),
        }
    }
}

pub(crate) trait Decode {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError>;
}

impl Decode for websocket::Decoder {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        self.next(input)
    }
}

impl Decode for rawsocket::Decoder {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        self.next(input)
    }
}

/// Feeds pieces, each as soon as the decoder has nothing more to say about the ones before it.
/// Returns what came out, and how many bytes had been fed when the decoder failed.
pub(crate) fn drive<'a>(
    decoder: &mut impl Decode,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Out>, usize) {
    let mut found = Vec::new();
    let mut unconsumed = Vec::new();
    let mut fed = 0;
    for piece in pieces {
        unconsumed.extend_from_slice(piece);
        fed += piece.len();
        loop {
            let step = match decoder.next(&mut unconsumed) {
                Ok(step) => step,
                Err(error) => {
                    found.push(Out::Fault(error));
                    return (found, fed);
                }
            };
            let (consumed, wanted) = (step.consumed, step.wanted);
            found.extend(step.item.map(Out::from));
            if consumed == 0 {
                let has = unconsumed.len();
                assert!(wanted == 0 || wanted > has, "wants {wanted}, has {has}");
                break;
            }
            unconsumed.drain(..consumed);
        }
    }
    (found, fed)
}

/// Checks that every cut of `bytes` gives the same: whole, byte by byte, and in two at each
/// place. Returns what came out, and after how many bytes a fault was found at the earliest.
pub(crate) fn every_cut<D: Decode>(new: impl Fn() -> D, bytes: &[u8]) -> (Vec<Out>, usize) {
    let (whole, _) = drive(&mut new(), [bytes]);
    let (single, fault_at) = drive(&mut new(), bytes.chunks(1));
    assert_eq!(whole, single, "whole, and byte by byte: {bytes:02x?}");
    for at in 0..bytes.len().min(300) {
        let (front, back) = bytes.split_at(at);
        let (halves, _) = drive(&mut new(), [front, back]);
        assert_eq!(whole, halves, "cut at {at}: {bytes:02x?}");
    }
    (whole, fault_at)
}
