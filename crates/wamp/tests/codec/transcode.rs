//! Transcoding, row by row: what becomes of values that two serializers write differently, and
//! which values the other cannot hold.

use crosstie_wamp::Serializer;
use crosstie_wamp::Serializer::{Cbor, Json, MsgPack};
use crosstie_wamp::Value;
use crosstie_wamp::codec::{TranscodeError, encode_value, transcode, transcode_within};

use crate::oracle::{hex, unhex};

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
    // The negative zero of integers is none.
    json_to(Cbor, "-0", "00");
    json_to(MsgPack, "[-0,-0.0]", "92 00 cb8000000000000000");
    to_json(MsgPack, "ca3f000000", "0.5");
    to_json(Cbor, "f93800", "0.5");
}

#[test]
fn integers_of_any_length_keep_their_digits() {
    for (json, cbor) in [
        ("18446744073709551616", "c2 49 010000000000000000"),
        ("18446744073709551617", "c2 49 010000000000000001"),
        ("-18446744073709551617", "c3 49 010000000000000000"),
        (
            "1000000000000000000000000000000",
            "c2 4d 0c9f2c9cd04674edea40000000",
        ),
    ] {
        json_to(Cbor, json, cbor);
        to_json(Cbor, cbor, json);
        let wide = "MessagePack has no integers beyond 64 bits";
        refused(Cbor, cbor, &[MsgPack], wide);
        check(Json, json.as_bytes(), MsgPack, Err(wide));
    }
    json_to(Cbor, "-9223372036854775809", "3b8000000000000000");
    json_to(Cbor, "-18446744073709551616", "3bffffffffffffffff");
    to_json(Cbor, "3bffffffffffffffff", "-18446744073709551616");
    // A short bignum, as JavaScript's BigInt(123), is an integer like any other.
    to_json(Cbor, "82 c2417b c3417b", "[123,-124]");
    to_json(Cbor, "82 c240 c340", "[0,-1]");
    to_json(Cbor, "c2 4a 00000000000000000001", "1");
    check(
        Cbor,
        &unhex("82 c2417b c3417b"),
        MsgPack,
        Ok(&unhex("92 7b d084")),
    );
    let nines = "9".repeat(4_300);
    let mut cbor = Vec::new();
    transcode(Json, nines.as_bytes(), Cbor, &mut cbor).unwrap();
    check(Cbor, &cbor, Json, Ok(nines.as_bytes()));
    let many = "an integer of more than 4300 digits";
    check(Json, format!("{nines}9").as_bytes(), Cbor, Err(many));
    let bytes = [unhex("c2 5907d0"), vec![0xff; 2_000]].concat();
    check(Cbor, &bytes, Json, Err(many));
    // The digits of many of them are too much work.
    let one = [unhex("c2 5906f9"), vec![1; 1_785]].concat();
    let all = [unhex("9a 00000200"), one.repeat(512)].concat();
    check(Cbor, &all, Json, Err(TranscodeError::TOO_LONG.reason));
}

#[test]
fn tags_with_a_form_elsewhere() {
    for (cbor, json, msgpack) in [
        // 1.12 as Python's Decimal is written, of which Crossbar.io makes text.
        ("c4 82 21 1870", r#""1.12""#, "a4 312e3132"),
        ("c4 82 01 c24105", r#""5E+1""#, "a4 35452b31"),
        // CBOR's tag of self-described CBOR.
        ("d9d9f7 01", "1", "01"),
        ("d9d9f7 d9d9f7 81 d9d9f7 c24105", "[5]", "91 05"),
        // JavaScript's Uint8Array.
        ("d840 42 0001", r#""\u0000AAE=""#, "c402 0001"),
        ("d840 5f 4100 4101 ff", r#""\u0000AAE=""#, "c402 0001"),
    ] {
        to_json(Cbor, cbor, json);
        check(Cbor, &unhex(cbor), MsgPack, Ok(&unhex(msgpack)));
    }
    let tag = "a tag, which only CBOR has";
    for cbor in [
        "c0 60",
        "c4 81 01",
        "c2 60",
        "d840 60",
        "d841 42 0001",
        "d81c 80",
    ] {
        refused(Cbor, cbor, &[Json, MsgPack], tag);
    }
}

#[test]
fn text_is_escaped_if_necessary() {
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

    // A head is written in any case.
    let mut head = Vec::new();
    encode_value(&Value::from("\0AQI="), Json, &mut head).unwrap();
    assert_eq!(head, "\"\u{fffd}AQI=\"".as_bytes());
    for text in ["61 00", "63 00 61 61", "65 00 41 51 49 3d"] {
        refused(Cbor, text, &[Json], "JSON has no text that begins with NUL");
    }
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
    let key = "a dictionary key that has no usual form as text";
    refused(Cbor, "a1 4161 02", &[Json], key);
    refused(Cbor, "a1 80 02", &[Json, MsgPack], key);
    refused(Cbor, "a1 f97e00 02", &[Json, MsgPack], key);
    refused(MsgPack, "81 90 02", &[Json], key);
    check(
        MsgPack,
        &unhex("81 91c0 02"),
        Cbor,
        Ok(&unhex("a1 81f6 02")),
    );
    check(
        Cbor,
        &unhex("a1 4161 02"),
        MsgPack,
        Ok(&unhex("81 c40161 02")),
    );
    // Keys that Python's `json` writes as text; receivers of MessagePack take no others either.
    for (cbor, text) in [
        ("01", "1"),
        ("20", "-1"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("c249010000000000000000", "18446744073709551616"),
        ("f93e00", "1.5"),
        ("f5", "true"),
        ("f4", "false"),
        ("f6", "null"),
    ] {
        to_json(
            Cbor,
            &format!("a1 {cbor} 02"),
            &format!(r#"{{"{text}":2}}"#),
        );
        let msgpack = format!("81 {:02x} {} 02", 0xa0 + text.len(), hex(text.as_bytes()));
        check(
            Cbor,
            &unhex(&format!("a1 {cbor} 02")),
            MsgPack,
            Ok(&unhex(&msgpack)),
        );
    }
    check(
        Cbor,
        &unhex("bf 01 02 6161 03 ff"),
        MsgPack,
        Ok(&unhex("82 a131 02 a161 03")),
    );
    check(MsgPack, &unhex("81 01 02"), Cbor, Ok(&unhex("a1 01 02")));
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
