"""Moves a vhost again and again under load, and prints for how long its clients go without.

Three nodes and three NATS servers as `crosstie cluster init --vhost` writes them, a deep queue,
publishers with confirms, and a consumer. Each client is a process of its own, which connects to
the next node as soon as it loses one. A gap is the longest time without a confirm (publishers) or
a delivery (the consumer) around a move.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.amqp_peer import Peer
from rig.plain import ClosedError
from rig.ports import free_ports
from rig.router import Router, binary
from rig.waiting import await_true

from ledger.machines import Machine, started
from ledger.stage import await_owner, role

QUEUE, DEEP = "kept", "deep"
BODY = b"m" * 1024
WINDOW = 100
# From the order until everything is as before.
SETTLES_S = 2.0
PATIENCE_S = 120.0
ERRORS = (ClosedError, OSError, AssertionError)

Address = tuple[str, int]
Context = multiprocessing.get_context("spawn")


@dataclass
class Load:
    """What the vhost holds, and what comes while it moves."""

    messages: int = 50_000
    # Messages a second of the publisher with a window; the other one waits for each confirm.
    rate: float = 500.0
    elsewhere: str = "splice"
    standby: str = "warm"


class Client:
    """A client in a process of its own, and the times at which it had what it wants."""

    def __init__(self, act, nodes: list[Address], *more: object):
        self._pipe, other = Context.Pipe()
        self._process = Context.Process(target=run, args=(act, nodes, other, more), daemon=True)
        self._process.start()
        self.times: list[float] = []

    def count(self) -> int:
        """Return how often it had something so far."""
        self._pipe.send("times")
        self.times += self._pipe.recv()
        return len(self.times)

    def gap_ms(self, since: float, until: float) -> float:
        """Return its longest wait that overlaps this time."""
        self.count()
        pairs = zip(self.times, self.times[1:], strict=False)
        waits = [later - earlier for earlier, later in pairs if later >= since and earlier <= until]
        return max(waits) * 1000

    def stop(self) -> None:
        """End it."""
        self._pipe.send("stop")
        self._process.join(PATIENCE_S)


class Told:
    """A client's side of its pipe."""

    def __init__(self, pipe: Connection):
        self.pipe = pipe
        self.times: list[float] = []
        self.is_over = False

    def note(self) -> None:
        """It has what it wants, now."""
        self.times.append(time.monotonic())

    def look(self) -> None:
        """Answer, if something is asked."""
        while self.pipe.poll():
            if self.pipe.recv() == "stop":
                self.is_over = True
                return
            self.pipe.send(self.times)
            self.times = []


def run(act, nodes: list[Address], pipe: Connection, more: tuple) -> None:
    """Act at one node after the other, until it is told to end."""
    told = Told(pipe)
    turn = 0
    while not told.is_over:
        with contextlib.suppress(*ERRORS):
            peer = Peer.tcp(nodes[turn % len(nodes)])
            with contextlib.closing(peer.socket):
                peer.open().channel()
                act(peer, told, *more)
        turn += 1
        told.look()
        # A node that refuses everybody is not asked in a tight loop.
        time.sleep(0.002)


def publish(peer: Peer, told: Told, window: int, rate: float) -> None:
    """Publish, with so many messages that wait for their confirm, at most so many a second."""
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    sent = confirmed = 0
    begun = time.monotonic()
    while not told.is_over:
        due = begun + sent / rate
        now = time.monotonic()
        if sent - confirmed < window and now >= due:
            peer.publish("", QUEUE, BODY, {"delivery_mode": 2})
            sent += 1
            continue
        is_full = sent - confirmed == window
        if not peer.has_heard(0.05 if is_full else min(0.05, max(due - now, 0))):
            told.look()
            continue
        _, method = peer.receive_method()
        if method.name == "basic.ack":
            confirmed = method["delivery"] if method["multiple"] else confirmed + 1
            told.note()
        elif method.name == "connection.close":
            return
        told.look()


def consume(peer: Peer, told: Told) -> None:
    """Take messages, and acknowledge each."""
    peer.call("basic.qos", count=100)
    peer.expect("basic.qos-ok")
    peer.call("basic.consume", queue=QUEUE, tag="c")
    peer.expect("basic.consume-ok")
    while not told.is_over:
        if peer.has_heard(0.05):
            _, method = peer.receive_method()
            if method.name == "connection.close":
                return
            if method.name == "basic.deliver":
                told.note()
                peer.call("basic.ack", delivery=method["delivery"])
        told.look()


