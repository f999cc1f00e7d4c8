//! Threads: which thread runs what, and a stop that ends everything.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crosstie_transport::{
    Connection, Cores, Endpoint, Listener, Outcome, Protocol, Spins, Waiting, WorkerOptions,
    Workers, pump,
};
use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;

use crate::rig::{append, generous};

fn workers(threads: usize) -> Arc<Workers> {
    let options = WorkerOptions {
        threads,
        ..WorkerOptions::default()
    };
    Arc::new(Workers::start(options).expect("threads"))
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn tasks_are_dealt_in_turn() {
    for threads in [1, 3] {
        let workers = workers(threads);
        assert_eq!(workers.count(), threads);
        let (sender, names) = mpsc::channel();
        for _ in 0..2 * threads {
            let sender = sender.clone();
            workers.spawn(async move { sender.send(thread_name()).expect("is waited for") });
        }
        let dealt: Vec<_> = (0..2 * threads)
            .map(|_| names.recv().expect("a name"))
            .collect();
        let names_of_all: BTreeSet<_> = dealt.iter().cloned().collect();
        assert_eq!(names_of_all.len(), threads, "{dealt:?}");

        let first = sender.clone();
        workers.spawn_first(async move { first.send(thread_name()).expect("is waited for") });
        assert_eq!(names.recv().expect("a name"), "worker0");
        workers.spawn_keeper(async move {
            tokio::time::sleep(Duration::ZERO).await;
            sender.send(thread_name()).expect("is waited for");
        });
        assert_eq!(names.recv().expect("a name"), "keeper");
    }
}

#[test]
fn zero_threads_mean_one() {
    assert_eq!(workers(0).count(), 1);
}

struct Echo(Arc<Connection>);

impl Protocol for Echo {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let _ = append(&self.0, input);
        Outcome::consumed(input.len())
    }
}

/// Accepts on the first thread and serves on all, holding the threads and `token`.
fn serve(workers: &Arc<Workers>, listener: Listener, token: &Arc<()>) {
    let (dealing, token) = (Arc::clone(workers), Arc::clone(token));
    workers.spawn_first(async move {
        while let Ok(socket) = listener.accept().await {
            let connection = Arc::new(Connection::new(socket, None, generous()));
            let token = Arc::clone(&token);
            dealing.spawn(async move {
                pump(&connection, &mut Echo(Arc::clone(&connection))).await;
                drop(token);
            });
        }
    });
}

#[test]
fn a_stop_ends_everything() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("socket");
    let token = Arc::new(());
    let workers = workers(2);
    let endpoint = Endpoint::Unix {
        path: path.clone(),
        backlog: 16,
        mode: None,
    };
    let listener = workers
        .enter_first(|| Listener::bind(endpoint))
        .expect("bound");
    serve(&workers, listener, &token);
    let held = Arc::clone(&token);
    let waiting = workers.spawn_keeper(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });

    let mut clients: Vec<_> = (0..5)
        .map(|_| UnixStream::connect(&path).expect("connected"))
        .collect();
    for client in &mut clients {
        client.write_all(b"hello").expect("sent");
        let mut echoed = [0; 5];
        client.read_exact(&mut echoed).expect("received");
        assert_eq!(&echoed, b"hello");
    }

    workers.stop();
    assert_eq!(Arc::strong_count(&token), 1, "a task is left");
    assert_eq!(Arc::strong_count(&workers), 1, "a task is left");
    assert!(waiting.is_finished());
    assert!(!path.exists(), "the path is left");
    for client in &mut clients {
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("the end");
        assert_eq!(rest, b"");
    }
    // A repeated stop does no harm, nor does a task that comes too late.
    workers.stop();
    let late = Arc::clone(&token);
    workers.spawn(async move { drop(late) });
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn threads_may_be_dropped_by_one_of_them() {
    let workers = workers(2);
    let (sender, done) = mpsc::channel();
    let held = Arc::clone(&workers);
    let (told, go) = tokio::sync::oneshot::channel();
    workers.spawn_first(async move {
        let _ = go.await;
        drop(held);
        sender.send(()).expect("is waited for");
    });
    drop(workers);
    told.send(()).expect("is waited for");
    done.recv().expect("did not wait for itself");
}

#[test]
fn a_thread_that_polls_still_serves() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("socket");
    let workers = Arc::new(
        Workers::start(WorkerOptions {
            threads: 1,
            waiting: Waiting::Always(Duration::from_millis(1)),
            ..WorkerOptions::default()
        })
        .expect("threads"),
    );
    let endpoint = Endpoint::Unix {
        path: path.clone(),
        backlog: 16,
        mode: None,
    };
    let listener = workers
        .enter_first(|| Listener::bind(endpoint))
        .expect("bound");
    serve(&workers, listener, &Arc::new(()));
    let mut client = UnixStream::connect(&path).expect("connected");
    let before = Spins::total();
    // Another test's thread may spin at the moment, and only one does.
    while Spins::total().hits == before.hits || Spins::total().spun == before.spun {
        for number in 0..100u8 {
            client.write_all(&[number]).expect("sent");
            let mut echoed = [0];
            client.read_exact(&mut echoed).expect("received");
            assert_eq!(echoed, [number]);
        }
    }
    workers.stop();
}

#[test]
fn threads_stay_on_their_cores() {
    let usable = sched_getaffinity(None).expect("runs somewhere");
    let last = usable_core();
    let cores = Cores::new(&[last, last]).expect("can be numbered");
    assert_eq!(cores.count(), 1);
    let options = WorkerOptions {
        threads: 2,
        cores: Some(cores),
        ..WorkerOptions::default()
    };
    let workers = Workers::start(options).expect("may be used");
    let (tell, told) = mpsc::channel();
    let look = |tell: mpsc::Sender<CpuSet>| async move {
        let own = sched_getaffinity(None).expect("runs somewhere");
        tell.send(own).expect("is waited for");
    };
    workers.spawn(look(tell.clone()));
    workers.spawn(look(tell.clone()));
    workers.spawn_keeper(look(tell));
    for own in told {
        assert_eq!((own.count(), own.is_set(last)), (1, true));
    }
    assert_eq!(sched_getaffinity(None), Ok(usable), "this one stays");
}

#[test]
fn cores_that_may_not_be_used_are_named() {
    let beyond = Cores::new(&[0, 4_000, 5_000]).expect_err("too many");
    let text = "cores 4000, 5000 do not exist or may not be used; this process uses ";
    assert!(beyond.to_string().starts_with(text), "{beyond}");
    let cores = Cores::new(&[usable_core(), 1_022, 1_023]).expect("can be numbered");
    let options = WorkerOptions {
        cores: Some(cores),
        ..WorkerOptions::default()
    };
    let refused = Workers::start(options).expect_err("do not exist");
    let text = "cores 1022, 1023 do not exist or may not be used; this process uses ";
    assert!(refused.to_string().starts_with(text), "{refused}");
}

fn usable_core() -> usize {
    let usable = sched_getaffinity(None).expect("runs somewhere");
    let last = (0..CpuSet::MAX_CPU).rfind(|core| usable.is_set(*core));
    last.expect("runs somewhere")
}
