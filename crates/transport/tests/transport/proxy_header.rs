//! Headers of the PROXY protocol: what is read from them, and what is refused.

use crosstie_transport::proxy_header::ProxyHeader;
use proptest::prelude::*;

const SIGNATURE: &str = "0d0a0d0a000d0a515549540a";

/// Digits in pairs, or a text behind `"`.
fn bytes(text: &str) -> Vec<u8> {
    if let Some(text) = text.strip_prefix('"') {
        return text.replace("\\r\\n", "\r\n").into_bytes();
    }
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16);
    pairs.map(|pair| byte(pair).expect("is a byte")).collect()
}

fn outcome(input: &[u8]) -> String {
    match ProxyHeader::decode(input) {
        Ok(None) => "more".to_owned(),
        Ok(Some(header)) => {
            let rest = String::from_utf8_lossy(&input[header.bytes..]);
            let client = header.client.map(|client| client.to_string());
            format!("{} |{rest}", client.as_deref().unwrap_or("-"))
        }
        Err(e) => e.to_string(),
    }
}

fn check(name: &str, input: &[u8], expected: &str) {
    assert_eq!(outcome(input), expected, "{name}: {}", input.escape_ascii());
    // Every part of a valid header asks for more, and so does every part of a header that is refused later.
    if let Ok(Some(header)) = ProxyHeader::decode(input) {
        for end in 0..header.bytes {
            assert_eq!(outcome(&input[..end]), "more", "{name}: {end} bytes");
        }
    }
}

