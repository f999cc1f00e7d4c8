//! Framing decoders on any bytes: they must not panic, and must find the same however the
//! bytes are cut up. The first bytes choose the limits and the cuts, the rest is the input.

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{
    self, ClientRequest, DecoderConfig, DeflateConfig, HEAD_BYTES_MAX, Role, parse_request,
};
use crosstie_wamp::framing::{FramingError, Item, Step, batched, rawsocket};

pub fn rawsocket(data: &[u8]) {
    let Some((&[limit, cut, ..], input)) = data.split_first_chunk::<4>() else {
        return;
    };
    let offered = &Serializer::ALL[..usize::from(limit & 3)];
    if let Some((&request, _)) = input.split_first_chunk() {
        let _ = rawsocket::ServerHandshake::accept(request, offered, usize::from(limit) << 12);
        let client = rawsocket::ClientHandshake {
            serializer: Serializer::Cbor,
            receive_length_max: usize::from(limit) << 12,
        };
        let _ = client.accept(request);
    }
    let new = || rawsocket::Decoder::new(usize::from(limit));
    same_however_cut(new, |decoder, input| decoder.next(input), input, cut);
}

/// A server's decoder, with and without compression.
pub fn websocket_server(data: &[u8]) {
    websocket(Role::Server, data);
}

/// A client's decoder, with and without compression.
pub fn websocket_client(data: &[u8]) {
    websocket(Role::Client, data);
}

fn websocket(role: Role, data: &[u8]) {
    let Some((&[limit, cut, flags, _], input)) = data.split_first_chunk::<4>() else {
        return;
    };
    let offer = match flags & 3 {
        0 => "",
        1 => "permessage-deflate",
        2 => "permessage-deflate; client_max_window_bits=9; server_max_window_bits=9",
        _ => "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
    };
    let accepted = DeflateConfig::default().accept(&[offer]);
    let config = DecoderConfig {
        message_bytes_max: usize::from(limit) << 4,
        frame_bytes_max: usize::from(limit) << 3,
        validate_text: flags & 4 == 0,
        expect: None,
        deflate: accepted.ok().flatten().map(|(deflate, _)| deflate),
    };
    let new = || websocket::Decoder::new(role, config);
    same_however_cut(new, |decoder, input| decoder.next(input), input, cut);
}

/// The opening handshake, read as a request and as a response, its extensions too.
pub fn http_head(data: &[u8]) {
    if let Ok(Some((length, request))) = parse_request(data, HEAD_BYTES_MAX) {
        assert!(length <= data.len());
        assert_eq!(parse_request(&data[..length - 1], HEAD_BYTES_MAX), Ok(None));
        if let Ok(upgrade) = request.upgrade() {
            let _ = DeflateConfig::default().accept(&upgrade.extensions);
        }
    }
    let client = ClientRequest {
        host: "localhost",
        target: "/",
        key: "dGhlIHNhbXBsZSBub25jZQ==",
        protocols: &["wamp.2.json"],
        extensions: Some("permessage-deflate"),
        headers: &[],
    };
    if let Ok(Some((length, accepted))) = client.accept(data) {
        assert!(length <= data.len());
        let _ = DeflateConfig::default().agree(&accepted.extensions);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = DeflateConfig::default().accept(&[text]);
        let _ = DeflateConfig::default().agree(&[text]);
    }
}

/// Batches: every message lies in the batch, and there is an end.
pub fn batch(data: &[u8]) {
    for serializer in [Serializer::Json, Serializer::MsgPack] {
        let messages: Vec<_> = batched::split(serializer, data).collect();
        let bytes: usize = messages.iter().flatten().map(|message| message.len()).sum();
        assert!(!messages.is_empty() && bytes <= data.len());
    }
}

/// What came out of a decoder, owned.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Message(bool, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    Fault(FramingError),
}

impl From<Item<'_>> for Found {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Message { bytes, text } => Self::Message(text, bytes.to_vec()),
            Item::Ping(bytes) => Self::Ping(bytes.to_vec()),
            Item::Pong(bytes) => Self::Pong(bytes.to_vec()),
            Item::Close(close) => Self::Close(close.code, close.reason.to_owned()),
        }
    }
}

fn same_however_cut<D>(
    new: impl Fn() -> D,
    next: impl for<'b> Fn(&'b mut D, &'b mut [u8]) -> Result<Step<'b>, FramingError>,
    input: &[u8],
    cut: u8,
) {
    let run = |piece_length| {
        let mut decoder = new();
        let mut found = Vec::new();
        let mut unconsumed = Vec::new();
        for piece in input.chunks(piece_length) {
            unconsumed.extend_from_slice(piece);
            loop {
                let step = match next(&mut decoder, &mut unconsumed) {
                    Ok(step) => step,
                    Err(error) => {
                        found.push(Found::Fault(error));
                        return found;
                    }
                };
                let (consumed, wanted) = (step.consumed, step.wanted);
                found.extend(step.item.map(Found::from));
                if consumed == 0 {
                    assert!(wanted == 0 || wanted > unconsumed.len());
                    break;
                }
                unconsumed.drain(..consumed);
            }
        }
        found
    };
    assert_eq!(run(input.len().max(1)), run(usize::from(cut) + 1));
}
