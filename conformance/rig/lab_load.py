"""The laboratory's drivers as a load: processes that keep up with the node and count their answers.

Each is a hidden role of `crosstie-lab` with an order in JSON. It connects, says that it is ready,
and works through one window of time, which all of them share.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field

from rig.router import binary
from rig.waiting import DEADLINE_S

# Texts of the same length as those of the bench.
PROCEDURE, TOPIC, QUEUE = "com.load.call", "com.load.topic", "load"


def raw_socket(address: tuple[str, int]) -> dict:
    """Return a router as a driver's order names it."""
    host = f"{address[0]}:{address[1]}"
    return {
        "endpoint": {"Tcp": host},
        "transport": "RawSocket",
        "serializer": "msgpack",
        "host": host,
        "resource": "/",
        "realm": "realm1",
    }


def paced(rate: int = 0) -> dict:
    """Return a load of so many operations a second, or of one after the other."""
    every = {"secs": 0, "nanos": 1_000_000_000 // rate} if rate else None
    return {"outstanding": 1, "batch": 1 << 40, "every": every}


def calls(address: tuple[str, int], number: int) -> tuple[dict, dict]:
    """Return the orders of a callee and its caller."""
    pair = {
        "target": raw_socket(address),
        "procedure": f"{PROCEDURE}.{number}",
        "payload_bytes": 0,
    }
    return {"Callee": pair}, {"Caller": [pair, paced()]}


def events(address: tuple[str, int], rate: int) -> dict:
    """Return the order of a publisher, and a subscriber that has each event."""
    target = raw_socket(address)
    order = {"publisher": target, "subscriber": target, "topic": TOPIC, "payload_bytes": 32}
    return {"Events": [order, paced(rate)]}


def confirms(address: tuple[str, int], number: int) -> dict:
    """Return the order of a publisher of durable messages, which counts them at its end."""
    broker = {
        "endpoint": {"Tcp": f"{address[0]}:{address[1]}"},
        "user": "guest",
        "password": "guest",
        "vhost": "/",
    }
    order = {"broker": broker, "queue": f"{QUEUE}.{number}", "payload_bytes": 100}
    return {"Confirms": [order, paced()]}


@dataclass
class Counted:
    """What drivers of one kind have counted in a window."""

    answered: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    times_ns: list[tuple[int, int]] = field(default_factory=list)

    def add(self, driven: dict) -> None:
        """Add what one of them reports."""
        self.times_ns += [(ns, count) for ns, count in driven["recorded"]["counts"]]
        self.answered += sum(count for _, count in driven["recorded"]["counts"])
        for name, count in driven["faults"].items():
            if count:
                self.faults[name] = self.faults.get(name, 0) + count

    def p99_ms(self) -> float:
        """Return the time that one answer of a hundred exceeds."""
        left = self.answered / 100
        for ns, count in sorted(self.times_ns, reverse=True):
            left -= count
            if left < 0:
                return ns / 1e6
        return 0.0


class Drivers:
    """Drivers that are ready, until they have worked."""

    def __init__(self, *orders: dict):
        """Start one for each, in their order, and wait until it is ready."""
        self.processes = []
        place = json.dumps({"cores": sorted(os.sched_getaffinity(0)), "namespace": None})
        for order in orders:
            process = subprocess.Popen(
                [
                    binary().with_name("crosstie-lab"),
                    "bench-worker",
                    "rpc",
                    place,
                    json.dumps(order),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.processes.append((next(iter(order)), process))
            ready = process.stdout.readline()
            assert json.loads(ready) == "Ready", (order, ready)

    def begin(self, seconds: float) -> None:
        """Have all work for that long, from now on."""
        start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        window = {"start_ns": start_ns, "end_ns": start_ns + int(seconds * 1e9)}
        for kind, process in self.processes:
            if kind != "Callee":
                process.stdin.write(json.dumps({"Go": window}) + "\n")
                process.stdin.flush()

    def end(self) -> dict[str, Counted]:
        """Return what they have counted, by their kind; a callee ends after its callers."""
        counted: dict[str, Counted] = {}
        ordered = sorted(self.processes, key=lambda each: each[0] == "Callee")
        for kind, process in ordered:
            said, _ = process.communicate(timeout=8 * DEADLINE_S)
            lines = [json.loads(line) for line in said.splitlines()]
            assert lines[-1] == "Finished", (kind, lines[-1])
            for line in lines[:-1]:
                if "Driven" in line:
                    counted.setdefault(kind, Counted()).add(line["Driven"])
        return counted