/// Lines of version 1, and what is read from them.
const LINES: &[(&str, &str)] = &[
    (
        r#""PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nAMQP"#,
        "192.0.2.1:56324 |AMQP",
    ),
    (
        r#""PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"#,
        "[2001:db8::1]:1 |",
    ),
    (
        r#""PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n"#,
        "192.0.2.1:1 |",
    ),
    (r#""PROXY UNKNOWN\r\nGET"#, "- |GET"),
    (r#""PROXY UNKNOWN ff::1 any thing at all\r\n"#, "- |"),
    (r#""PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r"#, "more"),
    (
        r#""PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n"#,
        "invalid PROXY protocol header: the fields of the line",
    ),
    (
        r#""PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n"#,
        "invalid PROXY protocol header: the fields of the line",
    ),
    (
        r#""PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n"#,
        "invalid PROXY protocol header: the fields of the line",
    ),
    (
        r#""PROXY \r\n"#,
        "invalid PROXY protocol header: the fields of the line",
    ),
    (
        r#""PROXY TCP4 192.0.2.01 198.51.100.1 1 2\r\n"#,
        "invalid PROXY protocol header: an address",
    ),
    (
        r#""PROXY TCP4 ::1 198.51.100.1 1 2\r\n"#,
        "invalid PROXY protocol header: an address",
    ),
    (
        r#""PROXY TCP4 192.0.2.1 198.51.100.1 65536 2\r\n"#,
        "invalid PROXY protocol header: a port",
    ),
    (
        r#""PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n"#,
        "invalid PROXY protocol header: a port",
    ),
    (
        r#""PROXY TCP4 192.0.2.1 198.51.100.1 1 02\r\n"#,
        "invalid PROXY protocol header: a port",
    ),
    (
        r#""proxy TCP4 "#,
        "expected a PROXY protocol header, found other bytes",
    ),
    (
        r#""POST / HTTP/1.1"#,
        "expected a PROXY protocol header, found other bytes",
    ),
    (
        r#""AMQP"#,
        "expected a PROXY protocol header, found other bytes",
    ),
    (r#""P"#, "more"),
    ("", "more"),
    (
        "16030100",
        "expected a PROXY protocol header, found other bytes",
    ),
    (
        "50524f585920ff0d0a",
        "invalid PROXY protocol header: the line is not UTF-8",
    ),
];

/// Headers of version 2 behind their signature, and what is read from them.
#[rustfmt::skip]
const HEADERS: &[(&str, &str, &str)] = &[
    ("TCP4", "21 11 000c FOUR 414d", "192.0.2.1:56324 |AM"),
    ("TCP6", "21 21 0024 SIX", "[2001:db8::1]:56324 |"),
    ("local", "20 00 0000", "- |"),
    ("local with addresses", "20 11 000c FOUR", "- |"),
    ("local with anything", "20 ff 0003 010203 41", "- |A"),
    ("unspecified", "21 00 0003 010203 41", "- |A"),
    ("fields", "21 11 0015 FOUR 01 0002 6832 05 0001 00", "192.0.2.1:56324 |"),
    ("unknown field", "21 11 000f FOUR ee 0000", "192.0.2.1:56324 |"),
    ("Unix", "21 31 00d8 ZEROS 41", "- |A"),
    ("short Unix", "21 31 00d7 ZEROS", "malformed: the length of the addresses"),
    ("short", "21 11 000b c0000201 c6336401 dc04 01", "malformed: the length of the addresses"),
    ("datagram", "21 12 000c FOUR", "malformed: the address family"),
    ("no family", "21 41 000c FOUR", "malformed: the address family"),
    ("no command", "22 11 000c FOUR", "malformed: the command"),
    ("no version", "11 11 000c FOUR", "malformed: the version"),
    ("half a field", "21 11 000e FOUR 01 00", "malformed: the additional fields"),
    ("field too long", "21 11 000f FOUR 01 0001", "malformed: the additional fields"),
    ("short checksum", "21 11 0010 FOUR 03 0001 00", "malformed: the additional fields"),
    ("too long", "21 11 0ff1", "a PROXY protocol header of 4097 bytes, where 4096 are the maximum"),
    ("incomplete", "21 11 000d FOUR", "more"),
    ("only fixed", "21 11 000c", "more"),
];

#[test]
fn a_line_of_version_1_names_the_client() {
    for (line, expected) in LINES {
        check("version 1", &bytes(line), expected);
    }
    let endless = format!("PROXY UNKNOWN {}", "x".repeat(107));
    check("endless", &endless.as_bytes()[..106], "more");
    check(
        "endless",
        endless.as_bytes(),
        "invalid PROXY protocol header: the line has no end",
    );
}

#[test]
fn a_header_of_version_2_names_the_client() {
    let six = "20010db8000000000000000000000001 20010db8000000000000000000000002 dc04 01bb";
    for (name, rest, expected) in HEADERS {
        let zeros = if name.starts_with("short") { 215 } else { 216 };
        let rest = rest.replace("FOUR", "c0000201 c6336401 dc04 01bb");
        let rest = rest.replace("SIX", six);
        let rest = rest.replace("ZEROS", &"00".repeat(zeros));
        let expected = expected.replace("malformed", "invalid PROXY protocol header");
        check(name, &bytes(&format!("{SIGNATURE}{rest}")), &expected);
    }
}

#[test]
fn a_checksum_is_verified() {
    // Sent by HAProxy 2.6.12 with `proxy-v2-options crc32c,unique-id`.
    let right = "0d0a0d0a000d0a515549540a211100167f0000017f0000019c4042690300042a8545bd050000";
    check("right", &bytes(right), "127.0.0.1:40000 |");
    for at in [16, 27, 31] {
        let mut wrong = bytes(right);
        wrong[at] ^= 1;
        check(
            "wrong",
            &wrong,
            "PROXY protocol header with a wrong checksum",
        );
    }
    // The first is right; each would cost a pass over the header.
    let twice =
        "0d0a0d0a000d0a515549540a2111001ac0000201c6336401dc0401bb0300045d72723e030004deadbeef";
    let expected = "invalid PROXY protocol header: the additional fields";
    check("two checksums", &bytes(twice), expected);
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(input in prop::collection::vec(any::<u8>(), 0..300), is_binary: bool) {
        let mut whole = match is_binary {
            true => bytes(SIGNATURE),
            false => b"PROXY ".to_vec(),
        };
        whole.extend(input);
        if let Ok(Some(header)) = ProxyHeader::decode(&whole) {
            prop_assert!(header.bytes <= whole.len());
        }
    }
}
