"""WAMP clients and their router beyond every timer of theirs, with nothing to do and with much.

Both sides ping each other at their shortest interval, through a relay that counts what passes: a
test waits for keepalives, not for time.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
from rig import config
from rig.process import Process
from rig.rawsocket import RawSocket
from rig.relay import Relay
from rig.router import Router, binary
from rig.session import CALL, RESULT
from rig.waiting import await_true

PINGED = {"options": {"auto_ping_interval": 1000, "auto_ping_timeout": 1000}}
# Intervals to live through.
PERIODS = 3


@pytest.fixture
def router(start_router) -> Router:
    """Pings silent clients, over either framing."""
    return start_router(
        config.plain(
            config.universal("tcp", config.tcp(), rawsocket=PINGED, websocket={"ws": PINGED})
        )
    )


@pytest.fixture
def relay(router: Router, start_relay) -> Relay:
    """Between the clients that stay and the router."""
    return start_relay(router.address("tcp"))


def url(kind: str, address: tuple[str, int]) -> str:
    """Return where a client connects."""
    path = "/ws" if kind == "ws" else ""
    return f"{kind}://{address[0]}:{address[1]}{path}"


@pytest.fixture(params=["ws", "rs", "rs over a link"])
def staying(request, start_process, relay: Relay) -> tuple[Process, Process]:
    """A callee and a subscriber, who ping the router as well; the link is there for as long."""
    kind, _, over = request.param.partition(" ")
    address = relay.address
    if over:
        ends = ("--listen", "127.0.0.1:0", "--connect", ":".join(map(str, address)))
        link = start_process(binary(), "link", *ends, "--delay", "20ms", "--direction", "both")
        link.said("→")
        host, port = re.search(r"tcp://([\d.]+):(\d+) →", "".join(link.errors)).groups()
        address = (host, int(port))
    where = ("--url", url(kind, address), "--ping-interval", 1)
    callee = start_process(binary(), "register", "com.echo", "--echo", *where)
    subscriber = start_process(binary(), "subscribe", "com.topic", *where)
    callee.said("com.echo")
    subscriber.said("com.topic")
    relay.await_open(2)
    return callee, subscriber


@pytest.fixture
def run(router: Router) -> Callable[..., subprocess.CompletedProcess]:
    """Run a client that does one thing, to its end."""

    def run(*arguments: object) -> subprocess.CompletedProcess:
        command = [binary(), *arguments, "--url", url("rs", router.address("tcp"))]
        return subprocess.run(
            list(map(str, command)), text=True, capture_output=True, timeout=30, check=False
        )

    return run


@pytest.fixture
def serves(router, staying, run) -> Callable[[], None]:
    """Call, and publish, and have both arrive."""
    _, subscriber = staying
    wanted = {"sessions": 2, "registrations": 1, "subscriptions": 1}

    def are_there() -> bool:
        return all(
            router.metric(f"realm_{what}", realm="realm1") == count
            for what, count in wanted.items()
        )

    def serves() -> None:
        # A session that joined again has yet to register and to subscribe.
        await_true("both are what they were", are_there)
        called = run("call", "com.echo", "7")
        assert (called.returncode, called.stdout.strip()) == (0, "7"), called.stderr
        published = run("publish", "com.topic", "8", "--acknowledge")
        assert published.returncode == 0, published.stderr
        assert "8" in subscriber.line()

    return serves


def test_a_client_idle_for_long_is_served(relay, staying, serves):
    for _ in range(2):
        relay.await_keepalives(PERIODS)
        serves()
    assert len(relay.connections) == 2, "nobody has connected again"


def test_a_client_busy_for_long_is_served(relay, router, staying, serves):
    """Calls one after the other while the one who only waits lives through its intervals."""
    _, waiting = relay.open()
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as caller:
        number = 0
        while min(waiting.from_client, waiting.from_server) < 2 * PERIODS:
            number += 1
            caller.say(CALL, number, {}, "com.echo", [number])
            assert caller.hear(RESULT)[3] == [number]
    serves()
    assert len(relay.connections) == 2, "nobody has connected again"


def test_a_client_that_was_cut_off_reconnects(relay, staying, serves):
    for _ in range(2):
        for client in staying:
            client.errors.clear()
        relay.cut()
        for client in staying:
            client.said("connecting again", "joined again")
        relay.await_open(2)
        serves()


def test_a_router_that_is_gone_without_a_word_is_noticed(relay, router, staying, serves):
    """By its clients' pings, and its clients by its own."""
    relay.hold()
    for client in staying:
        client.said("the router was silent for 1s after a ping; connecting again")
    await_true(
        "the router notices",
        lambda: router.metric("connections_closed_for_silence_total") == 2,
    )
    relay.go_on()
    for client in staying:
        client.said("joined again")
    serves()
