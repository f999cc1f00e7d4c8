//! Compressed messages: written here and inflated by another implementation, and the other way
//! round; what must not be compressed; what inflates to too much.

use crosstie_wamp::framing::FramingError;
use crosstie_wamp::framing::websocket::{
    Compressor, Decoder, DecoderConfig, Deflate, DeflateConfig, Deflater, Opcode, Role, message,
    raw_frame,
};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use crate::drive::{Out, drive, every_cut};

const TAIL: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// What a server agreed to with a client that takes everything.
fn agreed(config: &DeflateConfig) -> Deflate {
    let accepted = config.accept(&["permessage-deflate; client_max_window_bits"]);
    let (deflate, _) = accepted.expect("well-formed").expect("acceptable");
    deflate
}

fn plain() -> Deflate {
    agreed(&DeflateConfig::default())
}

/// A client's decoder: what it is fed needs no mask.
fn decoder(message_bytes_max: usize, deflate: Deflate) -> Decoder {
    let config = DecoderConfig {
        message_bytes_max,
        deflate: Some(deflate),
        ..DecoderConfig::default()
    };
    Decoder::new(Role::Client, config)
}

/// The other implementation's idea of a compressed payload.
fn compressed(stream: &mut Compress, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 1024);
    let done = stream.compress_vec(message, &mut out, FlushCompress::Sync);
    done.expect("it compresses");
    assert!(out.ends_with(&TAIL) && out.len() < out.capacity());
    out.truncate(out.len() - TAIL.len());
    out
}

fn frames(parts: &[(Opcode, bool, bool, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(opcode, fin, rsv1, payload) in parts {
        raw_frame(opcode, fin, rsv1, None, payload, &mut out);
    }
    out
}

/// Texts that repeat themselves and each other, and one that does not.
fn texts() -> Vec<Vec<u8>> {
    let mut seed = 1_u32;
    let noise = (0..5000).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b' ' + (seed >> 24) as u8 % 90
    });
    let words = "to be or not to be, that is the question: ".repeat(100);
    vec![
        b"Hello".to_vec(),
        b"Hello".to_vec(),
        b"".to_vec(),
        b"".to_vec(),
        words.clone().into_bytes(),
        noise.collect(),
        words.into_bytes(),
        "Käse".repeat(20_000).into_bytes(),
        vec![b'x'; 300_000],
    ]
}

#[test]
fn another_inflater_reads_compressed_messages() {
    for level in [1, 6, 9] {
        for (window_bits_max, memory_level) in [(9, 1), (10, 9), (15, 8)] {
            for no_context_takeover in [false, true] {
                let config = DeflateConfig {
                    no_context_takeover,
                    window_bits_max,
                    memory_level,
                    level,
                    ..DeflateConfig::default()
                };
                let mut deflater = Deflater::new(agreed(&config));
                let mut stream = Decompress::new(false);
                for text in texts() {
                    if no_context_takeover {
                        stream.reset(false);
                    }
                    let mut payload = Vec::new();
                    deflater
                        .compress(&text, &mut payload)
                        .expect("it compresses");
                    payload.extend(TAIL);
                    let mut inflated = Vec::with_capacity(text.len() + 1024);
                    let flush = FlushDecompress::Sync;
                    let done = stream.decompress_vec(&payload, &mut inflated, flush);
                    done.expect("it inflates");
                    assert!(inflated == text, "{config:?}");
                }
            }
        }
    }
}

#[test]
fn another_compressor_is_read() {
    let mut stream = Compress::new(Compression::default(), false);
    let mut bytes = Vec::new();
    for text in texts() {
        let payload = match text.is_empty() {
            true => vec![0],
            false => compressed(&mut stream, &text),
        };
        bytes.extend(frames(&[(Opcode::Text, true, true, &payload)]));
        bytes.extend(frames(&[(Opcode::Text, true, false, &text)]));
    }
    for pieces in [1000, usize::MAX] {
        let mut decoder = decoder(1 << 20, plain());
        let (found, _) = drive(&mut decoder, bytes.chunks(pieces));
        let expected = texts()
            .into_iter()
            .flat_map(|text| [Out::Text(text.clone()), Out::Text(text)]);
        assert!(found == expected.collect::<Vec<_>>());
    }
}

