"""`crosstie amqp move`: a vhost goes to another node, with all that was confirmed."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable

import pika
import pika.exceptions
import pytest
from rig.nats import NatsServer
from rig.relay import Relay, Relayed
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true

from ledger.stage import (
    Publisher,
    at_owner,
    await_end,
    await_owner,
    check,
    connect,
    crosstie,
    declare,
    leader,
    moved,
    node_config,
    role,
    take_all,
    told,
)

# An election of NATS takes 4 to 9 s, and two may follow each other.
ELECTION_S = 120.0


def await_standing_by(*nodes: Router) -> None:
    """Wait until the owner has heard of the others."""
    for node in nodes:
        await_true("it stands by", lambda node=node: role(node) == "standby")


def test_a_vhost_is_moved_under_load(nats, start):
    """Between three nodes; what was confirmed is there, in order, and clients are told 320."""
    servers = nats()
    names = ["node_a", "node_b", "node_c"]
    nodes = [start(servers, name, standby="cold" if name[-1] == "c" else "warm") for name in names]
    owner = await_owner(nodes)
    declare(owner)
    await_standing_by(*(node for node in nodes if node is not owner))
    publishers = [Publisher(nodes, name) for name in (1, 2)]
    idle = connect(owner)
    for turn in range(4):
        for publisher in publishers:
            publisher.await_more(15)
        others = [node for node in nodes if node is not owner]
        # Any standby, one by its node's name, the one that has read nothing.
        wanted = [[], ["--to", others[0].directory.name], ["--to", "node_c/worker1"]][turn % 3]
        if wanted and owner.directory.name in wanted[1]:
            wanted = ["--to", f"{others[1].directory.name}/worker1"]
        said = moved(owner, *wanted)
        assert said["from"] == f"{owner.directory.name}/worker1"
        owner = await_owner(nodes)
        assert said["to"] == f"{owner.directory.name}/worker1"
        if wanted:
            assert wanted[1] in said["to"]
        if turn == 0:
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                await_end(idle)
            assert closed.value.reply_code == 320
            assert f"it is handed to node {said['to']}" in closed.value.reply_text
        else:
            assert owner.metric("ledger_takeovers_total") >= 1
    for publisher in publishers:
        publisher.await_more(15)
        publisher.stop()
    check(take_all(nodes), publishers)


def test_a_refused_move_leaves_the_vhost(nats, start, tmp_path, request):
    """Each by its reason; who does not take it in time loses it again to the node that had it."""
    servers = nats()
    first = start(servers, "node_a")
    assert await_owner([first]) is first
    declare(first)

    def refused(node: Router, vhost: str, *words: object) -> str:
        return told(node, "amqp", "move", vhost, *words, code=1)

    assert "vhost '/': no node is standing by" in refused(first, "/")
    assert "node node_x is not heard, and no node is standing by" in refused(
        first, "/", "--to", "node_x"
    )
    assert "node node_a/worker1 owns it already" in refused(first, "/", "--to", "node_a")
    assert "no worker of the node has a vhost 'other'" in refused(first, "other")
    second = start(servers, "node_b")
    await_standing_by(second)
    said = "node node_x is not heard; standing by: node_b/worker1"
    await_true("it is heard", lambda: said in refused(first, "/", "--to", "node_x"))
    said = "this node does not own it: node node_a/worker1 does"
    await_true("it knows who does", lambda: said in refused(second, "/"))
    publisher = Publisher([first], 1)
    publisher.await_more(10)
    # The node that does not catch up costs the clients nothing, not even their connections.
    idle = connect(first)
    second.signal(signal.SIGSTOP)
    said = refused(first, "/", "--to", "node_b", "--timeout", 0.5)
    assert "node node_b/worker1 has not caught up within 0.5 s: it stays here" in said
    publisher.await_more(10)
    assert role(first) == "owner"
    idle.process_data_events(0)
    assert idle.is_open
    second.signal(signal.SIGCONT)
    publisher.stop()
    await_true("one has it", lambda: {role(first), role(second)} == {"owner", "standby"})
    check(take_all([first, second]), [publisher])
    rows = json.loads(told(second, "amqp", "list", "--json"))
    assert [(row["name"], row["role"], row["owner"]) for row in rows] == [
        ("/", "standby", "node_a/worker1")
    ]
    assert "node_a/worker1" in told(second, "amqp", "list")
    # A backup of the worker's store has nothing of it, and says so.
    saved = crosstie(second, "backup", tmp_path / "copy.store")
    assert (saved.returncode, "vhost '/' is replicated, and not in it" in saved.stderr) == (0, True)
    # One that only this node has.
    settings = node_config(servers)
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    directory = tmp_path / "plain"
    directory.mkdir()
    plain = Router(directory, config=settings)
    request.addfinalizer(plain.kill)
    assert "vhost '/' is not replicated" in refused(plain, "/")
    assert crosstie(plain, "backup", tmp_path / "plain.store").stderr == ""


# The target of a move tells that the vhost is built; and an owner's last entry.
PREPARED = re.compile(rb'"prepared":"0*[1-9a-f]')
RELEASED = re.compile(re.escape(b"\x01\x04\x01\x00"))


class Watched:
    """A node's links to its servers: the first time that it says something, `act` sees it go."""

    def __init__(
        self,
        servers: list[NatsServer],
        words: re.Pattern[bytes],
        act: Callable[[Relayed, bytes], None],
    ):
        self._words, self._act = words, act
        self._is_armed = False
        # What a node says goes over two links: neither passes it on before the act is over.
        self._looking = threading.Lock()
        self.has_acted = threading.Event()
        self.relays = [Relay((server.host, server.port), self._look) for server in servers]

    @property
    def nats(self) -> dict:
        """Return what the node says of its servers."""
        return {"urls": [f"nats://127.0.0.1:{relay.address[1]}" for relay in self.relays]}

    def arm(self) -> None:
        """From now on."""
        self._is_armed = True

    def hold(self) -> None:
        """Pass nothing on."""
        for relay in self.relays:
            relay.hold()

    def go_on(self) -> None:
        """Pass everything on."""
        for relay in self.relays:
            relay.go_on()

    def close(self) -> None:
        """End all links."""
        for relay in self.relays:
            relay.close()

    def _look(self, relayed: Relayed, octets: bytes) -> None:
        with self._looking:
            if self._is_armed and self._words.search(octets):
                self._is_armed = False
                self._act(relayed, octets)
                self.has_acted.set()


