//! Valid and invalid node directories.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crosstie_node::directory::{
    KeyOrigin, NodeDirectory, NodeKey, Occupant, Occupied, PID_FILE, RunDirectory, TakeError,
    is_held_by, occupant,
};
use tempfile::TempDir;

/// RFC 8032, section 7.1, test 1.
const PRIVATE: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

fn folder() -> TempDir {
    tempfile::tempdir_in("/tmp").expect("a folder")
}

/// A tree with these paths: those that end with a slash are folders.
fn tree(paths: &[&str]) -> TempDir {
    let folder = folder();
    for path in paths {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("a folder");
        if path.as_os_str().to_string_lossy().ends_with('/') {
            fs::create_dir_all(path).expect("a folder");
        } else {
            fs::write(path, "{\"workers\": []}").expect("a file");
        }
    }
    folder
}

struct Asked<'a> {
    directory: Option<&'a str>,
    config: Option<&'a str>,
    variables: &'a [(&'a str, &'a str)],
}

/// The existing files, the arguments, and the expected directory and configuration.
type Row<'a> = (&'a [&'a str], Asked<'a>, Option<(&'a str, &'a str)>);

const NOTHING: Asked<'_> = Asked {
    directory: None,
    config: None,
    variables: &[],
};

/// The result is relative to the tree; so are the paths in an error.
fn found(tree: &TempDir, asked: &Asked<'_>) -> Result<Option<(String, String)>, String> {
    let variables: HashMap<_, _> = asked.variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(OsString::from);
    let found = NodeDirectory::find(
        asked.directory.map(Path::new),
        asked.config.map(Path::new),
        tree.path(),
        &variable,
    );
    let root = tree.path().display().to_string();
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(&root).expect("in the tree");
        path.display().to_string()
    };
    found
        .map(|found| found.map(|found| (relative(found.path), relative(found.config))))
        .map_err(|e| e.to_string().replace(&root, ""))
}

