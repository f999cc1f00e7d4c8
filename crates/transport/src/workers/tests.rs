//! Connections move to the requested thread.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::time::Instant;

use super::*;
use crate::{
    Account, Connection, ConnectionLimits, Ended, Outcome, PeerAddress, Protocol, Socket, pump,
};

/// Answers each input with the name of the thread that handles it.
struct WhereAmI(Arc<Connection>);

impl Protocol for WhereAmI {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let current = thread::current();
        let name = current.name().unwrap_or_default();
        let _ = self.0.append(|out| {
            out.extend_from_slice(name.as_bytes());
            Ok::<(), ()>(())
        });
        Outcome::consumed(input.len())
    }

    fn may_move(&self) -> bool {
        true
    }
}

fn serve(
    connection: Arc<Connection>,
    workers: Arc<Workers>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut protocol = WhereAmI(Arc::clone(&connection));
        if let Ended::Moved { to } = pump(&connection, &mut protocol).await {
            let there = Arc::clone(&workers);
            there.spawn_moved(to, serve(connection, workers));
        }
    })
}

fn ask(client: &mut UnixStream) -> String {
    client.write_all(b"?").expect("sent");
    let mut answer = [0; 7];
    client.read_exact(&mut answer).expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_thread_that_is_asked_to_gives_away_every_other_connection() {
    let options = WorkerOptions {
        threads: 2,
        ..WorkerOptions::default()
    };
    let workers = Arc::new(Workers::start(options).expect("threads"));
    let limits = Arc::new(ConnectionLimits {
        queue_bytes_max: 1 << 20,
        stall_max: Duration::ZERO,
        message_max: Duration::MAX,
        bytes_per_second_min: 0,
        account: Arc::new(Account::new(1 << 20)),
    });
    let mut clients = Vec::new();
    while clients.len() < 4 {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.set_nonblocking(true).expect("set");
        let socket = Socket::new(theirs.into(), PeerAddress::Unix(None));
        let connection = Arc::new(Connection::new(socket, None, Arc::clone(&limits)));
        let serving = serve(connection, Arc::clone(&workers));
        workers.spawn_connection(|| Some(serving));
        // It has started before the next one is assigned. While the machine is busy, the other thread may get one.
        if ask(&mut ours) == "worker0" {
            clients.push(ours);
        }
    }
    let threads = workers.balanced.as_ref().expect("two threads");
    let count = |clients: &mut [UnixStream]| {
        let away = clients
            .iter_mut()
            .filter_map(|client| (ask(client) == "worker1").then_some(()));
        away.count()
    };
    // The next look at the threads withdraws a request.
    while count(&mut clients) == 0 {
        threads.ask(0, 1);
    }
    let away = count(&mut clients);
    assert!((1..4).contains(&away), "{away}");
}

/// Awaits that these threads, and no others, have taken no turn.
fn await_stuck(workers: &Workers, now: Instant, expected: &[&str]) {
    let patience = Instant::now() + Duration::from_secs(30);
    while workers.stuck(now, LIMIT) != expected {
        assert!(Instant::now() < patience, "expected {expected:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

const LIMIT: Duration = Duration::from_secs(3_600);

#[test]
fn a_blocked_thread_takes_no_turn() {
    let options = WorkerOptions {
        threads: 2,
        ..WorkerOptions::default()
    };
    let workers = Workers::start(options).expect("threads");
    workers.spawn_web(async {}).expect("a thread of HTTP");
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    workers.spawn_first(async move {
        let _ = begun.send(());
        let _ = released.recv();
    });
    has_begun.recv().expect("the first thread is blocked");
    let start = Instant::now();
    assert!(workers.stuck(start, LIMIT).is_empty());
    let early = start + LIMIT - Duration::from_millis(1);
    assert!(workers.stuck(early, LIMIT).is_empty());
    await_stuck(&workers, start + LIMIT, &["worker0"]);
    drop(release);
    await_stuck(&workers, start + LIMIT, &[]);
    // Threads that were stopped are not stuck.
    workers.stop();
    assert!(workers.stuck(start + 3 * LIMIT, LIMIT).is_empty());
}

/// Voluntary context switches of a thread of this process.
fn wake_ups(id: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status"));
    let status = status.expect("a thread");
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.expect("Linux").trim().parse().expect("a number")
}

#[test]
fn an_idle_keeper_wakes_for_each_second_and_not_for_each_part_of_it() {
    let options = WorkerOptions {
        threads: 2,
        ..WorkerOptions::default()
    };
    let workers = Workers::start(options).expect("started");
    let (tell, told) = std::sync::mpsc::channel();
    workers.spawn_keeper(async move {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        tell.send(id).expect("awaited");
    });
    let keeper = told.recv().expect("the keeper runs");
    let await_second = |second: u32| {
        while clock::now_s() < second {
            thread::sleep(Duration::from_millis(5));
        }
    };
    // The first looks at the threads' times are before the idle ones.
    let first = clock::now_s() + 3;
    await_second(first);
    let before = wake_ups(keeper);
    await_second(first + 4);
    // A timer of the runtime takes two wake-ups. A late second takes no more.
    let found = wake_ups(keeper) - before;
    assert!(found <= 4 * 4, "{found} wake-ups in four seconds");
}