@pytest.fixture
def watched(request) -> Callable[..., Watched]:
    """Make links that watch what a node says."""

    def made(*how: object) -> Watched:
        links = Watched(*how)
        request.addfinalizer(links.close)
        return links

    return made


def await_heard(owner: Router, node: Router) -> None:
    """Wait until the owner knows a node that stands by."""
    name = node.directory.name
    await_true("it is heard", lambda: name in told(owner, "amqp", "move", "/", "--to", "x", code=1))


@pytest.mark.parametrize("end", ["cut", signal.SIGSTOP, signal.SIGKILL])
def test_a_vhost_returns_if_its_target_ends_in_the_middle(nats, start, watched, end):
    """The target has caught up, and never learns of the owner's last entry: the owner goes on."""
    servers = nats()
    links = watched(servers, RELEASED, lambda *_: None)
    # The target ends once the owner relies on it, so it does not matter how far behind it was.
    own = watched(servers, RELEASED, lambda *_: links.hold())
    first = start(servers, "node_a", nats=own.nats)
    assert await_owner([first]) is first
    declare(first)
    second = start(servers, "node_b", nats=links.nats)
    await_standing_by(second)
    publisher = Publisher([first], 1)
    publisher.await_more(10)
    await_heard(first, second)
    own.arm()
    said: list[str] = []
    moving = threading.Thread(
        target=lambda: said.append(told(first, "amqp", "move", "/", "--to", "node_b", code=1))
    )
    moving.start()
    assert own.has_acted.wait(DEADLINE_S)
    if end != "cut":
        second.signal(end)
    moving.join(DEADLINE_S)
    why = "node node_b/worker1 has not taken it within 2 s: this node has taken it back"
    assert why in said[0]
    publisher.await_more(10)
    assert role(first) == "owner"
    links.go_on()
    if end == signal.SIGSTOP:
        second.signal(signal.SIGCONT)
    elif end == signal.SIGKILL:
        second = start(servers, "node_b")
    await_standing_by(second)
    assert moved(first, "--to", "node_b")["to"] == "node_b/worker1"
    publisher.nodes.append(second)
    publisher.await_more(10)
    publisher.stop()
    check(take_all([first, second]), [publisher])


@pytest.mark.parametrize("is_written", [True, False])
def test_an_owner_loses_its_server_in_the_middle_of_a_move(nats, start, watched, is_written):
    """With its last entry, which the log has or has not: the move goes on over another server."""
    servers = nats(3)

    def cut(relayed: Relayed, octets: bytes) -> None:
        if is_written:
            relayed.server.sendall(octets)
        relayed.cut()

    links = watched(servers, RELEASED, cut)
    first = start(servers, "node_a", nats=links.nats)
    assert await_owner([first], ELECTION_S) is first
    declare(first)
    second = start(servers, "node_b")
    await_standing_by(second)
    publisher = Publisher([first, second], 1)
    publisher.await_more(10)
    await_heard(first, second)
    links.arm()
    done = crosstie(first, "amqp", "move", "/", "--to", "node_b")
    assert links.has_acted.is_set()
    assert done.returncode == 0, done.stderr
    publisher.await_more(10)
    assert await_owner([first, second]) is second
    publisher.stop()
    check(take_all([first, second]), [publisher])


