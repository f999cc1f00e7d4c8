//! A node directory to be measured, and its copies: each started node has its own, with free ports in place of the
//! configured ones.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::subject::Endpoint;

/// The example with native components; built into the program, so that it is always available.
const NATIVE: &str =
    include_str!("../../../../examples/rpc_roundtrip_native/.crossbar/config.json");
pub(super) const NATIVE_NAME: &str = "rpc_roundtrip_native";
/// The example with Autobahn components, in the source tree.
const EXAMPLE: &str = "examples/rpc_roundtrip";

/// The configuration's place within the directory that its owner calls the node's.
const NODE_DIRECTORY: &str = ".crossbar";
const CONFIG: &str = "config.json";

/// More than this is not a node directory, but perhaps a home directory.
const FILES_MAX: usize = 10_000;
const BYTES_MAX: u64 = 256 << 20;
const DEPTH_MAX: usize = 16;

/// A node directory, its configuration read.
#[derive(Debug)]
pub(super) struct Original {
    /// The directory's own name.
    pub(super) name: String,
    /// `None` for the built-in one.
    root: Option<PathBuf>,
    /// Of the configuration within the root.
    node: PathBuf,
    config: Value,
}

/// A directory for one node alone.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) node: PathBuf,
    /// The addresses of its routers, by the transports' ids.
    pub(super) listening: Vec<(String, Endpoint)>,
}

/// A component that prints averages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The text in brackets in its lines.
    pub(super) title: String,
    /// Calls between two lines, if configured.
    pub(super) batch: Option<u64>,
}

impl Original {
    pub(super) fn native() -> Result<Self, BenchError> {
        Ok(Self {
            name: NATIVE_NAME.to_owned(),
            root: None,
            node: PathBuf::from(NODE_DIRECTORY),
            config: parse(NATIVE, Path::new(NATIVE_NAME))?,
        })
    }

    /// The example of the source tree, searched from here and from the program upwards.
    pub(super) fn example(executable: &Path) -> Result<Self, BenchError> {
        let here = std::env::current_dir()?;
        let from = here.ancestors().chain(executable.ancestors());
        let mut found = from.map(|at| at.join(EXAMPLE)).filter(|at| at.is_dir());
        match found.next() {
            Some(root) => Self::at(&root),
            None => Err(BenchError::Options(format!(
                "{EXAMPLE} is not here: give a node directory by --directory, or --native for the \
                 example that needs no files"
            ))),
        }
    }

    /// A directory with a configuration in it, or in `.crossbar` below it.
    pub(super) fn at(root: &Path) -> Result<Self, BenchError> {
        let nodes = [PathBuf::from(NODE_DIRECTORY), PathBuf::new()];
        let found = nodes
            .into_iter()
            .find(|node| root.join(node).join(CONFIG).is_file());
        let Some(node) = found else {
            return Err(BenchError::Options(missing(root)));
        };
        let path = root.join(&node).join(CONFIG);
        let named = fs::canonicalize(root)?;
        let name = named.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.into_owned(),
            config: parse(&fs::read_to_string(&path)?, &path)?,
            root: Some(root.to_owned()),
            node,
        })
    }

    /// Whether it has components in Python.
    pub(super) fn needs_python(&self) -> bool {
        self.workers().iter().any(|worker| {
            let components = worker["components"].as_array();
            components.is_some_and(|components| !components.is_empty())
        })
    }

    /// The interpreter that its containers configure.
    pub(super) fn python(&self) -> Option<&str> {
        let mut named = self
            .workers()
            .iter()
            .map(|w| w["options"]["python"].as_str());
        named.find_map(|python| python)
    }

    /// The components that print averages, as far as the configuration shows: those with a `title`, and guests with a
    /// `--name`.
    pub(super) fn callers(&self) -> Vec<Caller> {
        self.workers().iter().flat_map(callers_of).collect()
    }

    /// A copy below `to` for one node, with ports of its own.
    pub(super) fn copy(&self, to: &Path, python: Option<&Path>) -> Result<Copied, BenchError> {
        fs::create_dir_all(to)?;
        if let Some(root) = &self.root {
            Copying::default().copy(root, to, 0)?;
        }
        let node = to.join(&self.node);
        fs::create_dir_all(&node)?;
        let moves = Moves::of(self.workers(), &node)?;
        let mut config = self.config.clone();
        moves.apply(&mut config);
        if let Some(python) = python {
            set_python(&mut config, python);
        }
        let text = serde_json::to_vec_pretty(&config).map_err(io::Error::from)?;
        fs::write(node.join(CONFIG), text)?;
        let listening = listening(&config, &node);
        for (_, endpoint) in &listening {
            check_length(endpoint)?;
        }
        Ok(Copied { node, listening })
    }

    fn workers(&self) -> &[Value] {
        workers(&self.config)
    }
}

