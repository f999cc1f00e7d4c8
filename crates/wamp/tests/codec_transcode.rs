//! Transcoding, row by row: what becomes of values that two serializers write differently, and
//! which values the other cannot hold.

#[allow(dead_code, reason = "shared with the other tables")]
mod codec_oracle;

use codec_oracle::{hex, unhex};
use crosstie_wamp::Serializer;
use crosstie_wamp::Serializer::{Cbor, Json, MsgPack};
use crosstie_wamp::Value;
use crosstie_wamp::codec::{TranscodeError, encode_value, transcode, transcode_within};

#[track_caller]
fn check(from: Serializer, bytes: &[u8], into: Serializer, expected: Result<&[u8], &str>) {
    let mut out = b"front".to_vec();
    let done = transcode(from, bytes, into, &mut out).map_err(|error| error.reason);
    let transcoded = out.strip_prefix(b"front").unwrap();
    let shown = hex(transcoded);
    assert_eq!(
        done.map(|()| shown),
        expected.map(hex),
        "{}",
        String::from_utf8_lossy(transcoded)
    );
}

#[track_caller]
fn json_to(into: Serializer, json: &str, expected: &str) {
    check(Json, json.as_bytes(), into, Ok(&unhex(expected)));
}

#[track_caller]
fn to_json(from: Serializer, bytes: &str, expected: &str) {
    check(from, &unhex(bytes), Json, Ok(expected.as_bytes()));
}

#[test]
fn a_form_that_is_too_long_is_not_made() {
    let text = "\u{1}".repeat(1000);
    let values = [
        Value::from(text.as_str()),
        Value::List(vec![Value::from(text.as_str())]),
        Value::List(vec![Value::Bool(false); 1000]),
        Value::Dict(vec![(text, Value::Null)]),
        Value::from("a \"quoted\" text\n".repeat(100).as_str()),
    ];
    for value in &values {
        let mut bytes = Vec::new();
        encode_value(value, MsgPack, &mut bytes).unwrap();
        let mut whole = Vec::new();
        transcode(MsgPack, &bytes, Json, &mut whole).unwrap();
        let length = whole.len();
        for (length_max, is_taken) in [(length, true), (length - 3, false), (10, false)] {
            let mut out = Vec::new();
            let done = transcode_within(MsgPack, &bytes, Json, length_max, &mut out);
            assert_eq!(done == Ok(()), is_taken, "{length_max} of {length}");
            match is_taken {
                true => assert_eq!(out, whole),
                false => {
                    assert_eq!(done, Err(TranscodeError::TOO_LONG));
                    assert!(out.is_empty() && out.capacity() <= 2 * length_max.max(bytes.len()));
                }
            }
        }
    }
}

