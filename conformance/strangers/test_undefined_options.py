"""Options that a JavaScript program left out, and its ids, as binary serializers have them."""

from __future__ import annotations

import json
import struct
import subprocess

import pytest
from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.router import ROOT
from rig.session import (
    CALL,
    CANCEL,
    ERROR,
    INVOCATION,
    REGISTER,
    REGISTERED,
    RESULT,
    SUBSCRIBED,
    UNSUBSCRIBED,
    WELCOME,
)
from rig.waiting import DEADLINE_S

BEHIND = [{"session": 7, "authid": "far", "authrole": "user"}]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_wampy_client_keeps_its_session_whatever_its_serializer(router, serializer):
    host, port = router.address("tcp")
    done = subprocess.run(
        ["node", "wampy_options.mjs", f"ws://{host}:{port}/ws", serializer],
        cwd=ROOT / "conformance/js",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "closed": False,
        "heard": ["last"],
        "found": True,
        "echo": "back",
        "unsubscribed": True,
    }


UNDEFINED = {"msgpack": bytes.fromhex("d40000"), "cbor": bytes.fromhex("f7")}


@pytest.mark.parametrize("serializer", ["msgpack", "cbor"])
def test_an_undefined_option_counts_as_absent_everywhere(router, serializer):
    """HELLO, SUBSCRIBE, REGISTER, CALL, CANCEL: a marker takes the place of undefined."""
    with RawSocket.tcp(router.address("tcp")).shake_hands(serializer) as peer:
        say_with_undefined(
            peer, 1, "realm1", {"roles": {"caller": {}, "callee": {}}, "authid": MARK}
        )
        peer.hear(WELCOME)
        say_with_undefined(peer, 32, 1, {"match": MARK, "get_retained": MARK}, "com.undefined")
        assert peer.hear(SUBSCRIBED)[1] == 1
        say_with_undefined(peer, REGISTER, 2, {"invoke": MARK, "match": ""}, "com.undefined.p")
        assert peer.hear(REGISTERED)[1] == 2
        options = {"timeout": MARK, "disclose_me": MARK, "receive_progress": MARK}
        say_with_undefined(peer, CALL, 3, options, "com.undefined.p")
        invocation = peer.hear(INVOCATION)[1]
        say_with_undefined(peer, CANCEL, 3, {"mode": ""})
        assert peer.hear(ERROR)[2] == 3
        peer.say(70, invocation, {})
        say_with_undefined(
            peer, CALL, 4, {}, "wamp.subscription.lookup", ["com.undefined", {"match": MARK}]
        )
        if serializer == "cbor":
            assert isinstance(peer.hear(RESULT)[3][0], int)
        else:
            # Options in arguments are a payload: msgpack5 cannot decode the extension.
            assert "arguments[1].match: extension type 0" in peer.hear(ERROR)[5][0]


MARK = "\x01\x02"


def say_with_undefined(peer: RawSocket, *message: object) -> None:
    """Send a message in which each marker is undefined."""
    octets: list[bytes] = []
    send, peer.send_octets = peer.send_octets, octets.append
    peer.say(*message)
    peer.send_octets = send
    head = {"msgpack": b"\xa2", "cbor": b"\x62"}[peer.serializer]
    peer.send_octets(octets[0].replace(head + MARK.encode(), UNDEFINED[peer.serializer]))


@pytest.mark.parametrize("serializer", ["msgpack", "cbor"])
@pytest.mark.parametrize(
    ("number", "is_taken"), [(1.0, True), (1.5, False), (0.0, False), (2.0**54, False)]
)
def test_a_whole_float_is_an_id_and_no_other_float_is(router, serializer, number, is_taken):
    with RawSocket.tcp(router.address("tcp")).shake_hands(serializer).join() as peer:
        peer.say(32, number, {}, f"com.float.{struct.pack('>d', number).hex()}")
        if not is_taken:
            with pytest.raises((AssertionError, ClosedError)):
                peer.hear(SUBSCRIBED)
            return
        subscription = peer.hear(SUBSCRIBED)[2]
        peer.say(34, 2.0, float(subscription))
        assert peer.hear(UNSUBSCRIBED)[1] == 2


def test_another_routers_link_may_subscribe_and_register(router):
    """`forward_for` says for whom, as in the specification's vectors."""
    with RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as peer:
        peer.subscribe("com.forwarded", forward_for=BEHIND)
        peer.register("com.forwarded", forward_for=BEHIND)
        peer.round_trip()
        peer.say(32, 99, {"forward_for": ["far"]}, "com.forwarded")
        peer.expect_abort()