fn workers(config: &Value) -> &[Value] {
    config["workers"].as_array().map_or(&[], Vec::as_slice)
}

fn missing(root: &Path) -> String {
    let at = root.display();
    if !root.is_dir() {
        return format!("{at}: no such directory");
    }
    let yaml = [NODE_DIRECTORY, ""].iter().find_map(|node| {
        let path = root.join(node).join("config.yaml");
        path.is_file().then_some(path)
    });
    match yaml {
        Some(path) => format!(
            "{}: the bench puts free ports into config.json; `crosstie convert` makes it of YAML",
            path.display()
        ),
        None => {
            format!("{at}: no node directory: expected {NODE_DIRECTORY}/{CONFIG} or {CONFIG} in it")
        }
    }
}

fn parse(text: &str, path: &Path) -> Result<Value, BenchError> {
    let wrong = |why: String| BenchError::Options(format!("{}: {why}", path.display()));
    let config: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let routers = workers(&config).iter().filter(|w| w["type"] == "router");
    let transports = routers.flat_map(|router| router["transports"].as_array());
    match transports.flatten().next() {
        Some(_) => Ok(config),
        None => Err(wrong(
            "no router worker with a transport, so there is nothing to wait for".to_owned(),
        )),
    }
}

fn callers_of(worker: &Value) -> Vec<Caller> {
    let components = worker["components"].as_array().into_iter().flatten();
    let mut callers: Vec<Caller> = components
        .filter_map(|component| {
            let extra = &component["extra"];
            Some(Caller {
                title: extra["title"].as_str()?.to_owned(),
                batch: extra["batch"].as_u64(),
            })
        })
        .collect();
    let arguments = worker["arguments"].as_array().into_iter().flatten();
    let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    if let Some(title) = after("--name") {
        callers.push(Caller {
            title: title.to_owned(),
            batch: after("--batch").and_then(|batch| batch.parse().ok()),
        });
    }
    callers
}

fn set_python(config: &mut Value, python: &Path) {
    let workers = config["workers"].as_array_mut().into_iter().flatten();
    for worker in workers.filter(|worker| worker["components"].is_array()) {
        if worker["options"].is_null() {
            worker["options"] = json!({});
        }
        worker["options"]["python"] = json!(python);
    }
}

/// The addresses of routers, from a copy's configuration.
fn listening(config: &Value, node: &Path) -> Vec<(String, Endpoint)> {
    let routers = workers(config).iter().filter(|w| w["type"] == "router");
    let transports = routers.flat_map(|router| router["transports"].as_array());
    let mut listening = Vec::new();
    for (at, transport) in transports.flatten().enumerate() {
        let named = transport["id"].as_str().map(str::to_owned);
        let id = named.unwrap_or_else(|| format!("transport{}", at + 1));
        let endpoint = &transport["endpoint"];
        if let Some(path) = endpoint["path"].as_str() {
            listening.push((id, Endpoint::Unix(node.join(path))));
        } else if let Some(port) = port(&endpoint["port"]) {
            let interface = endpoint["interface"].as_str();
            let address: Option<IpAddr> = interface.and_then(|text| text.parse().ok());
            let address = address.filter(|address| !address.is_unspecified());
            let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
            listening.push((id, Endpoint::Tcp((address, port).into())));
        }
    }
    listening
}