def test_the_leader_ends_in_the_middle_of_a_move(nats, start, watched):
    """The log acknowledges nothing until NATS has elected another one: some node serves then."""
    servers = nats(3)
    links = watched(servers, PREPARED, lambda *_: leader(servers).kill())
    nodes = [start(servers, "node_a")]
    owner, _ = at_owner(nodes, declare, ELECTION_S)
    nodes.append(start(servers, "node_b", nats=links.nats))
    nodes.append(start(servers, "node_c"))
    await_standing_by(*nodes[1:])
    publisher = Publisher(nodes, 1)
    publisher.await_more(10)
    await_heard(owner, nodes[1])
    links.arm()
    done = crosstie(owner, "amqp", "move", "/", "--to", "node_b")
    assert links.has_acted.is_set(), done
    assert (done.returncode, "Moved" in done.stdout) in [(0, True), (1, False)], done
    publisher.await_more(10, ELECTION_S)
    await_owner(nodes, ELECTION_S)
    publisher.stop()
    check(take_all(nodes), [publisher])


def test_a_cold_target_reads_the_log_before_the_owner_stops(nats, start, watched):
    """So the clients' pause does not depend on what the log has."""
    servers = nats()
    links = watched(servers, PREPARED, lambda *_: None)
    first = start(servers, "node_a")
    assert await_owner([first]) is first
    declare(first)
    second = start(servers, "node_b", standby="cold", nats=links.nats)
    await_standing_by(second)
    publisher = Publisher([first, second], 1)
    publisher.await_more(20)
    links.arm()
    said = moved(first, "--to", "node_b")
    assert links.has_acted.is_set()
    assert said["paused_ms"] <= said["ms"]
    assert await_owner([first, second]) is second
    publisher.await_more(10)
    # And back.
    await_standing_by(first)
    moved(second, "--to", "node_a")
    await_standing_by(second)
    publisher.await_more(10)
    publisher.stop()
    check(take_all([first, second]), [publisher])


def test_a_second_move_waits_for_nothing(nats, start):
    """It is refused while the first one waits for its target; which an operator may stop, too."""
    servers = nats()
    first = start(servers, "node_a")
    assert await_owner([first]) is first
    declare(first)
    second, third = start(servers, "node_b"), start(servers, "node_c")
    await_standing_by(second, third)
    await_heard(first, second)
    await_heard(first, third)
    second.signal(signal.SIGSTOP)
    said: list[str] = []
    waiting = threading.Thread(
        target=lambda: said.append(told(first, "amqp", "move", "/", "--to", "node_b", code=1))
    )
    with servers[0].client() as client:
        client.subscribe("A1.=2F.beat")
        waiting.start()

        def is_preparing() -> bool:
            client.flush()
            return any(b'"preparing":"node_b/worker1"' in payload for _, payload in client.messages)

        await_true("it prepares", is_preparing)
    refused = told(first, "amqp", "move", "/", "--to", "node_c", code=1)
    assert "it is being moved to node node_b/worker1 already" in refused
    # The node stops in order: the vhost does not wait for the target.
    first.stop()
    waiting.join(DEADLINE_S)
    assert "the node is stopping" in said[0] or "node_b" in said[0]
    assert await_owner([third]) is third
    second.signal(signal.SIGCONT)


def test_redelivered_is_exact_after_a_move_and_a_stop(nats, start):
    """The next owner knows which messages were delivered; after a kill any may have been."""
    servers = nats()
    nodes = [start(servers, name) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    connection = connect(owner)
    channel = connection.channel()
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    for queue in ("held", "never"):
        channel.queue_declare(queue, durable=True)
        for number in range(3):
            channel.basic_publish("", queue, b"%d" % number, persistent)
    assert channel.basic_get("held")[2] == b"0"
    await_standing_by(*(node for node in nodes if node is not owner))
    moved(owner)
    owner = await_owner(nodes)
    assert marked(owner, "held", 2) == [True, False]
    (other,) = (node for node in nodes if node is not owner)
    await_standing_by(other)
    owner.stop()
    owner = await_owner([other])
    assert marked(owner, "held", 3) == [True, True, False]
    assert marked(owner, "never", 1) == [False]
    owner.kill()
    owner = await_owner([start(servers, owner.directory.name)])
    assert marked(owner, "never", 3) == [True, True, True]


def marked(owner: Router, queue: str, count: int) -> list[bool]:
    """Have so many delivered, and give them back by closing the connection."""
    with connect(owner) as connection:
        channel = connection.channel()
        return [channel.basic_get(queue)[0].redelivered for _ in range(count)]
