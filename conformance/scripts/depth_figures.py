"""Measure queues larger than memory and delayed messages beside RabbitMQ, in turns on one disk.

    cd conformance; ../target/venv/bin/python scripts/depth_figures.py --program PATH

The clients are roles of the `crosstie-lab` beside the program: `depth` publishes and consumes, and
`hostile-witness` makes calls, events and messages meanwhile. The program's limits are its defaults.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pika
from rig import rabbitmq, router
from rig.broker import Broker, Crosstie, configuration

# A start over ten million messages, or a stop, may take minutes.
PATIENCE_S = 1800
router.DEADLINE_S = PATIENCE_S
rabbitmq.START_S = PATIENCE_S
rabbitmq.STOP_S = PATIENCE_S

BUDGET_BYTES = 25 << 30
# What a broker may write beside a body: headers, logs that are not compacted yet.
OVERHEAD = 300
KINDS = {
    "Crosstie": ("classic", {"x-queue-type": "classic"}),
    "RabbitMQ classic v2": ("classic", {"x-queue-version": 2}),
    "RabbitMQ quorum": ("quorum", {"x-queue-type": "quorum"}),
}


class Node(Crosstie):
    """A node of any build, which is restarted as the same build."""

    def __init__(self, directory: Path, program: Path):
        self.directory = directory
        self.program = program
        self.configuration = configuration({"store": str(directory / "amqp.store")})
        self._begin()
        Broker.__init__(self, "crosstie", *self.router.address("amqp"))

    def _begin(self) -> None:
        self.router = router.Router(self.directory, config=self.configuration, program=self.program)

    def kill(self) -> None:
        """End it without asking."""
        self.router.kill()

    def start(self) -> None:
        """Start it again on the same port."""
        (worker,) = self.configuration["workers"]
        worker["transports"][0]["endpoint"]["port"] = self.port
        self._begin()

    @property
    def process(self) -> subprocess.Popen:
        """The process whose memory and time count."""
        return self.router.process

    @property
    def stored(self) -> list[Path]:
        """Return where its messages are."""
        return sorted(self.directory.glob("amqp.store*"))


class Judge(rabbitmq.RabbitMq):
    """RabbitMQ, with the place of its data."""

    @property
    def stored(self) -> list[Path]:
        """Return where its messages are."""
        return [self.directory / "mnesia"]


def disk_bytes(paths: list[Path]) -> int:
    """Return the bytes that these files and folders take on the disk."""
    total = 0
    for path in paths:
        for file in [path, *path.rglob("*")] if path.is_dir() else [path]:
            # Files come and go meanwhile.
            with contextlib.suppress(OSError):
                total += file.stat().st_blocks * 512
    return total


def members(group: int) -> Iterator[tuple[Path, list[str]]]:
    """Yield the processes of a group: their folder in /proc, and the fields of their state."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if entry.name == str(group) or fields[2] == str(group):
                yield entry, fields


def processor_s(group: int) -> float:
    """Return the processor time of a process and its group."""
    ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in members(group))
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(group: int) -> int:
    """Return the resident memory of a process and its group."""
    pages = sum(int(fields[21]) for _, fields in members(group))
    return pages * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """A role of `crosstie-lab` in a process of its own, which reports in lines of JSON."""

    def __init__(self, lab: Path, role: str, order: dict):
        place = {"cores": sorted(os.sched_getaffinity(0)), "namespace": None}
        command = [str(lab), "bench-worker", role, json.dumps(place), json.dumps(order)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self):
        """Return its next report."""
        line = self.process.stdout.readline()
        assert line, f"the driver ended with {self.process.wait()}"
        report = json.loads(line)
        failed = isinstance(report, dict) and report.get("Failed")
        assert not failed, f"the driver failed: {failed}"
        return report

    def tell(self, instruction: str) -> None:
        """Send it an instruction."""
        self.process.stdin.write(json.dumps(instruction) + "\n")
        self.process.stdin.flush()

    def found(self) -> dict:
        """Wait for its end; return what it found."""
        while True:
            report = self.read()
            if isinstance(report, dict) and "Found" in report:
                self.end()
                return report["Found"]

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def account(address: tuple[str, int]) -> dict:
    """Return a broker's address and account, as drivers take it."""
    host, port = address
    endpoint = {"Tcp": f"{host}:{port}"}
    return {"endpoint": endpoint, "user": "test", "password": "test", "vhost": "/"}


