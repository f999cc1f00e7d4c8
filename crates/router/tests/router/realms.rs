//! Realms and roles.

use std::time::Duration;

use crosstie_client::{Client, Config, Disconnected};
use crosstie_config::Role;

use crate::rig::{Peer, Rig, limits, options, realm, tcp, worker};

const CLOSE_REALM: &str = r#"[6,{"message":"the realm was stopped"},"wamp.close.close_realm"]"#;
const STOP_ROLE: &str = r#"[6,{"message":"the session's role was stopped"},"wamp.close.killed"]"#;

#[test]
fn running_realms_are_listed() {
    let rig = Rig::start();
    let router = &rig.router;
    router.start_realm(&realm("com.b")).expect("is new");
    router.start_realm(&realm("com.a")).expect("is new");
    let role = Role::everything("staff");
    router.start_role("com.a", &role).expect("is new");
    let _peer = rig.joined("com.b");

    let realms = router.realms();
    let names: Vec<_> = realms.iter().map(|realm| &realm.name[..]).collect();
    assert_eq!(names, ["realm1", "com.b", "com.a"]);
    let sessions: Vec<_> = realms.iter().map(|realm| realm.sessions).collect();
    assert_eq!(sessions, [0, 1, 0]);
    assert_eq!(realms[2].roles, ["anonymous", "staff"]);
    let roles = router.roles("com.b").expect("runs");
    assert_eq!(
        (roles[0].role.name.as_str(), roles[0].sessions),
        ("anonymous", 1)
    );
    assert!(router.roles("com.none").is_none());

    router.stop_realm("com.b").expect("runs");
    router.stop_role("com.a", "anonymous").expect("runs");
    let realms = router.realms();
    assert_eq!(realms.len(), 2);
    assert_eq!(realms[1].roles, ["staff"]);
}

#[test]
fn errors_name_the_part_and_the_cause() {
    let rig = Rig::start();
    let router = &rig.router;
    let twice = router.start_realm(&realm("realm1")).expect_err("runs");
    assert_eq!(
        twice.to_string(),
        "cannot start realm realm1 of worker worker1: one of that name runs already"
    );
    let role = Role::everything("anonymous");
    let twice = router.start_role("realm1", &role).expect_err("runs");
    assert_eq!(
        twice.to_string(),
        "cannot start role anonymous of realm realm1 of worker worker1: \
         one of that name runs already"
    );
    let nowhere = router.start_role("com.none", &role).expect_err("is none");
    assert_eq!(
        nowhere.to_string(),
        "cannot start role anonymous of realm com.none of worker worker1: \
         there is no realm com.none"
    );
    let unknown = router.stop_realm("com.none").expect_err("is none");
    assert_eq!(
        unknown.to_string(),
        "cannot stop realm com.none of worker worker1: none of that name runs"
    );
    for (of, role) in [("realm1", "none"), ("com.none", "anonymous")] {
        let unknown = router.stop_role(of, role).expect_err("is none");
        assert_eq!(
            unknown.to_string(),
            format!(
                "cannot stop role {role} of realm {of} of worker worker1: none of that name runs"
            )
        );
    }
}

