//! A short run of every fuzz target on damaged examples, the same ones each time.
//!
//! `CROSSTIE_FUZZ_SEED` and `CROSSTIE_FUZZ_RUNS` take other inputs, and more of them.

use std::panic;

use crosstie_fuzz::mutation::{Random, mutated};
use crosstie_fuzz::{
    amqp, codec, fabric, framing, joints, ledger, mqtt, oauth2, proxy, scenario, store, streams,
    topics, web, x509,
};
use crosstie_mqtt::Version;
use crosstie_wamp::Serializer;

const RUNS: u64 = 100_000;

/// Runs `target` on inputs made from `seeds`; a failure is told with its input.
fn check(name: &str, seeds: &[Vec<u8>], target: fn(&[u8])) {
    assert!(!seeds.is_empty());
    let setting = |name, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let mut random = Random(setting("CROSSTIE_FUZZ_SEED", 1));
    for run in 0..setting("CROSSTIE_FUZZ_RUNS", RUNS) {
        let input = mutated(seeds, &mut random);
        if let Err(failure) = panic::catch_unwind(|| target(&input)) {
            eprintln!("{name}, input {run}: {}", input.escape_ascii());
            panic::resume_unwind(failure);
        }
    }
}

#[test]
fn decode_json() {
    check(
        "decode_json",
        &codec::seeds(Serializer::Json),
        codec::decode_json,
    );
}

#[test]
fn decode_msgpack() {
    check(
        "decode_msgpack",
        &codec::seeds(Serializer::MsgPack),
        codec::decode_msgpack,
    );
}

#[test]
fn decode_cbor() {
    check(
        "decode_cbor",
        &codec::seeds(Serializer::Cbor),
        codec::decode_cbor,
    );
}

#[test]
fn transcode() {
    check("transcode", &codec::transcode_seeds(), codec::transcode);
}

/// The first four bytes of a framing target's input choose limits and cuts.
fn framed(parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let with = |choice: [u8; 4]| move |part: &&[u8]| [&choice, *part].concat();
    let small = parts.iter().map(with([3, 1, 4, 0]));
    let large = parts.iter().map(with([0xff, 7, 1, 0]));
    small.chain(large).collect()
}

#[test]
fn framing_rawsocket() {
    let seeds = framed(&[
        b"\x7f\xf1\0\0",
        b"\0\0\0\x05hello\x01\0\0\x02hi\x02\0\0\0",
        b"\x08\0\0\0",
    ]);
    check("framing_rawsocket", &seeds, framing::rawsocket);
}

#[test]
fn framing_websocket_server() {
    let seeds = framed(&[
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
        b"\x01\x83\0\0\0\0Hel\x89\x81\0\0\0\0x\x80\x82\0\0\0\0lo",
        b"\xc1\x87\0\0\0\0\xf2\x48\xcd\xc9\xc9\x07\0",
        b"\x82\xfe\x01\0\0\0\0\0",
        b"\x88\x84\0\0\0\0\x03\xe8ok",
    ]);
    check(
        "framing_websocket_server",
        &seeds,
        framing::websocket_server,
    );
}

#[test]
fn framing_websocket_client() {
    let seeds = framed(&[
        b"\x81\x05Hello",
        b"\x01\x03Hel\x8a\x01x\x80\x02lo",
        b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\0",
        b"\x82\x7e\x01\0\x82\x7f\0\0\0\0\0\x01\0\0",
        b"\x88\x04\x03\xe8ok",
    ]);
    check(
        "framing_websocket_client",
        &seeds,
        framing::websocket_client,
    );
}

#[test]
fn framing_http_head() {
    let seeds = [
        b"GET /ws?a=b HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
          Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: wamp.2.json, wamp.2.cbor\r\n\
          Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=9\r\n\r\n"
            .to_vec(),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
          Sec-WebSocket-Protocol: wamp.2.json\r\n\
          Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n\r\n"
            .to_vec(),
        b"permessage-deflate; server_max_window_bits=10; client_no_context_takeover".to_vec(),
    ];
    check("framing_http_head", &seeds, framing::http_head);
}

#[test]
fn framing_batch() {
    let seeds = [
        b"[1]\x18[2]\x18".to_vec(),
        b"\0\0\0\x01\x90\0\0\0\x02\x91\x01".to_vec(),
        vec![],
    ];
    check("framing_batch", &seeds, framing::batch);
}

#[test]
fn decode_amqp_frame() {
    let frames = amqp::frame_seeds();
    let with_limit = |frame: &Vec<u8>| [&[1, 0], frame.as_slice(), frame].concat();
    let seeds: Vec<_> = frames.iter().map(with_limit).collect();
    check("decode_amqp_frame", &seeds, amqp::frames);
}

#[test]
fn decode_amqp_method() {
    check("decode_amqp_method", &amqp::payload_seeds(1), amqp::method);
}

#[test]
fn amqp_properties() {
    check("amqp_properties", &amqp::payload_seeds(2), amqp::properties);
}

#[test]
fn amqp_table() {
    check("amqp_table", &amqp::table_seeds(), amqp::table);
}

#[test]
fn decode_mqtt_v31() {
    let seeds = mqtt::packet_seeds(Version::V31);
    check("decode_mqtt_v31", &seeds, mqtt::packets_v31);
}

