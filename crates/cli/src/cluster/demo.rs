//! `crosstie cluster demo`: a cluster on this machine, messages between its nodes, and the loss of one.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use crosstie_client::{Arguments as Values, Client, InvocationPolicy, RegisterOptions, args};
use crosstie_node::process::{EXEC_CHILD, find_program};
use serde_json::json;

use super::accounts::Single;
use super::files::Files;
use super::init::make;
use super::nats_server::password;
use super::pages::Pages;
use super::plan::{Node as Planned, Plan};
use super::server::Server;
use super::status::Found;
use crate::signals::{INTERRUPTED, Signals};
use crate::wait_for;

/// Start three NATS servers and three nodes on this machine, pass a call and an event between nodes, kill a node, and
/// show the effect. Everything is stopped and removed at the end.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The program [default: nats-server on PATH].
    #[arg(long, value_name = "FILE")]
    nats_server: Option<PathBuf>,
}

const REALM: &str = "realm1";
const PROCEDURE: &str = "com.example.whoami";
const TOPIC: &str = "com.example.news";
const PATIENCE: Duration = Duration::from_secs(30);

/// The interval of checks while waiting.
const PAUSE: Duration = Duration::from_millis(50);

const HOW_TO_GET_IT: &str = "nats-server is not found. It is one program, 2.14 or later:\n\
    \x20   go install github.com/nats-io/nats-server/v2@v2.15.3\n\
    or a package or archive of https://nats.io/download. Then have it on PATH, or name it with --nats-server.";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let nats_server = find(arguments.nats_server.as_deref())?;
    wait_for(async {
        let mut signals = Signals::catch()?;
        // Any end of this ends all started processes.
        tokio::select! {
            shown = show(&nats_server) => shown.map(|()| ExitCode::SUCCESS),
            _ = signals.next() => Ok(ExitCode::from(INTERRUPTED)),
        }
    })
}

fn find(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("no current directory")?;
    let path = std::env::var_os("PATH");
    let program = named.unwrap_or_else(|| Path::new("nats-server"));
    match (find_program(program, &here, path.as_deref()), named) {
        (Ok(found), _) => Ok(found),
        (Err(why), Some(named)) => bail!("{}: {why}", named.display()),
        (Err(_), None) => bail!(HOW_TO_GET_IT),
    }
}

/// A program of the demonstration; killed when it is dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str], directory: &Path) -> anyhow::Result<Self> {
        let log = fs::File::create(directory.join("log"))?;
        let crosstie = std::env::current_exe().context("this program's own file is not found")?;
        // It ends with this process in any case.
        let child = Command::new(crosstie)
            .args([EXEC_CHILD, &std::process::id().to_string(), "", ""])
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = child.with_context(|| program.display().to_string())?;
        Ok(Self(child))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A node, and its addresses.
struct Node {
    name: String,
    address: SocketAddr,
    running: Running,
}

async fn show(nats_server: &Path) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let mut ports = free_ports(9)?.into_iter();
    let mut next = || ports.next().context("too few ports");
    let mut servers = Vec::new();
    for number in 1..=3 {
        let text = format!("127.0.0.1:{}", next()?);
        servers.push(Server::parse(number, &text, Some(next()?))?);
    }
    say!(
        "Three servers of NATS and three nodes, in {}:",
        directory.path().display()
    )?;
    let plan = Plan {
        servers_named: servers.len(),
        servers,
        nodes: ["node1", "node2", "node3"].map(Planned::new).into(),
        system_keys: Vec::new(),
        realms: vec![REALM.to_owned()],
        single: Single::Fast,
        vhosts: Vec::new(),
        authorities: Vec::new(),
        routes_password: password()?,
        user_password: password()?,
        config: None,
    };
    let plan = make(plan, Files::new(), directory.path())?.record.plan;
    let mut kept = Vec::new();
    for server in &plan.servers {
        let place = directory.path().join(&server.name);
        let started = Running::start(nats_server, &["-c", "nats.conf"], &place)?;
        kept.push((server.name.clone(), place, started));
    }
    for (server, (name, place, running)) in plan.servers.iter().zip(&mut kept) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
        await_open(name, address, place, running).await?;
    }
    let mut nodes = Vec::new();
    for node in &plan.nodes {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, next()?));
        nodes.push(start_node(&node.name, address, directory.path())?);
    }
    for node in &mut nodes {
        let place = directory.path().join(&node.name);
        await_open(&node.name, node.address, &place, &mut node.running).await?;
    }
    await_well(&nodes).await?;
    cross(nodes).await
}