@dataclass
class Load:
    """What drivers do at a broker."""

    lab: Path
    address: tuple[str, int]

    def _begin(self, queue: str, queues: int, messages: int, task: dict) -> Worker:
        order = {
            "broker": account(self.address),
            "queue": queue,
            "queues": queues,
            "messages": messages,
            "patience_s": PATIENCE_S,
            "task": task,
        }
        return Worker(self.lab, "depth", order)

    def publishing(
        self,
        queue: str,
        messages: int,
        size: int,
        *,
        queues: int = 1,
        first: int = 0,
        window: int = 1000,
        low: int = 500,
        exchange: str = "",
        delays: dict | None = None,
    ) -> Worker:
        """Begin to publish."""
        task = {
            "exchange": exchange,
            "body_bytes": size,
            "first": first,
            "window": window,
            "low": low,
            "delays": delays,
        }
        return self._begin(queue, queues, messages, {"Publish": task})

    def publish(self, queue: str, messages: int, size: int, **options) -> dict:
        """Publish, and return what the driver found."""
        found = self.publishing(queue, messages, size, **options).found()
        assert found["refused"] == 0, found
        return {**found, "rate": messages / found["seconds"]}

    def consuming(
        self, queue: str, messages: int, *, queues: int = 1, is_ordered: bool = True
    ) -> Worker:
        """Begin to consume; the first line of the driver is that it is ready."""
        task = {"prefetch": 2000, "is_ordered": is_ordered}
        return self._begin(queue, queues, messages, {"Consume": task})


class Witness:
    """Calls, events and messages beside a load: the longest wait of each."""

    names = ("call", "event", "message", "confirm")

    def __init__(self, lab: Path, broker: Broker, *, pages: dict | None = None):
        targets = []
        if isinstance(broker, Crosstie):
            host, port = broker.router.address("tcp")
            target = {
                "endpoint": {"Tcp": f"{host}:{port}"},
                "transport": "RawSocket",
                "serializer": "msgpack",
                "host": f"{host}:{port}",
                "resource": "/",
                "realm": "realm1",
            }
            targets.append(target)
        ways = {"targets": targets, "broker": account(broker.address), "pages": pages, "web": None}
        order = {"ways": ways, "patience": {"secs": 60, "nanos": 0}}
        self.worker = Worker(lab, "hostile-witness", order)
        ready = self.worker.read()
        assert ready == {"Ready": {"without": []}}, ready
        self.worker.tell("Begin")

    def end(self) -> dict[str, float]:
        """Return the longest waits in milliseconds."""
        self.worker.tell("Finish")
        found = self.worker.found()
        lost = {name: each["why"] for name, each in found.items() if each["lost"]}
        assert not lost, f"the witness lost connections: {lost}"
        return {name: found[name]["worst_ns"] / 1e6 for name in self.names if name in found}


class Peak:
    """The largest resident memory of a broker for a while."""

    def __init__(self, group: int):
        self.group = group
        self.bytes = resident_bytes(group)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        # To look for the processes of a group costs as much as a broker's work.
        places: list[Path] = []
        look_again_s = 0.0
        while not self._over.wait(0.1):
            if not places or time.monotonic() > look_again_s:
                places = [place for place, _ in members(self.group)]
                look_again_s = time.monotonic() + 10
            pages = 0
            for place in places:
                with contextlib.suppress(OSError, IndexError):
                    pages += int((place / "statm").read_text().split()[1])
            self.bytes = max(self.bytes, pages * os.sysconf("SC_PAGE_SIZE"))

    def end(self) -> int:
        """Return it."""
        self._over.set()
        self._thread.join()
        return self.bytes


