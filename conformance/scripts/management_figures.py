"""Measure the management API and the metrics of RabbitMQ's tools, beside RabbitMQ.

    cd conformance; ../target/venv/bin/python scripts/management_figures.py --program PATH

The witnesses are those of `bench hostile`: a process of `crosstie-lab` with eight operations, whose
longest waits count while a part runs.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import re
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import depth_figures
import pika
from depth_figures import Load, Report, resident_bytes
from rig import config
from rig.broker import Broker, Crosstie, configuration
from rig.ports import free_ports
from rig.rabbitmq import RabbitMq
from rig.router import Router
from stream_figures import Wire, method, short

QUEUES = 10_000
QUEUES_IN_MEMORY = 100_000
WRONG_LOGINS = 100_000
# RabbitMQ's statistics are so old at most.
STATISTICS_S = 12
WITNESSES = ("call", "event", "timeout", "join", "health", "message", "confirm", "connect")
PATHS = {
    "/metrics": "/metrics",
    "/metrics/per-object": "/metrics/per-object",
    "/metrics/detailed": "/metrics/detailed?"
    + urlencode([("family", name) for name in ("queue_coarse_metrics", "queue_consumer_count")]),
}


class Node(Crosstie):
    """A node of any build, with the management API and the metrics."""

    def __init__(self, directory: Path, program: Path):
        made = configuration({"store": str(directory / "amqp.store")})
        (worker,) = made["workers"]
        for user in worker["amqp"]["users"]:
            user["tags"] = ["administrator"]
        worker["transports"][1]["pages"] = ["health", "metrics"]
        for name in ("management", "prometheus"):
            transport = {"type": f"amqp.{name}", "id": name, "endpoint": config.tcp()}
            worker["transports"].append(transport)
        self.router = Router(directory, config=made, program=program)
        self.group = self.router.process.pid
        self.management = self.router.address("management")
        self.prometheus = self.router.address("prometheus")
        Broker.__init__(self, "crosstie", *self.router.address("amqp"))


class Judge(RabbitMq):
    """RabbitMQ with its plugins for management and metrics."""

    def __init__(self, directory: Path):
        ports = free_ports(2)
        self.management, self.prometheus = (("127.0.0.1", port) for port in ports)
        super().__init__(directory)
        self.group = self.process.pid

    def configuration(self) -> tuple[list[str], str]:
        """Return its plugins, and lines of its configuration."""
        plugins, lines = super().configuration()
        for name, (host, port) in (
            ("management", self.management),
            ("prometheus", self.prometheus),
        ):
            lines += f"{name}.tcp.port = {port}\n{name}.tcp.ip = {host}\n"
        return [*plugins, "rabbitmq_management", "rabbitmq_prometheus"], lines


class Witness(depth_figures.Witness):
    """Eight operations beside a load, the longest wait of each."""

    names = WITNESSES

    def __init__(self, lab: Path, node: Node):
        host, port = node.router.address("tcp")
        super().__init__(lab, node, pages=dict.fromkeys(("address", "host"), f"{host}:{port}"))

    def end(self) -> dict[str, float]:
        """Return the longest waits in milliseconds, as rows of a table."""
        return {f"witness: {name}, ms": worst_ms for name, worst_ms in super().end().items()}


class Client:
    """A client of an HTTP server that keeps its connection."""

    def __init__(self, address: tuple[str, int], password: str = "guest"):
        self.connection = http.client.HTTPConnection(*address, timeout=600)
        secret = base64.b64encode(f"guest:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {secret}", "Content-Type": "application/json"}

    def ask(self, path: str, verb: str = "GET", body: object = None) -> bytes:
        """Return the body of an answer."""
        given = None if body is None else json.dumps(body)
        self.connection.request(verb, path, given, self.headers)
        answer = self.connection.getresponse()
        octets = answer.read()
        assert answer.status < 300, (path, answer.status, octets[:200])
        return octets

    def timed(self, path: str, rounds: int) -> tuple[float, int]:
        """Return the median time of a request in seconds, and the octets of its answer."""
        octets = len(self.ask(path))
        times = []
        for _ in range(rounds):
            begun = time.monotonic()
            self.ask(path)
            times.append(time.monotonic() - begun)
        return statistics.median(times), octets


@contextlib.contextmanager
def started(options, name: str) -> Iterator[Node | Judge]:
    """Start a broker in a directory that is removed again."""
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="management-") as directory:
        place = Path(directory)
        broker = Judge(place) if name == "RabbitMQ" else Node(place, options.program)
        try:
            yield broker
        finally:
            broker.stop()


def declare(broker: Broker, prefix: str, count: int) -> None:
    """Declare durable queues without waiting for each."""
    wire = Wire(broker)
    wire.begin()
    table = struct.pack(">I", 0)
    for first in range(0, count, 1000):
        names = range(first, min(first + 1000, count))
        flags = b"\x12"  # durable, no-wait
        block = [
            method((50, 10), b"\0\0" + short(f"{prefix}{number:06}".encode()) + flags + table)
            for number in names
        ]
        wire.socket.sendall(b"".join(block))
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    channel = connection.channel()
    last = f"{prefix}{count - 1:06}"
    while True:
        try:
            channel.queue_declare(last, passive=True)
            break
        except pika.exceptions.ChannelClosedByBroker:
            channel = connection.channel()
            time.sleep(0.1)
    connection.close()
    wire.socket.close()


def publish_to_all(broker: Broker, prefix: str, count: int) -> None:
    """Publish a message to each queue, so that each has statistics."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url() + "?heartbeat=0"))
    channel = connection.channel()
    for number in range(count):
        channel.basic_publish("", f"{prefix}{number:06}", b"hello")
    channel.queue_declare(f"{prefix}000000", passive=True)
    connection.close()