#[test]
fn both_sides_of_this_project_understand_each_other() {
    let mask = [0x80, 1, 0xFF, 7];
    for no_context_takeover in [false, true] {
        let config = DeflateConfig {
            no_context_takeover,
            peer_no_context_takeover: no_context_takeover,
            ..DeflateConfig::default()
        };
        let client = config.offer();
        let (server_side, response) = config.accept(&[&client]).expect("good").expect("good");
        let client_side = config.agree(&[&response]).expect("good").expect("good");
        let config = DecoderConfig {
            deflate: Some(server_side),
            ..DecoderConfig::default()
        };
        let mut decoder = Decoder::new(Role::Server, config);
        let mut deflater = Deflater::new(client_side);
        for text in texts() {
            let mut out = Vec::new();
            deflater.message(true, Some(mask), &text, &mut out);
            let (found, _) = drive(&mut decoder, [&out[..]]);
            assert!(found == [Out::Text(text)]);
        }
    }
}

/// The examples of RFC 7692 section 7.2.3.
#[test]
fn payloads_of_the_specification() {
    let check = |parts: &[(Opcode, bool, bool, &[u8])], expected: &[&str]| {
        let bytes = frames(parts);
        let (found, _) = every_cut(|| decoder(100, plain()), &bytes);
        let expected = expected
            .iter()
            .map(|text| Out::Text(text.as_bytes().to_vec()));
        assert_eq!(found, expected.collect::<Vec<_>>());
    };
    use Opcode::{Continuation, Text};
    let hello: &[u8] = &[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00];
    check(&[(Text, true, true, hello)], &["Hello"]);
    check(
        &[
            (Text, false, true, &hello[..3]),
            (Continuation, true, false, &hello[3..]),
        ],
        &["Hello"],
    );
    check(
        &[
            (Text, false, true, b""),
            (Continuation, false, false, hello),
            (Continuation, true, false, b""),
        ],
        &["Hello"],
    );
    // The second message refers to the first.
    let again: &[u8] = &[0xF2, 0x00, 0x11, 0x00, 0x00];
    check(
        &[(Text, true, true, hello), (Text, true, true, again)],
        &["Hello", "Hello"],
    );
    // A stored block; a block marked as the last one; two blocks.
    let stored: &[u8] = &[
        0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00,
    ];
    check(&[(Text, true, true, stored)], &["Hello"]);
    let last: &[u8] = &[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00];
    check(
        &[(Text, true, true, last), (Text, true, true, hello)],
        &["Hello", "Hello"],
    );
    check(
        &[(Text, true, true, &last[..7]), (Text, true, true, hello)],
        &["Hello", "Hello"],
    );
    let two: &[u8] = &[
        0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00,
    ];
    check(&[(Text, true, true, two)], &["Hello"]);
    check(
        &[(Text, true, true, &[0]), (Text, true, true, hello)],
        &["", "Hello"],
    );
    check(
        &[(Text, true, true, b""), (Text, true, true, hello)],
        &["", "Hello"],
    );
}

#[test]
fn only_a_messages_first_frame_says_it_is_compressed() {
    use Opcode::{Close, Continuation, Ping, Pong, Text};
    let check = |parts: &[(Opcode, bool, bool, &[u8])], fault| {
        let (found, _) = every_cut(|| decoder(100, plain()), &frames(parts));
        assert_eq!(found.last(), Some(&Out::Fault(fault)));
    };
    let bits = FramingError::ReservedBits { bits: 0x40 };
    check(&[(Ping, true, true, b"")], bits);
    check(&[(Pong, true, true, b"")], bits);
    check(&[(Close, true, true, b"")], bits);
    check(
        &[(Text, false, false, b"a"), (Continuation, true, true, b"b")],
        bits,
    );
    check(
        &[(Text, false, true, &[0]), (Continuation, true, true, &[0])],
        bits,
    );
    check(
        &[(Text, true, true, b"\xFF\xFF\xFF")],
        FramingError::Deflate,
    );
    // "\xFF", stored: a message that inflates to what is not text.
    let wrong: &[u8] = &[0x00, 0x01, 0x00, 0xFE, 0xFF, 0xFF, 0x00];
    check(&[(Text, true, true, wrong)], FramingError::Utf8);
    check(&[(Text, false, true, wrong)], FramingError::Utf8);
    // Without the extension no frame is compressed.
    let bytes = frames(&[(Text, true, true, &[0])]);
    let new = || Decoder::new(Role::Client, DecoderConfig::default());
    assert_eq!(every_cut(new, &bytes).0, [Out::Fault(bits)]);
}