@contextlib.contextmanager
def brokers(options, name: str, messages: int, size: int) -> Iterator[Broker]:
    """Start a broker in a directory that is removed again; refuse what the disk cannot hold."""
    needed = messages * (size + OVERHEAD)
    free = shutil.disk_usage(options.directory).free
    assert needed <= min(BUDGET_BYTES, free - (2 << 30)), (
        f"{messages:,} messages of {size} B may take {needed >> 20:,} MiB, {free >> 20:,} are free"
    )
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="depth-") as directory:
        if name.startswith("RabbitMQ"):
            broker = Judge(Path(directory))
        else:
            program = options.before if name == "before" else options.program
            broker = Node(Path(directory), program)
        try:
            yield broker
        finally:
            # What is measured is measured: a stop in order may write for minutes.
            broker.kill()
            if isinstance(broker, Judge):
                broker.stop()


def declare(broker: Broker, prefix: str, queues: int, arguments: dict) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    channel = connection.channel()
    for at in range(queues):
        channel.queue_declare(f"{prefix}{at}", durable=True, arguments=arguments)
    connection.close()


def remove(broker: Broker, prefix: str, queues: int) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url() + "?heartbeat=0"))
    channel = connection.channel()
    for at in range(queues):
        channel.queue_delete(f"{prefix}{at}")
    connection.close()


