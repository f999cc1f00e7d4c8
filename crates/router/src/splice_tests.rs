//! Tests with routers whose owners are set by the test, and with AMQP clients written by hand.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_amqp::PROTOCOL_HEADER;
use crosstie_broker::Broker;
use crosstie_broker::clock::Clock;
use crosstie_broker::limits::vhost_config;
use crosstie_broker::replicated::Whose;
use crosstie_broker::replication::{Ownership, Replicated};
use crosstie_broker::splice::greeting::{Account, CHALLENGE, HELLO, MAGIC};
use crosstie_broker::splice::key::{Claim, Key, LENGTH};
use crosstie_broker::splice::{Cluster, Splicing, transport as free_transport};
use crosstie_broker::vhost::{Keeper, SharedVhost};
use crosstie_config as model;
use crosstie_queues::Vhost;

use crate::Router;
use crate::router::RouterOptions;

/// The rig of the AMQP tests.
#[allow(dead_code, reason = "other tests say more")]
#[path = "../tests/amqp/rig.rs"]
mod rig;

use rig::{Client, Rig, Setting, connected, transport};

/// A node of a replicated vhost.
struct Node {
    rig: Rig,
    replicated: Arc<Replicated>,
    /// The address of its cluster listener.
    cluster: SocketAddr,
    _directory: tempfile::TempDir,
}

/// The test sets the owner of the vhost: no NATS server runs.
fn replicated() -> model::Replicated {
    model::Replicated {
        urls: Vec::new(),
        credentials: None,
        ca_certificates: Vec::new(),
        replicas: 3,
        is_standby_warm: true,
        address: None,
        tls: None,
        elsewhere: model::Elsewhere::Splice,
        is_kept_locally: false,
        monitor: Vec::new(),
    }
}

impl Node {
    fn start(splices: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = RouterOptions {
            directory: directory.path().to_owned(),
            ..RouterOptions::default()
        };
        let setting = Setting::default();
        let router = Router::start(&rig::worker(), &setting.limits, &options).unwrap();
        let mut amqp = setting.amqp.clone();
        amqp.vhosts[0].replicated = Some(replicated());
        let opened = Broker::open(&amqp, router.home(), directory.path(), &router.workers);
        let (broker, _) = opened.unwrap();
        assert!(router.state.set_amqp(Arc::clone(&broker)));
        let replicated = Arc::clone(&broker.replicated()[0]);
        let key = Key::new().unwrap();
        let cluster = Cluster {
            vhosts: vec![(Arc::clone(&replicated.name), key.clone())],
        };
        let free = free_transport("127.0.0.1:0".parse().unwrap(), None);
        let urls = router.start_cluster_listener(&free, cluster).unwrap();
        let address = urls[0].split_once("://").unwrap().1.to_owned();
        replicated.set_splicing(Splicing::new(splices, Some(address.clone()), None, key));
        let urls = router.start_transport(&transport(&setting)).unwrap();
        let client = urls[0].split_once("://").unwrap().1.parse().unwrap();
        Self {
            rig: Rig {
                router,
                address: client,
            },
            replicated,
            cluster: address.parse().unwrap(),
            _directory: directory,
        }
    }

    fn broker(&self) -> Arc<Broker> {
        self.rig.router.state.amqp().unwrap()
    }

    fn announced(&self) -> String {
        self.replicated.splicing().unwrap().announced().unwrap()
    }

    fn owns(&self) {
        let name = Arc::clone(&self.replicated.name);
        let config = vhost_config(&name, &Setting::default().amqp.limits);
        let vhost = Arc::new(SharedVhost::new(
            name,
            Vhost::new(config, 1),
            Clock::begin(),
            Arc::clone(&self.broker().shared),
            self.rig.router.workers.serving_handle(),
            Keeper::Local,
        ));
        self.replicated.set_ownership(Ownership::Here(vhost));
    }

    /// Announces the other node as owner.
    fn knows(&self, owner: &Self) {
        self.is_told(&owner.announced());
    }

    fn is_told(&self, address: &str) {
        self.is_told_of("owner", address);
    }

    fn is_told_of(&self, node: &str, address: &str) {
        let (node, address) = (node.into(), address.into());
        let whose = Whose::Elsewhere { node, address };
        self.replicated.set_ownership(Ownership::NotHere(whose));
    }

    /// A client that has sent `connection.open` and not been answered yet.
    fn opening(&self) -> Client {
        let mut client = Client::connect(self.rig.address);
        client.write(&PROTOCOL_HEADER);
        client.expect("0 connection.start");
        client.start_ok("PLAIN", b"\0guest\0guest");
        client.expect("0 connection.tune");
        client.tune_ok(2047, 131_072, 0);
        client.open("/");
        client
    }
}

fn pair() -> (Node, Node) {
    let (owner, other) = (Node::start(true), Node::start(true));
    owner.owns();
    other.knows(&owner);
    (owner, other)
}

