"""Three nodes of one strict realm and one replicated vhost, with a load that is judged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pika
from fabric.load import Load
from fabric.stage import Session, await_neighbours
from ledger.stage import (
    PERSISTENT,
    Publisher,
    at_owner,
    check,
    connect,
    declare,
    node_config,
    take_all,
)
from rig import config
from rig.nats import NatsServer
from rig.ports import free_ports
from rig.router import Router
from rig.session import ERROR, REGISTERED
from rig.waiting import await_true

# Servers elect who leads a stream, and a node notices.
PATIENCE_S = 120.0
# The vhost's stream, and the bucket of the realm's grants.
STREAMS = ("A1_=2F", "W1_realm1")


def settings(name: str, servers: list[NatsServer]) -> dict:
    """Return a node of both."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    node = node_config(servers, standby="warm", elsewhere="splice", address=address)
    fabric = {"nats": {"urls": [each.url for each in servers]}, "single": "strict"}
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "fabric": fabric}
    node["workers"][0]["realms"] = [realm]
    node["controller"] = {"id": name}
    return node


class Cluster:
    """The nodes, and what is done with them all the time."""

    def __init__(self, directory: Path, servers: list[NatsServer]):
        self.directory, self.servers = directory, servers
        self.nodes: list[Router] = []
        self.publishers: list[Publisher] = []
        self.contents = Contents()
        self._races = 0
        self._retained = 0

    def start(self, name: str, build: Path | None = None) -> Router:
        """Start a node in the directory that it had before, if it had one."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        return Router(directory, config=settings(name, self.servers), program=build)

    def begin(self, build: Path | None = None) -> None:
        """Start the nodes and the publishers."""
        self.nodes = [self.start(f"node_{letter}", build) for letter in "abc"]
        await_neighbours(self.nodes)
        at_owner(self.nodes, declare, PATIENCE_S)
        at_owner(self.nodes, self.contents.declare, PATIENCE_S)
        self.publishers = [Publisher(self.nodes, name) for name in range(1, 4)]
        self.go_on()

    def replace(self, place: int, build: Path | None) -> None:
        """Stop a node in good order and start it from another build."""
        old = self.nodes[place]
        old.stop()
        self.nodes[place] = self.start(old.directory.name, build)
        await_neighbours(self.nodes)

    def go_on(self) -> None:
        """Wait until all publishers have more confirmed, and procedures are granted."""
        for publisher in self.publishers:
            publisher.await_more(5, PATIENCE_S)
        self.race()

    def race(self) -> None:
        """Let a session of each node claim one procedure: one has it, and serves the others."""
        self._races += 1
        procedure = f"com.race{self._races}"
        with sessions(self.nodes) as racers:
            for each in racers:
                # A claim waits while servers elect a leader.
                each.peer.socket.settimeout(PATIENCE_S)
                each.tell_register(procedure)
            answers = [each.peer.hear_any() for each in racers]
            kinds = sorted(answer[0] for answer in answers)
            assert kinds == [ERROR, ERROR, REGISTERED], answers
            (winner,) = (
                each
                for each, answer in zip(racers, answers, strict=True)
                if answer[0] == REGISTERED
            )
            for each in racers:
                if each is not winner:
                    each.call(procedure, each.id)
                    winner.answer(winner.invocation(), each.id)
                    assert each.result()[3] == [each.id]

    def exchange(self) -> None:
        """Hold that every node knows the sessions of all, and what was retained anywhere."""
        with sessions(self.nodes) as joined:
            for each in joined:
                each.publish(f"com.kept.{each.id}", each.id, retain=True)
                each.call("wamp.session.list")
                assert {other.id for other in joined} <= set(each.result()[3][0])
        self._retained += len(self.nodes)
        for node in self.nodes:
            await_true(
                f"{self._retained} events are retained",
                lambda node=node: (
                    node.metric("realm_retained_events", realm="realm1") == self._retained
                ),
            )

    def end(self) -> None:
        """Stop the publishers, and hold that what was confirmed is there."""
        for publisher in self.publishers:
            publisher.stop()
        check(take_all(self.nodes), self.publishers)

    def close(self) -> None:
        """End the nodes in good order."""
        for node in self.nodes:
            node.stop()


class Contents:
    """Queues of other kinds, with what the journal has to keep of each."""

    def __init__(self) -> None:
        self.changes = 0

    def declare(self, node: Router) -> None:
        """Make them, with a message that comes back again and again."""
        with connect(node) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.exchange_declare("news", "topic", durable=True)
            channel.queue_declare("prior", durable=True, arguments={"x-max-priority": 5})
            channel.queue_bind("prior", "news", "news.#")
            dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
            channel.queue_declare("mortal", durable=True, arguments=dead)
            channel.queue_declare("dead", durable=True)
            quorum = {"x-queue-type": "quorum"}
            channel.queue_declare("counted", durable=True, arguments=quorum)
            channel.basic_publish("", "counted", b"again", PERSISTENT, mandatory=True)

    def change(self, nodes: list[Router]) -> None:
        """Change what is in each of them, and hold that it is as it was left."""
        at_owner(nodes, self._change, PATIENCE_S)
        self.changes += 1
        for node in nodes:
            with connect(node) as connection:
                channel = connection.channel()
                counts = {
                    name: channel.queue_declare(name, passive=True).method.message_count
                    for name in ("prior", "mortal", "dead", "counted")
                }
            changes = self.changes
            assert counts == {"prior": 3 * changes, "mortal": 0, "dead": changes, "counted": 1}

    def _change(self, node: Router) -> None:
        with connect(node) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            urgent = pika.BasicProperties(delivery_mode=2, priority=self.changes % 5)
            channel.basic_publish("news", "news.a", b"urgent", urgent, mandatory=True)
            channel.basic_publish("", "mortal", b"doomed", PERSISTENT, mandatory=True)
            method, _, _ = channel.basic_get("mortal")
            channel.basic_reject(method.delivery_tag, requeue=False)
            method, properties, body = channel.basic_get("counted")
            assert body == b"again"
            delivered = (properties.headers or {}).get("x-delivery-count", 0)
            assert delivered == self.changes, "deliveries are counted on"
            channel.basic_reject(method.delivery_tag, requeue=True)
            both = connection.channel()
            both.tx_select()
            for _ in range(2):
                both.basic_publish("news", "news.b.c", b"both", PERSISTENT)
            both.tx_commit()


@contextlib.contextmanager
def sessions(nodes: list[Router]) -> Iterator[list[Session]]:
    """Open a session at each node."""
    opened = [Session(node) for node in nodes]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def loads(nodes: list[Router], pairs: list[tuple[int, int]], **how: bool) -> list[Load]:
    """Begin loads between nodes, and wait until they run."""
    begun = [Load(Session(nodes[here]), Session(nodes[there]), **how) for here, there in pairs]
    for each in begun:
        each.goes_on()
    return begun
