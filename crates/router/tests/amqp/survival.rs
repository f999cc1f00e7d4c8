//! Durable messages survive a restart, and definitions are applied.

use std::fs;

use crosstie_amqp::Method;
use crosstie_amqp::method::BasicGet;

use crate::rig::{Client, Rig, Setting};

/// The body of the next message of a queue, if any.
fn get(client: &mut Client, queue: &str) -> Option<Vec<u8>> {
    client.send(
        1,
        &BasicGet {
            queue,
            no_ack: true,
        },
    );
    let answer = client.receive().expect("an answer");
    match answer.method() {
        Method::BasicGetEmpty(_) => None,
        Method::BasicGetOk(_) => {
            client.receive().expect("a header");
            Some(client.receive().expect("a body").payload)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn confirmed_messages_survive() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.store = "kept".to_owned();
    let store = directory.path().join("kept");
    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("transient", false);
    client.publish("transient", b"gone", 2);
    client.confirms();
    assert!(!store.exists(), "nothing was to be kept yet");
    client.declare("durable", true);
    for body in [b"a", b"b", b"c"] {
        client.publish("durable", body, 2);
        client.expect("1 basic.ack");
    }
    client.publish("durable", b"transient", 1);
    client.expect("1 basic.ack");
    assert!(store.exists());
    assert_eq!(get(&mut client, "durable").as_deref(), Some(&b"a"[..]));
    drop(client);
    rig.router.stop();

    let rig = Rig::start_with(directory.path(), &setting);
    let mut client = rig.client();
    client.open_channel(1);
    let operators = rig.router.amqp().expect("is on");
    let queues = operators.queues("/").expect("is there");
    let names: Vec<_> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["durable"]);
    for body in [Some(b"b"), Some(b"c"), None] {
        let expected = body.map(|body: &[u8; 1]| body.to_vec());
        assert_eq!(get(&mut client, "durable"), expected);
    }
}

#[test]
fn definitions_are_applied_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let definitions = r#"{
        "rabbit_version": "3.10.8",
        "users": [{"name": "u", "password_hash": "", "hashing_algorithm":
            "rabbit_password_hashing_sha256", "tags": ""}],
        "vhosts": [{"name": "v"}],
        "permissions": [{"user": "u", "vhost": "v", "configure": ".*", "write": ".*",
            "read": ".*"}],
        "exchanges": [{"name": "e", "vhost": "v", "type": "fanout", "durable": true,
            "auto_delete": false, "internal": false, "arguments": {}}],
        "queues": [{"name": "q", "vhost": "v", "durable": true, "auto_delete": false,
            "arguments": {"x-max-length": 10}}],
        "bindings": [{"source": "e", "vhost": "v", "destination": "q",
            "destination_type": "queue", "routing_key": "", "arguments": {}}]
    }"#;
    fs::write(directory.path().join("definitions.json"), definitions).expect("is written");
    let mut setting = Setting::default();
    setting.amqp.definitions = Some("definitions.json".to_owned());
    // Twice: the second start finds everything present.
    for _ in 0..2 {
        let rig = Rig::start_with(directory.path(), &setting);
        let operators = rig.router.amqp().expect("is on");
        let queues = operators.queues("v").expect("is there");
        assert_eq!(queues.len(), 1);
        assert_eq!(queues[0].arguments["x-max-length"], 10);
        let bindings = operators.bindings("v").expect("is there");
        assert_eq!(bindings.len(), 1, "{bindings:?}");
        rig.router.stop();
    }
}
