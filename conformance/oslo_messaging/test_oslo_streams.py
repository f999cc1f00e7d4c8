"""oslo.messaging with `rabbit_stream_fanout`: casts to every server go through one stream."""

from __future__ import annotations

import json
from pathlib import Path

from rig.broker import Broker
from rig.router import ROOT

PEER = ROOT / "conformance/rig/oslo_peer.py"
STREAMS = [
    "rabbit_stream_fanout=true",
    "rabbit_quorum_queue=true",
    "rabbit_transient_quorum_queue=true",
    "rabbit_qos_prefetch_count=10",
]
COUNT = 50


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
    for number in range(COUNT):
        cast = {"method": "sink", "args": {"number": number}, "cast": True}
        said = client.ask(**cast, target={"fanout": True})
        assert said["result"] is None, said
    for server in servers:
        # Its threads print in any order.
        numbers = sorted(json.loads(server.line())["number"] for _ in range(COUNT))
        assert numbers == list(range(COUNT))
    # Calls go on by queues beside it.
    said = client.ask(method="whoami")
    assert said.get("result") in ("one", "two", "three"), said
