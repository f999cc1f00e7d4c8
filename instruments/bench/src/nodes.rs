//! The measured nodes: ours and peers', each on a directory of its own with the same configuration.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::error::BenchError;
use crate::frame::{OWN, Site, Subject, Testbed};
use crate::machine::process_tree;
use crate::peer::Peer;
use crate::peer::crossbar::{find_on_path, version};
use crate::subject::{Case, Endpoint, NodeDirectory, ServerProcess, Target, guarded, own_program};

/// Crossbar.io starts in three to five seconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running node, and the address to join it: over a Unix socket, RawSocket and MessagePack.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) target: Target,
    pub(crate) processes: Vec<u32>,
}

impl Subject for Node {
    fn name(&self) -> &str {
        self.name
    }
}

/// The started processes, and the notes about them. They end with this.
#[derive(Default)]
pub(crate) struct Nodes {
    running: Vec<ServerProcess>,
    notes: Vec<String>,
    absent: Vec<String>,
}

/// Prepares a node's directory; returns its configuration, with RawSocket at this path.
pub(crate) type Configure<'c> = dyn Fn(&Path, &Path) -> Result<Value, BenchError> + 'c;

impl Nodes {
    /// Ours: one thread for messages, and one for requests if there are any; a worker of Crossbar.io has one for both.
    pub(crate) fn start_own(
        &mut self,
        site: &Site,
        configure: &Configure<'_>,
    ) -> Result<Node, BenchError> {
        let options = ["--loglevel", "error", "--threads", "1"];
        self.start_in(site, OWN, (OWN, &own_program()?), &options, configure)
    }

    /// Ours once more, in a directory of that name.
    pub(crate) fn start_another(
        &mut self,
        site: &Site,
        directory: &str,
        configure: &Configure<'_>,
    ) -> Result<Node, BenchError> {
        let options = ["--loglevel", "error", "--threads", "1"];
        self.start_in(site, directory, (OWN, &own_program()?), &options, configure)
    }

    /// A peer, if it is installed.
    pub(crate) fn start_peer(
        &mut self,
        site: &Site,
        peer: Peer,
        configure: &Configure<'_>,
    ) -> Result<Option<Node>, BenchError> {
        let Some(program) = find_on_path(peer.name()) else {
            self.note_absent(peer.name(), peer.note(None));
            return Ok(None);
        };
        self.note(peer.note(Some(&version(&program))));
        let (name, options) = (peer.name(), ["--loglevel", "error"]);
        self.start_in(site, name, (name, &program), &options, configure)
            .map(Some)
    }

    /// Another process that runs until the end.
    pub(crate) fn keep(&mut self, process: ServerProcess) {
        self.running.push(process);
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(crate) fn note_absent(&mut self, name: &str, note: String) {
        self.notes.push(note);
        self.absent.push(name.to_owned());
    }

    /// Waits for a condition of the last started process.
    pub(crate) fn wait_until(
        &mut self,
        is_there: impl FnMut() -> Result<(), String>,
    ) -> Result<(), BenchError> {
        match self.running.last_mut() {
            Some(process) => process.wait_until(PATIENCE, is_there),
            None => Ok(()),
        }
    }

    pub(crate) fn testbed(&self, name: &'static str) -> Testbed {
        Testbed::of_notes(name, &self.notes, &self.absent)
    }

    fn start_in(
        &mut self,
        site: &Site,
        directory: &str,
        (name, program): (&'static str, &Path),
        options: &[&str],
        configure: &Configure<'_>,
    ) -> Result<Node, BenchError> {
        let directory = site.directory.path().join(directory);
        fs::create_dir_all(&directory)?;
        let socket = directory.join("router.sock");
        let endpoint = Endpoint::Unix(socket.clone());
        let place = site.network.server_place(&site.allowed);
        let node = NodeDirectory {
            config: configure(&directory, &socket)?,
            directory: &directory,
            options,
            patience: PATIENCE,
        };
        let command = guarded(&site.executable, &place, program);
        let process = ServerProcess::start_node(command, name, &node, [endpoint.clone()])?;
        let processes = process_tree(process.id());
        self.running.push(process);
        Ok(Node {
            name,
            target: Target::own(endpoint, Case::OF_THE_DOCUMENT[0], "/"),
            processes,
        })
    }
}