fn await_count(counter: &AtomicU64, wanted: u64) {
    let end = Instant::now() + Duration::from_secs(30);
    while counter.load(Ordering::Relaxed) != wanted {
        assert!(Instant::now() < end, "{counter:?} instead of {wanted}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_of_another_node_is_in_its_owners_vhost() {
    let (owner, other) = pair();
    let mut far = other.rig.client();
    far.open_channel(1);
    far.declare("q", false);
    far.publish("q", &vec![7; 1 << 20], 1);
    let mut near = owner.rig.client();
    near.open_channel(1);
    near.consume("q", true);
    assert_eq!(near.expect_message("1 basic.deliver"), vec![7; 1 << 20]);
    far.consume("q", true);
    near.send(1, &crosstie_amqp::method::BasicCancel::default());
    let connections = owner.broker().connections();
    let from = |own: bool| {
        let own = move |one: &&crosstie_broker::ConnectionStatus| one.peer.contains(" by ") != own;
        connections.iter().filter(own).count()
    };
    assert_eq!((from(true), from(false)), (1, 1));
    assert_eq!(other.broker().connections().len(), 0);
    await_count(&other.broker().splices.open, 1);
    drop(far);
    await_count(&other.broker().splices.open, 0);
    await_count(&owner.broker().totals.connections_closed, 1);
}

#[test]
fn both_sides_say_goodbye_through_it() {
    let (owner, other) = pair();
    let mut client = other.rig.client();
    client.send(0, &crosstie_amqp::method::ConnectionClose::default());
    client.expect("0 connection.close-ok");
    drop(client);
    let mut client = other.rig.client();
    let number = owner.broker().connections()[0].number;
    owner
        .rig
        .router
        .amqp()
        .unwrap()
        .close_connection(number, "tired")
        .unwrap();
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason 'tired'",
    );
    client.send(0, &crosstie_amqp::method::ConnectionCloseOk {});
    client.expect_end();
    await_count(&other.broker().splices.open, 0);
}

#[test]
fn a_client_waits_for_the_owner_of_its_vhost() {
    let (owner, other) = (Node::start(true), Node::start(true));
    let mut waiting = [owner.opening(), other.opening()];
    owner.owns();
    other.knows(&owner);
    for client in &mut waiting {
        client.expect("0 connection.open-ok");
        client.open_channel(1);
    }
    assert_eq!(owner.broker().connections().len(), 2);
}

#[test]
fn a_client_is_refused_after_waiting_in_vain() {
    let node = Node::start(true);
    node.opening().expect(
        "0 connection.close 320 CONNECTION_FORCED - vhost '/' is on no node at present: no NATS server \
         has been reached yet",
    );
    let (owner, other) = (Node::start(true), Node::start(true));
    // The node does not know yet, or no longer, that it is the owner.
    other.knows(&owner);
    other.opening().expect(
        "0 connection.close 320 CONNECTION_FORCED - vhost '/' is not on node owner any more",
    );
    assert_eq!(other.broker().splices.refused.load(Ordering::Relaxed), 1);
}

#[test]
fn a_node_may_refuse_clients_with_the_owners_address() {
    let (owner, other) = (Node::start(true), Node::start(false));
    owner.owns();
    other.knows(&owner);
    other.opening().expect(&format!(
        "0 connection.close 320 CONNECTION_FORCED - vhost '/' is on node owner at {}",
        owner.cluster
    ));
    assert_eq!(owner.broker().connections().len(), 0);
}

#[test]
fn clients_are_told_when_their_node_or_its_owner_ends() {
    let (owner, other) = pair();
    let mut clients = [other.rig.client(), other.rig.client()];
    let gone =
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason ";
    other.rig.router.begin_stop();
    for client in &mut clients {
        client.expect(&format!("{gone}'shutdown'"));
        client.send(0, &crosstie_amqp::method::ConnectionCloseOk {});
        client.expect_end();
    }
    await_count(&owner.broker().totals.connections_closed, 2);
    // An owner that closes the connection before its first frame.
    let (_, other) = pair();
    let liar = TcpListener::bind("127.0.0.1:0").unwrap();
    let key = Key::new().unwrap();
    let address = liar.local_addr().unwrap();
    other.is_told(&format!("{address}#{}", key.text()));
    let mut client = other.opening();
    let (mut node, _) = liar.accept().unwrap();
    let mut hello = [0; HELLO + 1];
    node.read_exact(&mut hello).unwrap();
    let nonce = [1; LENGTH];
    node.write_all(&nonce).unwrap();
    node.write_all(&key.prove(Claim::Owner, &hello[8..8 + LENGTH], &nonce))
        .unwrap();
    let mut head = [0; 4];
    node.read_exact(&mut head).unwrap();
    let mut rest = vec![0; LENGTH + u32::from_be_bytes(head) as usize];
    node.read_exact(&mut rest).unwrap();
    assert_eq!(
        Account::decode(&rest[LENGTH..]).unwrap().user.as_ref(),
        "guest"
    );
    node.write_all(&[0]).unwrap();
    drop(node);
    client.expect(&format!("{gone}'the node that has the vhost has gone'"));
}

#[test]
fn clients_of_a_silent_owner_are_closed_when_another_node_has_taken_over() {
    let (_owner, other) = pair();
    let mut client = other.rig.client();
    // The connection to the former owner stays open, as if its machine had lost its link.
    other.is_told_of("next", "10.0.0.1:1");
    client.expect(
        "0 connection.close 320 CONNECTION_FORCED - broker forced connection closure with reason \
         'another node has the vhost'",
    );
}

#[test]
fn an_impostor_at_the_owners_address_learns_nothing_of_a_client() {
    let (owner, other) = (Node::start(true), Node::start(true));
    let liar = TcpListener::bind("127.0.0.1:0").unwrap();
    let announced = owner.announced();
    let (_, key) = announced.split_once('#').unwrap();
    other.is_told(&format!("{}#{key}", liar.local_addr().unwrap()));
    let mut client = other.opening();
    let (mut node, _) = liar.accept().unwrap();
    let mut hello = [0; HELLO + 1];
    node.read_exact(&mut hello).unwrap();
    // The impostor has read the owner's messages to others, and does not know the key.
    node.write_all(&[5; CHALLENGE]).unwrap();
    assert_eq!(node.read(&mut [0; 100]).unwrap(), 0);
    drop(liar);
    assert!(
        client
            .receive()
            .unwrap()
            .said()
            .starts_with("0 connection.close 320")
    );
}

#[test]
fn strangers_at_a_cluster_listener_are_refused() {
    let (owner, other) = pair();
    let mut witness = other.rig.client();
    witness.open_channel(1);
    let hello = [&MAGIC[..], &[9; LENGTH], &[1], b"/"].concat();
    let account = Account {
        vhost: "/".into(),
        user: "guest".into(),
        permissions: [".*", ".*", ".*"].map(str::to_owned),
        frame_bytes_max: 131_072,
        channels_max: 10,
        ..Account::default()
    };
    let said = account.encode();
    let length = u32::try_from(said.len()).unwrap().to_be_bytes();
    let stranger = Key::new().unwrap();
    let forged = stranger.prove(Claim::Node, &[0; LENGTH], &said);
    let attacks: [Vec<u8>; 8] = [
        [&MAGIC[..], &[9; LENGTH], &[5], b"other"].concat(),
        PROTOCOL_HEADER.to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        [&MAGIC[..7], &[2]].concat(),
        [&hello[..], &[0xff; 36]].concat(),
        [&hello[..], &length, &[0; LENGTH], &said].concat(),
        [&hello[..], &length, &forged, &said].concat(),
        [&hello[..], &[0, 0, 0, 0], &forged].concat(),
    ];
    for (number, attack) in (1..).zip(&attacks) {
        let mut stream = connected(owner.cluster);
        stream.write_all(attack).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        // At most the challenge, which reveals nothing.
        assert!(heard.len() <= CHALLENGE, "{number}: {heard:?}");
        await_count(&owner.broker().splices.strangers, number);
    }
    // A proof for one connection is invalid on another.
    let announced = owner.announced();
    let (_, key) = crosstie_broker::splice::settings::parse(&announced).unwrap();
    let challenge = |stream: &mut TcpStream| {
        stream.write_all(&hello).unwrap();
        let mut challenge = [0; CHALLENGE];
        stream.read_exact(&mut challenge).unwrap();
        challenge
    };
    let mut first = connected(owner.cluster);
    let nonce = challenge(&mut first);
    let proof = key.prove(Claim::Node, &nonce[..LENGTH], &said);
    let words = [&length[..], &proof, &said].concat();
    let mut second = connected(owner.cluster);
    challenge(&mut second);
    second.write_all(&words).unwrap();
    assert_eq!(second.read(&mut [0; 100]).unwrap(), 0);
    assert_eq!(owner.broker().connections().len(), 1);
    // On its own connection the proof is valid, also if it arrives byte by byte.
    for octet in words {
        first.write_all(&[octet]).unwrap();
    }
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 1);
    Client::over(first).expect("0 connection.open-ok");
    witness.declare("q", false);
}

#[test]
fn a_client_that_does_not_read_holds_only_its_share() {
    let (_owner, other) = pair();
    let mut deaf = other.rig.client();
    deaf.open_channel(1);
    deaf.declare("q", false);
    deaf.consume("q", true);
    let mut busy = other.rig.client();
    busy.open_channel(1);
    for _ in 0..64 {
        busy.publish("q", &[1; 1 << 20], 1);
    }
    busy.declare("after", false);
    let account = &other.rig.router.state.bounds.limits.account;
    assert!(
        account.total_bytes() < 4 << 20,
        "{} bytes",
        account.total_bytes()
    );
    // Once it reads again, everything arrives.
    for _ in 0..64 {
        assert_eq!(deaf.expect_message("1 basic.deliver").len(), 1 << 20);
    }
}
