//! Users, permissions and limits that operators change at run time: what clients see at once, and after a restart.

use std::sync::mpsc;

use crosstie_amqp::PROTOCOL_HEADER;
use crosstie_amqp::method::{
    BasicPublish, ConnectionClose, ConnectionCloseOk, QueueBind, QueueDeclare,
};
use crosstie_config::{AmqpUser, AmqpVhost, Json};
use crosstie_router::amqp::{Change, Entry, Origin, Outcome, PolicyKind, Refusal, RefusalKind};

use crate::rig::{Client, Rig, Setting};

fn user(name: &str) -> Entry {
    Entry::User(name.into())
}

fn permission(user: &str) -> Entry {
    Entry::Permission {
        vhost: "/".into(),
        user: user.into(),
    }
}

fn put(rig: &Rig, entry: Entry, body: &str) -> Result<Outcome, Refusal> {
    let body: Json = serde_json::from_str(body).expect("JSON");
    let change = Change::put(entry, &body, None)?;
    rig.router.amqp().expect("is on").change(change)
}

fn delete(rig: &Rig, entry: Entry) -> Result<Outcome, Refusal> {
    let operators = rig.router.amqp().expect("is on");
    operators.change(Change::Delete(entry))
}

/// Makes a user with all permissions in `/`.
fn make(rig: &Rig, name: &str, password: &str) {
    let body = format!(r#"{{"tags": "", "password": "{password}"}}"#);
    assert_eq!(put(rig, user(name), &body), Ok(Outcome::Created));
    let all = r#"{"configure": ".*", "write": ".*", "read": ".*"}"#;
    assert_eq!(put(rig, permission(name), all), Ok(Outcome::Created));
}

/// A client that has logged in, before `connection.open`.
fn logged_in(rig: &Rig, name: &str, password: &str) -> Client {
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("PLAIN", format!("\0{name}\0{password}").as_bytes());
    client.expect("0 connection.tune");
    client.tune_ok(100, 131_072, 0);
    client
}

fn entered(rig: &Rig, name: &str, password: &str) -> Client {
    let mut client = logged_in(rig, name, password);
    client.open("/");
    client.expect("0 connection.open-ok");
    client
}

fn expect_refused(rig: &Rig, name: &str, password: &str) {
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("PLAIN", format!("\0{name}\0{password}").as_bytes());
    let refused = client.receive().expect("an answer").said();
    assert!(
        refused.starts_with("0 connection.close 403 ACCESS_REFUSED"),
        "{refused}"
    );
}

fn declare(client: &mut Client, queue: &str, expected: &str) {
    let declare = QueueDeclare::named(queue);
    client.send(1, &declare);
    client.expect(expected);
}

#[test]
fn a_new_user_logs_in_at_once_and_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    expect_refused(&rig, "al", "pw");
    make(&rig, "al", "pw");
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.declare("q", false);
    let body = r#"{"tags": "", "password": "other"}"#;
    assert_eq!(put(&rig, user("al"), body), Ok(Outcome::Replaced));
    // The connection goes on.
    client.declare("q", false);
    expect_refused(&rig, "al", "pw");
    entered(&rig, "al", "other");
    rig.router.stop();

    let rig = Rig::start(directory.path());
    expect_refused(&rig, "al", "pw");
    entered(&rig, "al", "other").open_channel(1);
    assert_eq!(delete(&rig, user("guest")), Ok(Outcome::Deleted));
    rig.router.stop();

    let rig = Rig::start(directory.path());
    expect_refused(&rig, "guest", "guest");
    assert_eq!(delete(&rig, user("al")), Ok(Outcome::Deleted));
    rig.router.stop();

    let rig = Rig::start(directory.path());
    expect_refused(&rig, "al", "other");
}

#[test]
fn the_connections_of_a_deleted_user_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let mut client = entered(&rig, "al", "pw");
    let mut other = rig.client();
    assert_eq!(delete(&rig, user("al")), Ok(Outcome::Deleted));
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason 'user 'al' is deleted'",
    );
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
    other.open_channel(1);
    // A user of the same name is another one.
    make(&rig, "al", "new");
    entered(&rig, "al", "new").open_channel(1);
}

#[test]
fn changed_permissions_count_from_the_next_method_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.declare("q", false);
    assert_eq!(delete(&rig, permission("al")), Ok(Outcome::Deleted));
    let refused = "1 channel.close 403 ACCESS_REFUSED - access to queue 'q2' in vhost '/' refused for user 'al'";
    declare(&mut client, "q2", refused);
    let mut next = logged_in(&rig, "al", "pw");
    next.open("/");
    next.expect("0 connection.close 530 NOT_ALLOWED - access to vhost '/' refused for user 'al'");
    let some = r#"{"configure": "^a", "write": "", "read": ""}"#;
    assert_eq!(put(&rig, permission("al"), some), Ok(Outcome::Created));
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.declare("a1", false);
    declare(&mut client, "q2", refused);
}

