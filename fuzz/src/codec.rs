//! The codecs: messages and values in three serializers.

use crosstie_wamp::codec::{
    DecodeError, Limits, check_readable, decode, decode_to_pass_on, decode_value, encode,
    encode_with, replace_lone_surrogates, transcode as transcode_value,
};
use crosstie_wamp::{Message, Payload, Serializer, Value};

const LIMITS: Limits = Limits { depth_max: 64 };

pub fn decode_json(data: &[u8]) {
    message(Serializer::Json, data);
    surrogates(data);
}

/// Where a lone surrogate is the fault, replacing finds it, changes as many bytes as there were and
/// none of a readable text, and what is read then has no such fault any more.
fn surrogates(data: &[u8]) {
    let fault = decode(Serializer::Json, data, &LIMITS).err();
    let is_lone = fault.as_ref().is_some_and(DecodeError::is_lone_surrogate);
    let Some((replaced, count)) = replace_lone_surrogates(data) else {
        return assert!(!is_lone, "a lone surrogate was not found");
    };
    assert!(fault.is_some(), "a readable text was changed");
    assert_eq!(replaced.len(), data.len());
    let changed = data.iter().zip(&replaced).filter(|(old, new)| old != new);
    assert!((1..=count * 4).contains(&changed.count()));
    assert_eq!(replace_lone_surrogates(&replaced), None);
    match decode(Serializer::Json, &replaced, &LIMITS) {
        Ok(_) => message(Serializer::Json, &replaced),
        Err(error) => assert!(!error.is_lone_surrogate()),
    }
}

pub fn decode_msgpack(data: &[u8]) {
    message(Serializer::MsgPack, data);
}

pub fn decode_cbor(data: &[u8]) {
    message(Serializer::Cbor, data);
}

/// Any bytes are a message or an error. A message's payload lies within the bytes; written
/// again, the message is read as the same one; written in another serializer, it can be read.
fn message(serializer: Serializer, data: &[u8]) {
    let message = match decode(serializer, data, &LIMITS) {
        Ok(message) => message,
        Err(error) => return well_told(&error, data),
    };
    readable(serializer, data, &message);
    if let Some(payload) = message.payload() {
        for part in [payload.args, payload.kwargs] {
            assert!(part.is_empty() || data.as_ptr_range().contains(&part.as_ptr()));
        }
        assert_eq!(payload.serializer, serializer);
    }

    let written = write(&message, serializer).expect("what was read can be written");
    let again = decode(serializer, &written, &LIMITS).expect("what was written can be read");
    // Compared as bytes: a NaN in a head is not equal to itself.
    assert_eq!(
        write(&again, serializer).as_ref(),
        Some(&written),
        "nothing was lost"
    );
    if let Some(payload) = message.payload() {
        let mut with = Vec::new();
        encode_with(&message, payload, &mut with);
        assert_eq!(with, written);
    }

    for into in Serializer::ALL {
        if let Some(transcoded) = write(&message, into) {
            let other = decode(into, &transcoded, &LIMITS).expect("what was written can be read");
            assert_eq!(other.kind(), message.kind());
        }
    }
}

/// Receivers can read every value that is not doubtful. The text about an unreadable one is a single line. Converted to
/// CBOR, which holds most, values are readable.
fn readable(serializer: Serializer, data: &[u8], message: &Message<'_>) {
    let mut is_doubtful = false;
    let again = decode_to_pass_on(serializer, data, &LIMITS, &mut is_doubtful);
    assert_eq!(again.map(|again| again.kind()), Ok(message.kind()));
    let Some(payload) = message.payload() else {
        return;
    };
    match check_readable(payload) {
        Ok(()) => {}
        Err(unreadable) => {
            assert!(is_doubtful);
            assert!(!unreadable.to_string().contains(char::is_control));
        }
    }
    for part in [payload.args, payload.kwargs] {
        let mut converted = Vec::new();
        if serializer != Serializer::Cbor
            && !part.is_empty()
            && transcode_value(serializer, part, Serializer::Cbor, &mut converted).is_ok()
        {
            let converted = Payload::new(Serializer::Cbor, &converted, &[]);
            assert_eq!(
                check_readable(&converted),
                Ok(()),
                "a converted value can be read"
            );
        }
    }
}

