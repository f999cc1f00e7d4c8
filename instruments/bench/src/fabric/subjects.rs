//! The subjects: a node without a fabric, one alone with one, two that share a realm, and NATS without nodes; two nodes
//! with a replicated vhost.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::Case;
use super::options::FabricOptions;
use crate::broker::{Broker, Spliced};
use crate::error::BenchError;
use crate::frame::{FLOOR, OWN, Site, Subject, Testbed};
use crate::load::{Load, Window, drive, monotonic_ns};
use crate::machine::bind_processes;
use crate::nodes::{self, Node, PATIENCE};
use crate::peer::nats::{self, NatsServer};
use crate::process::WorkerError;
use crate::subject::{Target, node_configuration};
use crate::wamp::callee::Callee;
use crate::wamp::caller::{Caller, PairOrder};

/// Without a fabric, and with one but without another node.
pub(super) const OFF: &str = "off";
pub(super) const ALONE: &str = "alone";
/// The node that owns a vhost, without another one before it.
pub(super) const OWNER: &str = "owner";

/// One of them.
#[derive(Clone)]
pub(super) struct FabricSubject {
    pub(super) name: &'static str,
    /// The processes whose processor time is counted: the nodes, or for the floor the server.
    pub(super) processes: Vec<u32>,
    /// The nodes' NATS server.
    pub(super) server: Vec<u32>,
    pub(super) ends: Ends,
}

/// The addresses of callers and publishers, and of callees and subscribers.
#[derive(Clone)]
pub(super) enum Ends {
    Nodes(Target, Target),
    Nats(SocketAddr),
    Vhost(Broker),
}

impl Subject for FabricSubject {
    fn name(&self) -> &str {
        self.name
    }
}

#[derive(Default)]
pub(super) struct Subjects {
    of_a_realm: Vec<FabricSubject>,
    nodes: nodes::Nodes,
    spliced: Option<Spliced>,
}

impl Subjects {
    pub(super) fn start(site: &Site, options: &FabricOptions) -> Result<Self, BenchError> {
        let program = options.program()?;
        let (of_a_vhost, of_a_realm): (Vec<_>, Vec<_>) = options
            .definite_cases()
            .into_iter()
            .partition(|case| case.is_of_a_vhost());
        let mut subjects = match of_a_realm.is_empty() {
            true => Self::default(),
            false => Self::start_realm(site, &program)?,
        };
        if !of_a_vhost.is_empty() {
            subjects.spliced = Some(Spliced::start(site, &program)?);
        }
        Ok(subjects)
    }

    fn start_realm(site: &Site, program: &Path) -> Result<Self, BenchError> {
        // The single node has a server of its own, so that it sees no other.
        let mut nodes = nodes::Nodes::default();
        let NatsServer {
            address, process, ..
        } = start_server(site, program)?;
        let server_id = process.id();
        nodes.keep(process);
        nodes.note("one server of NATS, beside the nodes".to_owned());
        let mut start = |directory: &str, is_on: bool| {
            let url = is_on.then(|| format!("nats://{address}"));
            let configure = |_: &Path, socket: &Path| Ok(configuration(socket, url.as_deref()));
            nodes.start_another(site, directory, &configure)
        };
        let off = start(OFF, false)?;
        let here = start("here", true)?;
        let there = start("there", true)?;
        await_calls(&here.target, &there.target)?;
        let (alone, its_server) = start_alone(site, program, &mut nodes)?;
        let of_node = |name, node: &Node, server| FabricSubject {
            name,
            processes: node.processes.clone(),
            server,
            ends: Ends::Nodes(node.target.clone(), node.target.clone()),
        };
        let two = FabricSubject {
            name: OWN,
            processes: [&*here.processes, &*there.processes].concat(),
            server: vec![server_id],
            ends: Ends::Nodes(here.target.clone(), there.target.clone()),
        };
        let floor = FabricSubject {
            name: FLOOR,
            processes: vec![server_id],
            server: Vec::new(),
            ends: Ends::Nats(address),
        };
        Ok(Self {
            of_a_realm: vec![
                two,
                floor,
                of_node(OFF, &off, Vec::new()),
                of_node(ALONE, &alone, vec![its_server]),
            ],
            nodes,
            spliced: None,
        })
    }