#[test]
fn topic_permissions_judge_routing_keys_of_topic_exchanges() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let topic = Entry::TopicPermission {
        vhost: "/".into(),
        user: "al".into(),
        exchange: None,
    };
    let mut before = entered(&rig, "al", "pw");
    before.open_channel(1);
    before.confirms();
    let body = r#"{"exchange": "amq.topic", "write": "^{username}\\.", "read": "^r\\.{vhost}"}"#;
    assert_eq!(put(&rig, topic.clone(), body), Ok(Outcome::Created));
    let publish = |client: &mut Client, exchange: &str, routing_key: &str, expected: &str| {
        let publish = BasicPublish::to(exchange, routing_key);
        client.publish_to(&publish, b"x");
        client.expect(expected);
    };
    publish(&mut before, "amq.topic", "al.x", "1 basic.ack");
    publish(&mut before, "amq.direct", "b.x", "1 basic.ack");
    let refused = |topic: &str| {
        format!(
            "1 channel.close 403 ACCESS_REFUSED - access to topic '{topic}' in exchange 'amq.topic' in vhost '/' \
             refused for user 'al'"
        )
    };
    publish(&mut before, "amq.topic", "b.x", &refused("b.x"));
    let bind = |routing_key: &str, expected: &str| {
        let mut client = entered(&rig, "al", "pw");
        client.open_channel(1);
        client.declare("q", false);
        let bind = QueueBind::of("q").to("amq.topic", routing_key);
        client.send(1, &bind);
        client.expect(expected);
    };
    bind("r./", "1 queue.bind-ok");
    bind("x", &refused("x"));
    // An empty pattern allows the empty routing key alone.
    let body = r#"{"exchange": "amq.topic", "write": "", "read": "^$"}"#;
    assert_eq!(put(&rig, topic.clone(), body), Ok(Outcome::Replaced));
    bind("", "1 queue.bind-ok");
    bind("x", &refused("x"));
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.confirms();
    publish(&mut client, "amq.topic", "", "1 basic.ack");
    publish(&mut client, "amq.topic", "x", &refused("x"));
    assert_eq!(delete(&rig, topic), Ok(Outcome::Deleted));
    bind("x", "1 queue.bind-ok");
}

#[test]
fn limits_refuse_in_rabbitmqs_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let of_vhost = |name: &str| Entry::VhostLimits {
        vhost: "/".into(),
        name: Some(name.to_owned()),
    };
    let of_user = |name: &str| Entry::UserLimits {
        user: "al".into(),
        name: Some(name.to_owned()),
    };
    let limit = |entry: Entry, value: i64| {
        let body = format!(r#"{{"value": {value}}}"#);
        assert_eq!(put(&rig, entry, &body), Ok(Outcome::Replaced));
    };
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.declare("q1", true);
    let expect_open = |expected: &str| {
        let mut next = logged_in(&rig, "al", "pw");
        next.open("/");
        next.expect(expected);
    };
    limit(of_vhost("max-connections"), 1);
    expect_open(
        "0 connection.close 530 NOT_ALLOWED - access to vhost '/' refused for user 'al': connection limit (1) is reached",
    );
    limit(of_vhost("max-connections"), -1);
    limit(of_user("max-connections"), 1);
    expect_open(
        "0 connection.close 530 NOT_ALLOWED - connection refused for user 'al': user connection limit (1) is reached",
    );
    assert_eq!(
        delete(&rig, of_user("max-connections")),
        Ok(Outcome::Deleted)
    );
    expect_open("0 connection.open-ok");
    limit(of_vhost("max-queues"), 1);
    client.declare("q1", true);
    let full = "1 channel.close 406 PRECONDITION_FAILED - cannot declare queue 'q2': queue limit in vhost '/' (1) is reached";
    declare(&mut client, "q2", full);
    rig.router.stop();

    let rig = Rig::start(directory.path());
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    declare(&mut client, "q2", full);
    assert_eq!(delete(&rig, of_vhost("max-queues")), Ok(Outcome::Deleted));
    let body = r#"{"value": 1}"#;
    assert_eq!(
        put(&rig, of_user("max-channels"), body),
        Ok(Outcome::Replaced)
    );
    let mut client = entered(&rig, "al", "pw");
    client.open_channel(1);
    client.declare("q2", true);
    client.send(2, &crosstie_amqp::method::ChannelOpen::default());
    client.expect(
        "0 connection.close 530 NOT_ALLOWED - number of channels opened for user 'al' has reached the maximum allowed \
         user limit of (1)",
    );
}

