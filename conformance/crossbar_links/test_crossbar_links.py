"""Crossbar.io 26.10.1 at the other end of a link, which either of the two has.

Faults of Crossbar.io that show here: it tells nothing of wildcard subscriptions that were there
before the link, and
its own links carry neither patterns nor errors.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from crossbar.record import ENVIRONMENT, free_port
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    CANCEL,
    ERROR,
    INTERRUPT,
    INVOCATION,
    RESULT,
    UNREGISTER,
    UNREGISTERED,
    UNSUBSCRIBE,
    UNSUBSCRIBED,
    YIELD,
)
from rig.waiting import await_true
from rlinks.linked import (
    FEATURES,
    answered,
    await_there,
    call,
    everybody,
    hear_event,
    mirrors,
    node,
    open_at,
    publish,
    register,
    to,
)


class Crossbar:
    """A node of Crossbar.io, with RawSocket on one port and WebSocket on another."""

    def __init__(self, directory: Path, rlinks: list[dict], realm: dict | None = None):
        self.directory = directory
        self.raw, self.web = free_port(), free_port()
        anonymous = config.static("anonymous")
        transports = [
            {"type": "rawsocket", "endpoint": config.tcp(port=self.raw), "auth": anonymous},
            {"type": "websocket", "endpoint": config.tcp(port=self.web), "auth": anonymous},
        ]
        realm = {"name": "realm1", "roles": [everybody()], "rlinks": rlinks, **(realm or {})}
        (directory / "config.json").write_text(json.dumps(config.node([realm], transports)))
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [ENVIRONMENT / "bin/crossbar", "start", "--cbdir", self.directory]
        self.log = self.directory / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.directory_is_ready()

    def directory_is_ready(self) -> None:
        """Wait until both ports are listened on."""
        for port in (self.raw, self.web):

            def listens(port: int = port) -> bool:
                assert self.process.poll() is None, self.log.read_text()
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                except OSError:
                    return False
                return True

            await_true("Crossbar.io listens", listens)

    def open(self) -> RawSocket:
        """Return a session there."""
        connected = socket.create_connection(("127.0.0.1", self.raw))
        return RawSocket(connected).shake_hands("json").join("realm1", roles=FEATURES)

    def kill(self) -> None:
        """End all of its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start_crossbar(tmp_path) -> Iterator:
    """Start nodes of Crossbar.io; they end with the test."""
    started: list[Crossbar] = []

    def start(*rlinks: dict) -> Crossbar:
        directory = tmp_path / f"crossbar{len(started)}"
        directory.mkdir()
        started.append(Crossbar(directory, list(rlinks)))
        return started[-1]

    yield start
    for each in started:
        each.kill()


TURNED = pytest.mark.parametrize("is_turned", [False, True], ids=["outward", "inward"])


@TURNED
def test_a_link_of_ours(start_router, start_crossbar, is_turned):
    crossbar = start_crossbar()
    local = start_router(node(to(("127.0.0.1", crossbar.web))))
    await_there(local)
    here, there = open_at(local), crossbar.open()
    one, other, side = (here, there, "remote") if is_turned else (there, here, "local")
    subscriptions = [one.subscribe("com.exact"), one.subscribe("com.pre", match="prefix")]
    subscriptions.append(one.subscribe("com..wild", match="wildcard"))
    mirrors(local, side, "subscription", 3)
    publish(other, "com.exact", 1, {"two": None})
    assert hear_event(one, 1, {"two": None})["forward_for"][0]["session"] == other.id
    publish(other, "com.prefix", "a")
    assert hear_event(one, "a")["topic"] == "com.prefix"
    publish(other, "com.very.wild", "b")
    assert hear_event(one, "b")["topic"] == "com.very.wild"

    registration = register(one, "com.procedure")
    register(one, "com.call", match="prefix")
    mirrors(local, side, "registration", 2)
    answered(one, other, "com.procedure", 1)
    assert answered(one, other, "com.called")[3]["procedure"] == "com.called"
    call(other, "com.procedure")
    invocation = one.hear(INVOCATION)
    one.say(ERROR, INVOCATION, invocation[1], {}, "com.app.wrong", ["why"], {"more": 1})
    assert other.hear(ERROR)[4:] == ["com.app.wrong", ["why"], {"more": 1}]
    request = call(other, "com.procedure", receive_progress=True)
    invocation = one.hear(INVOCATION)
    one.say(YIELD, invocation[1], {"progress": True}, ["some"])
    assert other.hear(RESULT)[3] == ["some"]
    one.say(YIELD, invocation[1], {}, ["all"])
    assert other.hear(RESULT)[3] == ["all"]
    request = call(other, "com.procedure")
    invocation = one.hear(INVOCATION)
    other.say(CANCEL, request, {"mode": "killnowait"})
    assert one.hear(INTERRUPT)[1] == invocation[1]
    assert other.hear(ERROR)[4] == "wamp.error.canceled"
    one.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.canceled")

    one.ask(UNREGISTER, registration)
    one.hear(UNREGISTERED)
    mirrors(local, side, "registration", 1)
    for subscription in subscriptions:
        one.ask(UNSUBSCRIBE, subscription)
        one.hear(UNSUBSCRIBED)
    mirrors(local, side, "subscription", 0)