#[test]
fn control_frames_pass_between_compressed_fragments() {
    use Opcode::{Continuation, Ping, Text};
    let hello: &[u8] = &[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00];
    let bytes = frames(&[
        (Text, false, true, &hello[..2]),
        (Ping, true, false, b"p"),
        (Continuation, true, false, &hello[2..]),
    ]);
    let (found, _) = every_cut(|| decoder(100, plain()), &bytes);
    assert_eq!(
        found,
        [Out::Ping(b"p".to_vec()), Out::Text(b"Hello".to_vec())]
    );
}

#[test]
fn the_compressed_form_of_a_short_message_is_short() {
    for (length, length_max) in [(1507_usize, 1000), (257, 0), (102_657, 81_920)] {
        let header = |length: usize| {
            let payload = vec![0; length];
            frames(&[(Opcode::Text, true, true, &payload)])[..4 + 6 * usize::from(length > 65_535)]
                .to_vec()
        };
        let (found, _) = drive(&mut decoder(length_max, plain()), [&header(length)[..]]);
        let length = length as u64;
        let too_long = FramingError::TooLong { length, length_max };
        assert_eq!(found, [Out::Fault(too_long)], "known from the header alone");
        let (found, _) = drive(
            &mut decoder(length_max, plain()),
            [&header(length as usize - 1)[..]],
        );
        assert_eq!(found, []);
    }
}

#[test]
fn a_bomb_is_too_long_and_never_held() {
    let mut stream = Compress::new(Compression::best(), false);
    let payload = compressed(&mut stream, &vec![b'0'; 4 << 20]);
    assert!(payload.len() < 10_000);
    for length_max in [payload.len(), 100_000, (4 << 20) - 1] {
        let (front, back) = payload.split_at(payload.len() / 2);
        for parts in [
            &[(Opcode::Text, true, true, &payload[..])][..],
            &[
                (Opcode::Text, false, true, front),
                (Opcode::Continuation, true, false, back),
            ],
        ] {
            let config = DecoderConfig {
                message_bytes_max: length_max,
                frame_bytes_max: 1 << 20,
                deflate: Some(plain()),
                ..DecoderConfig::default()
            };
            let mut decoder = Decoder::new(Role::Client, config);
            let (found, _) = drive(&mut decoder, [&frames(parts)[..]]);
            assert_eq!(
                found,
                [Out::Fault(FramingError::InflatedTooLong { length_max })]
            );
        }
    }
    let mut decoder = decoder(4 << 20, plain());
    let bytes = frames(&[(Opcode::Binary, true, true, &payload)]);
    let (found, _) = drive(&mut decoder, [&bytes[..]]);
    assert!(found == [Out::Binary(vec![b'0'; 4 << 20])]);
}

#[test]
fn plain_messages_mix_with_compressed_ones() {
    let mut deflater = Deflater::new(plain());
    let mut out = Vec::new();
    for _ in 0..3 {
        deflater.message(true, None, b"squeezed squeezed squeezed", &mut out);
        message(true, None, b"as it is", &mut out);
    }
    let (found, _) = every_cut(|| decoder(100, plain()), &out);
    let pair = [b"squeezed squeezed squeezed".to_vec(), b"as it is".to_vec()].map(Out::Text);
    assert_eq!(found, [&pair[..]; 3].concat());
}

