//! Bytes that are not well-formed, and bytes that are but look as if they were not. Each row is
//! one value: it is put where a message's arguments are, and read on its own.

use crosstie_wamp::codec::{Limits, decode, decode_value};
use crosstie_wamp::{Message, RequestId, Serializer, Value};

use crate::oracle::{hex, unhex};

const LIMITS: Limits = Limits { depth_max: 64 };

/// A RESULT whose only argument is `value`.
fn message_around(serializer: Serializer, value: &[u8]) -> Vec<u8> {
    let (head, tail) = match serializer {
        Serializer::Json => (b"[50,1,{},[".to_vec(), b"]]".to_vec()),
        Serializer::MsgPack => (unhex("94 32 01 80 91"), vec![]),
        Serializer::Cbor => (unhex("84 1832 01 a0 81"), vec![]),
    };
    [head, value.to_vec(), tail].concat()
}

/// Whether the arguments of a message may hold `value`; where they may, they must be passed on as
/// they are.
#[track_caller]
fn is_accepted(serializer: Serializer, value: &[u8]) -> Result<(), String> {
    let bytes = message_around(serializer, value);
    let message = decode(serializer, &bytes, &LIMITS).map_err(|error| error.to_string())?;
    let Message::Result { payload, .. } = message else {
        panic!("it is a RESULT")
    };
    assert!(
        payload
            .args
            .windows(value.len())
            .any(|window| window == value),
        "the arguments are passed on as they came"
    );
    Ok(())
}

/// The rows of a table: two spaces or a line's end lie between them. A line with a `#` in front
/// is a comment.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    let lines = table
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines
        .flat_map(|line| line.split("  "))
        .map(str::trim)
        .filter(|row| !row.is_empty())
}

#[track_caller]
fn check_good(serializer: Serializer, value: &[u8]) {
    let shown = String::from_utf8_lossy(value);
    assert_eq!(
        is_accepted(serializer, value),
        Ok(()),
        "{shown} {}",
        hex(value)
    );
}

#[track_caller]
fn check_bad(serializer: Serializer, value: &[u8]) {
    let shown = String::from_utf8_lossy(value);
    assert!(
        is_accepted(serializer, value).is_err(),
        "{shown} {}",
        hex(value)
    );
    assert!(
        decode_value(serializer, value, &LIMITS).is_err(),
        "{shown} {}",
        hex(value)
    );
}