    /// All subjects of a case, moved there with their servers.
    pub(super) fn on(
        &mut self,
        cores: &[usize],
        case: Case,
    ) -> Result<Vec<FabricSubject>, BenchError> {
        let subjects = match (&mut self.spliced, case.is_of_a_vhost()) {
            (Some(spliced), true) => of_a_vhost(spliced)?,
            _ => self.of_a_realm.clone(),
        };
        for subject in &subjects {
            bind_processes(&subject.processes, cores)?;
            bind_processes(&subject.server, cores)?;
        }
        Ok(subjects)
    }

    pub(super) fn testbed(&self) -> Testbed {
        self.nodes.testbed("nodes")
    }
}

/// Two ways to one vhost. Both nodes' time is counted for both, so that the messages that they exchange anyway are in
/// both.
fn of_a_vhost(spliced: &mut Spliced) -> Result<Vec<FabricSubject>, BenchError> {
    let (processes, server) = (spliced.processes()?, vec![spliced.server()]);
    let ways = [(OWN, &spliced.elsewhere), (OWNER, &spliced.owner)];
    let subjects = ways.map(|(name, broker)| FabricSubject {
        name,
        processes: processes.clone(),
        server: server.clone(),
        ends: Ends::Vhost(broker.clone()),
    });
    Ok(subjects.into())
}

/// A node with a fabric whose server has no other node.
fn start_alone(
    site: &Site,
    program: &Path,
    nodes: &mut nodes::Nodes,
) -> Result<(Node, u32), BenchError> {
    let NatsServer {
        address, process, ..
    } = start_server(site, program)?;
    let id = process.id();
    nodes.keep(process);
    let url = format!("nats://{address}");
    let node = nodes.start_another(site, ALONE, &|_, socket| {
        Ok(configuration(socket, Some(&url)))
    });
    Ok((node?, id))
}

fn configuration(socket: &Path, nats: Option<&str>) -> Value {
    let transports = json!([{
        "type": "rawsocket",
        "endpoint": { "type": "unix", "path": socket },
        "serializers": ["msgpack"]
    }]);
    let mut node = node_configuration("anonymous", transports);
    if let Some(url) = nats {
        node["workers"][0]["realms"][0]["fabric"] = json!({ "nats": { "urls": [url] } });
    }
    node
}

fn start_server(site: &Site, program: &Path) -> Result<NatsServer, BenchError> {
    nats::start_one(&nats::Starting {
        directory: site.directory.path(),
        executable: &site.executable,
        place: &site.network.server_place(&site.allowed),
        program,
    })
}

/// Waits until the one node's callers reach callees of the other; then they see each other.
pub(crate) fn await_calls(here: &Target, there: &Target) -> Result<(), BenchError> {
    // Another node may not know yet that the last probe is gone.
    let procedure = format!("crosstie.bench.fabric.probe.n{}", monotonic_ns());
    let order = |target: &Target| PairOrder {
        target: target.clone(),
        procedure: procedure.clone(),
        payload_bytes: 0,
    };
    let mut callee = Callee::register(&order(there))?;
    let leave = callee.leaver()?;
    let serving = std::thread::spawn(move || callee.serve());
    let mut caller = Caller::join(&order(here))?;
    let end = Instant::now() + PATIENCE;
    let crosses = loop {
        let load = Load {
            outstanding: 1,
            batch: 1,
            window: Window {
                start_ns: monotonic_ns(),
                end_ns: u64::MAX / 2,
            },
            operations_max: 1,
        };
        match drive(&mut caller, &load, &mut |_| {}) {
            Ok(driven) if driven.right == 1 => break Ok(()),
            Ok(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(_) => break Err(WorkerError::TimedOut),
            Err(e) => break Err(e),
        }
    };
    let _ = caller.leave();
    leave();
    let _ = serving.join();
    Ok(crosses?)
}
