//! WebSocket frames, good and bad, for both roles: RFC 6455 sections 5 to 8, in the order of the
//! questions that the Autobahn TestSuite asks.

use crosstie_wamp::Serializer::{Cbor, Json};
use crosstie_wamp::framing::websocket::{
    Decoder, DecoderConfig, MessageKind, Opcode, Role, message, raw_frame,
};
use crosstie_wamp::framing::{FrameError, Framing, FramingError};

use crate::drive::{Out, every_cut};

const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// A script of frames: `(opcode, fin, payload)`.
type Frames<'a> = &'a [(u8, bool, &'a [u8])];

fn small() -> DecoderConfig {
    DecoderConfig {
        message_bytes_max: 1000,
        frame_bytes_max: 500,
        ..DecoderConfig::default()
    }
}

fn bytes(role: Role, frames: Frames<'_>) -> Vec<u8> {
    let mask = (role == Role::Server).then_some(MASK);
    let mut out = Vec::new();
    for &(opcode, fin, payload) in frames {
        let start = out.len();
        raw_frame(Opcode::Ping, fin, false, mask, payload, &mut out);
        out[start] = out[start] & 0xF0 | opcode;
    }
    out
}

/// Checks what both roles make of the same frames, cut up in every way.
#[track_caller]
fn check(config: DecoderConfig, frames: Frames<'_>, expected: &[Out]) {
    for role in [Role::Server, Role::Client] {
        let bytes = bytes(role, frames);
        let (found, _) = every_cut(|| Decoder::new(role, config), &bytes);
        assert_eq!(found, expected, "{role:?} {frames:02x?}");
    }
}

fn text(text: &str) -> Out {
    Out::Text(text.as_bytes().to_vec())
}

fn binary(bytes: &[u8]) -> Out {
    Out::Binary(bytes.to_vec())
}

fn ping(bytes: &[u8]) -> Out {
    Out::Ping(bytes.to_vec())
}

#[test]
fn messages_in_one_frame() {
    for length in [0, 1, 7, 8, 9, 124, 125, 126, 127, 128, 255, 256, 499, 500] {
        let payload = vec![b'*'; length];
        check(small(), &[(2, true, &payload)], &[binary(&payload)]);
        check(
            small(),
            &[(1, true, &payload)],
            &[Out::Text(payload.clone())],
        );
    }
    let frames: Frames<'_> = &[
        (1, true, "Käse".as_bytes()),
        (2, true, &[0xFF]),
        (1, true, b""),
    ];
    check(small(), frames, &[text("Käse"), binary(&[0xFF]), text("")]);
}

#[test]
fn long_messages() {
    for length in [65_535, 65_536, 200_000] {
        let payload: Vec<_> = (0..length).map(|n| n as u8).collect();
        let mut out = Vec::new();
        message(false, Some(MASK), &payload, &mut out);
        let mut decoder = Decoder::new(Role::Server, DecoderConfig::default());
        let (found, _) = crate::drive::drive(&mut decoder, out.chunks(4096));
        assert_eq!(found, [binary(&payload)]);
    }
}

#[test]
fn pings_and_pongs() {
    check(small(), &[(9, true, b"")], &[ping(b"")]);
    check(small(), &[(9, true, &[0xFF; 125])], &[ping(&[0xFF; 125])]);
    check(small(), &[(10, true, b"x")], &[Out::Pong(b"x".to_vec())]);
    let too_long = FramingError::ControlTooLong { opcode: 9 };
    check(small(), &[(9, true, &[0; 126])], &[Out::Fault(too_long)]);
    let too_long = FramingError::ControlTooLong { opcode: 8 };
    check(small(), &[(8, true, &[3; 126])], &[Out::Fault(too_long)]);
}

#[test]
fn reserved_bits_and_opcodes() {
    for role in [Role::Server, Role::Client] {
        for rsv in [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70] {
            for opcode in [0, 1, 2, 8, 9, 10] {
                let mut bytes = bytes(role, &[(1, true, b"before"), (opcode, true, b"")]);
                let at = bytes.len() - if role == Role::Server { 6 } else { 2 };
                bytes[at] |= rsv;
                let (found, _) = every_cut(|| Decoder::new(role, small()), &bytes);
                let fault = Out::Fault(FramingError::ReservedBits { bits: rsv });
                assert_eq!(found, [text("before"), fault]);
            }
        }
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        let fault = Out::Fault(FramingError::Opcode { opcode });
        check(
            small(),
            &[(9, true, b""), (opcode, true, b"no")],
            &[ping(b""), fault],
        );
    }
}

#[test]
fn fragments() {
    check(
        small(),
        &[(1, false, b"frag"), (0, true, b"ment")],
        &[text("fragment")],
    );
    check(
        small(),
        &[
            (2, false, b""),
            (0, false, b"a"),
            (0, false, b""),
            (0, true, b""),
        ],
        &[binary(b"a")],
    );
    // Control frames between fragments, messages after them.
    check(
        small(),
        &[
            (1, false, b"1"),
            (9, true, b"p"),
            (0, false, b"2"),
            (10, true, b"q"),
            (0, true, b"3"),
            (1, true, b"4"),
            (2, false, b"5"),
            (0, true, b"6"),
        ],
        &[
            ping(b"p"),
            Out::Pong(b"q".to_vec()),
            text("123"),
            text("4"),
            binary(b"56"),
        ],
    );
    for opcode in [8, 9, 10] {
        let fault = Out::Fault(FramingError::ControlFragmented { opcode });
        check(small(), &[(opcode, false, b"x"), (0, true, b"y")], &[fault]);
    }
    let fault = Out::Fault(FramingError::ContinuationUnexpected);
    check(
        small(),
        &[(0, true, b"x"), (1, true, b"y")],
        std::slice::from_ref(&fault),
    );
    check(small(), &[(0, false, b"x")], std::slice::from_ref(&fault));
    check(
        small(),
        &[(1, false, b"a"), (0, true, b"b"), (0, false, b"c")],
        &[text("ab"), fault],
    );
    check(
        small(),
        &[(1, true, b"a"), (9, true, b"p"), (0, true, b"b")],
        &[
            text("a"),
            ping(b"p"),
            Out::Fault(FramingError::ContinuationUnexpected),
        ],
    );
    for (opcode, fin) in [(1, true), (1, false), (2, true), (2, false)] {
        let fault = Out::Fault(FramingError::ContinuationExpected { opcode });
        check(small(), &[(1, false, b"a"), (opcode, fin, b"b")], &[fault]);
    }
}

#[test]
fn limits() {
    let too_long = |length, length_max| Out::Fault(FramingError::TooLong { length, length_max });
    check(small(), &[(2, true, &[0; 501])], &[too_long(501, 500)]);
    check(
        small(),
        &[(9, true, b""), (2, false, &[0; 501])],
        &[ping(b""), too_long(501, 500)],
    );
    let half: &[u8] = &[b'x'; 500];
    check(
        small(),
        &[(2, false, half), (0, true, half)],
        &[binary(&[b'x'; 1000])],
    );
    check(
        small(),
        &[(2, false, half), (0, false, half), (0, true, b"y")],
        &[too_long(1001, 1000)],
    );
    // What is too long is known from its header alone.
    let header = [
        0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4,
    ];
    let (found, fault_at) = every_cut(|| Decoder::new(Role::Server, small()), &header);
    assert_eq!(found, [too_long(i64::MAX as u64, 500)]);
    assert_eq!(fault_at, header.len());
}

#[test]
fn lengths_have_one_form() {
    let rows: &[(&[u8], u64)] = &[
        (&[0x82, 126, 0, 0], 0),
        (&[0x82, 126, 0, 125], 125),
        (&[0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        (&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 0xFFFF),
        (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], 1 << 63),
    ];
    for &(bytes, length) in rows {
        let (found, _) = every_cut(|| Decoder::new(Role::Client, small()), bytes);
        assert_eq!(found, [Out::Fault(FramingError::LengthForm { length })]);
    }
}

#[test]
fn clients_mask_and_servers_do_not() {
    let (found, _) = every_cut(
        || Decoder::new(Role::Server, small()),
        &bytes(Role::Client, &[(1, true, b"x")]),
    );
    assert_eq!(found, [Out::Fault(FramingError::Unmasked)]);
    let (found, _) = every_cut(
        || Decoder::new(Role::Client, small()),
        &bytes(Role::Server, &[(1, true, b"x")]),
    );
    assert_eq!(found, [Out::Fault(FramingError::Masked)]);
}

#[test]
fn the_subprotocol_has_one_kind() {
    for (expected, good, bad) in [(MessageKind::Text, 1, 2), (MessageKind::Binary, 2, 1)] {
        let config = DecoderConfig {
            expect: Some(expected),
            ..small()
        };
        let fault = Out::Fault(FramingError::Kind { expected });
        check(
            config,
            &[(9, true, b""), (bad, true, b"x")],
            &[ping(b""), fault.clone()],
        );
        check(config, &[(bad, false, b"x")], &[fault]);
        let frames: Frames<'_> = &[(good, false, b"x"), (0, true, b"y")];
        let found = if good == 1 { text("xy") } else { binary(b"xy") };
        check(config, frames, &[found]);
    }
}

#[test]
fn closing() {
    let close = |code, reason: &str| Out::Close(code, reason.to_owned());
    check(small(), &[(8, true, b"")], &[close(None, "")]);
    check(small(), &[(8, true, b"\x03\xE8")], &[close(Some(1000), "")]);
    check(
        small(),
        &[(8, true, b"\x0F\xA0bye \xE2\x82\xAC")],
        &[close(Some(4000), "bye €")],
    );
    let full = [&b"\x03\xE8"[..], &[b'.'; 123]].concat();
    check(
        small(),
        &[(8, true, &full)],
        &[close(Some(1000), &".".repeat(123))],
    );
    check(
        small(),
        &[(8, true, b"\x03")],
        &[Out::Fault(FramingError::CloseLength)],
    );
    check(
        small(),
        &[(8, true, b"\x03\xE8\xCE\xBA\xE1")],
        &[Out::Fault(FramingError::Utf8)],
    );
    // What follows a Close is not looked at, however wrong.
    check(
        small(),
        &[
            (1, false, b"un"),
            (8, true, b""),
            (7, true, b"?"),
            (9, true, b""),
        ],
        &[close(None, "")],
    );
    let allowed = [
        1000_u16, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
    ];
    for code in allowed.into_iter().chain([3000, 3999, 4000, 4999]) {
        check(
            small(),
            &[(8, true, &code.to_be_bytes())],
            &[close(Some(code), "")],
        );
    }
    for code in [
        0_u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535,
    ] {
        let fault = Out::Fault(FramingError::CloseCode { code });
        check(small(), &[(8, true, &code.to_be_bytes())], &[fault]);
    }
}

#[test]
fn text_is_refused_at_its_first_wrong_byte() {
    // The text, and how many of its bytes are still fine.
    let rows: &[(&[u8], usize)] = &[
        (
            b"\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5\xF4\x90\x80\x80edited",
            12,
        ),
        (b"ok\x80", 2),
        (b"\xC0\xAF", 0),
        (b"\xC1\x80", 0),
        (b"\xE0\x9F\xBF", 1),
        (b"\xED\xA0\x80", 1),
        (b"\xF0\x8F\xBF\xBF", 1),
        (b"\xF4\x90\x80\x80", 1),
        (b"\xF5\x80\x80\x80", 0),
        (b"\xFE", 0),
        (b"\xFF", 0),
        (b"\xE2\x82x", 2),
        (b"\xF0\x9F\x98 ", 3),
        (b"\xE2(\xA1", 1),
        // Longer than they need be, by one byte and by four.
        (b"\xE0\x80\xAF", 1),
        (b"\xF0\x80\x80\xAF", 1),
        (b"\xF8\x88\x80\x80\x80", 0),
        (b"\xFC\x84\x80\x80\x80\x80", 0),
        (b"\xFC\x83\xBF\xBF\xBF\xBF", 0),
        // The last and the first of what is no character, in pairs too.
        (b"\xED\xAF\xBF\xED\xBF\xBF", 1),
        (b"\xED\xBF\xBF", 1),
        (b"\xF7\xBF\xBF\xBF", 0),
        // The rest of a character without its beginning, and the other way round.
        (b"\xBF\x80\xBF", 0),
        (b"\xC3\xC3\xA4", 1),
        (b"\xF0\x9F\xE2\x82\xAC", 2),
    ];
    for &(wrong, fine) in rows {
        for role in [Role::Server, Role::Client] {
            let header_length = if role == Role::Server { 6 } else { 2 };
            let whole = bytes(role, &[(1, true, wrong)]);
            let (found, fault_at) = every_cut(|| Decoder::new(role, small()), &whole);
            assert_eq!(found, [Out::Fault(FramingError::Utf8)]);
            assert_eq!(fault_at, header_length + fine + 1, "{wrong:02x?}");
            // The same in fragments, cut anywhere.
            for at in 0..=wrong.len() {
                let (front, back) = wrong.split_at(at);
                let frames: Frames<'_> = &[(1, false, front), (9, true, b""), (0, true, back)];
                let (found, _) = every_cut(|| Decoder::new(role, small()), &bytes(role, frames));
                assert_eq!(found.last(), Some(&Out::Fault(FramingError::Utf8)));
            }
        }
    }
}

#[test]
fn text_may_be_cut_inside_characters() {
    let whole = "κόσμε 🦀 \u{10FFFF}\u{0}é";
    for at in 0..=whole.len() {
        let (front, back) = whole.as_bytes().split_at(at);
        check(
            small(),
            &[(1, false, front), (0, true, back)],
            &[text(whole)],
        );
    }
    // A character that is never finished.
    for unfinished in [&b"\xCE"[..], b"a\xE2\x82", b"\xF0\x9F\xA6"] {
        let fault = Out::Fault(FramingError::Utf8);
        check(
            small(),
            &[(1, true, unfinished)],
            std::slice::from_ref(&fault),
        );
        check(
            small(),
            &[(1, false, unfinished), (9, true, b""), (0, true, b"")],
            &[ping(b""), fault],
        );
    }
}

#[test]
fn every_length_of_character_has_a_first_and_a_last() {
    let boundaries = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD];
    // What Unicode calls noncharacters are characters of UTF-8.
    let planes = (0..=0x10).flat_map(|plane| [plane << 16 | 0xFFFE, plane << 16 | 0xFFFF]);
    for number in boundaries.into_iter().chain([0x1_0000]).chain(planes) {
        let character = char::from_u32(number).expect("a character").to_string();
        let bytes = character.as_bytes();
        check(small(), &[(1, true, bytes)], &[text(&character)]);
        for at in 0..=bytes.len() {
            let (front, back) = bytes.split_at(at);
            let frames: Frames<'_> = &[(1, false, front), (9, true, b"p"), (0, true, back)];
            check(small(), frames, &[ping(b"p"), text(&character)]);
        }
    }
}

#[test]
fn text_passes_unchecked_on_demand() {
    let config = DecoderConfig {
        validate_text: false,
        ..small()
    };
    check(config, &[(1, true, b"\xFF")], &[Out::Text(vec![0xFF])]);
    let frames: Frames<'_> = &[(1, false, b"\xFF"), (0, true, b"\xE2")];
    check(config, frames, &[Out::Text(vec![0xFF, 0xE2])]);
}

#[test]
fn every_fault_has_its_close_code() {
    let rows = [
        (1002, FramingError::Unmasked),
        (1002, FramingError::ContinuationUnexpected),
        (
            1003,
            FramingError::Kind {
                expected: MessageKind::Text,
            },
        ),
        (1007, FramingError::Utf8),
        (1007, FramingError::Deflate),
        (
            1009,
            FramingError::TooLong {
                length: 2,
                length_max: 1,
            },
        ),
        (1009, FramingError::InflatedTooLong { length_max: 1 }),
    ];
    for (code, error) in rows {
        assert_eq!(error.close_code(), code, "{error}");
        assert!(
            error.to_string().len() <= 123,
            "fits a Close frame: {error}"
        );
    }
}

#[test]
fn frames_are_read_as_they_were_written() {
    let mask = [1, 2, 3, 4];
    for length in [0, 1, 124, 125, 126, 127, 400, 65_535, 65_536, 70_000] {
        for hint in [0, 125, 126, 65_535, 65_536, length] {
            for (role, framing) in [
                (Role::Client, Framing::WebSocketServer { batched: false }),
                (
                    Role::Server,
                    Framing::WebSocketClient {
                        batched: false,
                        mask,
                    },
                ),
            ] {
                let body = vec![b'b'; length];
                let mut out = b"before".to_vec();
                for _ in 0..2 {
                    let framed: Result<(), FrameError<()>> =
                        framing.frame(Cbor, hint, &mut out, |out| {
                            out.extend_from_slice(&body);
                            Ok(())
                        });
                    framed.expect("it fits");
                }
                let mut decoder = Decoder::new(role, DecoderConfig::default());
                let (found, _) = crate::drive::drive(&mut decoder, [&out[6..]]);
                assert_eq!(
                    found,
                    [binary(&body), binary(&body)],
                    "{length} {hint} {role:?}"
                );
            }
        }
    }
}

#[test]
fn control_frames_are_read_as_they_were_written() {
    let mask = [1, 2, 3, 4];
    for (role, framing) in [
        (Role::Client, Framing::WebSocketServer { batched: false }),
        (
            Role::Server,
            Framing::WebSocketClient {
                batched: true,
                mask,
            },
        ),
    ] {
        let mut out = Vec::new();
        framing.ping(&[9; 200], &mut out);
        framing.pong(b"", &mut out);
        framing.close(1008, &format!("{}é", "a".repeat(122)), &mut out);
        let (found, _) = every_cut(|| Decoder::new(role, small()), &out);
        let close = Out::Close(Some(1008), "a".repeat(122));
        assert_eq!(found, [ping(&[9; 125]), Out::Pong(vec![]), close]);
    }
}

#[test]
fn a_failed_writer_leaves_nothing() {
    for batched in [false, true] {
        let mut out = b"before".to_vec();
        let framing = Framing::WebSocketServer { batched };
        let error = framing.frame(Json, 1000, &mut out, |out| {
            out.push(1);
            Err("no")
        });
        assert_eq!(
            (error, &*out),
            (Err(FrameError::Write("no")), &b"before"[..])
        );
    }
}

#[test]
fn an_idle_decoder_is_small() {
    assert!(size_of::<Decoder>() <= 24, "{}", size_of::<Decoder>());
}
