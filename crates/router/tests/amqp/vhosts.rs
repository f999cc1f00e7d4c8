//! Vhosts that operators create and delete while the router serves others.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crosstie_amqp::method::{ConnectionCloseOk, QueueDeclare, QueueDelete};
use crosstie_amqp::{PROTOCOL_HEADER, TableBuf, Value};
use crosstie_config::{Amqp, AmqpPermission, AmqpVhost};
use crosstie_router::amqp::{OperatorError, Operators};

use crate::rig::{Client, Rig, Setting};

const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<bool, OperatorError>;

fn add(operators: &Operators, vhost: &str) -> Outcome {
    let (done, outcome) = mpsc::channel();
    operators.add_vhost(vhost, move |outcome| drop(done.send(outcome)));
    outcome.recv_timeout(PATIENCE).expect("is called")
}

fn delete(operators: &Operators, vhost: &str) -> Outcome {
    let (done, outcome) = mpsc::channel();
    operators.delete_vhost(vhost, move |outcome| drop(done.send(outcome)));
    outcome.recv_timeout(PATIENCE).expect("is called")
}

fn names(operators: &Operators) -> Vec<String> {
    let vhosts = operators.vhosts().into_iter();
    vhosts.map(|vhost| vhost.name).collect()
}

fn setting() -> Setting {
    let mut setting = Setting::default();
    setting.amqp.store = "kept".to_owned();
    setting
}

/// A router on a store, whose user may enter the vhost `v`.
fn start(directory: &Path) -> Rig {
    let setting = setting();
    let rig = Rig::start_with(directory, &setting);
    let mut amqp: Amqp = setting.amqp;
    let all = || ".*".to_owned();
    amqp.vhosts.push(AmqpVhost {
        name: "v".to_owned(),
        permissions: vec![AmqpPermission {
            user: "guest".to_owned(),
            configure: all(),
            write: all(),
            read: all(),
        }],
        replicated: None,
        is_default: false,
    });
    let users = rig.router.ready_users(&amqp).expect("are right");
    rig.router.put_users(users.expect("AMQP is on"));
    rig
}

fn connect(rig: &Rig, vhost: &str) -> Client {
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("PLAIN", b"\0guest\0guest");
    client.expect("0 connection.tune");
    client.tune_ok(2047, 131_072, 0);
    client.open(vhost);
    client
}

fn enter(rig: &Rig, vhost: &str) -> Client {
    let mut client = connect(rig, vhost);
    client.expect("0 connection.open-ok");
    client.open_channel(1);
    client
}

fn declare_stream(client: &mut Client, name: &str) {
    let arguments = TableBuf::new().with("x-queue-type", Value::LongString(b"stream"));
    client.send(
        1,
        &QueueDeclare {
            queue: name,
            durable: true,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        },
    );
    client.expect("1 queue.declare-ok");
}

/// Leaves a confirmed message in a durable queue and one in a stream.
fn fill(client: &mut Client) {
    client.declare("q", true);
    declare_stream(client, "s");
    client.confirms();
    for queue in ["q", "s"] {
        client.publish(queue, b"kept", 2);
        client.expect("1 basic.ack");
    }
}

/// Everything in a directory.
fn files(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let found = paths.flat_map(|path| {
        let mut found = files(&path);
        found.push(path.display().to_string());
        found
    });
    found.collect()
}

