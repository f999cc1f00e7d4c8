//! A node of the built binary, on a port and a socket of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tempfile::TempDir;

/// The binary under test.
pub(crate) const CROSSTIE: &str = env!("CARGO_BIN_EXE_crosstie");

/// A running node; it ends with this.
pub(crate) struct Node {
    process: Child,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    directory: TempDir,
}

impl Node {
    /// Starts a node on its embedded default, on a free port.
    pub(crate) fn start() -> Self {
        Self::start_in(TempDir::new().unwrap(), "127.0.0.1:0")
    }

    /// Stops the node, and starts it again at the same address.
    pub(crate) fn restart(mut self) -> Self {
        self.end();
        let directory = std::mem::replace(&mut self.directory, TempDir::new().unwrap());
        Self::start_in(directory, &self.address)
    }

    fn start_in(directory: TempDir, listen: &str) -> Self {
        let process = Command::new(CROSSTIE)
            .args(["start", "--listen", listen, "--socket", "node.sock"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // In any case its drop ends the process.
        let mut node = Self {
            process,
            address: String::new(),
            directory,
        };
        let (sender, lines) = mpsc::channel();
        read_lines(node.process.stdout.take(), sender.clone());
        read_lines(node.process.stderr.take(), sender);
        let mut log = Vec::new();
        for line in lines {
            if let Some((_, rest)) = line.split_once("rs://") {
                let address = rest.split_whitespace().next();
                node.address = address.unwrap_or_default().to_owned();
            }
            if line.contains("Ready") && !node.address.is_empty() {
                return node;
            }
            log.push(line);
        }
        panic!("no node with an rs:// URL is ready:\n{}", log.join("\n"));
    }

    /// The URL of the listener for WebSocket over TCP, and so on.
    pub(crate) fn url(&self, scheme: &str) -> String {
        let socket = self.socket();
        match scheme {
            "ws" => format!("ws://{}/ws", self.address),
            "rs" => format!("rs://{}", self.address),
            "ws+unix" => format!("ws+unix://{}:/ws", socket.display()),
            "rs+unix" => format!("rs+unix://{}", socket.display()),
            other => panic!("no URL begins with {other}"),
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("node.sock")
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads lines for as long as there are any, so that the process never waits for a reader.
pub(crate) fn read_lines(stream: Option<impl Read + Send + 'static>, sender: mpsc::Sender<String>) {
    let stream = stream.unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
}