/// The kernel's maximum.
const UNIX_PATH_BYTES_MAX: usize = 107;

fn check_length(endpoint: &Endpoint) -> Result<(), BenchError> {
    match endpoint {
        Endpoint::Unix(path) if path.as_os_str().len() > UNIX_PATH_BYTES_MAX => {
            Err(BenchError::Options(format!(
                "{}: the path of a Unix socket may have {UNIX_PATH_BYTES_MAX} bytes, not {}; copies \
                 are made in $TMPDIR: name a shorter one",
                path.display(),
                path.as_os_str().len()
            )))
        }
        _ => Ok(()),
    }
}

fn port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| u16::try_from(port).ok())
}

/// The replacements in a copy.
#[derive(Debug, Default)]
struct Moves {
    ports: BTreeMap<u16, u16>,
    /// Absolute paths of Unix sockets: another node may listen there.
    paths: BTreeMap<String, String>,
}

impl Moves {
    fn of(workers: &[Value], node: &Path) -> io::Result<Self> {
        let mut moves = Self::default();
        // All are held until all are found, so that no two are the same.
        let mut held = Vec::new();
        for worker in workers {
            let transports = worker["transports"].as_array().into_iter().flatten();
            for transport in transports.chain([&worker["transport"]]) {
                let endpoint = &transport["endpoint"];
                if let Some(port) = port(&endpoint["port"]) {
                    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                    moves.ports.insert(port, listener.local_addr()?.port());
                    held.push(listener);
                }
                if let Some(path) = endpoint["path"].as_str().filter(|p| p.starts_with('/')) {
                    let moved = node.join(format!("{}.sock", moves.paths.len()));
                    moves
                        .paths
                        .insert(path.to_owned(), moved.display().to_string());
                }
            }
        }
        Ok(moves)
    }

    fn apply(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    match port(field).and_then(|port| self.ports.get(&port)) {
                        Some(moved) if name == "port" => *field = json!(moved),
                        _ => self.apply(field),
                    }
                }
            }
            Value::String(text) => *text = self.moved(text),
            _ => {}
        }
    }

    /// A URL with the new port, a text with the new paths.
    fn moved(&self, text: &str) -> String {
        let mut moved = text.to_owned();
        for (path, new) in &self.paths {
            moved = moved.replace(path, new);
        }
        if !text.contains("://") {
            return moved;
        }
        // The port of a URL is at its end, or before its path.
        let Some((before, after)) = moved.rsplit_once(':') else {
            return moved;
        };
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (port, rest) = after.split_at(digits);
        match port
            .parse()
            .ok()
            .and_then(|port: u16| self.ports.get(&port))
        {
            Some(new) => format!("{before}:{new}{rest}"),
            None => moved,
        }
    }
}

/// A recursive copy with a bound.
#[derive(Debug, Default)]
struct Copying {
    files: usize,
    bytes: u64,
}

/// Files that a running node leaves, and files that only cost time.
const LEFT_OUT: [&str; 4] = ["__pycache__", ".git", "node.pid", "results"];

impl Copying {
    fn copy(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), BenchError> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            let (path, copied) = (entry.path(), to.join(&name));
            // A dangling link, as editors leave them, is not copied.
            let Ok(what) = fs::metadata(&path) else {
                continue;
            };
            if what.is_dir() {
                if depth == DEPTH_MAX {
                    return Err(too_much(from));
                }
                fs::create_dir_all(&copied)?;
                self.copy(&path, &copied, depth + 1)?;
            } else if what.is_file() {
                self.files += 1;
                self.bytes += what.len();
                if self.files > FILES_MAX || self.bytes > BYTES_MAX {
                    return Err(too_much(from));
                }
                fs::copy(&path, &copied)?;
            }
        }
        Ok(())
    }
}