def fill(node: Router, messages: int) -> None:
    """Declare the queues, and fill one."""
    peer = Peer.tcp(node.address("amqp")).open()
    peer.channel()
    for queue in (QUEUE, DEEP):
        peer.call("queue.declare", queue=queue, durable=True)
        peer.expect("queue.declare-ok")
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    confirmed = 0
    for number in range(1, messages + 1):
        peer.publish("", DEEP, BODY, {"delivery_mode": 2})
        while number - confirmed > 1000 or (number == messages and confirmed < number):
            method = peer.expect("basic.ack")
            confirmed = method["delivery"] if method["multiple"] else confirmed + 1
    peer.leave()


def reconfigured(machines: list[Machine], load: Load) -> list[Router]:
    """Start the nodes again, with more in their configuration than `cluster init` writes."""
    ports = free_ports(len(machines))
    for machine, port in zip(machines, ports, strict=True):
        machine.node.stop()
        file = machine.directory / "config.json"
        config = json.loads(file.read_text())
        replicated = config["workers"][0]["amqp"]["vhosts"][0]["replicated"]
        replicated |= {"standby": load.standby, "elsewhere": load.elsewhere}
        replicated["address"] = f"127.0.0.1:{port}"
        file.write_text(json.dumps(config))
    for machine in machines:
        machine.start_node()
    return [machine.node for machine in machines]


@dataclass
class Moved:
    """What one move cost."""

    ms: float
    paused_ms: float
    publishers_ms: list[float]
    consumer_ms: float


def measure(directory: Path, load: Load, moves: int) -> list[Moved]:
    """Move the vhost so often."""
    with contextlib.ExitStack() as closing:
        machines = started(directory, None, closing)
        nodes = reconfigured(machines, load)
        fill(await_owner(nodes, PATIENCE_S), load.messages)
        addresses = [node.address("amqp") for node in nodes]
        publishers = [
            Client(publish, addresses, WINDOW, load.rate),
            Client(publish, addresses[1:] + addresses[:1], 1, 1e6),
        ]
        consumer = Client(consume, addresses[2:] + addresses[:2])
        clients = [*publishers, consumer]
        for client in clients:
            closing.callback(client.stop)
        for client in clients:
            await_true("it is served", lambda client=client: client.count() > 100, PATIENCE_S)
        done = [move(nodes, publishers, consumer) for _ in range(moves)]
        for client in clients:
            before = client.count()
            await_true("it goes on", lambda c=client, b=before: c.count() > b + 100, PATIENCE_S)
        return done


def move(nodes: list[Router], publishers: list[Client], consumer: Client) -> Moved:
    """Move the vhost once, to the next node, and wait until its clients go on."""
    owner = await_owner(nodes, PATIENCE_S)
    target = nodes[(nodes.index(owner) + 1) % len(nodes)]
    await_true("it stands by", lambda: role(target) == "standby", PATIENCE_S)
    time.sleep(SETTLES_S)
    clients = [*publishers, consumer]
    counts = [client.count() for client in clients]
    begun = time.monotonic()
    name = json.loads((target.directory / "config.json").read_text())["controller"]["id"]
    command = [str(binary()), "amqp", "move", "/", "--to", name, "--json"]
    done = subprocess.run(
        [*command, "--cbdir", str(owner.directory)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for client, count in zip(clients, counts, strict=True):
        wanted = count + 50
        await_true("it goes on", lambda c=client, w=wanted: c.count() > w, PATIENCE_S)
    time.sleep(SETTLES_S)
    until = begun + SETTLES_S
    return Moved(
        json.loads(done.stdout)["ms"],
        json.loads(done.stdout).get("paused_ms", 0),
        [publisher.gap_ms(begun, until) for publisher in publishers],
        consumer.gap_ms(begun, until),
    )


def tell(name: str, times_ms: list[float]) -> None:
    """Print a row."""
    low, half, high = min(times_ms), statistics.median(times_ms), max(times_ms)
    print(f"  {name:<28} min {low:6.0f}  median {half:6.0f}  max {high:6.0f} ms")


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=20)
    parser.add_argument("--messages", type=int, default=Load.messages)
    parser.add_argument("--rate", type=float, default=Load.rate)
    parser.add_argument("--elsewhere", choices=["splice", "refuse"], default=Load.elsewhere)
    parser.add_argument("--standby", choices=["warm", "cold"], default=Load.standby)
    asked = parser.parse_args()
    load = Load(asked.messages, asked.rate, asked.elsewhere, asked.standby)
    with tempfile.TemporaryDirectory() as directory:
        moved = measure(Path(directory), load, asked.moves)
    print(f"{asked.moves} moves, {load}")
    tell("a publisher, window of 100", [each.publishers_ms[0] for each in moved])
    tell("a publisher, one at a time", [each.publishers_ms[1] for each in moved])
    tell("a consumer", [each.consumer_ms for each in moved])
    tell("of the command: paused", [each.paused_ms for each in moved])
    tell("of the command: in all", [each.ms for each in moved])


if __name__ == "__main__":
    main()