#[test]
fn of_clients_that_open_at_once_one_takes_the_last_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let limit = |entry: Entry, value: i64| {
        let body = format!(r#"{{"value": {value}}}"#);
        assert_eq!(put(&rig, entry, &body), Ok(Outcome::Replaced));
    };
    let of_user = |name: &str| Entry::UserLimits {
        user: "al".into(),
        name: Some(name.to_owned()),
    };
    limit(of_user("max-connections"), 1);
    for _ in 0..20 {
        let mut clients: Vec<_> = (0..4).map(|_| logged_in(&rig, "al", "pw")).collect();
        clients.iter_mut().for_each(|client| client.open("/"));
        let answers = clients.iter_mut().map(|client| {
            let answer = client.receive().expect("an answer").said();
            answer.starts_with("0 connection.open-ok")
        });
        let open = answers.filter(|is_open| *is_open).count();
        assert_eq!(open, 1);
        let leave = |mut client: Client| {
            client.send(0, &ConnectionClose::default());
            while client
                .receive()
                .is_some_and(|answer| !answer.said().contains("close-ok"))
            {}
        };
        clients.into_iter().for_each(leave);
    }
}

#[test]
fn a_stopped_router_keeps_no_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    let made = put(&rig, Entry::Vhost("w".into()), "{}");
    assert_eq!(made, Ok(Outcome::Created));
    rig.router.stop();
    let vhost = |name: &str| Change::put(Entry::Vhost(name.into()), &serde_json::json!({}), None);
    for change in [
        vhost("v").expect("a change"),
        Change::Delete(Entry::Vhost("w".into())),
        Change::put(user("al"), &serde_json::json!({"tags": ""}), None).expect("a change"),
    ] {
        let refused = operators.change(change).expect_err("it is stopped");
        assert_eq!(refused.kind, RefusalKind::NotStored, "{refused}");
    }
    let rig = Rig::start(directory.path());
    let metadata = rig.router.amqp().expect("is on").metadata();
    assert!(metadata.has_vhost("w") && !metadata.has_vhost("v"));
    assert!(metadata.user("al").is_none());
}

#[test]
fn the_configuration_is_read_only_and_overrides_what_was_made_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let mut client = entered(&rig, "al", "pw");
    let mut setting = Setting::default();
    setting.amqp.users.push(AmqpUser {
        name: "al".to_owned(),
        password: None,
        tags: Vec::new(),
        is_remote_allowed: true,
        is_default: false,
    });
    let ready = rig.router.ready_users(&setting.amqp).expect("is valid");
    rig.router.put_users(ready.expect("is on"));
    expect_refused(&rig, "al", "pw");
    client.open_channel(1);
    let refused = delete(&rig, user("al")).expect_err("it is configured");
    assert_eq!(refused.kind, RefusalKind::Configured);
    assert_eq!(
        refused.reason,
        "user 'al' is read-only: the configuration has it under \"amqp.users\"; change it there and reload the node"
    );
    rig.router.stop();
    // Its permission of run time is kept, and the password that it had is gone for good.
    let rig = Rig::start(directory.path());
    expect_refused(&rig, "al", "pw");
}

#[test]
fn a_vhost_is_created_for_its_user_and_takes_its_entries_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let vhost = || Entry::Vhost("v".into());
    let about: Json = serde_json::json!({"description": "d", "tags": "a,b"});
    let change = Change::put(vhost(), &about, Some("guest")).expect("is right");
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(operators.change(change.clone()), Ok(Outcome::Created));
    assert_eq!(operators.change(change), Ok(Outcome::Replaced));
    let enter = |rig: &Rig| {
        let mut client = logged_in(rig, "guest", "guest");
        client.open("v");
        client.expect("0 connection.open-ok");
        client
    };
    let client = enter(&rig);
    rig.router.stop();

    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(operators.metadata().about("v").description, "d");
    drop(client);
    let mut client = enter(&rig);
    assert_eq!(delete(&rig, vhost()), Ok(Outcome::Deleted));
    client.expect("0 connection.close 320 CONNECTION_FORCED - vhost 'v' is down");
    assert_eq!(
        delete(&rig, vhost()).map_err(|e| e.kind),
        Err(RefusalKind::Absent)
    );
    let default = Entry::Vhost("/".into());
    let refused = delete(&rig, default).expect_err("it is the configuration's");
    assert_eq!(refused.kind, RefusalKind::Configured);
    // One that is created anew has nothing of it.
    assert_eq!(put(&rig, vhost(), "{}"), Ok(Outcome::Created));
    let metadata = operators.metadata();
    assert_eq!(metadata.about("v").description, "");
    assert!(metadata.list_permissions(Some("v"), None).is_empty());
}