fn too_much(at: &Path) -> BenchError {
    BenchError::Options(format!(
        "{}: too much to copy for each node: at most {FILES_MAX} files, {} MiB, {DEPTH_MAX} levels",
        at.display(),
        BYTES_MAX >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_ports_of_its_own() {
        let to = tempfile::tempdir().unwrap();
        let original = Original::native().unwrap();
        let copied = original.copy(to.path(), None).unwrap();
        let text = fs::read_to_string(copied.node.join(CONFIG)).unwrap();
        assert!(!text.contains("9000"), "{text}");
        let [(first, tcp), (second, unix)] = &copied.listening[..] else {
            panic!("{:?}", copied.listening)
        };
        assert_eq!([first, second], ["transport1", "transport2"]);
        assert_eq!(*unix, Endpoint::Unix(copied.node.join("crossbar.sock")));
        let Endpoint::Tcp(address) = tcp else {
            panic!("{tcp}")
        };
        let url = format!("ws://127.0.0.1:{}", address.port());
        assert_eq!(text.matches(&url).count(), 2, "{text}");
        assert!(!original.needs_python());
        let titles: Vec<String> = original.callers().into_iter().map(|c| c.title).collect();
        assert_eq!(
            titles,
            ["WAMP-UDS-RawSocket-MessagePack", "WAMP-TCP-WebSocket-JSON"]
        );
    }

    #[test]
    fn ports_and_sockets_are_replaced() {
        let moves = Moves {
            ports: BTreeMap::from([(9000, 1234)]),
            paths: BTreeMap::from([("/run/x.sock".to_owned(), "/tmp/0.sock".to_owned())]),
        };
        #[track_caller]
        fn check(moves: &Moves, mut value: Value, expected: &Value) {
            moves.apply(&mut value);
            assert_eq!(value, *expected);
        }
        let same = |value: Value| (value.clone(), value);
        for (value, expected) in [
            (json!({ "port": 9000 }), json!({ "port": 1234 })),
            same(json!({ "calls": 9000, "port": 8000 })),
            (json!("ws://localhost:9000"), json!("ws://localhost:1234")),
            (json!(["ws://[::1]:9000/ws"]), json!(["ws://[::1]:1234/ws"])),
            same(json!("ws://localhost:90001")),
            same(json!("at:9000")),
            (json!("rs+unix:/run/x.sock"), json!("rs+unix:/tmp/0.sock")),
            (
                json!({ "path": "/run/x.sock" }),
                json!({ "path": "/tmp/0.sock" }),
            ),
        ] {
            check(&moves, value, &expected);
        }
    }

    #[test]
    fn other_directories_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |expected: &str| {
            let error = Original::at(directory.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("expected .crossbar/config.json or config.json in it");
        fs::write(directory.path().join("config.yaml"), "version: 2").unwrap();
        refused("`crosstie convert` makes it of YAML");
        let config = directory.path().join(CONFIG);
        fs::write(&config, "{").unwrap();
        refused("config.json: EOF");
        fs::write(&config, r#"{"workers": [{"type": "container"}]}"#).unwrap();
        refused("no router worker with a transport");
        let error = Original::at(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("no such directory"));
    }

    #[test]
    fn components_name_their_callers_and_interpreters() {
        let directory = tempfile::tempdir().unwrap();
        let config = json!({ "workers": [
            { "type": "router", "transports": [{ "endpoint": { "type": "tcp", "port": 1 } }] },
            { "type": "container", "components": [{ "extra": { "title": "A", "batch": 50 } }] },
        ] });
        fs::write(directory.path().join(CONFIG), config.to_string()).unwrap();
        let original = Original::at(directory.path()).unwrap();
        assert!(original.needs_python());
        let expected = Caller {
            title: "A".to_owned(),
            batch: Some(50),
        };
        assert_eq!(original.callers(), [expected]);
        let to = tempfile::tempdir().unwrap();
        let python = Path::new("/opt/python3");
        let copied = original.copy(to.path(), Some(python)).unwrap();
        let text = fs::read_to_string(copied.node.join(CONFIG)).unwrap();
        assert!(text.contains(r#""python": "/opt/python3""#), "{text}");
    }
}