def memory(options, report: Report) -> None:
    """Declare queues, and divide the memory by their number."""
    columns = {}
    for name in options.subjects:
        # RabbitMQ takes a hundred times as much for each.
        count = options.counted(QUEUES_IN_MEMORY if name == "Crosstie" else QUEUES)
        with started(options, name) as broker:
            declare(broker, "warm", 100)
            before = resident_bytes(broker.group)
            declare(broker, "held", count)
            time.sleep(2)
            grown = resident_bytes(broker.group) - before
            columns[name] = {"queues": count, "bytes per declared queue": grown / count}
    report.table("Memory of declared queues", columns, {"bytes per declared queue": "≤ 700"})


def held_by_deaf_clients(broker: Node, path: str, clients: int) -> float:
    """Return the memory that each of several clients holds that ask and do not read."""
    before = resident_bytes(broker.group)
    secret = base64.b64encode(b"guest:guest").decode()
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {secret}\r\n\r\n"
    deaf = []
    for _ in range(clients):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(broker.management)
        connection.sendall(head.encode())
        deaf.append(connection)
    time.sleep(2)
    held = resident_bytes(broker.group) - before
    for connection in deaf:
        connection.close()
    return held / clients


def beside(options, broker: Broker, work: Callable[[], None]) -> dict[str, float]:
    """Work for some seconds beside the witnesses of a Crosstie; return their waits."""
    if not isinstance(broker, Node):
        return {}
    witness = Witness(options.lab, broker)
    until = time.monotonic() + options.seconds
    while time.monotonic() < until:
        work()
    return witness.end()


WITNESS_GOALS = {f"witness: {name}, ms": "≤ 20" for name in WITNESSES}


def lists(options, report: Report) -> None:
    """List queues with their statistics."""
    count = options.counted(QUEUES)
    columns = {}
    for name in options.subjects:
        with started(options, name) as broker:
            declare(broker, "listed", count)
            publish_to_all(broker, "listed", count)
            if name == "RabbitMQ":
                time.sleep(STATISTICS_S)
            client = Client(broker.management)
            rows = json.loads(client.ask("/api/queues"))
            assert len(rows) == count
            assert all("message_stats" in row for row in rows)
            seconds, octets = client.timed("/api/queues", options.rounds)
            page = "/api/queues?page=1&page_size=100"
            figures = {
                "list, ms": seconds * 1e3,
                "list, MB": octets / 1e6,
                "page of 100, ms": client.timed(page, options.rounds)[0] * 1e3,
            }
            if isinstance(broker, Node):
                held = held_by_deaf_clients(broker, "/api/queues", 16)
                figures["held for a client that does not read, KiB"] = held / 1024
            waits = beside(options, broker, lambda client=client: client.ask("/api/queues"))
            columns[name] = figures | waits
    goals = {
        "list, ms": "≤ 1/20",
        "held for a client that does not read, KiB": "≤ 1,024",
        **WITNESS_GOALS,
    }
    report.table(f"List of {count:,} queues", columns, goals)


def scrapes(options, report: Report) -> None:
    """Read the metrics of queues."""
    count = options.counted(QUEUES)
    columns = {}
    for name in options.subjects:
        with started(options, name) as broker:
            declare(broker, "scraped", count)
            publish_to_all(broker, "scraped", count)
            if name == "RabbitMQ":
                time.sleep(STATISTICS_S)
            client = Client(broker.prometheus)
            figures: dict[str, float] = {}
            for title, path in PATHS.items():
                seconds, octets = client.timed(path, options.rounds)
                figures[f"{title}, ms"] = seconds * 1e3
                figures[f"{title}, MB"] = octets / 1e6

            def work(client: Client = client) -> None:
                for path in PATHS.values():
                    client.ask(path)

            columns[name] = figures | beside(options, broker, work)
    goals = {f"{title}, ms": "≤ 50" for title in PATHS}
    report.table(f"Scrape of {count:,} queues", columns, goals | WITNESS_GOALS)


