//! The examples, as programs, against a node in this process.
//!
//! `cargo test -p crosstie-client` builds them; a run with `--test examples` alone does not.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crosstie_client::Client;
use crosstie_node::{EmbeddedNode, EmbeddedOptions, test_node};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// The time within which an example must print its next line, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running example.
struct Example {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let own = std::env::current_exe().expect("this test's program");
        let built = own.parent().and_then(Path::parent).expect("target/…/deps");
        let program = built.join("examples").join(name);
        let mut child = Command::new(&program)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; cargo build -p crosstie-client --examples",
                    program.display()
                )
            });
        let output = BufReader::new(child.stdout.take().expect("is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for a line.
    #[track_caller]
    fn await_line(&self, is_it: impl Fn(&str) -> bool) {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if is_it(&line) {
                return;
            }
            seen.push(line);
        }
        panic!("expected another line than {seen:#?}");
    }

    /// All lines until the end of the example.
    fn finish(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            lines.push(line);
        }
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{status}: {lines:#?}");
        lines
    }
}

#[test]
fn call() {
    let node = test_node().unwrap();
    let expected = [
        "2 + 3 = 5",
        "2 + 3 + 4 = 9",
        "refused: wamp.error.no_such_procedure",
    ];
    assert_eq!(Example::start("call", &[node.url()]).finish(), expected);
}

#[test]
fn progress() {
    let node = test_node().unwrap();
    let expected = [
        "1 …",
        "2 …",
        "3 is the last",
        "cancelled: wamp.error.canceled",
    ];
    assert_eq!(Example::start("progress", &[node.url()]).finish(), expected);
}

#[test]
fn pubsub() {
    let node = test_node().unwrap();
    let expected = [
        "com.example.reading.kitchen: 21.5 °C",
        "com.example.reading.cellar: 12 °C",
    ];
    assert_eq!(Example::start("pubsub", &[node.url()]).finish(), expected);
}

/// A node on a Unix socket in `directory`: another one can be started at the same address.
fn node_at_socket(directory: &Path) -> EmbeddedNode {
    let text = r#"{"version": 2, "workers": [{"type": "router",
        "realms": [{"name": "realm1", "roles": [{"name": "anonymous", "permissions": [
            {"uri": "*", "allow": {"call": true, "register": true, "publish": true, "subscribe": true}}]}]}],
        "transports": [{"type": "rawsocket", "endpoint": {"type": "unix", "path": "router.sock"}}]}]}"#;
    let mut options = EmbeddedOptions::from_json(text).unwrap();
    options.directory = Some(directory.to_owned());
    EmbeddedNode::start(options).unwrap()
}

#[tokio::test]
async fn the_service_comes_back() {
    let directory = TempDir::with_prefix_in("service-", "/tmp").unwrap();
    let node = node_at_socket(directory.path());
    let url = node.url().to_owned();
    let service = Example::start("service", &[&url]);
    service.await_line(|line| line == "serving");
    let client = Client::connect(&*url).await.unwrap();
    let time = client.call("com.example.time", ()).await.unwrap();
    assert!(time.argument::<u64>(0).unwrap() > 0);
    client.leave().await;
    node.stop().await;
    service.await_line(|line| line.starts_with("attempt 1 in "));
    let node = node_at_socket(directory.path());
    service.await_line(|line| line == r#"restored Procedure("com.example.time")"#);
    let client = Client::connect(node.url()).await.unwrap();
    client.call("com.example.time", ()).await.unwrap();
    client.leave().await;
    node.stop().await;
}

/// An authority's certificate, and a certificate that it signed with its key.
struct Certificates {
    authority: PathBuf,
    directory: TempDir,
}

fn certificates() -> Certificates {
    let directory = TempDir::with_prefix_in("typed-", "/tmp").unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own_key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let params = CertificateParams::new(names).unwrap();
    let own = params.signed_by(&own_key, &issuer).unwrap();
    let write = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("server.crt", own.pem());
    write("server.key", own_key.serialize_pem());
    Certificates {
        authority: write("authority.crt", authority.pem()),
        directory,
    }
}

/// RFC 8032, section 7.1, test 1.
const PRIVATE: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

#[test]
fn typed() {
    let certificates = certificates();
    let text = format!(
        r#"{{"version": 2, "workers": [{{"type": "router",
            "realms": [{{"name": "realm1", "roles": [{{"name": "shop", "permissions": [
                {{"uri": "*", "allow": {{"call": true, "register": true, "publish": true}}}}]}}]}}],
            "transports": [{{"type": "websocket",
                "endpoint": {{"type": "tcp", "interface": "127.0.0.1", "port": 0,
                    "tls": {{"certificate": "server.crt", "key": "server.key"}}}},
                "auth": {{"cryptosign": {{"type": "static", "principals": {{
                    "ann": {{"authorized_keys": ["{PUBLIC}"], "role": "shop"}}}}}}}}}}]}}]}}"#
    );
    let mut options = EmbeddedOptions::from_json(&text).unwrap();
    options.directory = Some(certificates.directory.path().to_owned());
    let node = EmbeddedNode::start(options).unwrap();
    let authority = certificates.authority.to_str().unwrap();
    let expected = [
        r#"joined as Some("ann")"#,
        "Bill { cents: 100, discount: None }",
        r#"(4, "again") {"article": "apples"}"#,
        r#"wamp.error.invalid_argument ["expected 1 argument, got 2"]"#,
    ];
    let lines = Example::start("typed", &[node.url(), authority, PRIVATE]).finish();
    assert_eq!(lines, expected);
    // With another authority, there is no session.
    let other = self::certificates();
    let mut refused = Example::start(
        "typed",
        &[node.url(), other.authority.to_str().unwrap(), PRIVATE],
    );
    assert!(!refused.child.wait().unwrap().success());
    assert_eq!(refused.lines.recv_timeout(PATIENCE).ok(), None);
}