fn check_found(rows: &[Row<'_>]) {
    for (paths, asked, expected) in rows {
        let expected = expected.map(|(path, config)| (path.to_owned(), config.to_owned()));
        assert_eq!(found(&tree(paths), asked), Ok(expected), "{paths:?}");
    }
}

#[test]
fn a_directory_is_found() {
    check_found(&[
        (&[], NOTHING, None),
        (
            &[".crossbar/config.json"],
            NOTHING,
            Some((".crossbar", ".crossbar/config.json")),
        ),
        (
            &[".crossbar/config.yml", "config.json"],
            NOTHING,
            Some((".crossbar", ".crossbar/config.yml")),
        ),
        (&["config.yaml"], NOTHING, Some(("", "config.yaml"))),
        (
            &["config.yaml", "config.json"],
            NOTHING,
            Some(("", "config.json")),
        ),
    ]);
    // Another program's configuration.
    let others = tree(&["config.json"]);
    fs::write(others.path().join("config.json"), "{}").expect("a file");
    assert_eq!(found(&others, &NOTHING), Ok(None));
}

#[test]
fn a_directory_or_a_configuration_is_asked_for() {
    let asked = |directory, config| Asked {
        directory,
        config,
        ..NOTHING
    };
    check_found(&[
        (
            &["n/config.json"],
            asked(Some("n"), None),
            Some(("n", "n/config.json")),
        ),
        (
            &["n/config.json", "n/b.json", "b.json"],
            asked(Some("./n/"), Some("b.json")),
            Some(("n", "n/b.json")),
        ),
        (
            &["n/", "b.json"],
            asked(Some("n"), Some("b.json")),
            Some(("n", "b.json")),
        ),
        // With a configuration.
        (
            &["a/b/c.json"],
            asked(None, Some("a/b/c.json")),
            Some(("a/b", "a/b/c.json")),
        ),
        (
            &[".crossbar/c.json"],
            asked(None, Some("c.json")),
            Some((".crossbar", ".crossbar/c.json")),
        ),
        (
            &["c.json", ".crossbar/c.json"],
            asked(None, Some("c.json")),
            Some(("", "c.json")),
        ),
    ]);
}

#[test]
fn a_variable_names_the_directory() {
    let with = |variables| Asked {
        variables,
        ..NOTHING
    };
    check_found(&[
        (
            &["n/config.json", ".crossbar/config.json"],
            with(&[("CROSSBAR_DIR", "n")]),
            Some(("n", "n/config.json")),
        ),
        (
            &["m/config.json", "n/config.json"],
            with(&[("CROSSBAR_DIR", "n"), ("CROSSTIE_DIR", "m")]),
            Some(("m", "m/config.json")),
        ),
        (
            &["n/config.json"],
            with(&[("CROSSBAR_DIR", "n"), ("CROSSTIE_DIR", "")]),
            Some(("n", "n/config.json")),
        ),
    ]);
}

#[test]
fn a_directory_that_is_not_there() {
    let rows: &[(&[&str], Asked<'_>, &str)] = &[
        (
            &[],
            Asked {
                directory: Some("n"),
                ..NOTHING
            },
            "node directory '/n' is not there; `crosstie init` makes one",
        ),
        (
            &[],
            Asked {
                variables: &[("CROSSBAR_DIR", "n")],
                ..NOTHING
            },
            "node directory '/n' (from $CROSSBAR_DIR) is not there; `crosstie init` makes one",
        ),
        (
            &["n/"],
            Asked {
                directory: Some("n"),
                ..NOTHING
            },
            "no configuration in node directory '/n': looked for config.json, config.yaml, config.yml",
        ),
        (
            &[".crossbar/"],
            NOTHING,
            "no configuration in node directory '/.crossbar': looked for config.json, config.yaml, config.yml",
        ),
        (
            &["n/config.json"],
            Asked {
                directory: Some("n"),
                config: Some("x.json"),
                ..NOTHING
            },
            "no configuration 'x.json': looked for '/n/x.json' and '/x.json'",
        ),
        (
            &[],
            Asked {
                config: Some("/no/such.json"),
                ..NOTHING
            },
            "no configuration '/no/such.json': looked for '/no/such.json'",
        ),
    ];
    for (paths, asked, expected) in rows {
        assert_eq!(
            found(&tree(paths), asked),
            Err((*expected).to_owned()),
            "{paths:?}"
        );
    }
}

#[test]
fn a_directory_is_located_without_its_configuration() {
    let none = |_: &str| None;
    let locate = |tree: &TempDir| NodeDirectory::locate(None, tree.path(), &none);
    for name in [PID_FILE, "key.priv", "config.json"] {
        let tree = tree(&[name]);
        assert_eq!(locate(&tree), Ok(tree.path().to_owned()), "{name}");
    }
    let tree = tree(&[".crossbar/"]);
    assert_eq!(locate(&tree), Ok(tree.path().join(".crossbar")));
    let error = locate(&folder()).expect_err("nothing there").to_string();
    assert!(
        error.starts_with("no node directory: expected --cbdir, "),
        "{error}"
    );
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

#[test]
fn a_key_is_made_once() {
    let folder = folder();
    let made = NodeKey::load_or_make(folder.path()).expect("a key");
    assert!(matches!(made.origin, KeyOrigin::Made), "{made:?}");
    let loaded = NodeKey::load_or_make(folder.path()).expect("a key");
    assert!(matches!(loaded.origin, KeyOrigin::Kept), "{loaded:?}");
    assert_eq!(
        (loaded.key, loaded.warnings),
        (made.key.clone(), Vec::new())
    );
    assert_ne!(NodeKey::generate().expect("a key"), made.key);

    let (private, public) = (
        folder.path().join("key.priv"),
        folder.path().join("key.pub"),
    );
    assert_eq!((mode(&private), mode(&public)), (0o600, 0o644));
    let text = fs::read_to_string(&public).expect("a file");
    assert!(text.contains(&format!(
        "\npublic-key-ed25519: {}\n",
        made.key.public_hexadecimal()
    )));
    assert!(!text.contains(&made.key.private_hexadecimal()));
    assert!(!format!("{:?}", made.key).contains(&made.key.private_hexadecimal()));
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        2,
        "and nothing else"
    );
}

/// In Crossbar.io's form.
fn crossbar_file(private: bool, public_key: &str) -> String {
    let more = if private {
        format!("private-key-ed25519: {PRIVATE}\nprivate-key-eth: 00\n")
    } else {
        String::new()
    };
    format!(
        "Crossbar.io node key\n\ncreator: me@there\ncreated-at: 2022-07-05T12:29:48.832Z\n\
         machine-id: 4d1d5d\nnode-authid: there\npublic-key-ed25519: {public_key}\n{more}"
    )
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn a_crossbar_directorys_key_is_kept() {
    let folder = folder();
    let (private, public) = (
        folder.path().join("key.priv"),
        folder.path().join("key.pub"),
    );
    write(&private, &crossbar_file(true, PUBLIC), 0o644);
    write(&public, &crossbar_file(false, PUBLIC), 0o644);
    let loaded = NodeKey::load_or_make(folder.path()).expect("a key");
    assert_eq!(loaded.key.public_hexadecimal(), PUBLIC);
    assert_eq!(loaded.key.private_hexadecimal(), PRIVATE);
    let place = private.display();
    let expected = format!("'{place}' could be read by others (mode 0644); it has mode 0600 now");
    assert_eq!(loaded.warnings, [expected]);
    assert_eq!(mode(&private), 0o600);

    fs::remove_file(&public).expect("it was there");
    let loaded = NodeKey::load_or_make(folder.path()).expect("a key");
    let expected = format!("'{}' was missing and is made anew", public.display());
    assert_eq!(loaded.warnings, [expected]);
    let made = fs::read_to_string(&public).expect("a file");
    assert!(
        made.contains("creator: me@there\n") && made.contains(PUBLIC),
        "{made}"
    );
    assert!(!made.contains(PRIVATE));
}

/// Checks the error for a key file, and optionally a public one beside it.
fn check_no_good(private: &str, public: Option<&str>, expected: &str) {
    let folder = folder();
    write(&folder.path().join("key.priv"), private, 0o600);
    if let Some(public) = public {
        write(&folder.path().join("key.pub"), public, 0o644);
    }
    let error = NodeKey::load_or_make(folder.path())
        .expect_err("no good")
        .to_string();
    let root = folder.path().display().to_string();
    assert_eq!(error.replace(&root, ""), expected);
    // The file may be the last copy of a key.
    let kept = fs::read_to_string(folder.path().join("key.priv")).expect("a file");
    assert_eq!(kept, private);
}

#[test]
fn a_key_file_that_is_corrupt() {
    let good = crossbar_file(true, PUBLIC);
    let without = |tag: &str| {
        let lines = good.lines().filter(|line| !line.starts_with(tag));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let rows = [
        (String::new(), "expected a line 'private-key-ed25519: …'"),
        (
            without("private-key-ed25519"),
            "expected a line 'private-key-ed25519: …'",
        ),
        (
            without("public-key-ed25519"),
            "expected a line 'public-key-ed25519: …'",
        ),
        (
            good.replace(PRIVATE, &PRIVATE[1..]),
            "expected 64 hexadecimal digits as 'private-key-ed25519'",
        ),
        (good.clone() + "half a li", "line 10: expected 'tag: value'"),
        (good.clone() + "creator: x", "line 10: a second 'creator'"),
        ("x".repeat(70_000), "expected at most 65536 bytes"),
    ];
    for (private, what) in rows {
        let expected = format!("key file '/key.priv' is corrupt: {what}");
        check_no_good(&private, None, &expected);
    }
}

#[test]
fn keys_that_are_no_pair() {
    let good = crossbar_file(true, PUBLIC);
    let other = "00".repeat(32);
    let not_a_pair = |file: &str| {
        format!(
            "key file '/{file}' does not belong with '/key.priv': its public-key-ed25519 is another \
             key's; expected {PUBLIC}"
        )
    };
    check_no_good(&good.replace(PUBLIC, &other), None, &not_a_pair("key.priv"));
    let public = crossbar_file(false, &other);
    check_no_good(&good, Some(&public), &not_a_pair("key.pub"));
}

#[test]
fn half_a_pair_of_keys() {
    let folder = folder();
    write(
        &folder.path().join("key.pub"),
        &crossbar_file(false, PUBLIC),
        0o644,
    );
    let error = NodeKey::load_or_make(folder.path())
        .expect_err("half")
        .to_string();
    assert!(error.starts_with("half a key pair: "), "{error}");
    write(&folder.path().join("key.priv"), "\u{0}", 0o600);
    fs::write(folder.path().join("key.priv"), b"\xff").expect("a file");
    let error = NodeKey::load(folder.path())
        .expect_err("no text")
        .to_string();
    assert!(error.ends_with("is corrupt: expected UTF-8"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_written_to() {
    // Not even root can create files there.
    let directory = Path::new("/proc");
    let loaded = NodeKey::load_or_make(directory).expect("a key, though not for long");
    assert!(matches!(loaded.origin, KeyOrigin::NotWritten), "{loaded:?}");
    assert_eq!(loaded.warnings.len(), 1);
    let error = Occupied::take(directory).expect_err("no file");
    assert!(matches!(error, TakeError::NotWritten { .. }), "{error}");
    assert_eq!(occupant(directory).expect("readable"), None);
}

#[test]
fn one_node_in_a_directory() {
    let folder = folder();
    assert_eq!(occupant(folder.path()).expect("readable"), None);
    let first = Occupied::take(folder.path()).expect("nobody is there");
    first
        .write(Some("rs+unix:///tmp/management.sock"))
        .expect("room");
    let found = occupant(folder.path()).expect("readable").expect("a node");
    assert_eq!(found.pid, Some(std::process::id()));
    assert_eq!(
        found.management.as_deref(),
        Some("rs+unix:///tmp/management.sock")
    );
    assert!(is_held_by(folder.path(), std::process::id()));
    assert!(!is_held_by(folder.path(), 1), "another process's id");
    let error = Occupied::take(folder.path())
        .expect_err("it is taken")
        .to_string();
    let expected = format!(
        "a node runs in '{}' already: process {}, since {}; `crosstie stop` ends it",
        folder.path().display(),
        std::process::id(),
        found.started.expect("a time")
    );
    assert_eq!(error, expected);
    // As if the disk was full.
    fs::write(folder.path().join(PID_FILE), "").expect("a file");
    let unwritten = occupant(folder.path()).expect("readable").expect("a node");
    assert_eq!(unwritten.pid, Some(std::process::id()));
    // A shorter text leaves nothing of the longer one.
    first.write(None).expect("room");
    let text = fs::read_to_string(folder.path().join(PID_FILE)).expect("a file");
    let told: serde_json::Value = serde_json::from_str(&text).expect("one value");
    assert_eq!(told["options"]["cbdir"].as_str(), folder.path().to_str());
    drop(first);
    assert!(!folder.path().join(PID_FILE).exists());
    drop(Occupied::take(folder.path()).expect("nobody is there"));
}

#[test]
fn the_files_of_a_killed_node_are_replaced() {
    for left in [
        "",
        "{\"pid\": 4",
        "{\"pid\": 1, \"management\": \"x\"}",
        "[]",
        "\0\0\0",
    ] {
        let folder = folder();
        fs::write(folder.path().join(PID_FILE), left).expect("a file");
        assert_eq!(occupant(folder.path()).expect("readable"), None, "{left}");
        let taken = Occupied::take(folder.path()).expect("nobody is there");
        let found = occupant(folder.path())
            .expect("readable")
            .expect("this one");
        assert_eq!(
            (found.pid, found.management),
            (Some(std::process::id()), None)
        );
        drop(taken);
    }
}

#[test]
fn a_crossbar_node_is_noticed() {
    let folder = folder();
    let program = folder.path().join("crossbar");
    // An interpreter that runs a script of that name, like Crossbar.io's own.
    fs::write(&program, "echo ready\nread line\n").expect("a file");
    let mut running = Command::new("sh")
        .arg(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let said = running.stdout.take().expect("is piped");
    BufReader::new(said)
        .read_line(&mut String::new())
        .expect("it is there");
    let told = format!(
        "{{\"pid\": {}, \"argv\": [], \"options\": {{}}}}",
        running.id()
    );
    fs::write(folder.path().join(PID_FILE), &told).expect("a file");
    let expected = Occupant {
        pid: Some(running.id()),
        is_crossbar: true,
        ..Occupant::default()
    };
    assert_eq!(occupant(folder.path()).expect("readable"), Some(expected));
    let error = Occupied::take(folder.path())
        .expect_err("it is taken")
        .to_string();
    assert!(error.contains("already: Crossbar.io, process "), "{error}");
    let kept = fs::read_to_string(folder.path().join(PID_FILE)).expect("a file");
    assert_eq!(kept, told);
    drop(running.stdin.take());
    running.wait().expect("it ended");
    assert_eq!(occupant(folder.path()).expect("readable"), None);
    Occupied::take(folder.path()).expect("nobody is there any more");
}

#[test]
fn a_private_place_for_sockets() {
    let folder = folder();
    let own = Path::new("/no/such");
    let live = RunDirectory::make(Some(folder.path()), own).expect("a directory");
    assert_eq!(mode(live.path()), 0o700);
    drop(UnixListener::bind(live.socket("management.sock")).expect("a socket"));

    let at = |name: &str| folder.path().join(name);
    for name in [
        "crosstie-router-killed",
        "crosstie-router-not-ours",
        "crosstie-sources",
    ] {
        fs::create_dir(at(name)).expect("a folder");
        drop(UnixListener::bind(at(name).join("management.sock")).expect("a socket"));
    }
    fs::write(at("crosstie-router-not-ours/work"), "dear to somebody").expect("a file");
    let next = RunDirectory::make(Some(folder.path()), own).expect("a directory");
    assert!(
        live.socket("management.sock").exists(),
        "a living node keeps its own"
    );
    assert!(!at("crosstie-router-killed").exists());
    assert!(at("crosstie-router-not-ours/work").exists());
    assert!(at("crosstie-sources/management.sock").exists());
    let path = next.path().to_owned();
    drop((live, next));
    assert!(!path.exists());
}

#[test]
fn sockets_are_in_the_nodes_own_directory() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at(".run-killed")).expect("a folder");
    drop(UnixListener::bind(at(".run-killed").join("management.sock")).expect("a socket"));
    for preferred in [None, Some(Path::new("/no/such"))] {
        let made = RunDirectory::make(preferred, folder.path()).expect("a directory");
        assert!(made.path().starts_with(folder.path()));
        assert_eq!(mode(made.path()), 0o700);
        assert!(!at(".run-killed").exists());
        let entries = fs::read_dir(made.path()).expect("a directory");
        assert_eq!(entries.count(), 0);
    }
    let entries = fs::read_dir(folder.path()).expect("a directory");
    assert_eq!(entries.count(), 0);
}

#[test]
fn a_place_that_is_too_deep_for_sockets() {
    let folder = folder();
    let deep = folder.path().join("d".repeat(60)).join("e".repeat(60));
    fs::create_dir_all(&deep).expect("a folder");
    for preferred in [deep.as_path(), Path::new("/no/such"), Path::new("relative")] {
        let made = RunDirectory::make(Some(preferred), &deep).expect("a directory elsewhere");
        assert!(!made.path().starts_with(&deep));
        UnixListener::bind(made.socket(&"s".repeat(24))).expect("a socket of the longest name");
    }
    // A node's own directory may have any depth.
    let taken = Occupied::take(&deep).expect("nobody is there");
    assert!(occupant(&deep).expect("readable").is_some());
    drop(taken);
}

#[test]
fn a_pipe_in_place_of_a_file_is_an_immediate_error() {
    let folder = folder();
    let pipe = |name: &str| {
        let path = folder.path().join(name);
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
    };
    pipe("key.priv");
    let error = NodeKey::load_or_make(folder.path()).expect_err("no key");
    let text = error.to_string();
    assert!(text.contains("key.priv"), "{text}");
    assert!(text.contains("expected a regular file"), "{text}");

    pipe(PID_FILE);
    let error = Occupied::take(folder.path()).expect_err("no file");
    assert!(matches!(error, TakeError::NotWritten { .. }), "{error}");
    let error = occupant(folder.path()).expect_err("no file");
    assert!(error.to_string().contains("regular file"), "{error}");
    assert!(!is_held_by(folder.path(), std::process::id()));
}
