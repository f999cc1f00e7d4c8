//! Bytes that are no frames, methods or properties, and what is said of each.

use crosstie_amqp::frame::{self, Decoded};
use crosstie_amqp::{ContentHeader, Method, Table};

#[test]
fn frames() {
    let check = |bytes: &[u8], bytes_max, expected: &str| {
        let found = match frame::decode(bytes, bytes_max) {
            Ok(Decoded::Frame { consumed, .. }) => format!("frame of {consumed}"),
            Ok(Decoded::Incomplete { wanted }) => format!("wants {wanted}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    };
    check(b"", 4096, "wants 8");
    check(b"\x08", 4096, "wants 8");
    check(b"\x08\0\0\0\0\0\0", 4096, "wants 8");
    check(b"\x08\0\0\0\0\0\0\xce", 4096, "frame of 8");
    check(b"\x08\0\0\0\0\0\0\xce\x01", 4096, "frame of 8");
    check(b"\x03\0\x01\0\0\x10\0", 4096, "wants 4104");
    check(
        b"\x03\0\x01\0\0\x10\x01",
        4096,
        "a frame's payload of 4097 bytes, where frames of 4096 are the longest",
    );
    check(b"\x03\0\x01\xff\xff\xff\xff", 0, "wants 4294967303");
    check(
        b"\x08\0\0\0\0\0\0\xcd",
        4096,
        "a frame that ends with octet 0xcd, expected 0xce",
    );
    for bytes in [b"AMQP\0\0\x09\x01".as_slice(), b"\x04", b"\x00\0"] {
        let expected = format!(
            "a frame of type {}, expected 1 (method), 2 (header), 3 (body) or 8 (heartbeat)",
            bytes[0]
        );
        check(bytes, 4096, &expected);
    }
}

#[test]
fn methods() {
    let check = |bytes: &[u8], expected: &str| {
        let error = Method::decode(bytes).expect_err("malformed");
        assert_eq!(error.to_string(), expected, "{}", bytes.escape_ascii());
    };
    check(b"", "a method frame that is too short to name a method");
    check(
        b"\0\x3c\0",
        "a method frame that is too short to name a method",
    );
    check(b"\0\x3c\0\x63", "there is no method 99 in class 60");
    check(b"\0\0\0\0", "there is no method 0 in class 0");
    check(
        b"\0\x32\0\x0a\0\0\x05ab",
        "in queue.declare: the bytes end within an argument",
    );
    check(
        b"\0\x32\0\x0a\0\0\x01a",
        "in queue.declare: the bytes end within an argument",
    );
    check(
        b"\0\x32\0\x0a\0\0\x01a\0\0\0\0\0x",
        "in queue.declare: 1 bytes behind the last argument",
    );
    check(
        b"\0\x32\0\x0a\0\0\x02\xff\xfe\0\0\0\0\0",
        "in queue.declare: a short string that is not UTF-8",
    );
    check(
        b"\0\x32\0\x0a\0\0\x01a\0\0\0\0\x03\x01aQ",
        "in queue.declare: a field value of unknown kind 0x51",
    );
    check(
        b"\0\x32\0\x0a\0\0\x01a\0\0\0\0\x06\x01aI\0\0\0",
        "in queue.declare: the bytes end within an argument",
    );
    // A table that is longer than what there is.
    check(
        b"\0\x32\0\x0a\0\0\x01a\0\xff\xff\xff\xff\x01aV",
        "in queue.declare: the bytes end within an argument",
    );
}

#[test]
fn unused_bits_are_read_over() {
    let payload = b"\0\x32\0\x0a\0\x07\x01a\xe8\0\0\0\0";
    let Ok(Method::QueueDeclare(declare)) = Method::decode(payload) else {
        panic!("a method");
    };
    assert!(declare.auto_delete && !declare.durable && !declare.no_wait);
}

#[test]
fn content_headers() {
    let check = |class: u16, bytes: &[u8], expected: &str| {
        let head = [&class.to_be_bytes(), [0; 10].as_slice(), bytes].concat();
        let found = ContentHeader::decode(&head).map_err(|error| error.to_string());
        let found = found.map(|header| format!("{:?}", header.properties.parse().correlation_id));
        let (Ok(found) | Err(found)) = found;
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    };
    check(60, b"\0\0", "None");
    check(60, b"\x04\0\x02ab", r#"Some("ab")"#);
    #[rustfmt::skip]
    let rows: &[(_, &[u8], &str)] = &[
        // Passed on, but not shown.
        (60, b"\x04\0\x02\xff\xfe", "None"),
        (50, b"\0\0", "a content header of class 50, expected 60 (basic)"),
        (60, b"\0", "in a content header: the bytes end within an argument"),
        (60, b"\x04\0\x05ab", "in a content header: the bytes end within an argument"),
        (60, b"\0\0ab", "in a content header: 2 bytes behind the last argument"),
        (60, b"\0\x01", "unknown property flags 0x0001"),
        (60, b"\x20\0\0\0\0\x03\x01aQ", "in a content header: a field value of unknown kind 0x51"),
    ];
    for &(class, bytes, expected) in rows {
        check(class, bytes, expected);
    }
}

#[test]
fn tables_within_tables_have_a_bound() {
    let nested = |depth: usize| {
        (0..depth).fold(Vec::new(), |inner: Vec<u8>, _| {
            let length = (inner.len() as u32).to_be_bytes();
            [b"\x01aF", length.as_slice(), &inner].concat()
        })
    };
    assert!(Table::from_bytes(&nested(64)).is_ok());
    let error = Table::from_bytes(&nested(65)).expect_err("too deep");
    assert_eq!(error.to_string(), "tables within tables, too deep");
}

#[test]
fn a_name_that_is_not_text_is_passed_on() {
    let bytes = b"\x01\xffV\x01at\x01";
    let table = Table::from_bytes(bytes).expect("a table");
    assert_eq!(table.bytes(), bytes);
    assert_eq!(format!("{table:?}"), r#"{"a": true}"#);
}
