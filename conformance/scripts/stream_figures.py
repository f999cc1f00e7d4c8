"""Measure streams beside RabbitMQ, in turns on one disk: confirmed appends, and ten readers.

    cd conformance; ../target/venv/bin/python scripts/stream_figures.py --program PATH
    cd conformance; ../target/venv/bin/python scripts/stream_figures.py --program PATH --filters

`--filters` measures readers that want one of a thousand messages, or only the last one, beside a
publisher and a reader of another stream. RabbitMQ 3.10 has no filters: it is not measured then.

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
import threading
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


def fields(named: dict[str, str]) -> bytes:
    """Return a table of texts."""
    written = b""
    for name, value in named.items():
        written += short(name.encode()) + b"S" + struct.pack(">I", len(value)) + value.encode()
    return struct.pack(">I", len(written)) + written


def message(stream: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """Return the frames of a persistent message."""
    one = method((60, 40), b"\0\0" + short(b"") + short(stream.encode()) + b"\0")
    flags, properties = 0x1000, b"\x02"
    if headers:
        flags, properties = 0x3000, fields(headers) + properties
    one += frame(2, 1, struct.pack(">HHQH", 60, 0, len(body), flags) + properties)
    return one + frame(3, 1, body)


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
    half = message(stream, body) * (WINDOW // 2)
    end = time.monotonic() + seconds
    confirmed = publish_until(wire, half, WINDOW // 2, lambda _: time.monotonic() >= end)
    counts.append(confirmed / seconds)


def publish_until(wire: Wire, block: bytes, messages: int, is_over) -> int:
    """Publish blocks of messages, two at a time, until it is over; return the confirmed ones."""
    sent, confirmed, rest = 0, 0, b""
    while not is_over(confirmed):
        while sent - confirmed <= messages:
            wire.socket.sendall(block)
            sent += messages
        rest += wire.socket.recv(1 << 16)
        while len(rest) >= 21:
            ids, tag, multiple = struct.unpack_from(">IQB", rest, 7)
            assert ids == (60 << 16) + 80, "only basic.ack is expected"
            confirmed = tag if multiple else confirmed + 1
            rest = rest[21:]
    return confirmed


def read(broker: Broker, stream: str, count: int, rates: list, **others: str) -> None:
    """Read from the first message on, until that many have come."""
    wire = Wire(broker)
    wire.channel.basic_qos(prefetch_count=2000)
    wire.begin()
    named = {name.replace("_", "-"): value for name, value in others.items()}
    table = fields({"x-stream-offset": "first", **named})
    arguments = b"\0\0" + short(stream.encode()) + short(b"r") + b"\0"
    begun = time.monotonic()
    wire.socket.sendall(method((60, 20), arguments + table))
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


def measure_filters(broker: Broker, group: int, size: int, count: int) -> dict:
    """Read a stream of that many thousands with filters."""
    body = MARK + b"." * (size - len(MARK))
    stream, other = (f"{name}{time.monotonic_ns()}" for name in ("s", "other"))
    connection = pika.BlockingConnection(pika.URLParameters(broker.url() + "?heartbeat=0"))
    channel = connection.channel()
    for name in (stream, other):
        channel.queue_declare(name, durable=True, arguments=STREAM)
    wire = Wire(broker)
    wire.channel.confirm_delivery()
    wire.begin()
    # The rare one is at the end of its thousand.
    common = message(stream, body, {"x-stream-filter-value": "common"}) * 999
    block = common + message(stream, body, {"x-stream-filter-value": "rare"})
    publish_until(wire, block, 1000, lambda confirmed: confirmed >= count * 1000)
    properties = pika.BasicProperties(headers={"x-stream-filter-value": "last"})
    channel.confirm_delivery()
    channel.basic_publish("", stream, body, properties)
    messages = channel.queue_declare(stream, passive=True).method.message_count
    figures: dict[str, float] = {"messages": messages}
    cases = [
        ("all", 1, messages, {}),
        ("1 of 1,000", 1, messages // 1000, {"x_stream_filter": "rare"}),
        ("the last one", 1, 1, {"x_stream_filter": "last"}),
        ("the last one, ten readers", 10, 1, {"x_stream_filter": "last"}),
    ]
    for name, readers, wanted, arguments in cases:
        before = processor_s(group)
        stop, waits = threading.Event(), [0.0]
        witness = threading.Thread(target=watch, args=(broker, other, stop, waits))
        witness.start()
        _, took = together(
            readers, lambda got, w=wanted, a=arguments: read(broker, stream, w, got, **a)
        )
        stop.set()
        witness.join()
        used_us = (processor_s(group) - before) * 1e6
        figures[f"{name}: scanned/s"] = readers * messages / took
        figures[f"{name}: µs per scanned message"] = used_us / (readers * messages)
        figures[f"{name}: longest wait of another stream, ms"] = max(waits) * 1e3
    for name in (stream, other):
        channel.queue_delete(name)
    connection.close()
    return figures


def watch(broker: Broker, stream: str, stop: threading.Event, waits: list[float]) -> None:
    """Publish to a stream and read that, message by message; note the time of each."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1)
    sent_s = 0.0

    def on_message(_channel, method, _properties, _body) -> None:
        nonlocal sent_s
        waits.append(time.monotonic() - sent_s)
        channel.basic_ack(method.delivery_tag)
        sent_s = 0.0

    channel.basic_consume(stream, on_message, arguments={"x-stream-offset": "next"})
    while not stop.is_set() or sent_s:
        if not sent_s:
            sent_s = time.monotonic()
            channel.basic_publish("", stream, b"witness")
        connection.process_data_events(time_limit=0.01)
    connection.close()


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
    parser.add_argument("--filters", action="store_true", help="measure readers with filters")
    options = parser.parse_args()
    if options.filters:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            broker = Other(Path(directory), options.program)
            owner = broker.router.process.pid
            for _ in range(options.rounds):
                figures = measure_filters(broker, owner, options.size, options.count // 100)
                print({key: round(value, 3) for key, value in figures.items()}, flush=True)
            broker.stop()
        return
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
