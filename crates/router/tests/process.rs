//! Effects of routers on their process: threads on their cores, and no leftovers after a stop.
//!
//! This is a program with one test, as it counts resources of the whole process.

#[path = "router/rig.rs"]
#[expect(dead_code, reason = "the other tests of routers use the rest")]
mod rig;

use std::fs;
use std::time::{Duration, Instant};

use crosstie_config::Role;
use crosstie_router::Router;

use crate::rig::{Peer, address, limits, options, realm, tcp, unix, worker};

#[test]
fn threads_and_descriptors() {
    a_router_runs_on_its_cores();
    a_stop_leaves_nothing();
}

fn a_router_runs_on_its_cores() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = options(directory.path());
    let usable = usable_cores();
    let last = *usable.last().expect("this runs somewhere");

    let mut worker = worker("worker1");
    worker.threads = None;
    worker.cpu_affinity = vec![last];
    let router = Router::start(&worker, &limits(), &options).expect("may be used");
    assert_eq!(router.threads(), 1);
    assert_eq!(cores_of("worker0"), [last.to_string()]);
    assert_eq!(cores_of("keeper"), [last.to_string()]);
    assert_eq!(usable_cores(), usable, "this thread is where it was");
    drop(router);

    worker.threads = Some(3);
    let router = Router::start(&worker, &limits(), &options).expect("may be used");
    assert_eq!(router.threads(), 3);
    assert_eq!(cores_of("worker2"), [last.to_string()]);
    drop(router);

    worker.cpu_affinity = vec![last, 1_000, 5_000_000];
    for (absent, cores) in [("5000000", [last, 5_000_000]), ("1000", [last, 1_000])] {
        worker.cpu_affinity = cores.to_vec();
        let refused = Router::start(&worker, &limits(), &options).err();
        let refused = refused.expect("no such core").to_string();
        let text = format!(
            "cannot start the threads of worker worker1: cores {absent} do not exist or may not \
             be used; this process uses "
        );
        assert!(refused.starts_with(&text), "{refused}");
    }
}

fn a_stop_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = options(directory.path());
    let mut limits = limits();
    limits.shutdown_timeout = Duration::from_millis(100);
    let router = Router::start(&worker("worker1"), &limits, &options).expect("threads");
    let before = held();
    for _ in 0..200 {
        come_and_go(&router);
    }
    await_that(|| match router.connections() {
        0 => Ok(()),
        left => Err(format!("{left} connections are left")),
    });
    await_that(|| no_more_than(before));
    assert_eq!(router.realms().len() + router.transports().len(), 0);

    for _ in 0..50 {
        let second = Router::start(&worker("worker2"), &limits, &options).expect("threads");
        let peer = start(&second);
        drop(peer);
        second.stop();
    }
    await_that(|| no_more_than(before));
}

/// Starts and stops one of everything, with a session present.
fn come_and_go(router: &Router) {
    let mut peer = start(router);
    router.stop_transport("local").expect("runs");
    router.stop_role("realm1", "anonymous").expect("runs");
    peer.expect("[6,");
    peer.answer_goodbye();
    router.stop_realm("realm1").expect("runs");
    router.stop_transport("tcp").expect("runs");
    peer.expect_end();
}

fn start(router: &Router) -> Peer {
    let mut empty = realm("realm1");
    empty.roles.clear();
    router.start_realm(&empty).expect("is new");
    let role = Role::everything("anonymous");
    router.start_role("realm1", &role).expect("is new");
    let local = router.start_transport(&unix("local", "s.sock"));
    local.expect("a free path");
    let urls = router.start_transport(&tcp("tcp", 0)).expect("a free port");
    let mut peer = Peer::connect(address(&urls));
    peer.join("realm1");
    peer
}

/// Descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |of| fs::read_dir(of).expect("Linux").count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// Threads are joined shortly after a stop. Each thread that stays may have opened the file of its own times
/// meanwhile, once.
fn no_more_than((descriptors, threads): (usize, usize)) -> Result<(), String> {
    let held = held();
    if held.0 <= descriptors + threads && held.1 <= threads {
        return Ok(());
    }
    Err(format!(
        "{held:?}, expected {descriptors} to {} and {threads}",
        descriptors + threads
    ))
}

/// Connections, threads and their descriptors end shortly after a stop.
fn await_that(holds: impl Fn() -> Result<(), String>) {
    let patience = Instant::now() + Duration::from_secs(20);
    while let Err(why) = holds() {
        assert!(Instant::now() < patience, "{why}");
        std::thread::yield_now();
    }
}

/// The cores that this thread may run on.
fn usable_cores() -> Vec<usize> {
    let status = fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let mut cores = Vec::new();
    for range in allowed(&status).split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<usize>().expect("a number");
        cores.extend(number(first)..=number(last));
    }
    cores
}

/// The allowed cores of the threads of that name. A thread names itself when it starts.
fn cores_of(name: &str) -> Vec<String> {
    let beginning = format!("Name:\t{name}\n");
    loop {
        let statuses = statuses().into_iter();
        let of_name = statuses.filter(|status| status.starts_with(&beginning));
        let cores: Vec<_> = of_name.map(|s| allowed(&s).to_owned()).collect();
        if !cores.is_empty() {
            return cores;
        }
        std::thread::yield_now();
    }
}

/// The kernel's status of each thread.
fn statuses() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").expect("Linux");
    let statuses = threads.map(|thread| {
        let status = thread.expect("Linux").path().join("status");
        // It may have ended.
        fs::read_to_string(status).unwrap_or_default()
    });
    statuses.collect()
}

fn allowed(status: &str) -> &str {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("Linux").trim()
}
