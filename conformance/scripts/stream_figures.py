"""Measure streams beside RabbitMQ, in turns on one disk: confirmed appends, and ten readers.

    cd conformance; ../target/venv/bin/python scripts/stream_figures.py --program PATH

The clients write prepared frames and count a mark in what they read, so that they cost little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pika
from rig import rabbitmq
from rig.broker import Broker, Crosstie, configuration
from rig.router import Router

MARK = b"#-message-mark-#"
WINDOW = 1000
PUBLISHERS = 2
READERS = 10
STREAM = {"x-queue-type": "stream"}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(ids: tuple[int, int], arguments: bytes) -> bytes:
    return frame(1, 1, struct.pack(">HH", *ids) + arguments)


def short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


class Wire:
    """A connection that is opened by pika, and then used without it."""

    def __init__(self, broker: Broker):
        self.connection = pika.BlockingConnection(pika.URLParameters(broker.url() + "?heartbeat=0"))
        self.channel = self.connection.channel()
        self.socket: socket.socket = self.connection._impl._transport._sock

    def begin(self) -> None:
        """Leave the socket to the caller."""
        self.socket.setblocking(True)
        self.socket.settimeout(60)


def publish(broker: Broker, stream: str, body: bytes, seconds: float, counts: list) -> None:
    """Publish in windows; count what was confirmed."""
    wire = Wire(broker)
    wire.channel.confirm_delivery()
    wire.begin()
    one = method((60, 40), b"\0\0" + short(b"") + short(stream.encode()) + b"\0")
    one += frame(2, 1, struct.pack(">HHQH", 60, 0, len(body), 0x1000) + b"\x02")
    one += frame(3, 1, body)
    half = one * (WINDOW // 2)
    sent, confirmed, rest = 0, 0, b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        while sent - confirmed <= WINDOW // 2:
            wire.socket.sendall(half)
            sent += WINDOW // 2
        rest += wire.socket.recv(1 << 16)
        while len(rest) >= 21:
            ids, tag, multiple = struct.unpack_from(">IQB", rest, 7)
            assert ids == (60 << 16) + 80, "only basic.ack is expected"
            confirmed = tag if multiple else confirmed + 1
            rest = rest[21:]
    counts.append(confirmed / seconds)


def read(broker: Broker, stream: str, count: int, rates: list) -> None:
    """Read from the first message on."""
    wire = Wire(broker)
    wire.channel.basic_qos(prefetch_count=2000)
    wire.begin()
    key = short(b"x-stream-offset")
    table = key + b"S" + struct.pack(">I", 5) + b"first"
    arguments = b"\0\0" + short(stream.encode()) + short(b"r") + b"\0"
    begun = time.monotonic()
    wire.socket.sendall(method((60, 20), arguments + struct.pack(">I", len(table)) + table))
    got, told, tail = 0, 0, b""
    while got < count:
        data = tail + wire.socket.recv(1 << 20)
        got += data.count(MARK)
        last = data.rfind(MARK)
        tail = data[max(last + len(MARK) if last >= 0 else 0, len(data) - len(MARK) + 1) :]
        if got - told >= 500 or got >= count:
            wire.socket.sendall(method((60, 80), struct.pack(">QB", got, 1)))
            told = got
    rates.append(count / (time.monotonic() - begun))


def processor_s(group: int) -> float:
    """Return the processor time of a process and its children."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if entry.name == str(group) or int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def together(count: int, work) -> tuple[list, float]:
    """Run in that many processes; return what they report, and the time."""
    pipes = []
    begun = time.monotonic()
    for _ in range(count):
        reading, writing = os.pipe()
        if os.fork() == 0:
            found: list = []
            try:
                work(found)
            finally:
                os.write(writing, json.dumps(found).encode())
                os._exit(0)
        os.close(writing)
        pipes.append(reading)
    results = []
    for reading in pipes:
        with os.fdopen(reading) as pipe:
            results += json.loads(pipe.read() or "[]")
    for _ in range(count):
        os.wait()
    assert len(results) == count, results
    return results, time.monotonic() - begun


def measure(broker: Broker, group: int, size: int, seconds: float, count: int) -> dict:
    body = (MARK * (size // len(MARK) + 1))[: len(MARK)] + b"." * (size - len(MARK))
    stream = f"s{time.monotonic_ns()}"
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    channel = connection.channel()
    channel.queue_declare(stream, durable=True, arguments=STREAM)
    before = processor_s(group)
    rates, _ = together(PUBLISHERS, lambda found: publish(broker, stream, body, seconds, found))
    appended = sum(rates)
    append_us = (processor_s(group) - before) / (appended * seconds) * 1e6
    before = processor_s(group)
    count = min(count, int(appended * seconds))
    _, took = together(READERS, lambda found: read(broker, stream, count, found))
    read_us = (processor_s(group) - before) / (READERS * count) * 1e6
    channel.queue_delete(stream)
    connection.close()
    return {
        "appends_per_s": appended,
        "append_us": append_us,
        "reads_per_s": READERS * count / took,
        "read_us": read_us,
    }


class Other(Crosstie):
    """A node of another build."""

    def __init__(self, directory: Path, program: Path):
        self.directory = directory
        self.configuration = configuration({"store": str(directory / "amqp.store")})
        self.router = Router(directory, config=self.configuration, program=program)
        Broker.__init__(self, "crosstie", *self.router.address("amqp"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--count", type=int, default=100_000, help="messages for each reader")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        judge = Path(directory, "rabbitmq")
        judge.mkdir()
        ours = Path(directory, "crosstie")
        ours.mkdir()
        brokers = [
            (rabbitmq.RabbitMq(judge), "RabbitMQ"),
            (Other(ours, options.program), "Crosstie"),
        ]
        try:
            found: dict = {name: [] for _, name in brokers}
            for _ in range(options.rounds):
                for broker, name in brokers:
                    owner = broker.process if name == "RabbitMQ" else broker.router.process
                    figures = measure(
                        broker, owner.pid, options.size, options.seconds, options.count
                    )
                    print(name, {key: round(value, 1) for key, value in figures.items()})
                    found[name].append(figures)
            for key in found["Crosstie"][0]:
                medians = {
                    name: statistics.median(one[key] for one in each)
                    for name, each in found.items()
                }
                ratio = medians["Crosstie"] / medians["RabbitMQ"]
                print(f"{key}: {medians}, ratio {ratio:.2f}")
        finally:
            for broker, _ in brokers:
                broker.stop()


if __name__ == "__main__":
    main()
