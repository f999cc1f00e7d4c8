"""Nodes of one replicated vhost, and clients that go from one to the next."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pika
import pika.exceptions
import pytest
from rig import config
from rig.broker import ALL
from rig.nats import NatsClient, NatsServer, stream_leader
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true

QUEUE = "kept"
STREAM = "A1_=2F"
ERRORS = (pika.exceptions.AMQPError, OSError)
Done = TypeVar("Done")
# Log line of a node that need not wait for a silent owner.
ENDED = "has lost its connection to NATS"
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def node_config(
    servers: list[NatsServer], limits: dict | None = None, **replicated: object
) -> dict:
    """Return a node whose vhost is kept by these servers."""
    vhost = {
        "name": "/",
        "permissions": [{"user": "test", **ALL}],
        "replicated": {
            "nats": {"urls": [server.url for server in servers]},
            "replicas": 3 if len(servers) > 1 else 1,
            **replicated,
        },
    }
    amqp = {
        "users": [{"name": "test", "password": "test"}],
        "vhosts": [vhost],
        "store": "amqp.store",
        "limits": limits or {},
    }
    transport = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    node = config.plain(config.universal("tcp", config.tcp()), transport)
    node["workers"][0]["amqp"] = amqp
    return node


def role(node: Router) -> str:
    """Return what a node is to its vhost."""
    found = re.search(r'crosstie_ledger_role\{.*role="(\w+)".*\} 1$', node.page("/metrics"), re.M)
    assert found, "it has no role"
    return found[1]


def await_owner(nodes: list[Router], patience_s: float = DEADLINE_S) -> Router:
    """Wait until one of the nodes owns the vhost, and only one."""
    found: list[Router] = []

    def is_owned() -> bool:
        found[:] = [node for node in nodes if role(node) == "owner"]
        return len(found) == 1

    await_true("one node owns the vhost", is_owned, patience_s)
    return found[0]


def at_owner(
    nodes: list[Router], act: Callable[[Router], Done], patience_s: float = DEADLINE_S
) -> tuple[Router, Done]:
    """Run an operation at the vhost's owner; return the owner and the result.

    On a busy machine a node may be late enough to lose the vhost between any two steps.
    """
    done: list[tuple[Router, Done]] = []

    def is_done() -> bool:
        for node in nodes:
            if role(node) == "owner":
                with contextlib.suppress(*ERRORS):
                    done.append((node, act(node)))
                    return True
        return False

    await_true("somebody owns the vhost and takes clients", is_done, patience_s)
    return done[0]


def await_alarm(node: Router, text: str) -> None:
    """Wait until a node says why it does not open its vhost, and that it is not ready."""

    def is_told() -> bool:
        status, said = node.health()
        return status == 503 and text in said

    await_true(f"the alarm: {text}", is_told)
    assert role(node) != "owner"


def beats(client: NatsClient, node: str) -> list[bool]:
    """Return a node's beats since the client listens: whether it was ready, each time."""
    client.flush()
    told = [json.loads(payload) for _, payload in client.messages]
    return [beat["ready"] for beat in told if beat["node"].split("/")[0] == node]


# A client that misses a machine whose link is lost, as oslo.messaging and kombu may be configured.
WATCHFUL = {
    "socket_timeout": 1.0,
    "tcp_options": {
        "TCP_USER_TIMEOUT": 1000,
        "TCP_KEEPIDLE": 1,
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": 1,
    },
}


def connect(node: Router, **options: object) -> pika.BlockingConnection:
    """Connect as pika's users do; refused where the node does not own the vhost."""
    host, port = node.address("amqp")
    options = {
        "credentials": pika.PlainCredentials("test", "test"),
        "heartbeat": 0,
        "socket_timeout": DEADLINE_S,
        "blocked_connection_timeout": DEADLINE_S,
        **options,
    }
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, **options))


def refusal(node: Router) -> str:
    """Return what a client is told that a node does not let in."""
    with pytest.raises(pika.exceptions.AMQPConnectionError) as refused:
        connect(node)
    return str(refused.value)


class HasNode(Protocol):
    """A machine, whose node may be another one each time."""

    node: Router


class Publisher:
    """Publishes numbers one by one, each until it is confirmed, at any node that accepts it.

    It tries nodes, or those of machines, in turn. Unless `is_told` it learns from no process, but
    only from its connection, that a node is gone.
    """

    def __init__(
        self,
        nodes: Sequence[Router | HasNode],
        name: int,
        *,
        is_told: bool = True,
        pause_s: float = 0,
        **options: object,
    ):
        self.nodes = nodes
        self.name = name
        self._pause_s = pause_s
        self.confirmed = 0
        # When the first message was confirmed that was published after the mark, and the longest
        # time since the mark without a confirm.
        self.first: float | None = None
        self.longest_s = 0.0
        self._mark = self._last = time.monotonic()
        self._is_told = is_told
        self._options = options
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mark(self) -> None:
        """Look for the first confirm, and the longest time without one, from now on."""
        self._mark = self._last = time.monotonic()
        self.first, self.longest_s = None, 0.0

    def _run(self) -> None:
        turn = self.name
        while not self._is_over.is_set():
            turn += 1
            node = self.nodes[turn % len(self.nodes)]
            node = getattr(node, "node", node)
            if not self._is_told or node.process.poll() is None:
                with contextlib.suppress(*ERRORS), connect(node, **self._options) as connection:
                    self._publish(connection)
            time.sleep(0.05)

    def _publish(self, connection: pika.BlockingConnection) -> None:
        channel = connection.channel()
        channel.confirm_delivery()
        while not self._is_over.is_set():
            body = f"{self.name} {self.confirmed + 1}".encode()
            begun = time.monotonic()
            channel.basic_publish("", QUEUE, body, PERSISTENT, mandatory=True)
            self.confirmed += 1
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - self._last)
            self._last = now
            if self.first is None and begun >= self._mark:
                self.first = now
            if self._pause_s:
                time.sleep(self._pause_s)

    def await_more(self, count: int, patience_s: float = DEADLINE_S) -> None:
        """Wait until so many more are confirmed."""
        wanted = self.confirmed + count
        await_true(f"{count} more are confirmed", lambda: self.confirmed >= wanted, patience_s)

    def stop(self) -> int:
        """End it; how many were confirmed."""
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        return self.confirmed