def policy(options, report: Report) -> None:
    """Apply a policy to queues, one of which is under load."""
    count = options.counted(QUEUES)
    messages = options.counted(2_000_000)
    with started(options, "Crosstie") as broker:
        declare(broker, "ruled", count)
        client = Client(broker.management)
        load = Load(options.lab, broker.address)
        connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
        connection.channel().queue_declare("load0", durable=True)
        connection.close()
        witness = Witness(options.lab, broker)
        consumer = load.consuming("load", messages)
        assert consumer.read() == "Ready"
        publisher = load.publishing("load", messages, 100)
        answered, applied = [], []
        for number in range(options.rounds):
            rule = {"pattern": "", "definition": {"max-length": 10_000_000 + number}}
            begun = time.monotonic()
            client.ask("/api/policies/%2F/rule", "PUT", {**rule, "apply-to": "queues"})
            answered.append(time.monotonic() - begun)
            wanted = rule["definition"]
            while True:
                # The last one by name is read again until the policy is there, then all of them.
                path = f"/api/queues/%2F/ruled{count - 1:06}"
                if json.loads(client.ask(path))["effective_policy_definition"] == wanted:
                    break
            applied.append(time.monotonic() - begun)
            rows = json.loads(client.ask("/api/queues?columns=effective_policy_definition"))
            assert all(row["effective_policy_definition"] == wanted for row in rows)
        # The consumer ends with the last message.
        published, consumed = publisher.found(), consumer.found()
        waits = witness.end()
        counted = json.loads(client.ask("/api/queues/%2F/load0"))["message_stats"]
    assert (published["refused"], consumed["doubled"], consumed["reordered"]) == (0, 0, 0)
    lost = messages - counted["ack"]
    figures = {
        "policy answered, ms": max(answered) * 1e3,
        "policy applied to all, ms": max(applied) * 1e3,
        "messages/s meanwhile": messages / published["seconds"],
        "lost": lost,
        **waits,
    }
    goals = {"policy applied to all, ms": "≤ 500", "lost": "0", **WITNESS_GOALS}
    report.table(f"A policy for {count:,} queues under load", {"Crosstie": figures}, goals)


def guess(address: tuple[str, int], source: str, count: int, done: list[int]) -> None:
    """Try wrong passwords, one after another."""
    connection = socket.create_connection(address, 60, (source, 0))
    stream = connection.makefile("rb")
    for number in range(count):
        secret = base64.b64encode(f"guest:wrong{number}".encode()).decode()
        head = f"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {secret}"
        connection.sendall(f"{head}\r\n\r\n".encode())
        status = stream.readline()
        assert b" 401 " in status, status
        length = 0
        while (line := stream.readline()) != b"\r\n":
            if found := re.match(rb"(?i)content-length: (\d+)", line):
                length = int(found[1])
        stream.read(length)
        done[0] += 1
    connection.close()


def logins(options, report: Report) -> None:
    """Try wrong passwords beside right ones, of the same address and of another."""
    clients = 256
    each = max(options.counted(WRONG_LOGINS) // clients, 1)
    with started(options, "Crosstie") as broker:
        done = [0]
        threads = [
            threading.Thread(target=guess, args=(broker.management, "127.0.0.2", each, done))
            for _ in range(clients)
        ]
        witness = Witness(options.lab, broker)
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        waits: dict[str, list[float]] = {"127.0.0.1": [], "127.0.0.2": []}
        while any(thread.is_alive() for thread in threads):
            for source, found in waits.items():
                client = Client(broker.management)
                client.connection.source_address = (source, 0)
                asked = time.monotonic()
                # A client of the same address may be refused while too many wait there.
                with contextlib.suppress(AssertionError):
                    client.ask("/api/whoami")
                    found.append(time.monotonic() - asked)
                client.connection.close()
            time.sleep(0.05)
        took = time.monotonic() - begun
        seen = witness.end()
    figures: dict[str, float] = {"wrong logins": each * clients, "wrong logins/s": done[0] / took}
    for title, source in (("another address", "127.0.0.1"), ("the same address", "127.0.0.2")):
        if found := waits[source]:
            figures[f"right login of {title}, median ms"] = statistics.median(found) * 1e3
            figures[f"right login of {title}, worst ms"] = max(found) * 1e3
        figures[f"right logins of {title}"] = len(found)
    report.table("Wrong logins beside right ones", {"Crosstie": figures | seen}, WITNESS_GOALS)


PARTS: dict[str, Callable[[argparse.Namespace, Report], None]] = {
    "memory": memory,
    "lists": lists,
    "scrapes": scrapes,
    "policy": policy,
    "logins": logins,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the build to measure")
    parser.add_argument("--lab", type=Path, help="crosstie-lab [default: beside the program]")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all counts")
    parser.add_argument("--rounds", type=int, default=5, help="requests of each kind")
    parser.add_argument("--seconds", type=float, default=10, help="of the witnesses")
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument(
        "--subject", action="append", choices=("Crosstie", "RabbitMQ"), help="may be repeated"
    )
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on the disk")
    options = parser.parse_args()
    options.program = options.program.resolve()
    options.lab = (options.lab or options.program.parent / "crosstie-lab").resolve()
    options.subjects = options.subject or ["Crosstie", "RabbitMQ"]
    options.counted = lambda count: max(int(count * options.scale), 100)
    report = Report()
    for part in options.part or PARTS:
        begun = time.monotonic()
        PARTS[part](options, report)
        print(f"({part}: {time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
