"""Trust levels of events and invocations, which the configuration gives."""

from __future__ import annotations

import json
import subprocess

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import binary
from rig.session import ABORT, CALL, ERROR, EVENT, HELLO, INVOCATION, PUBLISH, RESULT, ROLES, YIELD
from rlinks.linked import await_there, hear_event, mirrors, open_at, publish, to


def levelled(**realm: object) -> dict:
    """Return a node with levels by role and by permission."""
    low = {**config.permission("*"), "trustlevel": 1}
    high = {**config.permission("com.high.*"), "trustlevel": 65535}
    roles = [
        {**config.role("anonymous", low, high), "trustlevel": 0},
        {**config.role("partner"), "trustlevel": 3},
    ]
    shared = {"name": "realm1", "roles": roles, **realm}
    return config.node([shared], [config.universal("tcp", config.tcp())])


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_receivers_see_the_level(start_router, serializer):
    node = start_router(levelled())
    with (
        RawSocket.tcp(node.address("tcp")).shake_hands(serializer).join() as one,
        RawSocket.tcp(node.address("tcp")).shake_hands("json").join() as two,
    ):
        one.subscribe("com.", match="prefix")
        one.register("com.low")
        two.ask(PUBLISH, {}, "com.low", [1])
        two.ask(PUBLISH, {}, "com.high.t", [2])
        assert [one.hear(EVENT)[3]["trustlevel"] for _ in range(2)] == [1, 65535]
        two.ask(CALL, {}, "com.low", [3])
        invocation = one.hear(INVOCATION)
        assert invocation[3]["trustlevel"] == 1
        one.say(YIELD, invocation[1], {"trustlevel": 9}, [])
        assert "trustlevel" not in two.hear(RESULT)[2]


def test_the_command_prints_it(start_router):
    node = start_router(levelled())
    url = node.urls("tcp")[0]
    command = [str(binary()), "subscribe", "com.high.t", "--details", "--count", "1"]
    with subprocess.Popen(
        [*command, "--url", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as subscriber:
        assert "subscribed" in subscriber.stderr.readline()
        with RawSocket.tcp(node.address("tcp")).shake_hands().join() as publisher:
            publisher.publish("com.high.t", 1)
        assert json.loads(subscriber.stdout.readline())["trustlevel"] == 65535


def test_it_is_announced_where_a_role_gives_some(start_router):
    for node, is_there in ((levelled(), True), (config.plain(), None)):
        router = start_router(node)
        with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
            peer.say(HELLO, "realm1", {"roles": ROLES})
            roles = peer.hear(2)[2]["roles"]
            announced = roles["broker"]["features"].get("publication_trustlevels")
            assert announced is is_there
            assert roles["dealer"]["features"].get("call_trustlevels") is is_there


def test_a_client_cannot_set_its_own_level(start_router):
    node = start_router(levelled())
    with RawSocket.tcp(node.address("tcp")).shake_hands("json").join() as peer:
        for kind, options in ((PUBLISH, {"acknowledge": True}), (CALL, {})):
            request = peer.ask(kind, {**options, "trustlevel": 9}, "com.x", [])
            error = peer.hear(ERROR)
            assert (error[2], error[4]) == (request, "wamp.error.option_not_allowed")
        for wrong in (-1, "high", 2**60, [1]):
            with RawSocket.tcp(node.address("tcp")).shake_hands("json").join() as other:
                other.ask(PUBLISH, {"acknowledge": True, "trustlevel": wrong}, "com.x", [])
                assert other.hear(ABORT)[2] == "wamp.error.protocol_violation", wrong


def test_a_link_is_trusted_as_its_role_is(start_router):
    """A level from another router is dropped; neither side refuses the message for that."""
    remote = start_router(levelled())
    local = start_router(levelled(rlinks=[to(remote.address("tcp"), role="partner")]))
    await_there(local)
    here, there = open_at(local), open_at(remote)
    here.subscribe("com.high.t")
    mirrors(local, "remote", "subscription", 1)
    publish(there, "com.high.t", "from there")
    assert hear_event(here, "from there")["trustlevel"] == 3
    there.subscribe("com.low")
    mirrors(local, "local", "subscription", 1)
    publish(here, "com.low", "from here")
    assert hear_event(there, "from here")["trustlevel"] == 1