#[test]
fn json() {
    const GOOD: &str = r##"
        0  -0  10  -10  0.5  1e5  1E+5  1.25e-5  1e400  123456789012345678901234567890
        true  false  null  ""  "a"  []  {}  [[],{}]  [ 1 , 2 ]  { "a" : 1 }
        {"a":1,"a":2}  {"":{}}  "\"\\\/\b\f\n\r\t"  "\u0000\u00e4\u20aC"  "\ud83d\ude00"
        "12345678\n12345678"  "1234567\""  {"1234567\"89":"\\"}
    "##;
    const BAD: &str = r##"
        01  -  -01  +1  1.  .5  1e  1e+  1.e5  0x1  1_000  nan  Infinit  -NaN
        tru  True  truex  nul  undefined  'a'  a  "  "a  "\  "\"  "\x"
        "\u"  "\u12"  "\u12g4"  "\u+123"  "\ud83d"  "\ude00"  "\ud83d\u0041"  "\ud83dx"
        "\ud83d\ud83d"  "\ud83d\n"  "\ude00\ud83d"
        [  ]  [1  [1,  [1,]  [,1]  [1 2]  [1}  {  }  {"a"}  {"a":}  {"a":1,}  {"a" 1}
        {"a":1 "b":2}  {1:2}  {a:1}  {"a":1]  {,"a":1}  1 2  //1  1/**/
    "##;
    let good = rows(GOOD).chain(["\t\n\r 1 ", "\"\u{7f}\u{80}ä€😀\""]);
    good.for_each(|value| check_good(Serializer::Json, value.as_bytes()));
    let control = [
        "\"\0\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "\"12345678\u{1}\"",
        "\u{feff}1",
        "\u{a0}1",
    ];
    let bad = rows(BAD).chain(control).chain(["\u{c}1"]);
    bad.for_each(|value| check_bad(Serializer::Json, value.as_bytes()));
}

#[test]
fn utf8() {
    const BAD: &str = "
        80  bf  c3  c328  c080  c1bf  e282  e28228  e08080  eda080  edbfbf  f0288cbc  f0808080
        f48fbf  f4908080  f8888080  fe  ff
    ";
    for bytes in rows(BAD).map(unhex) {
        let length = bytes.len() as u8;
        let around = |front: &[u8], back: &[u8]| [front, bytes.as_slice(), back].concat();
        let values = [
            (Serializer::Json, around(b"\"", b"\"")),
            // Behind a long run of ASCII too, where eight bytes are looked at at once.
            (
                Serializer::Json,
                around(b"\"0123456789abcdef0123456789", b"\""),
            ),
            (Serializer::MsgPack, around(&[0xa0 | length], &[])),
            (Serializer::MsgPack, around(&[0xd9, length], &[])),
            (Serializer::MsgPack, around(&[0x81, 0xa0 | length], &[0])),
            (Serializer::Cbor, around(&[0x60 | length], &[])),
            (Serializer::Cbor, around(&[0x78, length], &[])),
            (Serializer::Cbor, around(&[0x7f, 0x60 | length], &[0xff])),
        ];
        for (serializer, value) in values {
            let error = is_accepted(serializer, &value).unwrap_err();
            assert!(
                error.contains("expected UTF-8, found other bytes"),
                "{serializer}: {error}"
            );
            assert!(decode_value(serializer, &value, &LIMITS).is_err());
        }
    }
    // A character must not be split between chunks.
    check_bad(Serializer::Cbor, &unhex("7f 61c3 61a4 ff"));
    check_good(Serializer::Cbor, &unhex("7f 62c3a4 60 ff"));
}

#[test]
fn msgpack() {
    const GOOD: &str = "
        00  7f  e0  ff  c0  c2  c3  cc00  cd0000  ce00000000  cf0000000000000000  d080  d18000
        d280000000  d38000000000000000  ca7fc00000  cb7ff8000000000000
        a0  d900  da0000  db00000000  db00000001 61  c400  c40180  c50000  c600000000
        90  dc0000  dd00000000  dd00000001 c0  80  de0000  df00000000  df00000001 01 02
        82 a161 01 a161 02  81 90 80
        # Extensions are walked over.
        d4 01 00  d5 01 0000  d6 ff 00000000  d7 ff 0000000000000000
        d8 01 00000000000000000000000000000000  c7 00 01  c7 02 01 ffff  c8 0001 01 ff
        c9 00000000 05
    ";
    const BAD: &str = "
        c1  91c1  81c1c0  81a161c1  cc  cd00  ce000000  cf00000000000000  d0  d100  d2000000
        d300000000000000  ca000000  cb00000000000000
        a1  d9  d901  da00  da0001  db000000  db00000001  dbffffffff
        c4  c401  c5ffff00  c6ffffffff  91  dc0001  dcffff  ddffffffff  81  81a161
        de0001 a161  dfffffffff  d4  d401  d5 01 00  c7 01 01  c7 00  c8 0000
        c9 ffffffff 01  c0c0
    ";
    rows(GOOD).for_each(|value| check_good(Serializer::MsgPack, &unhex(value)));
    rows(BAD)
        .map(unhex)
        .chain([vec![]])
        .for_each(|value| check_bad(Serializer::MsgPack, &value));
}

#[test]
fn cbor() {
    const GOOD: &str = "
        00  17  1818  1800  190000  1a00000000  1b0000000000000000  1bffffffffffffffff  20
        3800  3bffffffffffffffff  40  4180  5800  590000  5f ff  5f 41ff 40 ff
        60  6161  7b0000000000000001 61  7f ff  7f 6161 7801 62 ff
        80  9b0000000000000000  9f ff  9f 01 9f ff ff
        a0  a1 01 02  a2 6161 01 6161 02  bf ff  bf 6161 01 ff  a1 80 a0
        f4  f5  f6  f7  f9 7e00  fa 7fc00000  fb 7ff8000000000000  f97c00
        # Tags and simple values are walked over.
        c0 6161  c1 00  d818 41 00  d9d9f7 01  db ffffffffffffffff 80  c1c1c1 00
        e0  f3  f820  f8ff
    ";
    const BAD: &str = "
        # RFC 8949, appendix F.1: bytes that end too early, and reserved heads.
        18  19  1a  1b  1901  1a0102  1b01020304050607  38  58  78  98  9a01ff00  b8  d8
        f8  f900  fa0000  fb000000  41  61  5affffffff00  5bffffffffffffffff010203
        7affffffff00  7b7fffffffffffffff010203  81  818181818181818181  8200  a1
        a20102  a100  a2000000  5f4100  7f6100  9f  9f0102  bf  bf01020102  819f
        9f8000  9f9f9f9f9fffffffff  9f819f819f9fffffff  c0
        1c  1d  1e  3c  3d  3e  5c  5d  5e  7c  7d  7e  9c  9d  9e  bc  bd  be
        dc  dd  de  fc  fd  fe  f800  f801  f818  f81f
        # Chunks of another kind, or again without a length.
        5f00ff  5f21ff  5f6100ff  5f80ff  5fa0ff  5fc000ff  5fe0ff  7f4100ff  5f5f4100ffff
        7f7f6100ffff
        # A break where a value must be.
        ff  81ff  8200ff  a1ff  a1ff00  a100ff  a20000ff  9f81ff  9f829f819f9fffffffff
        bf00ff  bf000000ff  1f  3f  df  c0ff  9fc0ffff
        # Counts that nothing could hold, and more than one value.
        9bffffffffffffffff  bbffffffffffffffff 00  9a ffffffff 00  bb 8000000000000000 00
        0000
    ";
    rows(GOOD).for_each(|value| check_good(Serializer::Cbor, &unhex(value)));
    rows(BAD)
        .map(unhex)
        .chain([vec![]])
        .for_each(|value| check_bad(Serializer::Cbor, &value));
}

#[test]
fn integers_of_every_width_are_ids() {
    let check = |serializer: Serializer, bytes: &str| {
        let message = Message::Unsubscribed {
            request: RequestId(5),
            revoked: None,
        };
        assert_eq!(
            decode(serializer, &unhex(bytes), &LIMITS),
            Ok(message),
            "{bytes}"
        );
    };
    const MSGPACK: &str = "
        05  cc05  cd0005  ce00000005  cf0000000000000005
        d005  d10005  d200000005  d30000000000000005
    ";
    for five in rows(MSGPACK) {
        check(Serializer::MsgPack, &format!("92 23 {five}"));
        check(
            Serializer::MsgPack,
            &format!("dd00000002 cf0000000000000023 {five}"),
        );
    }
    for five in rows("05  1805  190005  1a00000005  1b0000000000000005") {
        check(Serializer::Cbor, &format!("82 1823 {five}"));
        check(
            Serializer::Cbor,
            &format!("9f 1b0000000000000023 {five} ff"),
        );
    }
}

#[test]
fn keys_of_keyword_arguments_are_text() {
    let check = |serializer: Serializer, bytes: &[u8]| {
        let error = decode(serializer, bytes, &LIMITS).unwrap_err().to_string();
        assert!(
            error.starts_with("RESULT: keyword arguments at byte "),
            "{error}"
        );
        assert!(error.contains(": expected text, found "), "{error}");
    };
    check(Serializer::Json, b"[50,1,{},[],{1:2}]");
    check(Serializer::MsgPack, &unhex("95 32 01 80 90 81 01 02"));
    check(Serializer::MsgPack, &unhex("95 32 01 80 90 81 c40161 02"));
    check(Serializer::Cbor, &unhex("85 1832 01 a0 80 a1 01 02"));
    check(Serializer::Cbor, &unhex("85 1832 01 a0 80 a1 4161 02"));
}

/// `depth` lists inside one another.
fn nested(serializer: Serializer, depth: usize) -> Vec<u8> {
    match serializer {
        Serializer::Json => ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes(),
        Serializer::MsgPack => [vec![0x91; depth - 1], vec![0x90]].concat(),
        Serializer::Cbor => [vec![0x9f; depth], vec![0xff; depth]].concat(),
    }
}

#[test]
fn tags_count_as_depth() {
    // CALL with one argument behind so many tags, inside the message and the arguments.
    let call = |tags: usize| {
        let mut bytes = vec![0x85, 0x18, 48, 1, 0xa0, 0x61, b'x', 0x81];
        bytes.extend(vec![0xc1; tags]);
        bytes.push(1);
        bytes
    };
    let is_accepted = |tags| decode(Serializer::Cbor, &call(tags), &LIMITS).is_ok();
    assert!(is_accepted(62));
    assert!(!is_accepted(63));
    assert!(!is_accepted(10_000));
}

#[test]
fn depth_is_bounded() {
    for serializer in Serializer::ALL {
        for depth_max in [2, 3, 64, 512] {
            // The message's list and the arguments' list are two of them.
            let limits = Limits { depth_max };
            let fits = |depth: usize| {
                let value = nested(serializer, depth);
                decode(serializer, &message_around(serializer, &value), &limits).map(|_| ())
            };
            if depth_max > 2 {
                assert_eq!(fits(depth_max - 2), Ok(()), "{serializer} {depth_max}");
            }
            let error = fits(depth_max - 1).unwrap_err();
            assert!(error.is_limit(), "{serializer} {depth_max}");
            assert!(fits(10_000).unwrap_err().is_limit());

            let value = |depth| decode_value(serializer, &nested(serializer, depth), &limits);
            assert!(value(depth_max).is_ok());
            assert!(value(depth_max + 1).unwrap_err().is_limit());
            assert!(value(10_000).unwrap_err().is_limit());
        }
        // Beyond what a stack could bear, the limit is ours.
        let limits = Limits {
            depth_max: usize::MAX,
        };
        let bytes = message_around(serializer, &nested(serializer, 1_000_000));
        assert!(decode(serializer, &bytes, &limits).unwrap_err().is_limit());
        assert!(
            decode_value(serializer, &bytes, &limits)
                .unwrap_err()
                .is_limit()
        );
        // In an unknown option, and in one that is kept.
        for key in ["x", "_x"] {
            let mut bytes = match serializer {
                Serializer::Json => format!("[50,1,{{\"{key}\":").into_bytes(),
                Serializer::MsgPack => [
                    unhex("93 32 01 81"),
                    vec![0xa0 | key.len() as u8],
                    key.into(),
                ]
                .concat(),
                Serializer::Cbor => [
                    unhex("83 1832 01 a1"),
                    vec![0x60 | key.len() as u8],
                    key.into(),
                ]
                .concat(),
            };
            bytes.extend(nested(serializer, 10_000));
            let error = decode(serializer, &bytes, &LIMITS).unwrap_err();
            assert!(
                error.is_limit() && error.to_string().starts_with("RESULT: details."),
                "{error}"
            );
        }
    }
}

#[test]
fn values_in_heads_are_bounded() {
    for count in [65_000_u32, 66_000] {
        let nils = vec![0xc0; count as usize];
        let bytes = [
            unhex("93 01 a161 81 a161 dd"),
            count.to_be_bytes().to_vec(),
            nils,
        ]
        .concat();
        let decoded = decode(Serializer::MsgPack, &bytes, &LIMITS);
        if count < 65_536 {
            assert!(decoded.is_ok());
            continue;
        }
        let error = decoded.unwrap_err();
        assert!(error.is_limit());
        assert_eq!(
            error.to_string(),
            "HELLO: details.a at byte 65547: expected at most 65536 values, found one more"
        );
    }
}

#[test]
fn values_that_only_one_serializer_has() {
    let check = |serializer: Serializer, bytes: &str, expected: &str| {
        let error = decode_value(serializer, &unhex(bytes), &LIMITS)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            format!("at byte 0: expected value of every serializer, found {expected}")
        );
    };
    check(
        Serializer::MsgPack,
        "d4 01 00",
        "an extension type, which only MessagePack has",
    );
    check(Serializer::Cbor, "c1 00", "a tag, which only CBOR has");
    check(
        Serializer::Cbor,
        "e0",
        "a simple value, which only CBOR has",
    );
    check(
        Serializer::Json,
        "31 65 34 30 30",
        "a number beyond the range of a double",
    );
}

#[test]
fn numbers() {
    let check = |serializer: Serializer, bytes: &[u8], expected: Value| {
        assert_eq!(decode_value(serializer, bytes, &LIMITS), Ok(expected));
    };
    let json = |text: &str, expected| check(Serializer::Json, text.as_bytes(), expected);
    json("18446744073709551615", Value::Integer(u64::MAX.into()));
    json("-9223372036854775808", Value::Integer(i64::MIN.into()));
    json(
        "18446744073709551616",
        Value::Float(18_446_744_073_709_551_616.0),
    );
    json(
        "-9223372036854775809",
        Value::Integer(-9_223_372_036_854_775_809),
    );
    json("-0", Value::Integer(0));
    json("1.0", Value::Float(1.0));
    json("1e2", Value::Float(100.0));
    let cbor = |text: &str, expected| check(Serializer::Cbor, &unhex(text), expected);
    // RFC 8949, appendix A.
    cbor("f93c00", Value::Float(1.0));
    cbor("f93e00", Value::Float(1.5));
    cbor("f97bff", Value::Float(65_504.0));
    cbor("f90001", Value::Float(5.960_464_477_539_063e-8));
    cbor("f90400", Value::Float(0.000_061_035_156_25));
    cbor("f9c400", Value::Float(-4.0));
    cbor("f97c00", Value::Float(f64::INFINITY));
    cbor("f9fc00", Value::Float(f64::NEG_INFINITY));
    cbor("fa47c35000", Value::Float(100_000.0));
    cbor(
        "3bffffffffffffffff",
        Value::Integer(-18_446_744_073_709_551_616),
    );
    assert!(matches!(
        decode_value(Serializer::Cbor, &unhex("f97e00"), &LIMITS),
        Ok(Value::Float(number)) if number.is_nan()
    ));
}