/// Compressors of other receivers' messages before, and any suffix of what was inflated: each is a valid history.
#[test]
fn a_compressor_serves_many_histories() {
    for window_bits_max in [9, 12, 15] {
        let config = DeflateConfig {
            window_bits_max,
            ..DeflateConfig::default()
        };
        let deflate = agreed(&config);
        let mut compressor = Compressor::new(deflate.parameters());
        let mut peers: Vec<_> = (0..3)
            .map(|_| (decoder(1 << 20, deflate), Vec::new()))
            .collect();
        for (round, text) in texts().into_iter().cycle().take(40).enumerate() {
            if text.is_empty() {
                continue;
            }
            let (decoder, history): &mut (Decoder, Vec<u8>) = &mut peers[round % 3];
            let kept = deflate.window_bytes().min([0, 100, 4096, 32768][round % 4]);
            history.drain(..history.len().saturating_sub(kept));
            compressor.begin(history);
            let mut payload = Vec::new();
            compressor
                .compress(&text, &mut payload)
                .expect("it compresses");
            let bytes = frames(&[(Opcode::Text, true, true, &payload)]);
            let (found, _) = drive(decoder, [&bytes[..]]);
            assert!(found == [Out::Text(text.clone())], "round {round}");
            history.extend(text);
        }
        assert!(compressor.held_bytes() < 400 << 10);
    }
}

#[test]
fn a_history_makes_a_message_shorter() {
    let mut compressor = Compressor::new(plain().parameters());
    let text = &texts()[5];
    let lengths = [&text[..], &[][..]].map(|history| {
        let mut payload = Vec::new();
        compressor.begin(history);
        compressor
            .compress(text, &mut payload)
            .expect("it compresses");
        payload.len()
    });
    assert!(lengths[0] * 10 < lengths[1], "{lengths:?}");
}

/// The window of a peer with takeover is kept as it is filled, and no more of it than was agreed.
#[test]
fn between_messages_the_window_alone_is_held() {
    for (peer_window_bits_max, takeover) in [(9, true), (12, true), (15, true), (15, false)] {
        let config = DeflateConfig {
            peer_window_bits_max,
            peer_no_context_takeover: !takeover,
            ..DeflateConfig::default()
        };
        let deflate = agreed(&config);
        let mut decoder = decoder(1 << 20, deflate);
        let window = if takeover {
            1 << peer_window_bits_max
        } else {
            0
        };
        let mut peer = Deflater::new(agreed(&DeflateConfig {
            window_bits_max: peer_window_bits_max,
            no_context_takeover: !takeover,
            ..DeflateConfig::default()
        }));
        let mut sent = 0;
        for text in texts().into_iter().chain(texts()).chain(texts()) {
            if text.is_empty() {
                continue;
            }
            let mut payload = Vec::new();
            peer.compress(&text, &mut payload).expect("it compresses");
            let (front, back) = payload.split_at(payload.len() / 2);
            let (found, _) = drive(
                &mut decoder,
                [&frames(&[(Opcode::Text, false, true, front)])[..]],
            );
            assert_eq!(found, []);
            assert!(decoder.kept_bytes() > 40 << 10, "an inflater is at work");
            let rest = frames(&[(Opcode::Continuation, true, false, back)]);
            let (found, _) = drive(&mut decoder, [&rest[..]]);
            assert!(found == [Out::Text(text.clone())]);
            sent += text.len();
            assert_eq!(decoder.next(&mut []).expect("nothing").consumed, 0);
            assert_eq!(decoder.kept_bytes(), 0);
            let held = decoder.window_bytes();
            assert!(
                held <= window && held >= sent.min(window),
                "{held} of {window}"
            );
        }
    }
}

#[test]
fn a_reference_beyond_the_agreed_window_is_a_fault() {
    let deflate = agreed(&DeflateConfig {
        peer_window_bits_max: 9,
        ..DeflateConfig::default()
    });
    let mut stream = Compress::new(Compression::best(), false);
    let noise = &texts()[5][..2000];
    let mut decoder = decoder(1 << 20, deflate);
    let first = compressed(&mut stream, noise);
    let (found, _) = drive(
        &mut decoder,
        [&frames(&[(Opcode::Text, true, true, &first)])[..]],
    );
    assert!(found == [Out::Text(noise.to_vec())]);
    let again = compressed(&mut stream, noise);
    let (found, _) = drive(
        &mut decoder,
        [&frames(&[(Opcode::Text, true, true, &again)])[..]],
    );
    assert_eq!(found, [Out::Fault(FramingError::Deflate)]);
}
