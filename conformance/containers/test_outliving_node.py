"""The containers' host and the load drivers beyond every ping of theirs and of their router's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.container import Controller, RefusedError
from rig.node import Node, component, container
from rig.relay import Relay
from rig.router import Router, binary
from rig.waiting import await_true

PINGING = {"options": {"auto_ping_interval": 1000, "auto_ping_timeout": 1000}}
PERIODS = 3


@pytest.fixture
def router(start_router) -> Router:
    """Pings silent clients."""
    return start_router(
        config.plain(
            config.universal("tcp", config.tcp(), rawsocket=PINGING, websocket={"ws": PINGING})
        )
    )


@pytest.fixture
def relay(router: Router, start_relay) -> Relay:
    """Between the components and the router."""
    return start_relay(router.address("tcp"))


@pytest.fixture
def host(relay: Relay, tmp_path: Path) -> Iterator[Node]:
    """A node with nothing but a container, whose components ping their router."""
    host, port = relay.address
    transport = {
        "type": "websocket",
        "url": f"ws://{host}:{port}/ws",
        "endpoint": {"type": "tcp", "host": host, "port": port},
        "serializers": ["msgpack"],
        **PINGING,
    }
    components = [
        component("Echo", transport=transport, extra={"prefix": f"com.{name}"})
        for name in ("busy", "idle")
    ]
    directory = tmp_path / "host"
    directory.mkdir()
    started = Node(directory, {"version": 2, "workers": [container(*components)]})
    yield started
    started.close()


def answers(caller: Controller, name: str) -> None:
    """Wait until a component is there, and have it answer."""

    def is_there() -> bool:
        try:
            return caller.call(f"com.{name}.echo", 1) == {"args": [1], "kwargs": {}}
        except RefusedError as refused:
            # It is not there yet, or has just gone.
            if refused.uri not in ("wamp.error.no_such_procedure", "wamp.error.canceled"):
                raise
            return False

    await_true(f"com.{name}.echo answers", is_there)


def test_components_outlive_their_pings_and_a_lost_connection(host, relay, router):
    with Controller.tcp(router.address("tcp")) as caller:
        caller.sit_down("realm1")
        for name in ("busy", "idle"):
            answers(caller, name)
        relay.await_open(2)
        relay.await_keepalives(PERIODS)
        for name in ("busy", "idle"):
            answers(caller, name)
        # And one of them busy, for as long as the other lives through its pings.
        seen = [(each, each.from_client, each.from_server) for each in relay.open()]
        while any(
            min(each.from_client - client, each.from_server - server) < PERIODS
            for each, client, server in seen
        ):
            assert caller.call("com.busy.echo", 2)["args"] == [2]
        answers(caller, "idle")
        assert len(relay.connections) == 2, "nobody has connected again"
        relay.cut()
        for name in ("busy", "idle"):
            answers(caller, name)


RPC = ("rpc", "calls", "--seconds", "3")
# Seldom enough that the router pings who waits for an event.
PUBSUB = ("pubsub", "events", "--seconds", "5", "--no-floor", "--clients", "4", "--rate", "0.4")


@pytest.mark.parametrize(
    ("bench", "kind"),
    [(RPC, "ws"), (RPC, "rs"), (PUBSUB, "ws"), (PUBSUB, "rs")],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_drivers_outlive_the_pings_of_a_router(router, relay, tmp_path, bench, kind):
    """Measured for several of its intervals, busy and with those who mostly wait."""
    host, port = relay.address
    url = f"{kind}://{host}:{port}" + ("/ws" if kind == "ws" else "")
    name, counted, *options = bench
    options += ["--placement", "free", "--runs", "1", "--url", url, "--json", "found.json"]
    done = subprocess.run(
        [str(binary()), "bench", name, *options],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "found.json").read_text())["results"]
    counts = [row["metrics"][counted] for row in rows if counted in row["metrics"]]
    assert counts, rows
    assert all(counts), rows
    assert router.metric("connections_closed_for_silence_total") == 0
