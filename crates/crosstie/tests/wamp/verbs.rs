//! `crosstie call`, `register`, `publish` and `subscribe`, as a user types them.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::node::{CROSSTIE, Node, read_lines};

/// The output of a verb that has ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn crosstie(arguments: &[&str]) -> Said {
    let output = Command::new(CROSSTIE).args(arguments).output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running verb, after its line that it is ready.
struct Running {
    process: Child,
    out: mpsc::Receiver<String>,
    err: mpsc::Receiver<String>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(CROSSTIE)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, out) = mpsc::channel();
        read_lines(process.stdout.take(), sender);
        let (sender, err) = mpsc::channel();
        read_lines(process.stderr.take(), sender);
        let running = Self { process, out, err };
        let ready = running.complaint();
        assert!(
            ready.starts_with("crosstie: registered") || ready.starts_with("crosstie: subscribed"),
            "{ready}"
        );
        running
    }

    fn line(&self) -> String {
        self.out.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn complaint(&self) -> String {
        self.err.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn interrupt(&self) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let code = self.process.wait().unwrap().code();
        (code, self.out.iter().collect())
    }
}

#[test]
fn calls_and_an_echo() {
    let node = Node::start();
    let url = node.url("ws");
    let echo = Running::start(&["register", "com.echo", "--echo", "--url", &url]);
    let check = |arguments: &[&str], line: &str| {
        let mut all = vec!["call", "com.echo", "--url", &url];
        all.extend(arguments);
        let said = crosstie(&all);
        assert_eq!(said.out, format!("{line}\n"), "{arguments:?} {said:?}");
        assert_eq!(said.code, Some(0));
    };
    check(&[], "null");
    check(&["5"], "5");
    check(&["-5"], "-5");
    check(&["hello"], "\"hello\"");
    check(&["hello world"], "\"hello world\"");
    check(&["\"5\""], "\"5\"");
    check(&[r#"{"a": [1, 2.5, null]}"#], r#"{"a":[1,2.5,null]}"#);
    check(&["1", "two"], r#"{"args":[1,"two"],"kwargs":{}}"#);
    check(&["5", "--full"], r#"{"args":[5],"kwargs":{}}"#);
    check(
        &["--kwargs", r#"{"unit": "kg"}"#],
        r#"{"args":[],"kwargs":{"unit":"kg"}}"#,
    );
    for serializer in ["json", "msgpack", "cbor"] {
        check(&["[1,\"a\"]", "--serializer", serializer], "[1,\"a\"]");
    }
    for scheme in ["rs", "ws+unix", "rs+unix"] {
        let said = crosstie(&["call", "com.echo", "7", "--url", &node.url(scheme)]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "7\n"), "{scheme}");
    }
    echo.interrupt();
    assert_eq!(echo.end(), (Some(0), vec![]));
    let said = crosstie(&["call", "com.echo", "--url", &url]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("wamp.error.no_such_procedure"),
        "{said:?}"
    );
}

#[test]
fn a_constant_and_a_command() {
    let node = Node::start();
    let url = node.url("ws");
    let register = |procedure, how: &[&str]| {
        let mut all = vec!["register", procedure, "--url", &url, "--count", "1"];
        all.extend(how);
        Running::start(&all)
    };
    let check = |how: &[&str], code, out: &str, err: &str| {
        let callee = register("com.a", how);
        let said = crosstie(&["call", "com.a", "1", "--url", &url]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(code), out),
            "{said:?}"
        );
        assert!(said.err.contains(err), "{said:?}");
        assert_eq!(callee.end().0, Some(0));
    };
    check(&["--answer", r#"{"a": 1}"#], 0, "{\"a\":1}\n", "");
    check(&["--answer", "hello"], 0, "\"hello\"\n", "");
    check(
        &["--command", "cat"],
        0,
        "{\"args\":[1],\"kwargs\":{}}\n",
        "",
    );
    check(&["--command", "echo 1 2"], 0, "\"1 2\"\n", "");
    check(&["--command", "true"], 0, "null\n", "");
    check(
        &["--command", "echo $CROSSTIE_PROCEDURE"],
        0,
        "\"com.a\"\n",
        "",
    );
    check(
        &["--command", "echo no >&2; exit 3"],
        1,
        "",
        r#"crosstie.error.command_failed ["no"] {"status":3}"#,
    );
}

#[test]
fn a_cancelled_command_is_killed() {
    let node = Node::start();
    let url = node.url("ws");
    let directory = tempfile::TempDir::new().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    // The command waits for a writer that never comes.
    let command = format!("exec cat {}", fifo.display());
    let arguments = ["--command", &command, "--url", &url, "--count", "1"];
    let callee = Running::start(&[&["register", "com.slow"], &arguments[..]].concat());
    let said = crosstie(&["call", "com.slow", "--timeout", "100ms", "--url", &url]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("no result of com.slow"), "{said:?}");
    // It unregisters, and so waits for its handler: the command must have ended.
    assert_eq!(callee.end().0, Some(0));
}

#[test]
fn events() {
    let node = Node::start();
    let url = node.url("ws");
    let exact = Running::start(&["subscribe", "com.news", "--count", "2", "--url", &url]);
    let prefix = [
        "subscribe",
        "com",
        "--match",
        "prefix",
        "--details",
        "--url",
        &url,
    ];
    let prefix = Running::start(&prefix);
    let said = crosstie(&["publish", "com.news", "1", "--url", &url]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    let acknowledged = [
        "publish",
        "com.news",
        "--kwargs",
        r#"{"n": 2}"#,
        "--acknowledge",
        "--url",
        &url,
    ];
    let said = crosstie(&acknowledged);
    assert_eq!(said.code, Some(0), "{said:?}");
    let publication = said.out.trim();
    assert!(publication.parse::<u64>().is_ok(), "{said:?}");
    let lines = [
        r#"{"args":[1],"kwargs":{}}"#.to_owned(),
        r#"{"args":[],"kwargs":{"n":2}}"#.to_owned(),
    ];
    assert_eq!(exact.end(), (Some(0), lines.to_vec()));
    assert!(
        prefix
            .line()
            .starts_with(r#"{"topic":"com.news","publication":"#)
    );
    assert_eq!(
        prefix.line(),
        format!(
            r#"{{"topic":"com.news","publication":{publication},"publisher":null,"args":[],"kwargs":{{"n":2}}}}"#
        )
    );
    // No session is eligible, so the next event is of the next publication.
    for arguments in [
        &["publish", "com.x", "3", "--eligible", "1"][..],
        &["publish", "com.x", "3", "--exclude-authrole", "anonymous"],
        &["publish", "com.x", "4"],
    ] {
        let said = crosstie(&[arguments, &["--url", &url]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    assert!(prefix.line().contains(r#""args":[4]"#));
    prefix.interrupt();
    assert_eq!(prefix.end().0, Some(0));
}

#[test]
fn what_goes_wrong() {
    let node = Node::start();
    let url = node.url("ws");
    let check = |arguments: &[&str], code, err: &str| {
        let said = crosstie(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?} {said:?}");
        assert!(said.err.contains(err), "{arguments:?} {said:?}");
        assert_eq!(said.out, "");
    };
    let nobody = "rs+unix:/nonexistent/node.sock";
    check(&["call", "a", "--url", nobody], 2, "`crosstie start`");
    check(&["subscribe", "a", "--url", nobody], 2, "cannot reach");
    check(&["publish", "a", "--url", "http://x/"], 2, "ws://");
    check(
        &["call", "a", "{x", "--url", &url],
        2,
        "it must be JSON, and it is not",
    );
    check(
        &["call", "a", "--kwargs", "[]", "--url", &url],
        2,
        "JSON object",
    );
    check(
        &["call", "a", "--realm", "b", "--url", &url],
        1,
        "no_such_realm",
    );
    check(&["call", "a", "--timeout", "5d", "--url", &url], 2, "unit");
    check(&["register", "a", "--url", &url], 2, "--echo");
    check(
        &["register", "a", "--echo", "--answer", "1", "--url", &url],
        2,
        "cannot be used with",
    );
    check(&["call", "a..b", "--url", &url], 1, "invalid_uri");
    check(
        &["register", "a..b", "--echo", "--url", &url],
        1,
        "invalid_uri",
    );
    check(&["subscribe", "a..b", "--url", &url], 1, "invalid_uri");
    check(
        &["publish", "a..b", "--acknowledge", "--url", &url],
        1,
        "invalid_uri",
    );
    let other = Running::start(&["register", "taken", "--echo", "--url", &url]);
    check(
        &["register", "taken", "--echo", "--url", &url],
        1,
        "procedure_already_exists",
    );
    assert_eq!(other.end_now(), Some(0));
}

impl Running {
    fn end_now(self) -> Option<i32> {
        self.interrupt();
        self.end().0
    }
}