#[test]
fn binary_is_base64_in_json() {
    json_to(
        MsgPack,
        r#""\u0000EOP/kFMHXFJvX8BtT+N82w==""#,
        "c410 10e3ff9053075c526f5fc06d4fe37cdb",
    );
    json_to(
        Cbor,
        r#""\u0000EOP/kFMHXFJvX8BtT+N82w==""#,
        "50 10e3ff9053075c526f5fc06d4fe37cdb",
    );
    json_to(Cbor, r#""\u0000""#, "40");
    // Base64 that is not canonical, and keys, are text.
    json_to(Cbor, r#""\u0000EOP""#, "64 00454f50");
    json_to(Cbor, r#"{"\u0000EOP/":1}"#, "a1 65 00454f502f 01");
    to_json(
        MsgPack,
        "c410 10e3ff9053075c526f5fc06d4fe37cdb",
        r#""\u0000EOP/kFMHXFJvX8BtT+N82w==""#,
    );
    to_json(Cbor, "40", r#""\u0000""#);
    to_json(Cbor, "5f 4210e3 41ff ff", r#""\u0000EOP/""#);
    check(MsgPack, &unhex("c402 0001"), Cbor, Ok(&unhex("42 0001")));
}

#[test]
fn counts_are_filled_in() {
    json_to(MsgPack, "[]", "90");
    json_to(MsgPack, "[ 1 , [ 2 ] ]", "92 01 91 02");
    json_to(MsgPack, r#"{"a":{}}"#, "81 a161 80");
    for (count, msgpack, cbor) in [
        (15, "9f", "8f"),
        (16, "dc0010", "90"),
        (23, "dc0017", "97"),
        (24, "dc0018", "9818"),
        (255, "dc00ff", "98ff"),
        (256, "dc0100", "990100"),
        (65_535, "dcffff", "99ffff"),
        (65_536, "dd00010000", "9a00010000"),
    ] {
        let zeros = "00".repeat(count);
        // Within another list, which the longer head must not disturb.
        let json = format!("[[{}],7]", vec!["0"; count].join(","));
        json_to(MsgPack, &json, &format!("92 {msgpack} {zeros} 07"));
        json_to(Cbor, &json, &format!("82 {cbor} {zeros} 07"));
        let indefinite = unhex(&format!("9f 9f {zeros} ff 07 ff"));
        check(
            Cbor,
            &indefinite,
            MsgPack,
            Ok(&unhex(&format!("92 {msgpack} {zeros} 07"))),
        );
        check(Cbor, &indefinite, Json, Ok(json.as_bytes()));
    }
}

#[test]
fn numbers_keep_their_kind() {
    for (json, msgpack, cbor) in [
        ("0", "00", "00"),
        ("128", "cc80", "1880"),
        (
            "18446744073709551615",
            "cfffffffffffffffff",
            "1bffffffffffffffff",
        ),
        ("-1", "ff", "20"),
        ("-33", "d0df", "3820"),
        ("-129", "d1ff7f", "3880"),
        (
            "-9223372036854775808",
            "d38000000000000000",
            "3b7fffffffffffffff",
        ),
        ("1.0", "cb3ff0000000000000", "fb3ff0000000000000"),
        ("-0.0", "cb8000000000000000", "fb8000000000000000"),
        ("1e300", "cb7e37e43c8800759c", "fb7e37e43c8800759c"),
        ("5e-324", "cb0000000000000001", "fb0000000000000001"),
        (
            "18446744073709552000.0",
            "cb43f0000000000000",
            "fb43f0000000000000",
        ),
    ] {
        json_to(MsgPack, json, msgpack);
        json_to(Cbor, json, cbor);
        check(MsgPack, &unhex(msgpack), Cbor, Ok(&unhex(cbor)));
        check(Cbor, &unhex(cbor), MsgPack, Ok(&unhex(msgpack)));
        let read = |text: &str| text.parse::<f64>().unwrap().to_bits();
        let mut back = Vec::new();
        transcode(Cbor, &unhex(cbor), Json, &mut back).unwrap();
        let back = String::from_utf8(back).unwrap();
        assert_eq!(read(&back), read(json));
        assert_eq!(
            back.contains(['.', 'e']),
            json.contains(['.', 'e']),
            "{back}"
        );
    }
    // Beyond 64 bits a JSON integer is a double, as everywhere in the JSON world.
    json_to(MsgPack, "18446744073709551616", "cb43f0000000000000");
    json_to(Cbor, "-9223372036854775809", "fbc3e0000000000000");
    json_to(Cbor, "-0", "fb8000000000000000");
    to_json(Cbor, "3bffffffffffffffff", "-18446744073709551616");
    to_json(MsgPack, "ca3f000000", "0.5");
    to_json(Cbor, "f93800", "0.5");
}

#[test]
fn text_is_escaped_where_it_must() {
    to_json(
        Cbor,
        "68 22 5c 2f 08 0a 1f 7f 61",
        "\"\\\"\\\\/\\b\\n\\u001f\u{7f}a\"",
    );
    to_json(MsgPack, "a6 e282ac c3a4 00", r#""€ä\u0000""#);
    json_to(Cbor, r#""\u20ac\ud83d\ude00\/""#, "68 e282ac f09f9880 2f");
}

#[test]
fn undefined_is_null() {
    to_json(Cbor, "82 f7 f6", "[null,null]");
    check(Cbor, &unhex("f7"), MsgPack, Ok(&[0xc0]));
}

fn refused(from: Serializer, bytes: &str, into: &[Serializer], reason: &str) {
    for into in into {
        check(from, &unhex(bytes), *into, Err(reason));
        // Behind other values, and within them.
        let (list, entry) = if from == Cbor {
            ("83", "a1 60")
        } else {
            ("93", "81 a0")
        };
        let within = format!("{list} 01 {entry} {bytes} 02");
        check(from, &unhex(&within), *into, Err(reason));
    }
}

#[test]
fn values_that_the_other_cannot_hold() {
    let finite = "JSON has no numbers that are not finite";
    refused(Cbor, "f97e00", &[Json], finite);
    refused(Cbor, "fa ff800000", &[Json], finite);
    refused(MsgPack, "cb 7ff0000000000000", &[Json], finite);
    check(
        MsgPack,
        &unhex("cb 7ff0000000000000"),
        Cbor,
        Ok(&unhex("fb 7ff0000000000000")),
    );

    refused(
        Cbor,
        "c1 00",
        &[Json, MsgPack],
        "a tag, which only CBOR has",
    );
    refused(
        Cbor,
        "e0",
        &[Json, MsgPack],
        "a simple value, which only CBOR has",
    );
    refused(
        MsgPack,
        "d4 01 00",
        &[Json, Cbor],
        "an extension type, which only MessagePack has",
    );
    let wide = "MessagePack has no integers beyond 64 bits";
    refused(Cbor, "3b 8000000000000000", &[MsgPack], wide);
}

#[test]
fn dictionary_keys_that_json_cannot_hold() {
    let key = "a dictionary key that is not text, which JSON cannot have";
    refused(Cbor, "a1 01 02", &[Json], key);
    refused(Cbor, "a1 4161 02", &[Json], key);
    refused(MsgPack, "81 90 02", &[Json], key);
    check(
        MsgPack,
        &unhex("81 91c0 02"),
        Cbor,
        Ok(&unhex("a1 81f6 02")),
    );
    check(
        Cbor,
        &unhex("bf 01 02 6161 03 ff"),
        MsgPack,
        Ok(&unhex("82 01 02 a161 03")),
    );
}

#[test]
fn input_that_cannot_be_read() {
    check(
        Json,
        b"[1e400]",
        Cbor,
        Err("a number beyond the range of a double"),
    );
    let deep = [vec![0x91; 1_000_000], vec![0xc0]].concat();
    let reason = "too many lists and dictionaries inside one another";
    check(MsgPack, &deep, Cbor, Err(reason));
    check(
        MsgPack,
        b"\xc1",
        Cbor,
        Err("bytes that are not a valid value"),
    );
}
