//! Nodes of one realm, over which the subscribers are distributed in turn; the publisher is on the first.
//!
//! ```text
//!                            ┌─▶ subscribers
//! publisher ─▶ node ─▶ NATS ─┼─▶ node ─▶ subscribers
//!                            └─▶ node ─▶ subscribers
//! ```

use std::path::Path;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::fabric::await_calls;
use crate::frame::{Site, Stage};
use crate::machine::bind_processes;
use crate::nodes::PATIENCE;
use crate::peer::nats::{self, NatsServer};
use crate::subject::router::Listening;
use crate::subject::{Case, NodeDirectory, ServerProcess, Target, guarded, own_program};

/// Some nodes, and their NATS server.
pub(super) struct Spread {
    nodes: Vec<(Listening, ServerProcess)>,
    server: ServerProcess,
}

/// The name of so many in tables and results.
pub(super) fn name(nodes: usize) -> String {
    format!("{PREFIX}{nodes}")
}

/// The number of nodes of a subject with that name.
pub(super) fn nodes_of(name: &str) -> Option<usize> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

const PREFIX: &str = "nodes-";

impl Spread {
    /// Starts them, and waits until they see each other.
    pub(super) fn start(
        site: &Site,
        count: usize,
        threads: usize,
        program: &Path,
    ) -> Result<Self, BenchError> {
        let directory = site.directory.path().join(name(count));
        std::fs::create_dir_all(&directory)?;
        let place = site.network.server_place(&site.allowed);
        let NatsServer {
            address, process, ..
        } = nats::start_one(&nats::Starting {
            directory: &directory,
            executable: &site.executable,
            place: &place,
            program,
        })?;
        let threads = threads.to_string();
        let mut spread = Self {
            nodes: Vec::new(),
            server: process,
        };
        for at in 1..=count {
            let own = directory.join(at.to_string());
            let listening = Listening::in_directory(&own, site.network.free_server_address()?);
            let node = NodeDirectory {
                config: configuration(&listening, &format!("nats://{address}")),
                directory: &own,
                options: &["--loglevel", "warn", "--threads", &threads],
                patience: PATIENCE,
            };
            let command = guarded(&site.executable, &place, &own_program()?);
            let process =
                ServerProcess::start_node(command, "crosstie", &node, listening.endpoints())?;
            spread.nodes.push((listening, process));
        }
        let targets = spread.targets(Case::OF_THE_DOCUMENT[0]);
        let (here, others) = targets.split_at(1);
        for there in others {
            await_calls(&here[0], there)?;
        }
        Ok(spread)
    }

    /// Moves them to the cores of a stage; returns the address and process of each.
    pub(super) fn on(
        &self,
        stage: &Stage<'_>,
        case: Case,
    ) -> Result<(Vec<Target>, Vec<u32>), BenchError> {
        let processes: Vec<u32> = self.nodes.iter().map(|(_, node)| node.id()).collect();
        bind_processes(&processes, &stage.cores.router)?;
        bind_processes(&[self.server.id()], &stage.cores.router)?;
        let mut targets = self.targets(case);
        for target in &mut targets {
            target.endpoint = stage.site.network.reach(&target.endpoint)?;
        }
        Ok((targets, processes))
    }

    fn targets(&self, case: Case) -> Vec<Target> {
        let targets = self.nodes.iter();
        targets
            .map(|(listening, _)| listening.target(case))
            .collect()
    }
}

fn configuration(listening: &Listening, nats: &str) -> Value {
    let mut node = listening.node(&json!({}));
    node["workers"][0]["realms"][0]["fabric"] = json!({ "nats": { "urls": [nats] } });
    node
}