def deep(options, name: str, queues: int, messages: int, size: int) -> dict:
    """Fill queues, kill the broker, and drain them."""
    figures: dict = {}
    waits: dict[str, float] = {}

    def witnessed(witness: Witness) -> None:
        for key, value in witness.end().items():
            waits[key] = max(waits.get(key, 0), value)

    more = max(messages // 50, 1000)
    more -= more % queues
    with brokers(options, name, messages + 2 * more, size) as broker:
        load = Load(options.lab, broker.address)
        arguments = KINDS[name][1]
        declare(broker, "deep", queues, arguments)
        # The first messages find cold files and code.
        for _ in range(2):
            declare(broker, "empty", queues, arguments)
            empty = load.publish("empty", more, size, queues=queues)
            remove(broker, "empty", queues)
        before = disk_bytes(broker.stored)
        witness, peak = Witness(options.lab, broker), Peak(broker.process.pid)
        filled = load.publish("deep", messages, size, queues=queues)
        figures["fill, messages/s"] = filled["rate"]
        full = load.publish("deep", more, size, queues=queues, first=messages // queues)
        witnessed(witness)
        figures["publish rate, deep ÷ empty"] = full["rate"] / empty["rate"]
        figures["resident, peak of the fill, MB"] = peak.end() / 1e6
        time.sleep(options.rest)
        figures["resident, at rest, MB"] = resident_bytes(broker.process.pid) / 1e6
        total = messages + more
        grown = disk_bytes(broker.stored) - before
        figures["disk, bytes per message"] = grown / total
        broker.kill()
        consumer = load.consuming("deep", total, queues=queues)
        begun_ns = time.monotonic_ns()
        broker.start()
        figures["kill -9 to listening, s"] = (time.monotonic_ns() - begun_ns) / 1e9
        witness, peak = Witness(options.lab, broker), Peak(broker.process.pid)
        before_s = processor_s(broker.process.pid)
        drained = consumer.found()
        witnessed(witness)
        used_s = processor_s(broker.process.pid) - before_s
        assert (drained["doubled"], drained["reordered"]) == (0, 0), drained
        figures["kill -9 to the first delivery, s"] = (drained["first_ns"] - begun_ns) / 1e9
        figures["drain, messages/s"] = total / drained["seconds"]
        figures["drain, broker's µs per message"] = used_s / total * 1e6
        figures["drain, driver's µs per message"] = drained["cpu_us_per_message"]
        figures["resident, peak of the drain, MB"] = peak.end() / 1e6
        time.sleep(options.rest)
        figures["disk after the drain, MB"] = disk_bytes(broker.stored) / 1e6
        figures["longest wait of a publisher, ms"] = filled["worst_confirm_ms"]
        for key, value in waits.items():
            figures[f"witness: {key}, worst ms"] = value
    return figures


def durable(options, name: str, size: int, window: int, messages: int) -> dict:
    """Publish durable messages, that many a commit."""
    with brokers(options, name, messages * (options.rounds + 1), size) as broker:
        load = Load(options.lab, broker.address)
        declare(broker, "kept", 1, KINDS.get(name, KINDS["Crosstie"])[1])
        load.publish("kept", max(messages // 4, window), size, window=window, low=0)
        witness = Witness(options.lab, broker)
        rounds = []
        for at in range(options.rounds):
            before_s = processor_s(broker.process.pid)
            found = load.publish("kept", messages, size, window=window, low=0, first=at * messages)
            used_s = processor_s(broker.process.pid) - before_s
            found["broker_us"] = used_s / messages * 1e6
            rounds.append(found)
        waits = witness.end()
    keys = ("rate", "broker_us", "cpu_us_per_message")
    median = {key: statistics.median(one[key] for one in rounds) for key in keys}
    return {
        "messages/s": median["rate"],
        "broker's µs per message": median["broker_us"],
        "driver's µs per message": median["cpu_us_per_message"],
        **{f"witness: {key}, worst ms": value for key, value in waits.items()},
    }


def delayed(options, messages: int, is_loaded: bool) -> dict:
    """Delay messages at random over a minute; return how late the latest came."""
    size = 100
    with brokers(options, "Crosstie", messages, size) as broker:
        load = Load(options.lab, broker.address)
        delays(broker)
        # Far enough for all to be published before the first is due.
        lead_ms = 5_000 + messages // 20
        witness, peak = Witness(options.lab, broker), Peak(broker.process.pid)
        span = {"lead_ms": lead_ms, "span_ms": options.span_ms}
        consumer = load.consuming("due", messages, is_ordered=False)
        assert consumer.read() == "Ready"
        published = load.publish(
            "due", messages, size, window=20, low=10, exchange="later", delays=span
        )
        late_s = published["seconds"] - lead_ms / 1e3
        others = []
        if is_loaded:
            declare(broker, "load", 1, KINDS["Crosstie"][1])
            others = [load.consuming("load", 1 << 30), load.publishing("load", 1 << 30, size)]
        found = consumer.found()
        for worker in others:
            worker.end()
        waits = witness.end()
        # A delay begins when the broker receives the message, which a slow confirm does not tell.
        slow = {n for first, last in published["slow"] for n in range(first, last + 1)}
        late = [late_ms for number, late_ms in found["late"] if number not in slow]
        return {
            "latest, ms": max(late, default=2.0),
            "latest with those of slow confirms, ms": found["worst_late_ms"],
            "slow confirms, %": 100 * len(slow) / messages,
            "earliest, ms": found["worst_early_ms"],
            "doubled": found["doubled"],
            "published too late by, s": max(late_s, 0),
            "resident, peak, MB": peak.end() / 1e6,
            **{f"witness: {key}, worst ms": value for key, value in waits.items()},
        }


def at_rest(options, messages: int) -> dict:
    """Delay messages by a day; return what they take."""
    size = 100
    with brokers(options, "Crosstie", messages, size) as broker:
        load = Load(options.lab, broker.address)
        delays(broker)
        before = resident_bytes(broker.process.pid)
        witness, peak = Witness(options.lab, broker), Peak(broker.process.pid)
        day = {"lead_ms": 86_400_000, "span_ms": 86_400_000}
        found = load.publish("due", messages, size, exchange="later", delays=day)
        waits = witness.end()
        peak_bytes = peak.end()
        time.sleep(options.rest)
        figures = {
            "messages/s": found["rate"],
            "resident, at rest, MB": resident_bytes(broker.process.pid) / 1e6,
            "resident, before, MB": before / 1e6,
            "resident, peak of the fill, MB": peak_bytes / 1e6,
            "disk, bytes per message": disk_bytes(broker.stored) / messages,
            **{f"witness: {key}, worst ms": value for key, value in waits.items()},
        }
        broker.kill()
        begun_s = time.monotonic()
        broker.start()
        figures["kill -9 to listening, s"] = time.monotonic() - begun_s
        held = broker.router.metric("amqp_messages_delayed")
        assert held == messages, f"{held} of {messages} are held back after the kill"
        figures["resident after the kill, MB"] = resident_bytes(broker.process.pid) / 1e6
        return figures


def delays(broker: Broker) -> None:
    """Declare an exchange that delays, and a queue behind it."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    channel = connection.channel()
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare("later", "x-delayed-message", durable=True, arguments=arguments)
    channel.queue_declare("due0", durable=True)
    channel.queue_bind("due0", "later", "due0")
    connection.close()


def floor(options, size: int) -> dict:
    """Publish to, and consume from, a program that only forwards frames."""
    messages = max(int(1_000_000 * options.scale), 20_000)
    server = Worker(options.lab, "broker-floor", {"address": "127.0.0.1:0"})
    host, _, port = server.read()["endpoint"]["Tcp"].rpartition(":")
    load = Load(options.lab, (host, int(port)))
    alone = load.publish("nobody", messages, size)
    consumer = load.consuming("q", messages)
    assert consumer.read() == "Ready"
    load.publish("q", messages, size)
    found = consumer.found()
    server.end()
    return {
        "publish, messages/s": alone["rate"],
        "publish, driver's µs per message": alone["cpu_us_per_message"],
        "consume, messages/s": messages / found["seconds"],
        "consume, driver's µs per message": found["cpu_us_per_message"],
    }


@dataclass
class Report:
    """Tables for people."""

    lines: list[str] = field(default_factory=list)

    def table(self, title: str, columns: dict[str, dict], goals: dict[str, str]) -> None:
        """Print one: a row for each figure, a column for each subject, the ratio of the first two.

        A column without a figure has a dash.
        """
        names = list(columns)
        lines = [
            f"\n**{title}**\n",
            "| | " + " | ".join([*names, "first ÷ second", "reach"]) + " |",
        ]
        lines.append("|---" * (len(names) + 3) + "|")
        for key in columns[names[0]]:
            values = [columns[name].get(key) for name in names]
            cells = ["-" if value is None else written(value) for value in values]
            two = values[:2]
            ratio = f"{two[0] / two[1]:.2f}" if len(two) == 2 and all(two) else "-"
            lines.append(f"| {key} | " + " | ".join([*cells, ratio, goals.get(key, "-")]) + " |")
        print("\n".join(lines), flush=True)
        self.lines += lines


def written(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


DEEP_GOALS = {
    "resident, at rest, MB": "≤ 150",
    "resident, peak of the fill, MB": "≤ 150",
    "resident, peak of the drain, MB": "≤ 150",
    "kill -9 to the first delivery, s": "≤ 2",
    "publish rate, deep ÷ empty": "≥ 0.9",
    "longest wait of a publisher, ms": "≤ 50",
}
WITNESS_GOALS = {
    f"witness: {key}, worst ms": "≤ 100" for key in ("call", "event", "message", "confirm")
}


def deep_table(options, report: Report, title: str, load: tuple, goals: dict[str, str]) -> None:
    queues, messages, size = load
    columns = {}
    for name in options.subjects:
        columns[name] = deep(options, name, queues, messages, size)
    title = f"{title}: {messages:,} messages of {size} B in {queues} queue(s)"
    report.table(title, columns, {**DEEP_GOALS, **WITNESS_GOALS, **goals})


def one_queue(options, report: Report) -> None:
    messages = options.counted(10_000_000)
    goals = {"drain, messages/s": "≥ 3 times", "disk, bytes per message": "≤ 1,331"}
    deep_table(options, report, "One deep queue", (1, messages, 1024), goals)


def many_queues(options, report: Report) -> None:
    messages = options.counted(100_000) * 100
    goals = {"drain, messages/s": "≥ 5 times"}
    deep_table(options, report, "Many deep queues", (100, messages, 100), goals)


def commits(options, report: Report) -> None:
    names = ["Crosstie", *(["before"] if options.before else []), "RabbitMQ classic v2"]
    names = [name for name in names if name in [*options.subjects, "before"]]
    for window, sizes in ((100, (100, 1000, 4000)), (1, (100, 1000))):
        for size in sizes:
            messages = options.counted(200_000 if window > 1 else 10_000)
            messages -= messages % window
            columns = {name: durable(options, name, size, window, messages) for name in names}
            goals = dict(WITNESS_GOALS)
            if options.before:
                goals["messages/s"] = "≥ 1.4 times" if window == 1 else "≥ 3 times"
                if (window, size) == (100, 100):
                    goals["messages/s"] = "≥ 1.3 times"
                if (window, size) == (100, 1000):
                    goals["broker's µs per message"] = "≤ 0.3 times"
            title = f"Durable publications of {size} B, {window} a commit ({messages:,} a round)"
            report.table(title, columns, goals)


def later(options, report: Report) -> None:
    messages = options.counted(1_000_000)
    columns = {
        "idle": delayed(options, messages, is_loaded=False),
        "at full load": delayed(options, messages, is_loaded=True),
    }
    goals = {"latest, ms": "≤ 5; ≤ 50", **WITNESS_GOALS}
    span_s = options.span_ms / 1000
    report.table(f"{messages:,} messages delayed over {span_s:g} s", columns, goals)
    messages = options.counted(10_000_000)
    columns = {"Crosstie": at_rest(options, messages)}
    goals = {"resident, at rest, MB": "≤ 50", **WITNESS_GOALS}
    report.table(f"{messages:,} messages delayed by a day", columns, goals)


def floors(options, report: Report) -> None:
    columns = {f"{size} B": floor(options, size) for size in (100, 1024)}
    report.table("The driver's floor: a program that only forwards frames", columns, {})


PARTS: dict[str, Callable[[argparse.Namespace, Report], None]] = {
    "floor": floors,
    "one-queue": one_queue,
    "many-queues": many_queues,
    "commits": commits,
    "delayed": later,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the build to measure")
    parser.add_argument("--before", type=Path, help="another build, for durable publications")
    parser.add_argument("--lab", type=Path, help="crosstie-lab [default: beside the program]")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all counts")
    parser.add_argument("--rounds", type=int, default=3, help="of durable publications")
    parser.add_argument("--span", type=float, help="seconds in which delayed messages are due")
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--subject", action="append", choices=KINDS, help="may be repeated")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on the disk")
    options = parser.parse_args()
    options.program = options.program.resolve()
    options.lab = (options.lab or options.program.parent / "crosstie-lab").resolve()
    options.before = options.before and options.before.resolve()
    options.subjects = options.subject or list(KINDS)
    options.counted = lambda count: max(int(count * options.scale), 1000 if count > 1e5 else 100)
    span_s = options.span or (60 if options.scale >= 0.1 else 10)
    options.span_ms = int(span_s * 1000)
    options.rest = min(10.0, 100 * options.scale)
    report = Report()
    for part in options.part or PARTS:
        begun = time.monotonic()
        PARTS[part](options, report)
        print(f"({part}: {time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
