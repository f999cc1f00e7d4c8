//! Pages and listings about AMQP: with faults, and with many entries.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crosstie_amqp::method::{ConnectionCloseOk, QueueDeclare};
use crosstie_config::{self as model, Allowed, Page};
use crosstie_router::amqp::{Alarm, OperatorError};
use crosstie_router::{Admin, Router, RouterOptions, start_admin};

use crate::rig::{Rig, Setting, transport, worker};

/// A listener with all pages.
pub(crate) fn pages(rig: &Rig, directory: &Path) -> (Admin, String) {
    let admin = model::Admin {
        endpoint: transport(&Setting::default()).endpoint,
        pages: vec![Page::Health, Page::Metrics, Page::Status],
        allowed_hosts: Allowed::Loopback,
    };
    let started = start_admin(&admin, &[&rig.router], &options(directory));
    let (admin, urls) = started.expect("a free port");
    let place = urls[0].strip_prefix("http://").expect("plain HTTP");
    (admin, place.trim_end_matches('/').to_owned())
}

fn options(directory: &Path) -> RouterOptions {
    RouterOptions {
        directory: directory.to_owned(),
        busy_poll: Duration::ZERO,
        ..RouterOptions::default()
    }
}

/// A page's status code and text.
pub(crate) fn page(place: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(place).expect("listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    (status.to_owned(), body.to_owned())
}

/// Waits until the health page begins so.
fn await_health(place: &str, status: &str, beginning: &str) -> String {
    loop {
        let (found, text) = page(place, "/health");
        if found == status && text.starts_with(beginning) {
            return text;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_failing_store_is_an_alarm_until_it_can_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    // The store of the embedded default: nodes that store nothing may share it.
    setting.amqp.store = "crosstie.store".to_owned();
    let first = Rig::start_with(directory.path(), &setting);
    let second = Rig::start_with(directory.path(), &setting);
    let (_admin, place) = pages(&second, directory.path());
    assert_eq!(page(&place, "/health"), ("200".into(), "ok\n".into()));
    let mut client = second.client();
    client.open_channel(1);
    client.declare("q", true);
    let text = await_health(&place, "503", "degraded\n");
    let expected = "AMQP of router 'worker1': the store cannot write: ";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("crosstie.store is in use by"), "{text}");
    let operators = second.router.amqp().expect("is on");
    assert!(matches!(
        operators.alarms()[..],
        [Alarm::StoreFailing { .. }]
    ));
    let (_, status) = page(&place, "/");
    assert!(status.contains("<strong>Router 'worker1': the store cannot write"));
    first.router.stop();
    await_health(&place, "200", "ok\n");
    assert_eq!(operators.alarms(), []);
}

#[test]
fn full_memory_is_an_alarm() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut setting = Setting::default();
    setting.amqp.limits.memory_bytes_max = 1000;
    let rig = Rig::start_with(directory.path(), &setting);
    let (_admin, place) = pages(&rig, directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.declare("q", false);
    client.publish("q", &[0; 2000], 1);
    let expected = "ok\nAMQP of router 'worker1': memory for messages is full, publishers are \
                    blocked: 1000 bytes are the most\n";
    await_health(&place, "200", expected);
    let operators = rig.router.amqp().expect("is on");
    assert_eq!(operators.alarms(), [Alarm::MemoryFull { bytes_max: 1000 }]);
    operators.purge_queue("/", "q").expect("is there");
    assert_eq!(page(&place, "/health").1, "ok\n");
}

#[test]
fn stopped_amqp_is_an_alarm_until_it_starts() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let (_admin, place) = pages(&rig, directory.path());
    let (ended, end) = std::sync::mpsc::channel();
    let closed = rig.router.stop_amqp(move |is_stored| {
        let _ = ended.send(is_stored);
    });
    assert!(closed.is_some());
    assert_eq!(end.recv(), Ok(true));
    assert!(!rig.router.is_amqp_stopping());
    // A start that fails stops whatever has started: nothing.
    assert_eq!(rig.router.stop_amqp(|_| {}), None);
    let (_, health) = page(&place, "/health");
    assert_eq!(
        health,
        "ok\nAMQP of router 'worker1': stopped by an operator\n"
    );
    let amqp = Setting::default().amqp;
    assert!(rig.router.start_amqp(&amqp).is_ok());
    assert_eq!(page(&place, "/health").1, "ok\n");
}

#[test]
fn a_configured_store_must_be_usable() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut amqp = model::Amqp::default();
    for (store, expected) in [
        ("/proc/self/x.store", "/proc/self/x.store: making it: "),
        (
            "missing/x.store",
            "missing/x.store: looking for its directory: ",
        ),
        (
            "taken",
            "taken is in use by another process or another router",
        ),
    ] {
        store.clone_into(&mut amqp.store);
        let start = || {
            let limits = Setting::default().limits;
            let router = Router::start(&worker(), &limits, &options(directory.path()));
            let router = router.expect("threads");
            router.start_amqp(&amqp).map(|_| router)
        };
        let _first = start();
        let error = start().err().expect("an error").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn further_queues_are_summed() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let (_admin, place) = pages(&rig, directory.path());
    let mut client = rig.client();
    client.open_channel(1);
    client.confirms();
    for number in 0..1003 {
        let queue = &format!("q{number}");
        let declare = QueueDeclare {
            queue,
            no_wait: true,
            ..QueueDeclare::default()
        };
        client.send(1, &declare);
    }
    client.declare("watched", false);
    client.publish("watched", b"one", 1);
    client.expect("1 basic.ack");
    let (_, metrics) = page(&place, "/metrics");
    let of = |begin: &str| {
        metrics
            .lines()
            .filter(|line| line.starts_with(begin))
            .count()
    };
    assert_eq!(of("crosstie_amqp_queue_consumers{"), 1000);
    for line in [
        r#"crosstie_amqp_queue_ready{worker="worker1",vhost="/",queue="watched"} 1"#,
        r#"crosstie_amqp_other_queues{worker="worker1",vhost="/"} 4"#,
        r#"crosstie_amqp_other_queues_ready{worker="worker1",vhost="/"} 0"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
    let (_, status) = page(&place, "/");
    let row = "<tr><td>worker1<td>/<td>1<td>1004<td>0<td>1<td>0";
    assert!(status.contains(row), "{status}");
}

#[test]
fn a_connection_is_closed_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let mut client = rig.client();
    let operators = rig.router.amqp().expect("is on");
    let number = operators.connections()[0].number;
    let close = || operators.close_connection(number, "maintenance");
    assert_eq!(close(), Ok(()));
    assert_eq!(close(), Err(OperatorError::ClosingAlready { number }));
    client.receive().expect("a word about it");
    client.send(0, &ConnectionCloseOk {});
    client.expect_end();
    while !operators.connections().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(close(), Err(OperatorError::NoSuchConnection { number }));
}