#[test]
fn decode_mqtt_v311() {
    let seeds = mqtt::packet_seeds(Version::V311);
    check("decode_mqtt_v311", &seeds, mqtt::packets_v311);
}

#[test]
fn decode_mqtt_v5() {
    let seeds = mqtt::packet_seeds(Version::V5);
    check("decode_mqtt_v5", &seeds, mqtt::packets_v5);
}

#[test]
fn mqtt_properties() {
    check("mqtt_properties", &mqtt::property_seeds(), mqtt::properties);
}

#[test]
fn mqtt_topics() {
    check("mqtt_topics", &mqtt::topic_seeds(), mqtt::topics);
}

#[test]
fn joint_bodies() {
    check("joint_bodies", &joints::body_seeds(), joints::bodies);
}

#[test]
fn joint_calls() {
    check("joint_calls", &joints::call_seeds(), joints::calls);
}

#[test]
fn web_path() {
    check("web_path", &web::path_seeds(), web::path);
}

#[test]
fn web_part() {
    check("web_part", &web::part_seeds(), web::part);
}

#[test]
fn web_condition() {
    check("web_condition", &web::condition_seeds(), web::condition);
}

#[test]
fn web_passed_on() {
    check("web_passed_on", &web::passed_on_seeds(), web::passed_on);
}

#[test]
fn web_script_answer() {
    check(
        "web_script_answer",
        &web::script_answer_seeds(),
        web::script_answer,
    );
}

#[test]
fn web_longpoll() {
    check("web_longpoll", &web::longpoll_seeds(), web::longpoll);
}

#[test]
fn web_bridge_body() {
    check(
        "web_bridge_body",
        &web::bridge_body_seeds(),
        web::bridge_body,
    );
}

#[test]
fn web_bridge_request() {
    check(
        "web_bridge_request",
        &web::bridge_request_seeds(),
        web::bridge_request,
    );
}

#[test]
fn scenarios() {
    let files = [include_str!(
        "../../instruments/conformance/scenarios/publisher_exclusion.txt"
    )];
    let heads = "feature F\nsection basic/x\nneeds x_y\n== one\nA: connect\n";
    let mut seeds: Vec<_> = files.map(|file| file.as_bytes().to_vec()).into();
    // Short ones, in which a changed byte is more likely to matter.
    for line in [
        "any order\nA< EVENT 1 *id {a=[..., #b, ...], !c} [0x00ff] {d=\"e\"}\nA< RESULT 1 {}\nend\n",
        "either\nA< ABORT *dict x.y *\nor crossbar: why\nA< closed\nend\n",
        "A> octets 0xc1ff\nA> [99, -, -1.5e3]\nA<? WELCOME #A {}\nA: nothing 3\nA: drop\n",
    ] {
        seeds.push([heads, line].concat().into_bytes());
    }
    check("scenario", &seeds, scenario::scenario);
}

#[test]
fn nats_operation() {
    let seeds: Vec<Vec<u8>> = [
        &b"INFO {\"server_id\":\"a\"}\r\nPING\r\n"[..],
        b"MSG W1.realm1.e.a 3 5\r\nhello\r\nPONG\r\n",
        b"HMSG a.b 3 r.s 12 14\r\nNATS/1.0\r\n\r\nhi\r\n+OK\r\n-ERR 'Slow'\r\n",
        b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
    ]
    .map(<[u8]>::to_vec)
    .into();
    check("nats_operation", &seeds, fabric::nats);
}

#[test]
fn fabric_frame() {
    check("fabric_frame", &fabric::frame_seeds(), fabric::frame);
}

#[test]
fn ledger_batch() {
    check("ledger_batch", &ledger::batch_seeds(), ledger::batch);
}

#[test]
fn topics_records() {
    check("topics_records", &topics::record_seeds(), topics::records);
}

#[test]
fn stream_page() {
    check("stream_page", &streams::page_seeds(), streams::page);
}

#[test]
fn jetstream_answer() {
    check("jetstream_answer", &fabric::answer_seeds(), fabric::answer);
}

#[test]
fn proxy_header() {
    check("proxy_header", &proxy::seeds(), proxy::header);
}

#[test]
fn oauth2_claims() {
    check("oauth2_claims", &oauth2::claims_seeds(), oauth2::claims);
}

#[test]
fn oauth2_scope() {
    check("oauth2_scope", &oauth2::scope_seeds(), oauth2::scope);
}

#[test]
fn x509_certificate() {
    check(
        "x509_certificate",
        &x509::certificate_seeds(),
        x509::certificate,
    );
}

#[test]
fn x509_revocations() {
    check(
        "x509_revocations",
        &x509::revocations_seeds(),
        x509::revocations,
    );
}

#[test]
fn store_record() {
    check("store_record", &store::seeds(0), store::record);
}

#[test]
fn store_heads() {
    check("store_heads", &store::seeds(1), store::heads);
}

#[test]
fn store_manifest() {
    check("store_manifest", &store::seeds(2), store::manifest);
}

#[test]
fn store_index() {
    check("store_index", &store::seeds(3), store::index);
}

#[test]
fn store_payload() {
    check("store_payload", &store::seeds(4), store::payload);
}

#[test]
fn store_segment() {
    check("store_segment", &store::seeds(5), store::segment);
}

#[test]
fn store_whole() {
    check("store_whole", &store::seeds(6), store::store);
}

#[test]
fn store_backup() {
    check("store_backup", &store::seeds(7), store::backup);
}