# A message that is acknowledged before it is in the log needs no log to be confirmed.
KEPT = 300


class Consumer:
    """Receives and acknowledges numbers, at any node that accepts it, so that few wait."""

    def __init__(self, nodes: Sequence[Router | HasNode], *, is_told: bool, **options: object):
        self.nodes = nodes
        self.taken: list[tuple[int, int]] = []
        self._is_told = is_told
        self._options = options
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        turn = 0
        while not self._is_over.is_set():
            turn += 1
            node = self.nodes[turn % len(self.nodes)]
            node = getattr(node, "node", node)
            if not self._is_told or node.process.poll() is None:
                with contextlib.suppress(*ERRORS), connect(node, **self._options) as connection:
                    self._consume(connection.channel())
            time.sleep(0.05)

    def _consume(self, channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
        while not self._is_over.is_set():
            waiting = channel.queue_declare(QUEUE, passive=True).method.message_count
            for _ in range(waiting - KEPT):
                method, _, body = channel.basic_get(QUEUE)
                if method is None or self._is_over.is_set():
                    break
                publisher, number = body.split()
                self.taken.append((int(publisher), int(number)))
                channel.basic_ack(method.delivery_tag)
            channel.connection.sleep(0.5)

    def stop(self) -> list[tuple[int, int]]:
        """End it; return what it has received, in its order."""
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        return self.taken


def declare(node: Router) -> None:
    """Make the queue."""
    with connect(node) as connection:
        connection.channel().queue_declare(QUEUE, durable=True)


def await_end(connection: pika.BlockingConnection) -> None:
    """Let a connection do what it is told until its broker ends it."""
    while True:
        connection.process_data_events(1)


def take_all(nodes: list[Router]) -> list[tuple[int, int]]:
    """Take every message from the owner, and return its publisher and its number."""
    taken: list[tuple[int, int]] = []

    def is_empty() -> bool:
        for node in nodes:
            with contextlib.suppress(*ERRORS), connect(node) as connection:
                take(connection.channel(), taken)
                return True
        return False

    await_true("all is taken", is_empty)
    return taken


def take(channel: pika.adapters.blocking_connection.BlockingChannel, taken: list) -> None:
    """Take messages until there are no more."""
    while True:
        method, _, body = channel.basic_get(QUEUE)
        if method is None:
            return
        publisher, number = body.split()
        taken.append((int(publisher), int(number)))
        channel.basic_ack(method.delivery_tag)


def check(taken: list[tuple[int, int]], publishers: list[Publisher]) -> None:
    """Hold that what was confirmed is there, at least once, and in its order."""
    for publisher in publishers:
        numbers = [number for name, number in taken if name == publisher.name]
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts), "out of their order"
        missing = set(range(1, publisher.confirmed + 1)) - set(numbers)
        assert not missing, f"confirmed and lost: {sorted(missing)[:10]}"


def survives_its_owner(nodes: list[Router], end: Callable[[Router], None]) -> None:
    """Hold that one node takes over from the other with what was confirmed, and goes on."""
    owner, _ = at_owner(nodes, declare)
    publisher = Publisher(nodes, 1)
    publisher.await_more(10)
    end(owner)
    publisher.await_more(10)
    publisher.stop()
    check(take_all([node for node in nodes if node is not owner]), [publisher])


def leader(servers: list[NatsServer]) -> NatsServer:
    """Return the server that leads the vhost's stream."""
    return stream_leader(servers, STREAM)


def files(directory: Path) -> list[str]:
    """Return the names of the files beside a node's store."""
    return sorted(path.name for path in (directory / "amqp.store.replicated").iterdir())


def crosstie(node: Router, *words: object) -> subprocess.CompletedProcess[str]:
    """Say something to a node by the command line."""
    command = [str(node.program), *map(str, words), "--cbdir", str(node.directory)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def moved(owner: Router, *words: str) -> dict:
    """Move the vhost, once the owner has heard that the other one stands by.

    On a busy machine the target may need more than two seconds: then the owner serves it again.
    """
    said: list[dict] = []

    def is_moved() -> bool:
        done = crosstie(owner, "amqp", "move", "/", *words, "--json")
        refusals = ("standing by", "does not stand by", "has taken it back")
        if any(refusal in done.stderr for refusal in refusals):
            return False
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout))
        return True

    await_true("it is moved", is_moved)
    return said[0]


def told(node: Router, *words: object, code: int = 0) -> str:
    """Say something to a node, and return what is said to that."""
    done = crosstie(node, *words)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 or done.stdout else done.stderr