#[test]
fn a_reload_keeps_the_entries_of_a_vhost_that_was_created_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    make(&rig, "al", "pw");
    let mut setting = Setting::default();
    setting.amqp.vhosts.push(AmqpVhost {
        name: "w".to_owned(),
        permissions: Vec::new(),
        replicated: None,
        is_default: false,
    });
    let users = rig.router.ready_users(&setting.amqp).expect("is valid");
    let vhosts = rig.router.ready_vhosts(&setting.amqp).expect("is valid");
    let all = r#"{"configure": ".*", "write": ".*", "read": ".*"}"#;
    let allow = |vhost: &str| {
        let permission = Entry::Permission {
            vhost: vhost.into(),
            user: "al".into(),
        };
        assert_eq!(put(&rig, permission, all), Ok(Outcome::Created));
    };
    let created = put(&rig, Entry::Vhost("v".into()), "{}");
    assert_eq!(created, Ok(Outcome::Created));
    allow("v");
    rig.router.put_users(users.expect("is on"));
    // Between the two steps of a reload the new vhost has entries, too.
    allow("w");
    rig.router.put_vhosts(vhosts.expect("is on"));
    let enter = |rig: &Rig, vhost: &str| {
        let mut client = logged_in(rig, "al", "pw");
        client.open(vhost);
        client.expect("0 connection.open-ok");
    };
    enter(&rig, "v");
    enter(&rig, "w");
    let metadata = rig.router.amqp().expect("is on").metadata();
    let origin = metadata.vhost_origin("w");
    assert!(matches!(origin, Some(Origin::Configured(_))), "{origin:?}");
    rig.router.stop();
    let rig = Rig::start(directory.path());
    enter(&rig, "v");
}

#[test]
fn the_users_of_a_deleted_vhost_may_not_enter_the_next_one_of_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let operators = rig.router.amqp().expect("is on");
    make(&rig, "al", "pw");
    let vhost = || Entry::Vhost("v".into());
    let all = r#"{"configure": ".*", "write": ".*", "read": ".*"}"#;
    let permission = || Entry::Permission {
        vhost: "v".into(),
        user: "al".into(),
    };
    let make_vhost = || {
        assert_eq!(put(&rig, vhost(), "{}"), Ok(Outcome::Created));
    };
    let expect_open = |expected: &str| {
        let mut client = logged_in(&rig, "al", "pw");
        client.open("v");
        client.expect(expected);
    };
    let refused = "0 connection.close 530 NOT_ALLOWED - access to vhost 'v' refused for user 'al'";
    make_vhost();
    assert_eq!(put(&rig, permission(), all), Ok(Outcome::Created));
    expect_open("0 connection.open-ok");
    assert_eq!(delete(&rig, vhost()), Ok(Outcome::Deleted));
    make_vhost();
    expect_open(refused);
    // The same if the deletion is no change of entries.
    assert_eq!(put(&rig, permission(), all), Ok(Outcome::Created));
    let (done, outcome) = mpsc::channel();
    operators.delete_vhost("v", move |outcome| drop(done.send(outcome)));
    assert_eq!(outcome.recv().expect("is called"), Ok(true));
    make_vhost();
    expect_open(refused);
}

#[test]
fn a_policy_holds_for_present_queues_and_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", true);
    client.confirms();
    for body in [b"a", b"b", b"c"] {
        client.publish("q", body, 2);
        client.expect("1 basic.ack");
    }
    let policy = || Entry::Policy {
        kind: PolicyKind::User,
        vhost: "/".into(),
        name: "p".into(),
    };
    let ready = |rig: &Rig| {
        let queues = rig.router.amqp().expect("is on").queues("/");
        queues.expect("is there")[0].messages_ready
    };
    let body = r#"{"pattern": "^q", "definition": {"max-length": 1}}"#;
    assert_eq!(put(&rig, policy(), body), Ok(Outcome::Created));
    assert_eq!(ready(&rig), 1);
    rig.router.stop();

    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.confirms();
    client.publish("q", b"d", 2);
    client.expect("1 basic.ack");
    assert_eq!(ready(&rig), 1);
    assert_eq!(delete(&rig, policy()), Ok(Outcome::Deleted));
    client.publish("q", b"e", 2);
    client.expect("1 basic.ack");
    assert_eq!(ready(&rig), 2);
    let refused = put(
        &rig,
        policy(),
        r#"{"pattern": "(", "definition": {"max-length": 1}}"#,
    );
    assert_eq!(refused.map_err(|e| e.kind), Err(RefusalKind::Invalid));
}
