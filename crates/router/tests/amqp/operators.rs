//! Listings for operators, and their commands.

use std::io::{Read, Write};
use std::net::TcpStream;

use crosstie_amqp::method::{BasicConsume, ConnectionCloseOk, ExchangeDeclare, QueueBind};
use crosstie_config::{Admin, Allowed, Page};
use crosstie_router::amqp::{BindingStatus, DeleteIf, OperatorError};
use crosstie_router::{RouterOptions, start_admin};

use crate::rig::{Client, Rig, Setting, transport};

#[test]
fn the_metrics_include_amqp() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let admin = Admin {
        endpoint: transport(&Setting::default()).endpoint,
        pages: vec![Page::Metrics],
        allowed_hosts: Allowed::Loopback,
    };
    let options = RouterOptions {
        directory: directory.path().to_owned(),
        busy_poll: std::time::Duration::ZERO,
        ..RouterOptions::default()
    };
    let started = start_admin(&admin, &[&rig.router], &options);
    let (_admin, urls) = started.expect("a free port");
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    client.confirms();
    client.publish("q", b"one", 1);
    client.expect("1 basic.ack");
    let place = urls[0].strip_prefix("http://").expect("plain HTTP");
    let mut page = TcpStream::connect(place.trim_end_matches('/')).expect("listens");
    page.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("is open");
    let mut text = String::new();
    page.read_to_string(&mut text).expect("is answered");
    let of_vhost = r#"{worker="worker1",vhost="/"}"#;
    for line in [
        format!("crosstie_amqp_connections{of_vhost} 1"),
        format!("crosstie_amqp_channels{of_vhost} 1"),
        format!("crosstie_amqp_messages_published_total{of_vhost} 1"),
        format!("crosstie_amqp_messages_confirmed_total{of_vhost} 1"),
        r#"crosstie_amqp_queue_ready{worker="worker1",vhost="/",queue="q"} 1"#.to_owned(),
        r#"crosstie_amqp_store_failing{worker="worker1"} 0"#.to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

/// A client with two channels, two queues, two messages in the first, an exchange and a binding.
fn busy_client(rig: &Rig) -> Client {
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    client.declare("r", true);
    client.send(
        1,
        &ExchangeDeclare {
            exchange: "e",
            kind: "topic",
            ..ExchangeDeclare::default()
        },
    );
    client.expect("1 exchange.declare-ok");
    client.send(1, &QueueBind::of("q").to("e", "a.#"));
    client.expect("1 queue.bind-ok");
    client.publish("q", b"one", 1);
    client.publish("q", b"two", 1);
    client.open_channel(2);
    client
}

#[test]
fn operators_list_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let _client = busy_client(&rig);
    let queues = operators.queues("/").expect("is there");
    let seen: Vec<_> = queues
        .iter()
        .map(|q| (q.name.as_str(), q.durable, q.messages_ready))
        .collect();
    assert_eq!(seen, [("q", false, 2), ("r", true, 0)]);
    let exchanges = operators.exchanges("/").expect("is there");
    let of_ours = exchanges.iter().find(|exchange| exchange.name == "e");
    assert_eq!(of_ours.map(|e| e.kind.as_str()), Some("topic"));
    let bindings = operators.bindings("/").expect("is there");
    let [
        BindingStatus {
            source,
            destination,
            routing_key,
            ..
        },
    ] = &bindings[..]
    else {
        panic!("one binding, got {bindings:?}");
    };
    assert_eq!([source, destination, routing_key], ["e", "q", "a.#"]);
    let connections = operators.connections();
    assert_eq!(connections.len(), 1);
    let connection = &connections[0];
    assert_eq!(connection.user, "guest");
    assert_eq!(connection.name, "a test");
    assert_eq!(connection.client, "frames");
    assert_eq!((connection.channels, connection.state), (2, "running"));
}

#[test]
fn operators_purge_and_delete_queues() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let mut client = busy_client(&rig);
    assert_eq!(operators.purge_queue("/", "q"), Ok(2));
    let no_queue = OperatorError::NoSuchQueue {
        vhost: "/".to_owned(),
        queue: "x".to_owned(),
    };
    assert_eq!(operators.purge_queue("/", "x"), Err(no_queue.clone()));
    assert_eq!(
        operators.delete_queue("/", "x", DeleteIf::default()),
        Err(no_queue)
    );
    assert!(operators.queues("nope").is_err());

    // A consumer is informed that its queue is gone.
    client.send(
        1,
        &BasicConsume {
            queue: "q",
            consumer_tag: "c",
            ..BasicConsume::default()
        },
    );
    client.expect("1 basic.consume-ok");
    assert_eq!(operators.delete_queue("/", "q", DeleteIf::default()), Ok(0));
    client.expect("1 basic.cancel");
}

#[test]
fn operators_close_connections() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let mut client = busy_client(&rig);
    let number = operators.connections()[0].number;
    operators
        .close_connection(number, "maintenance")
        .expect("is there");
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason \
         'maintenance'",
    );
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
    let gone = operators.close_connection(number + 1, "again");
    assert!(gone.is_err());
}