/// `None`: the serializer cannot hold it, and nothing was written.
fn write(message: &Message<'_>, serializer: Serializer) -> Option<Vec<u8>> {
    let mut out = b"front".to_vec();
    let encoded = encode(message, serializer, &mut out);
    let written = out.split_off(5);
    assert_eq!(out, b"front");
    assert!(encoded.is_ok() || written.is_empty());
    encoded.is_ok().then_some(written)
}

/// An error is told in one line and points into the bytes.
fn well_told(error: &DecodeError, data: &[u8]) {
    assert!(error.offset() <= data.len());
    assert!(!error.to_string().contains(char::is_control));
}

/// The first byte tells from which serializer into which. What the reader of values accepts, the
/// validator accepts; it is transcoded, or refused for a reason; and what was transcoded is valid
/// and survives the way back.
pub fn transcode(data: &[u8]) {
    let Some((way, bytes)) = data.split_first() else {
        return;
    };
    let from = Serializer::ALL[usize::from(way % 3)];
    let into = Serializer::ALL[usize::from(way / 3 % 3)];
    let transcoded = transcode_one(from, bytes, into);

    let value = match decode_value(from, bytes, &LIMITS) {
        Ok(value) => value,
        Err(error) => return well_told(&error, bytes),
    };
    if decode_value(from, bytes, &Limits { depth_max: 62 }).is_ok() {
        decode(from, &around(from, bytes), &LIMITS).expect("a value may be an argument");
    }
    let Some(transcoded) = transcoded else {
        assert!(has(&value, &unrepresentable), "{value:?} can be transcoded");
        return;
    };
    decode_value(into, &transcoded, &LIMITS).expect("what was transcoded can be read");
    if has(&value, &unrepresentable) {
        return;
    }
    let back = transcode_one(into, &transcoded, from).expect("there is a way back");
    let again = transcode_one(from, &back, into).expect("and forth");
    assert_eq!(again, transcoded);
}

fn transcode_one(from: Serializer, bytes: &[u8], into: Serializer) -> Option<Vec<u8>> {
    let mut out = b"front".to_vec();
    let done = transcode_value(from, bytes, into, &mut out);
    let transcoded = out.split_off(5);
    assert_eq!(out, b"front");
    assert!(done.is_ok() || transcoded.is_empty());
    done.is_ok().then_some(transcoded)
}

/// A RESULT whose only argument is `value`.
fn around(serializer: Serializer, value: &[u8]) -> Vec<u8> {
    let (front, back): (&[u8], &[u8]) = match serializer {
        Serializer::Json => (b"[50,1,{},[", b"]]"),
        Serializer::MsgPack => (&[0x94, 50, 1, 0x80, 0x91], b""),
        Serializer::Cbor => (&[0x84, 0x18, 50, 1, 0xa0, 0x81], b""),
    };
    [front, value, back].concat()
}

/// Whether there is a serializer that cannot hold this (without what is inside it).
fn unrepresentable(value: &Value) -> bool {
    match value {
        // Also an integer beyond 64 bits, which is read so.
        Value::Float(number) => !number.is_finite() || number.abs() >= 9e18,
        Value::String(text) => text.starts_with('\0'),
        Value::Integer(number) => i64::try_from(*number).is_err() && *number < 0,
        _ => false,
    }
}

fn has(value: &Value, condition: &impl Fn(&Value) -> bool) -> bool {
    condition(value)
        || match value {
            Value::List(values) => values.iter().any(|value| has(value, condition)),
            Value::Dict(dict) => dict.iter().any(|(_, value)| has(value, condition)),
            _ => false,
        }
}

/// Messages to begin with, written in `serializer`.
pub fn seeds(serializer: Serializer) -> Vec<Vec<u8>> {
    let seeds = SEEDS.iter().filter_map(|json| {
        let message = decode(Serializer::Json, json.as_bytes(), &LIMITS).ok()?;
        write(&message, serializer)
    });
    let mut seeds: Vec<_> = seeds.collect();
    if serializer == Serializer::Json {
        seeds.extend(SURROGATES.iter().map(|json| json.as_bytes().to_vec()));
    }
    seeds
}

