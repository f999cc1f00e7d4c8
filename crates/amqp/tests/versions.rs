//! Protocol headers, and the methods in which 0-8 is another version.

use crosstie_amqp::method::{
    BasicConsume, BasicConsumeOk, ChannelOpenOk, ConnectionClose, ConnectionCloseOk,
};
use crosstie_amqp::{Method, MethodError, Version};

#[test]
fn headers_ask_for_versions() {
    for (header, expected) in [
        (*b"AMQP\x00\x00\x09\x01", Some(Version::V0_9_1)),
        (*b"AMQP\x01\x01\x00\x09", Some(Version::V0_9_1)),
        (*b"AMQP\x01\x01\x08\x00", Some(Version::V0_8)),
        (*b"AMQP\x01\x01\x09\x01", Some(Version::V0_8)),
        // RabbitMQ refuses these, too: 0-9 of others, 0-10, 1.0 and 1.0 behind SASL.
        (*b"AMQP\x00\x00\x09\x00", None),
        (*b"AMQP\x01\x01\x00\x0a", None),
        (*b"AMQP\x00\x01\x00\x00", None),
        (*b"AMQP\x03\x01\x00\x00", None),
        (*b"GET / HT", None),
    ] {
        assert_eq!(Version::asked_for(&header).ok().flatten(), expected);
        if expected.is_some() {
            for end in 0..header.len() {
                assert_eq!(Version::asked_for(&header[..end]), Ok(None));
            }
            let more = [&header[..], b"more"].concat();
            assert_eq!(Version::asked_for(&more), Ok(expected));
        }
    }
}

/// Each row: a payload of 0-8, and its content.
#[test]
fn methods_of_0_8_are_read() {
    let close = ConnectionClose {
        reply_code: 200,
        reply_text: "bye",
        ..ConnectionClose::default()
    };
    let consume = BasicConsume {
        queue: "q",
        consumer_tag: "c",
        no_ack: true,
        ..BasicConsume::default()
    };
    let consume_ok = BasicConsumeOk { consumer_tag: "c" };
    let rows: [(&[u8], Method<'_>); 4] = [
        (b"\x00\x0a\x00\x3c\x00\xc8\x03bye\0\0\0\0", close.into()),
        (b"\x00\x0a\x00\x3d", ConnectionCloseOk {}.into()),
        (b"\x00\x3c\x00\x14\x00\x01\x01q\x01c\x02", consume.into()),
        // As in 0-9-1.
        (b"\x00\x3c\x00\x15\x01c", consume_ok.into()),
    ];
    for (payload, expected) in rows {
        assert_eq!(Version::V0_8.decode(payload), Ok(expected));
        for end in 0..payload.len() {
            let part = Version::V0_8.decode(&payload[..end]);
            assert!(part.is_err(), "{end} of {payload:?}");
        }
        let longer = [payload, b"x"].concat();
        assert!(Version::V0_8.decode(&longer).is_err(), "{payload:?}");
    }
}

#[test]
fn later_methods_are_unknown_in_0_8() {
    for (class_id, method_id) in [
        (10, 50),
        (10, 51),
        (10, 70),
        (10, 71),
        (40, 30),
        (40, 31),
        (40, 40),
        (40, 51),
        (60, 120),
        (85, 10),
        (85, 11),
        (1, 1),
    ] {
        let payload = [u16::to_be_bytes(class_id), u16::to_be_bytes(method_id)].concat();
        let unknown = MethodError::Unknown {
            class_id,
            method_id,
        };
        assert_eq!(Version::V0_8.decode(&payload), Err(unknown));
    }
}

#[test]
fn methods_are_written_as_the_version_has_them() {
    fn check(method: Method<'_>, expected: &[u8]) {
        let mut out = b"before".to_vec();
        Version::V0_8.write_any(&method, &mut out);
        assert_eq!(out, [b"before", expected].concat());
        let mut out = Vec::new();
        Version::V0_9_1.write_any(&method, &mut out);
        assert_eq!(Method::decode(&out), Ok(method));
    }
    check(ConnectionCloseOk {}.into(), b"\x00\x0a\x00\x3d");
    check(
        ChannelOpenOk { channel_id: b"" }.into(),
        b"\x00\x14\x00\x0b",
    );
    let close = b"\x00\x0a\x00\x3c\0\0\0\0\0\0\0";
    check(ConnectionClose::default().into(), close);
    let consume_ok = BasicConsumeOk { consumer_tag: "c" };
    check(consume_ok.into(), b"\x00\x3c\x00\x15\x01c");
    let mut out = Vec::new();
    Version::V0_8.write(&ConnectionCloseOk {}, &mut out);
    assert_eq!(out, b"\x00\x0a\x00\x3d");
}
