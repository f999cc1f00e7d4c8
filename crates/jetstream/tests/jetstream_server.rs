//! A real server. Built and run only by the suite that installs it (`make test SUITES=jetstream`).

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crosstie_jetstream::answer::{STREAM_NAME_IN_USE, StreamInfo};
use crosstie_jetstream::{
    Append, Connection, Failed, Put, Register, Server, Speaking, Stream, StreamConfig,
};
use tempfile::TempDir;

/// A NATS server with JetStream, which ends with this value.
struct Nats {
    process: Child,
    server: Server,
    _directory: TempDir,
}

impl Nats {
    fn start(more: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let file = directory.path().join("nats.conf");
        let store = directory.path().display();
        let config = format!(
            "server_name: n1\nlisten: \"127.0.0.1:{port}\"\n\
             jetstream {{ store_dir: \"{store}\" }}\n{more}\n"
        );
        fs::write(&file, config).expect("it is written");
        let process = Command::new(program())
            .arg("-c")
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server, which scripts/needs.py installs");
        Self {
            process,
            server: Server {
                host: "127.0.0.1".to_owned(),
                port,
                is_tls: false,
            },
            _directory: directory,
        }
    }

    async fn connection(&self, speaking: &Speaking) -> Connection {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match Connection::dial(&self.server, speaking).await {
                Ok(connection) => return connection,
                Err(why) if Instant::now() > deadline => panic!("{why}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = target.map_or_else(|| root.join("target"), |target| root.join(target));
    target.join("nats-server/nats-server")
}

fn speaking() -> Speaking {
    Speaking::read(None, &[], Path::new(".")).expect("nothing is to be read")
}

fn config() -> StreamConfig {
    StreamConfig {
        subjects: vec!["A1.v.log".to_owned(), "A1.v.own".to_owned()],
        replicas: 1,
        more: Default::default(),
    }
}

async fn info(stream: &Stream) -> StreamInfo {
    let info = stream.info().await.expect("an answer");
    info.expect("the stream is there")
}

#[tokio::test]
async fn a_stream_is_a_log_that_is_a_lock() {
    let nats = Nats::start("");
    let connection = nats.connection(&speaking()).await;
    assert!(connection.greeting().has_streams);
    let stream = Stream::new(connection.clone(), "A1_v");
    assert_eq!(stream.info().await, Ok(None));
    let made = stream.create(&config()).await.expect("it is made");
    assert_eq!((made.last, made.storage.as_str()), (0, "file"));
    stream
        .create(&config())
        .await
        .expect("it is as it is to be");
    let other = StreamConfig {
        subjects: vec!["A1.v.other".to_owned()],
        ..config()
    };
    let refused = stream.create(&other).await;
    assert!(
        matches!(&refused, Err(Failed::Refused(p)) if p.number == STREAM_NAME_IN_USE),
        "{refused:?}"
    );

    assert_eq!(
        stream.append("A1.v.own", 0, b"owner").await,
        Ok(Append::Appended(1))
    );
    for after in [0, 2, 7] {
        let refused = stream.append("A1.v.log", after, b"late").await;
        assert_eq!(refused, Ok(Append::Refused), "{after}");
    }
    for after in 1..10 {
        let entry = vec![after as u8; 1000];
        let appended = stream.append("A1.v.log", after, &entry).await;
        assert_eq!(appended, Ok(Append::Appended(after + 1)));
    }
    // All, parts by count and by bytes, and from behind the end.
    let sequences = async |from, count, bytes_max| {
        let batch = stream.read(from, count, bytes_max).await.expect("a batch");
        let entries = batch.entries.iter();
        entries.map(|(sequence, _)| *sequence).collect::<Vec<_>>()
    };
    assert_eq!(
        sequences(0, 100, 1 << 20).await,
        (1..=10).collect::<Vec<_>>()
    );
    assert_eq!(sequences(3, 2, 1 << 20).await, [3, 4]);
    let by_bytes = sequences(2, 100, 2500).await;
    assert!(
        by_bytes.starts_with(&[2]) && by_bytes.len() < 9,
        "{by_bytes:?}"
    );
    assert_eq!(sequences(11, 100, 1 << 20).await, [0_u64; 0]);
    assert_eq!(
        stream.last_of("A1.v.own").await,
        Ok(Some((1, b"owner".to_vec())))
    );
    assert_eq!(stream.last_of("A1.v.none").await, Ok(None));

    stream.purge(4).await.expect("it is purged");
    let after = info(&stream).await;
    assert_eq!((after.first, after.last, after.messages), (5, 10, 6));
    assert_eq!(sequences(1, 2, 1 << 20).await, [5, 6]);
}

#[tokio::test]
async fn invalid_and_unanswered_requests_fail() {
    let nats = Nats::start("");
    let connection = nats.connection(&speaking()).await;
    let time = Duration::from_secs(5);
    let nobody = connection.request("no.body", &[], b"", time).await;
    assert_eq!(nobody, Err(Failed::Nobody));
    for subject in ["", "a..b", "a b", "a.*", "a\r\nPUB x 0"] {
        let refused = connection.request(subject, &[], b"", time).await;
        assert_eq!(refused, Err(Failed::Subject), "{subject}");
    }
    let mut answers = connection.subscribe("a.*", 100).expect("a subscription");
    let other = nats.connection(&speaking()).await;
    let asked = other.request("a.b", &[("A", "1")], b"hello", time);
    let answered = async {
        let question = answers.next().await.expect("a question");
        assert_eq!(
            (question.header("A"), &*question.payload),
            (Some("1"), &b"hello"[..])
        );
        let reply = question.reply.expect("where the answer goes");
        connection.publish(&reply, b"there").expect("it is sent");
    };
    let (answer, ()) = tokio::join!(asked, answered);
    assert_eq!(answer.expect("an answer").payload, b"there");
    // Beyond the maximum the subscription ends, the connection does not.
    for _ in 0..30 {
        other.publish("a.c", b"0123456789").expect("it is sent");
    }
    while answers.next().await.is_some() {}
    assert!(!connection.has_ended());
    drop(nats);
    assert!(!connection.ended().await.is_empty());
    let ended = connection.request("a.b", &[], b"", time).await;
    assert!(matches!(ended, Err(Failed::Ended(_))), "{ended:?}");
}

/// The key of NATS' documentation.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const USER: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

#[tokio::test]
async fn a_user_logs_in_by_its_key_and_is_denied_other_subjects() {
    let nats = Nats::start(&format!(
        "authorization {{ users: [{{ nkey: {USER}, permissions: {{ publish: [\"a.>\"], \
         subscribe: [\"_INBOX.>\"] }} }}] }}"
    ));
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("user.nk"), SEED).expect("it is written");
    let known = Speaking::read(Some("user.nk"), &[], directory.path()).expect("the seed");
    let connection = nats.connection(&known).await;
    let unknown = Connection::dial(&nats.server, &speaking()).await;
    let why = unknown.expect_err("it is not known");
    assert!(why.contains("Authorization Violation"), "{why}");
    let time = Duration::from_millis(300);
    let silent = connection.request("b.c", &[], b"", time).await;
    assert_eq!(silent, Err(Failed::Silent));
    let long = Duration::from_secs(60);
    let denied = tokio::time::timeout(long, async {
        loop {
            match connection.denied() {
                Some(denied) => return denied,
                None => tokio::task::yield_now().await,
            }
        }
    });
    let denied = denied.await.expect("it was denied");
    assert!(denied.contains("b.c"), "{denied}");
    let nobody = connection.request("a.b", &[], b"", long).await;
    assert_eq!(nobody, Err(Failed::Nobody));
}

#[tokio::test]
async fn a_key_is_written_only_if_unchanged() {
    let nats = Nats::start("");
    let register = Register::new(nats.connection(&speaking()).await, "R1_v");
    for _ in 0..2 {
        let made = register.create("R1.v.>", 1).await;
        made.expect("it is made, or there");
    }
    let key = "R1.v.a=2Eb";
    assert_eq!(register.get(key).await, Ok(None));
    let first = register.put(key, 0, b"one", None).await;
    let Ok(Put::Done(first)) = first else {
        panic!("nobody was there before: {first:?}");
    };
    assert_eq!(register.put(key, 0, b"two", None).await, Ok(Put::Refused));
    assert_eq!(register.get(key).await, Ok(Some((first, b"one".to_vec()))));
    let second = Some(Duration::from_secs(1));
    let second = register.put(key, first, b"two", second).await;
    assert!(matches!(second, Ok(Put::Done(_))), "{second:?}");
    // It lives for a second.
    let deadline = Instant::now() + Duration::from_secs(30);
    while register.get(key).await.expect("an answer").is_some() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let again = register.put(key, 0, b"three", None).await;
    assert!(matches!(again, Ok(Put::Done(_))), "{again:?}");
}