#[test]
fn a_vhost_comes_and_goes_with_all_that_it_has() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(add(&operators, "v"), Ok(true));
    assert_eq!(add(&operators, "v"), Ok(false), "it is there");
    fill(&mut enter(&rig, "v"));
    rig.router.stop();

    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(names(&operators), ["/", "v"]);
    let mut other = rig.client();
    other.open_channel(1);
    other.declare("other", true);
    let mut client = enter(&rig, "v");
    let queues = operators.queues("v").expect("is there");
    let messages: Vec<_> = queues.iter().map(|queue| queue.messages_ready).collect();
    assert_eq!(messages, [1, 1]);
    assert_eq!(delete(&operators, "v"), Ok(true));
    client.expect("0 connection.close 320 CONNECTION_FORCED - vhost 'v' is down");
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
    assert_eq!(names(&operators), ["/"]);
    let mut client = connect(&rig, "v");
    client.expect("0 connection.close 530 NOT_ALLOWED - vhost v not found");
    other.declare("other", true);

    // Another one of its name has nothing of it.
    assert_eq!(add(&operators, "v"), Ok(true));
    let mut client = enter(&rig, "v");
    assert_eq!(operators.queues("v").expect("is there"), []);
    declare_stream(&mut client, "s");
    client.send(
        1,
        &QueueDelete {
            queue: "s",
            ..QueueDelete::default()
        },
    );
    client.expect("1 queue.delete-ok");
    drop(client);
    rig.router.stop();
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(operators.queues("v").expect("is there"), []);
    assert_eq!(delete(&operators, "v"), Ok(true));
    rig.router.stop();

    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(names(&operators), ["/"]);
    assert_eq!(operators.queues("/").expect("is there").len(), 1);
    // A thread of their own removes them.
    let streams = directory.path().join("kept.streams");
    let until = Instant::now() + Duration::from_secs(30);
    while !files(&streams).is_empty() {
        assert!(Instant::now() < until, "left: {:?}", files(&streams));
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_vhost_that_cannot_be_created_or_deleted_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let refused = |outcome: Outcome| match outcome {
        Err(OperatorError::Refused { why }) => why,
        other => panic!("{other:?}"),
    };
    let why = refused(add(&operators, ""));
    assert_eq!(why, "a vhost's name has 1 to 255 bytes, and not 0");
    assert_eq!(add(&operators, &"x".repeat(255)), Ok(true));
    let why = refused(add(&operators, &"x".repeat(256)));
    assert!(why.ends_with("and not 256"), "{why}");
    let why = refused(delete(&operators, "/"));
    assert!(
        why.starts_with("vhost '/' is in the configuration"),
        "{why}"
    );
    let vhost = "w".to_owned();
    assert_eq!(
        delete(&operators, "w"),
        Err(OperatorError::NoSuchVhost { vhost })
    );
}

#[test]
fn contents_of_a_vhost_that_nothing_opens_are_deleted_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut former = setting();
    former.amqp.vhosts.push(AmqpVhost {
        name: "v".to_owned(),
        ..former.amqp.vhosts[0].clone()
    });
    let rig = Rig::start_with(directory.path(), &former);
    fill(&mut enter(&rig, "v"));
    rig.router.stop();
    for is_left in [true, false] {
        let rig = start(directory.path());
        let operators = rig.router.amqp().expect("is on");
        assert_eq!(names(&operators), ["/"]);
        match is_left {
            true => {
                let Err(OperatorError::Refused { why }) = add(&operators, "v") else {
                    panic!("its contents would be lost");
                };
                assert!(why.contains("from before the start"), "{why}");
                assert_eq!(delete(&operators, "v"), Ok(true));
            }
            false => assert_eq!(add(&operators, "v"), Ok(true)),
        }
        rig.router.stop();
    }
}

#[test]
fn a_vhost_has_no_messages_of_a_former_one_of_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut former = setting();
    former.amqp.vhosts.push(AmqpVhost {
        name: "v".to_owned(),
        ..former.amqp.vhosts[0].clone()
    });
    let rig = Rig::start_with(directory.path(), &former);
    fill(&mut enter(&rig, "v"));
    rig.router.stop();
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(delete(&operators, "v"), Ok(true));
    assert_eq!(add(&operators, "v"), Ok(true));
    let mut client = enter(&rig, "v");
    client.declare("q", true);
    declare_stream(&mut client, "s");
    drop(client);
    rig.router.stop();
    // Files that a deletion left as the node was killed.
    let streams = directory.path().join("kept.streams");
    fs::create_dir_all(streams.join("vhost-w/1-0000000000000001")).expect("is made");
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let queues = operators.queues("v").expect("is there");
    let messages: Vec<_> = queues.iter().map(|queue| queue.messages_ready).collect();
    assert_eq!(messages, [0, 0]);
    assert_eq!(add(&operators, "w"), Ok(true));
    assert!(!streams.join("vhost-w").exists());
    assert!(streams.join("vhost-w.1.orphan").exists());
}

#[test]
fn a_vhost_whose_streams_cannot_be_written_is_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(add(&operators, "v"), Ok(true));
    let streams = directory.path().join("kept.streams");
    fs::create_dir_all(&streams).expect("is made");
    fs::write(streams.join("vhost-v"), "in the way").expect("is written");
    let mut client = enter(&rig, "v");
    declare_stream(&mut client, "s");
    // Nobody can be told that it is refused.
    client.publish("s", b"lost", 2);
    client.declare("q", true);
    assert_eq!(delete(&operators, "v"), Ok(true));
    assert_eq!(names(&operators), ["/"]);
    assert_eq!(add(&operators, "v"), Ok(true));
    let mut client = enter(&rig, "v");
    declare_stream(&mut client, "s");
    client.confirms();
    client.publish("s", b"kept", 2);
    client.expect("1 basic.ack");
}

#[test]
fn a_stopped_router_refuses_to_change_its_vhosts() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    rig.router.stop();
    let why = "vhost 'v': the router is being stopped".to_owned();
    assert_eq!(add(&operators, "v"), Err(OperatorError::NotStored { why }));
}
