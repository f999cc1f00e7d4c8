//! Stops after which clients return: no GOODBYE, and no ABORT for a client that returns too early.

use std::net::TcpStream;
use std::time::Duration;

use crate::rig::{Peer, Rig, address, limits, realm, tcp, worker};

#[test]
fn a_stopped_transport_closes_its_sessions_without_goodbye() {
    let rig = start();
    let urls = rig.router.start_transport(&tcp("second", 0));
    let second = address(&urls.expect("a free port"));
    let (mut other, mut gone) = (rig.joined("realm1"), Peer::connect(second));
    gone.join("realm1");
    let mut opening = Peer::connect(second);
    rig.router.stop_transport("second").expect("runs");
    opening.expect_end();
    gone.expect_end();
    assert!(TcpStream::connect(second).is_err(), "nobody listens");
    other.expect_served();
}

#[test]
fn a_stopped_transport_waits_for_calls_of_its_own_sessions() {
    let rig = start();
    let urls = rig.router.start_transport(&tcp("second", 0));
    let second = address(&urls.expect("a free port"));
    let (mut callee, mut caller) = (rig.joined("realm1"), Peer::connect(second));
    caller.join("realm1");
    begin_call(&mut callee, &mut caller);
    rig.router.stop_transport("second").expect("runs");
    callee.send("[70,1,{},[7]]");
    caller.expect("[50,1,{},[7]]");
    caller.expect_end();
    callee.expect_served();
}

#[test]
fn a_client_of_a_stopped_realm_is_closed_until_the_realm_is_there_again() {
    let rig = start();
    let mut before = rig.joined("realm1");
    rig.router.stop_realm("realm1").expect("runs");
    before.expect_end();
    // An ABORT would make JavaScript clients stay away.
    let mut early = Peer::connect(rig.address);
    early.hello("realm1");
    early.expect_end();
    let mut lost = Peer::connect(rig.address);
    lost.hello("com.never");
    lost.expect("[3,");
    rig.router.start_realm(&realm("realm1")).expect("is new");
    rig.joined("realm1").expect_served();
}

#[test]
fn a_stopped_realm_waits_for_its_calls() {
    let rig = start();
    let (mut callee, mut caller) = (rig.joined("realm1"), rig.joined("realm1"));
    begin_call(&mut callee, &mut caller);
    rig.router.stop_realm("realm1").expect("runs");
    let mut early = Peer::connect(rig.address);
    early.hello("realm1");
    early.expect_end();
    callee.send("[70,1,{},[7]]");
    caller.expect("[50,1,{},[7]]");
    caller.expect_end();
    callee.expect_end();
}

#[test]
fn calls_that_are_not_answered_in_time_end_with_an_error() {
    let mut limits = limits();
    limits.shutdown_timeout = Duration::from_millis(50);
    let mut worker = worker("worker1");
    worker.says_goodbye = false;
    let rig = Rig::start_worker(&worker, &limits);
    let (mut callee, mut caller) = (rig.joined("realm1"), rig.joined("realm1"));
    begin_call(&mut callee, &mut caller);
    rig.router.begin_stop();
    caller.expect(r#"[8,48,1,{},"wamp.error.canceled""#);
    caller.expect_end();
    callee.expect_end();
}

/// A router with default settings.
fn start() -> Rig {
    let mut worker = worker("worker1");
    worker.says_goodbye = false;
    Rig::start_worker(&worker, &limits())
}

/// Lets one peer call the other, which does not answer yet.
fn begin_call(callee: &mut Peer, caller: &mut Peer) {
    callee.send(r#"[64,1,{},"com.slow"]"#);
    callee.expect("[65,1,");
    caller.send(r#"[48,1,{},"com.slow"]"#);
    callee.expect("[68,1,");
}
