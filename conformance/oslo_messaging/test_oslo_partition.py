"""oslo.messaging, while the machine that owns its vhost is cut off from all others and comes back.

Three machines on a switch have a node and a server of NATS each. Clients and servers run here, and
one server on the machine that is cut off. None of them is started again.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger.stage import STREAM, await_owner, node_config, role
from rig.nats import NatsServer, jetstream, lead
from rig.network import Network
from rig.process import Process
from rig.router import ROOT, Router
from rig.waiting import await_true

PEER = ROOT / "conformance/rig/oslo_peer.py"
AMQP, SPLICE = 5672, 25672
# Servers elect a leader of the stream, another node takes over, and clients notice.
PATIENCE_S = 90.0
# Between two of a sender: what is tried is not how much one machine can do.
PAUSE_S = 0.01
# What operators set: confirmed messages are kept in durable queues, and a silent host is missed.
RABBIT = ["amqp_durable_queues=true", "heartbeat_timeout_threshold=4"]
TOPIC = "parted"
ANSWERS = {"near", "far"}
# Each sender numbers its casts from its own base on.
BASES = (0, 1_000_000)


class Machines:
    """Three machines, with a node on each; the first one owns the vhost."""

    def __init__(self, directory: Path, network: Network, servers: list[NatsServer]):
        self.directory, self.network, self.servers = directory, network, servers
        self.nodes: list[Router] = []

    def start(self) -> None:
        """Start the nodes, the owner first."""
        for index in range(3):
            self.nodes.append(self._start(index))
            if index == 0:
                await_owner(self.nodes, PATIENCE_S)
        for node in self.nodes[1:]:
            await_true("it stands by", lambda node=node: node.health()[0] == 200)

    def _start(self, index: int) -> Router:
        address = self.network.address(index)
        settings = node_config(
            self.servers,
            standby="warm",
            elsewhere="splice",
            address=f"{address}:{SPLICE}",
            plain=True,
        )
        settings["controller"] = {"id": f"node{index + 1}"}
        for transport in settings["workers"][0]["transports"]:
            transport["endpoint"]["interface"] = address
            if transport["type"] == "amqp":
                transport["endpoint"]["port"] = AMQP
        directory = self.directory / f"node{index + 1}"
        directory.mkdir()
        return Router(directory, config=settings, within=self.network.within(index))

    def url(self, *order: int) -> str:
        """Return all nodes, in the order in which a client tries them."""
        hosts = (f"test:test@{self.network.address(index)}:{AMQP}" for index in order)
        return f"rabbit://{','.join(hosts)}/"

    def close(self) -> None:
        """End the nodes in good order."""
        for node in self.nodes:
            node.stop()


@pytest.fixture
def machines(network: Network, servers: list[NatsServer], tmp_path: Path) -> Iterator[Machines]:
    """Start all three."""
    made = Machines(tmp_path, network, servers)
    with contextlib.closing(made):
        made.start()
        yield made


class Receiver:
    """A process that prints what it receives."""

    def __init__(self, process: Process):
        self.numbers: list[int] = []
        assert process.line() == "ready", process.errors
        self.process = process
        self._lines = process.process.stdout
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError):
            for line in self._lines:
                self.numbers.append(json.loads(line)["number"])


class Sender:
    """Has a process send one message or call after the other."""

    def __init__(self, process: Process, request: Callable[[int], dict]):
        self.process, self.request = process, request
        self.said: list[dict] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            self.said.append(self.process.ask(**self.request(len(self.said))))

    @property
    def succeeded(self) -> int:
        """Return how many were confirmed or answered."""
        return sum("result" in each for each in self.said)

    def goes_on(self, count: int = 5) -> None:
        """Wait until so many more succeed."""
        wanted = self.succeeded + count
        await_true(f"{count} more succeed", lambda: self.succeeded >= wanted, PATIENCE_S)

    def stop(self) -> None:
        """Wait for the last one."""
        self._is_over.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "neither answered nor refused"


@pytest.mark.parametrize("servers", [jetstream], indirect=True)
def test_rpc_and_notifications_outlive_a_partition(
    machines: Machines, start_process, python: Path
) -> None:
    # That NATS elects another leader is part of it.
    lead(machines.servers[0], STREAM, PATIENCE_S)

    def peer(what: str, order: tuple[int, ...], *name: str, within: tuple[str, ...] = ()):
        options = [word for option in RABBIT for word in ("--rabbit", option)]
        words = [python, "-P", PEER, what, machines.url(*order), TOPIC, *name]
        return start_process(*within, *words, "--in-order", *options)

    inside = machines.network.within(0)
    near = Receiver(peer("server", (0, 1, 2), "near", within=inside))
    far = Receiver(peer("server", (1, 2, 0), "far"))
    listener = Receiver(peer("listener", (0, 1, 2)))
    calls = [
        Sender(peer("client", order), lambda _: {"method": "whoami"})
        for order in [(0, 1, 2), (2, 0, 1)]
    ]
    casts = [
        Sender(
            peer("client", order),
            lambda n, base=base: {"method": "sink", "args": {"number": base + n}, "cast": True},
        )
        for base, order in zip(BASES, [(0, 2, 1), (1, 2, 0)], strict=True)
    ]
    notifier = Sender(peer("notifier", (0, 1, 2)), lambda number: {"number": number})
    senders = [*calls, *casts, notifier]
    for each in senders:
        each.goes_on()

    machines.network.silence(0)
    others = machines.nodes[1:]
    await_owner(others, PATIENCE_S)
    for each in senders:
        each.goes_on()
    machines.network.silence_no_more(0)
    await_true("it stands by", lambda: role(machines.nodes[0]) == "standby", PATIENCE_S)
    asking = peer("client", (2, 1, 0))
    to_near = {"method": "whoami", "target": {"server": "near"}}
    await_true(
        "the server that was cut off serves again",
        lambda: asking.ask(**to_near).get("result") == "near",
        PATIENCE_S,
    )
    for each in senders:
        each.goes_on()
        each.stop()

    for each in calls:
        # A call whose request or reply was under way may time out, as the library says.
        answers = {said.get("result", said.get("failure")) for said in each.said}
        assert ANSWERS <= answers <= {*ANSWERS, "MessagingTimeout"}, answers
    for each in (*casts, notifier):
        assert each.succeeded == len(each.said), [s for s in each.said if "result" not in s]
    sent = {
        base + n for base, each in zip(BASES, casts, strict=True) for n in range(len(each.said))
    }
    await_true("every cast has come", lambda: sent <= {*near.numbers, *far.numbers}, PATIENCE_S)
    told = set(range(len(notifier.said)))
    await_true("every notification has come", lambda: told <= set(listener.numbers), PATIENCE_S)