#[test]
fn the_sessions_of_a_stopped_realm_end() {
    let rig = Rig::start();
    rig.router.start_realm(&realm("realm2")).expect("is new");
    let (mut a, mut b) = (rig.joined("realm1"), rig.joined("realm1"));
    let mut other = rig.joined("realm2");
    rig.router.stop_realm("realm1").expect("runs");

    a.expect(CLOSE_REALM);
    // It crossed the GOODBYE, and is ignored.
    a.send(r#"[32,1,{},"com.topic"]"#);
    a.answer_goodbye();
    a.join("realm2");
    a.expect_served();

    b.expect(CLOSE_REALM);
    b.answer_goodbye();
    b.send(r#"[32,1,{},"com.topic"]"#);
    b.expect(r#"[3,{"message":"expected HELLO, got SUBSCRIBE"}"#);
    b.expect_end();

    other.expect_served();
}

#[test]
fn a_realm_is_started_again() {
    let rig = Rig::start();
    let mut peer = rig.joined("realm1");
    rig.router.stop_realm("realm1").expect("runs");
    peer.expect(CLOSE_REALM);
    peer.answer_goodbye();

    let mut early = Peer::connect(rig.address);
    early.hello("realm1");
    early.expect(r#"[3,{"message":"no realm \"realm1\" exists on this router"}"#);

    rig.router.start_realm(&realm("realm1")).expect("is new");
    // A refused client may retry.
    early.join("realm1");
    peer.join("realm1");
    peer.expect_served();
    assert_eq!(rig.router.realms()[0].sessions, 2);
}

#[test]
fn a_hello_stands_for_the_answer_to_a_goodbye() {
    let rig = Rig::start();
    rig.router.start_realm(&realm("realm2")).expect("is new");
    let mut peer = rig.joined("realm1");
    rig.router.stop_realm("realm1").expect("runs");
    peer.expect(CLOSE_REALM);
    peer.join("realm2");
    peer.expect_served();
    // Within a session it is a violation as usual.
    peer.hello("realm2");
    peer.expect("[3,");
}

#[test]
fn a_client_that_does_not_answer_goodbye_is_closed() {
    let mut limits = limits();
    limits.handshake_timeout = Duration::from_millis(50);
    let rig = Rig::start_with(&limits);
    rig.router.start_realm(&realm("realm2")).expect("is new");
    let (mut silent, mut rejoined) = (rig.joined("realm1"), rig.joined("realm1"));
    rig.router.stop_realm("realm1").expect("runs");
    rejoined.expect(CLOSE_REALM);
    rejoined.join("realm2");
    silent.expect(CLOSE_REALM);
    silent.expect_end();
    rejoined.expect_served();
}

#[test]
fn the_sessions_of_a_stopped_role_end() {
    let rig = Rig::start();
    let mut peer = rig.joined("realm1");
    rig.router.stop_role("realm1", "anonymous").expect("runs");
    peer.expect(STOP_ROLE);
    peer.answer_goodbye();
    peer.hello("realm1");
    peer.expect(r#"[3,{"message":"the realm has no role anonymous"}"#);
    peer.expect_end();

    let mut role = Role::everything("anonymous");
    role.permissions[0].allow.subscribe = false;
    rig.router.start_role("realm1", &role).expect("is new");
    let mut peer = rig.joined("realm1");
    peer.send(r#"[32,1,{},"com.topic"]"#);
    peer.expect(r#"[8,32,1,{},"wamp.error.not_authorized""#);
}

#[tokio::test]
async fn clients_learn_why_their_session_ended() {
    let rig = Rig::start();
    let url = format!("ws://{}/ws", rig.address);
    let mut config = Config::new(&url).expect("a URL");
    config.reconnect = None;
    let client = Client::connect(config).await.expect("joins");
    rig.router.stop_realm("realm1").expect("runs");
    match client.ended().await {
        Disconnected::Goodbye(why) => assert_eq!(why.uri, "wamp.close.close_realm"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn routers_are_isolated() {
    let one = Rig::start();
    let options = options(one.directory.path());
    let two = crosstie_router::Router::start(&worker("worker2"), &limits(), &options);
    let two = two.expect("threads");
    two.start_realm(&realm("realm1")).expect("is new");
    let urls = two.start_transport(&tcp("tcp", 0)).expect("a free port");

    let (mut subscriber, mut publisher) = (one.joined("realm1"), one.joined("realm1"));
    let mut stranger = Peer::connect(crate::rig::address(&urls));
    stranger.join("realm1");
    subscriber.expect_served();
    // Acknowledged, so that its effects are sent before the next one's.
    stranger.send(r#"[16,1,{"acknowledge":true},"com.topic",["stranger"]]"#);
    stranger.expect("[17,1,");
    publisher.send(r#"[16,1,{"acknowledge":true},"com.topic",["friend"]]"#);
    publisher.expect("[17,1,");
    let event = subscriber.receive();
    assert!(event.ends_with(r#"["friend"]]"#), "{event}");

    two.begin_stop();
    stranger.expect(r#"[6,{"message":"the router is shutting down"},"wamp.close.system_shutdown""#);
    stranger.answer_goodbye();
    stranger.expect_end();
    drop(stranger);
    two.stop();
    publisher.expect_served();
}
