"""nexus' client for Go uses every feature of the advanced profile that it speaks or passes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.router import Router

ROOT = Path(__file__).resolve().parents[2]
# scripts/needs.py builds it there.
CLIENT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "nexus-client/client"
PATIENCE_S = 120

DONE = {
    "patterns": "events and calls by prefix and wildcard, and what was meant",
    "shared": "callees in turn, the first, the last, the least busy",
    "sharded_calls": "a resource's calls go to one shard",
    "sharded_events": "a resource's events go to one shard, and to who is of none",
    "rerouting": "a call goes to the next callee, if the first one has announced it",
    "retained": "an event is sent to who comes later, until its time is over",
    "history": "the newest events of a topic",
    "meta": "sessions are counted, listed, described, watched and killed; registrations found",
    "testaments": "what is published when a session has left",
    "timeouts": "a call's time is over, and its callee is interrupted",
    "canceling": "a callee is interrupted, whether its answer is waited for or not",
    "progressive": "parts of arguments, and of results",
    "passthru": "a payload in a serializer of its own",
    "lists": "who is eligible, who is excluded, and who it was",
    "reflection": "what is defined is described, and goes with its session",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Router]:
    """Start a node that keeps a history."""
    store = {"type": "memory", "event-history": [{"uri": "com.history.topic", "limit": 100}]}
    realm = {"name": "realm1", "roles": [config.role("anonymous")], "store": store}
    settings = config.node([realm], [config.universal("tcp", config.tcp())])
    running = Router(tmp_path_factory.mktemp("nexus"), config=settings)
    yield running
    running.stop()


# Each on both transports, and each serializer on one; but this client does not read bytes in JSON.
PLAYED = [
    (what, scheme, serializer)
    for what in DONE
    for scheme, serializer in (("ws", "json"), ("tcp", "msgpack"))
    if (what, serializer) != ("passthru", "json")
]


@pytest.mark.parametrize(("what", "scheme", "serializer"), PLAYED)
def test_the_client_for_go(node: Router, what: str, scheme: str, serializer: str) -> None:
    host, port = node.address("tcp")
    url = f"{scheme}://{host}:{port}/{'ws' if scheme == 'ws' else ''}"
    command = [CLIENT, what, serializer, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), DONE[what]
