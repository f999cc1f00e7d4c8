//! Routers with deliberate faults: each is judged as failing, and none stops the run.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crosstie_client::{Anonymous, TlsOptions};
use crosstie_conformance::{FeatureReport, Judgement, Options, Verdict, embedded, run};
use crosstie_wamp::Serializer;

/// The router's fault at a message behind HELLO.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    /// It is silent from then on.
    Hangs,
    Closes,
    /// It sends bytes that are not a message.
    Babbles,
    /// It answers any request with an event of no subscription.
    Wrong,
    /// It sends messages without end.
    Floods,
}

/// Starts a router of RawSocket and JSON; returns its URL.
fn start(how: Broken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            // A client that has left ends this connection, and nothing else.
            thread::spawn(move || serve(stream, how).ok());
        }
    });
    format!("rs://{address}")
}

fn serve(mut stream: TcpStream, how: Broken) -> std::io::Result<()> {
    let mut handshake = [0; 4];
    stream.read_exact(&mut handshake)?;
    stream.write_all(&[0x7f, handshake[1], 0, 0])?;
    while let Some(message) = read(&mut stream)? {
        if message.starts_with("[1,") {
            write(
                &mut stream,
                r#"[2, 1234, {"roles": {"broker": {"features": {"publisher_exclusion": true}}, "dealer": {}}}]"#,
            )?;
            continue;
        }
        match how {
            Broken::Hangs => {}
            Broken::Closes => return Ok(()),
            Broken::Babbles => write(&mut stream, "\u{1}\u{2}not JSON")?,
            Broken::Wrong => write(&mut stream, "[36, 1, 2, {}]")?,
            Broken::Floods => loop {
                write(&mut stream, "[36, 1, 2, {}]")?;
            },
        }
    }
    Ok(())
}

fn read(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut head = [0; 4];
    if stream.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
}

fn write(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, text.as_bytes()].concat())
}

fn judge(how: Broken, files: &[&str]) -> Judgement {
    let mut features = embedded().unwrap();
    features.retain(|feature| files.contains(&feature.file.as_str()));
    let options = Options {
        endpoint: start(how).parse().unwrap(),
        also: Vec::new(),
        tls: TlsOptions::default(),
        realm: "realm1".to_owned(),
        serializer: Serializer::Json,
        batched: false,
        authenticator: Arc::new(Anonymous::default()),
        patience: match how {
            // A busy machine needs a part of that to answer HELLO.
            Broken::Hangs => Duration::from_secs(2),
            _ => Duration::from_secs(30),
        },
        scenario_max: Duration::from_secs(60),
        prefix: "com.test".to_owned(),
        given: BTreeMap::new(),
        unannounced: false,
        plays: 1,
    };
    run(options, &features, |_: &FeatureReport| {}).unwrap()
}

#[test]
fn each_is_judged_as_broken() {
    for (how, came) in [
        (Broken::Hangs, "nothing within"),
        (Broken::Closes, "the end of the connection"),
        (Broken::Babbles, "malformed message"),
        (Broken::Wrong, "EVENT 1 2 {}"),
        (Broken::Floods, "EVENT 1 2 {}"),
    ] {
        // Each scenario waits for its time limit here, so the file with the fewest is used.
        let file = match how {
            Broken::Hangs => "publisher_exclusion.txt",
            _ => "publishing.txt",
        };
        let judgement = judge(how, &[file]);
        let [feature] = judgement.features.as_slice() else {
            panic!("one feature was played");
        };
        assert_eq!(feature.verdict, Verdict::Fails);
        // Every scenario was played: the one before does not stop the next.
        let fails = feature.scenarios.iter();
        let fails = fails.filter(|one| one.verdict == Verdict::Fails).count();
        assert_eq!(fails, feature.scenarios.len(), "{judgement}");
        let first = &feature.scenarios[0];
        let shown = first.came.as_deref().unwrap();
        assert!(shown.contains(came), "{shown}");
        assert!(!first.transcript.is_empty());
    }
}

#[test]
fn unannounced_features_are_not_played_and_announced_ones_fail() {
    let files = ["publisher_exclusion.txt", "call_timeout.txt"];
    let judgement = judge(Broken::Hangs, &files);
    let shown = judgement.to_string();
    assert!(shown.contains("announced, but fails"), "{shown}");
    assert!(shown.contains("not announced"), "{shown}");
    assert_eq!(judgement.counts.not_announced, 4);
}
