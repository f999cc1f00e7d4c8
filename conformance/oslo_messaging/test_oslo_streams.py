"""oslo.messaging with `rabbit_stream_fanout`: casts to every server go through one stream."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from rig.broker import Broker
from rig.process import Process
from rig.router import ROOT
from rig.waiting import await_true

PEER = ROOT / "conformance/rig/oslo_peer.py"
STREAMS = [
    "rabbit_stream_fanout=true",
    "rabbit_quorum_queue=true",
    "rabbit_transient_quorum_queue=true",
    "rabbit_qos_prefetch_count=10",
]
COUNT = 50
# The number of the casts that come before the others.
EARLY = -1


class Heard:
    """The numbers that a server has printed."""

    def __init__(self, server: Process):
        self.numbers: list[int] = []
        threading.Thread(target=self._read, args=[server], daemon=True).start()

    def _read(self, server: Process) -> None:
        while line := server.process.stdout.readline():
            self.numbers.append(json.loads(line)["number"])


def test_every_server_has_every_cast_once(
    start_process, python: Path, broker: Broker, topic: str
) -> None:
    url = broker.url(scheme="rabbit")
    # Its exchange is durable, the one of other tests is not.
    options = ["--exchange", f"exchange-of-{topic}"]
    options += [word for option in STREAMS for word in ("--rabbit", option)]

    def peer(what: str, *name: str):
        return start_process(python, "-P", PEER, what, url, topic, *name, *options)

    servers = [peer("server", name) for name in ("one", "two", "three")]
    for server in servers:
        assert server.line() == "ready", server.errors
    client = peer("client")

    def cast(number: int) -> None:
        sink = {"method": "sink", "args": {"number": number}, "cast": True}
        said = client.ask(**sink, target={"fanout": True})
        assert said["result"] is None, said

    heard = [Heard(server) for server in servers]

    def all_listen() -> bool:
        # A server is ready before the broker has attached its consumer, which hears what comes
        # later.
        cast(EARLY)
        return all(EARLY in each.numbers for each in heard)

    await_true("every server hears casts", all_listen)
    for number in range(COUNT):
        cast(number)
    for each in heard:

        def has_all(each: Heard = each) -> bool:
            return len([number for number in each.numbers if number != EARLY]) >= COUNT

        await_true("every cast has come", has_all)
        # Its threads print in any order.
        assert sorted(set(each.numbers) - {EARLY}) == list(range(COUNT))
        assert len([number for number in each.numbers if number != EARLY]) == COUNT
    # Calls go on by queues beside it.
    said = client.ask(method="whoami")
    assert said.get("result") in ("one", "two", "three"), said