def test_it_is_killed_and_comes_again(start_router, start_crossbar):
    crossbar = start_crossbar()
    local = start_router(node(to(("127.0.0.1", crossbar.web))))
    await_there(local)
    here, there = open_at(local), crossbar.open()
    register(there, "com.procedure")
    mirrors(local, "local", "registration", 1)
    since = len(local.log)
    crossbar.kill()
    mirrors(local, "local", "registration", 0)
    call(here, "com.procedure")
    assert here.hear(ERROR)[4] == "wamp.error.no_such_procedure"
    crossbar.start()
    await_there(local, since=since)
    there = crossbar.open()
    register(there, "com.procedure")
    mirrors(local, "local", "registration", 1)
    answered(there, here, "com.procedure", 1)


def test_a_link_of_crossbars(start_router, start_crossbar):
    """Crossbar.io links to Crosstie: exact topics and procedures cross."""
    port = free_port()
    url = f"ws://127.0.0.1:{port}/ws"
    endpoint = {"type": "tcp", "host": "127.0.0.1", "port": port}
    rlink = {
        "id": "rlink1",
        "realm": "realm1",
        "transport": {"type": "websocket", "url": url, "endpoint": endpoint},
    }
    crossbar = start_crossbar(rlink)
    public = (crossbar.directory / "key.pub").read_text()
    key = re.search(r"public-key-ed25519: ([0-9a-f]{64})", public)
    principals = {"crossbar": {"role": "rlink", "authorized_keys": [key[1]]}}
    auth = {
        "anonymous": {"type": "static", "role": "anonymous"},
        "cryptosign": {"type": "static", "principals": principals},
    }
    everything = config.permission("*", disclose=True)
    roles = [everybody(), config.role("rlink", everything)]
    realm = {"name": "realm1", "roles": roles}
    transports = [
        config.universal(
            "tcp",
            config.tcp(port=port),
            websocket={"ws": {"auth": auth}},
            rawsocket={"auth": config.static("anonymous")},
        )
    ]
    router: Router = start_router(config.node([realm], transports))
    await_true("Crossbar.io has joined", lambda: router.metric("realm_sessions") == 1)
    here, there = open_at(router), crossbar.open()
    here.subscribe("com.topic")
    there.subscribe("com.topic")
    register(there, "com.there")
    register(here, "com.here")

    await_true(
        "what there is has crossed",
        lambda: router.metric("realm_registrations") >= 2,
    )

    def is_there() -> bool:
        call(there, "wamp.registration.lookup", "com.here")
        return there.hear(RESULT)[3:] not in ([], [[None]])

    await_true("what is registered here is registered there", is_there)
    answered(there, here, "com.there", 1)
    publish(here, "com.topic", "from here")
    assert hear_event(there, "from here")["forward_for"][0]["session"] == here.id
    publish(there, "com.topic", "from there")
    assert hear_event(here, "from there")["forward_for"][0]["session"] == there.id
    answered(here, there, "com.here", 2)