/// Values to begin with, each behind the byte that tells the way of [`transcode`].
pub fn transcode_seeds() -> Vec<Vec<u8>> {
    let ways = (0..9_u8).flat_map(|way| VALUES.iter().map(move |json| (way, json)));
    let seeds = ways.filter_map(|(way, json)| {
        let from = Serializer::ALL[usize::from(way % 3)];
        Some(
            [
                vec![way],
                transcode_one(Serializer::Json, json.as_bytes(), from)?,
            ]
            .concat(),
        )
    });
    seeds.collect()
}

const SEEDS: &[&str] = &[
    r#"[1,"realm1",{"roles":{"caller":{"features":{"call_timeout":true}}},"authmethods":["ticket"]}]"#,
    r#"[2,9129137332,{"roles":{"broker":{}}}]"#,
    r#"[3,{"message":"no"},"wamp.error.no_such_realm",[1],{"a":2}]"#,
    r#"[4,"wampcra",{"challenge":"{}"}]"#,
    r#"[5,"gir1mSx+deCDUV7wRM5SGIn",{}]"#,
    r#"[6,{},"wamp.close.normal"]"#,
    r#"[8,48,814,{"ppt_scheme":"mqtt"},"com.example.error",["why"],{"b":null}]"#,
    r#"[16,1,{"acknowledge":true,"exclude_me":false,"exclude":[1],"eligible_authrole":["a"],"_x":[1.5]},"a.b",[1],{"k":"\u00e4\ud83d\ude00"}]"#,
    r#"[16,1,{"enc_algo":"cryptobox","enc_key":"k","enc_serializer":"json"},"a.b","\u0000AAEC"]"#,
    r#"[8,48,814,{"enc_algo":"x_mine"},"com.example.error","text"]"#,
    r#"[68,6131533,9823526,{"enc_algo":"cryptobox"},"\u0000"]"#,
    "[17,239714735,4429313566]",
    r#"[32,713845233,{"match":"prefix"},"com.example."]"#,
    "[33,713845233,5512315355]",
    "[34,85346237,5512315355]",
    r#"[35,0,{"subscription":1}]"#,
    r#"[36,5512315355,4429313566,{"topic":"a.b","publisher":3,"publisher_authid":"joe","publisher_authrole":"user"},[-1,true]]"#,
    r#"[48,7814135,{"timeout":5000.0,"receive_progress":true,"disclose_me":true},"a.b",["\u0000EOP/"],{"k":-70000}]"#,
    r#"[49,7814135,{"mode":"killnowait"}]"#,
    r#"[50,7814135,{"progress":true},[[[{"a":{}}]]]]"#,
    r#"[64,25349185,{"match":"wildcard","invoke":"roundrobin","forward_timeout":true},"com..procedure"]"#,
    "[65,25349185,2103333224]",
    "[66,788923562,2103333224]",
    "[67,788923562]",
    r#"[68,6131533,9823526,{"procedure":"a.b","caller":3335656,"caller_authid":"joe","caller_authrole":"user","timeout":30000},["Hello, world!"]]"#,
    r#"[69,6131533,{"mode":"kill","reason":"wamp.error.canceled"}]"#,
    r#"[16,1,{},"a.b",["\u0000abc",{"\u0000":1}],{"k":100000000000000000000}]"#,
    r#"[70,6131533,{},["a longer text, so that its length takes more than one byte"]]"#,
];

/// Messages with lone surrogates, which are no messages yet.
const SURROGATES: &[&str] = &[
    r#"[16,1,{},"a.b",["\ud83d\ude00 \ud83d"],{"\udfff":"\\\ud800\ud800\udc00"}]"#,
    r#"[48,1,{"_x":"\udbff"},"a.\udc00",[[{"k":"\ud83d\n"}]]]"#,
];

const VALUES: &[&str] = &[
    "null",
    "[true,false,null]",
    "[0,23,24,127,128,255,256,65535,65536,4294967296,18446744073709551615]",
    "[-1,-24,-25,-32,-33,-128,-129,-32769,-2147483649,-9223372036854775808]",
    "[0.5,-1e300,1e400,5e-324,3.0]",
    "[18446744073709551616,-18446744073709551617,1000000000000000000000000000000,-0]",
    r#"["","a","\u0000EOP/","\ud83d\ude00","\"\\\n\u0001",{"\u0000":{}}]"#,
    "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]",
    r#"{"a":[{"b":{"c":[[[]]]}}],"d":{}}"#,
];