/// Sends a call and an event between nodes, and again after one was killed.
async fn cross(mut nodes: Vec<Node>) -> anyhow::Result<()> {
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(Client::connect(&*format!("ws://{}/ws", node.address)).await?);
    }
    let [first, second, third] = &*clients else {
        bail!("there are not three nodes");
    };
    for (client, name) in [(first, "node1"), (second, "node2")] {
        let mut options = RegisterOptions::default();
        options.invoke = InvocationPolicy::RoundRobin;
        let answer = move |_| async move { Ok(args![name]) };
        client.register_with(PROCEDURE, options, answer).await?;
        say!("A callee on {name} has registered {PROCEDURE}.")?;
    }
    for _ in 0..2 {
        say!(
            "A caller on node3 calls it: {} answers.",
            called(third).await?
        )?;
    }
    let mut news = second.subscribe(TOPIC).await?;
    let mut published = async |number: u64| {
        third.publish(TOPIC, args![number]).await?;
        let event = tokio::time::timeout(PATIENCE, news.next()).await;
        let event = event.context("the event has not come")?;
        let event = event.ok_or_else(|| anyhow!("the subscriber is gone"))?;
        say!(
            "A publisher on node3 says {number}: a subscriber on node2 hears {}.",
            text(&event.arguments)?
        )?;
        anyhow::Ok(())
    };
    published(1).await?;
    let mut killed = nodes.remove(0);
    killed.running.kill();
    say!("node1 is killed.")?;
    published(2).await?;
    // Calls for it fail until its heartbeat is missed, after 3 seconds at most.
    await_well(&nodes).await?;
    for _ in 0..2 {
        say!("A caller on node3 calls: {} answers.", called(third).await?)?;
    }
    let pages: Vec<_> = nodes.iter().map(|node| Pages::of(node.address)).collect();
    say!("`crosstie cluster status {} {}` says:", pages[0], pages[1])?;
    say!("{}", Found::of(&pages).table())?;
    Ok(())
}

async fn called(caller: &Client) -> anyhow::Result<String> {
    text(&caller.call(PROCEDURE, ()).await?)
}

fn text(values: &Values) -> anyhow::Result<String> {
    Ok(values.to_json()?.0.trim_matches(['[', ']', '"']).to_owned())
}

fn start_node(name: &str, address: SocketAddr, directory: &Path) -> anyhow::Result<Node> {
    let place = directory.join(name);
    let part = fs::read_to_string(place.join("fabric.json"))?;
    let part: serde_json::Value = serde_json::from_str(&part)?;
    let mut realm = part["realms"][0].clone();
    realm["roles"] = json!([{ "name": "anonymous", "allow-by-default": true }]);
    let transport = json!({
        "type": "universal",
        "endpoint": { "type": "tcp", "interface": address.ip().to_string(), "port": address.port() },
        "websocket": { "ws": {} },
        "pages": ["health", "metrics", "status"]
    });
    let worker = json!({ "type": "router", "realms": [realm], "transports": [transport] });
    let config = json!({ "version": 2, "workers": [worker] });
    fs::write(place.join("config.json"), config.to_string())?;
    let crosstie = std::env::current_exe()?;
    let running = Running::start(&crosstie, &["start", "--cbdir", "."], &place)?;
    say!("{name}: http://{address}")?;
    Ok(Node {
        name: name.to_owned(),
        address,
        running,
    })
}

/// Waits until the port accepts; the error quotes the program's last output.
async fn await_open(
    name: &str,
    address: SocketAddr,
    place: &Path,
    running: &mut Running,
) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        let has_ended = running.0.try_wait()?.is_some();
        if has_ended || Instant::now() > end {
            let log = fs::read_to_string(place.join("log")).unwrap_or_default();
            bail!("{name} does not listen at {address}:\n{}", log.trim_end());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Waits until each node sees exactly the others.
async fn await_well(nodes: &[Node]) -> anyhow::Result<()> {
    let pages: Vec<_> = nodes.iter().map(|node| Pages::of(node.address)).collect();
    let end = Instant::now() + PATIENCE;
    loop {
        let found = Found::of(&pages);
        if found.is_well() {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("the nodes do not see each other:\n{}", found.table());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Ports that were free a moment ago: servers of a cluster must know each other's.
fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let bound = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let bound = bound.collect::<Result<Vec<_>, _>>()?;
    bound
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect()
}
