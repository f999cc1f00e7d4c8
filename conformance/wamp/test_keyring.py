"""A payload in place of arguments: what an Autobahn keyring encrypts the router passes on unread.

Crossbar.io calls it payload transparency: `enc_algo` in the options says how the payload was
made, and one binary (or text) payload stands where the arguments would.
"""

from __future__ import annotations

import base64

import pytest
from rig.links import Link
from rig.puppet import WampError, result
from rig.rawsocket import RawSocket
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    HELLO,
    INVOCATION,
    PUBLISH,
    RESULT,
    ROLES,
    WELCOME,
    YIELD,
)

SIDES = [
    Link("asyncio", "ws", "tcp", "json"),
    Link("twisted", "rs", "tcp", "msgpack"),
    Link("asyncio", "ws", "tcp", "cbor.batched"),
]
KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(params=SIDES, ids=str)
def responder(request, open_link):
    """Callees and subscribers with the key."""
    session = open_link(request.param)
    session.use_key(KEY)
    return session


@pytest.fixture(params=SIDES, ids=str)
def originator(request, open_link):
    """Callers and publishers with the key."""
    session = open_link(request.param)
    session.use_key(KEY)
    return session


def test_events(responder, originator, uri):
    responder.subscribe(uri)
    originator.publish(uri, "secret", 42, more=[1, None])
    event = responder.next("published")
    assert (event["args"], event["kwargs"]) == (["secret", 42], {"more": [1, None]})


def test_calls(responder, originator, uri):
    responder.register(uri, {"do": "echo"})
    reply = originator.call(uri, "secret", more="still")
    assert (reply.args, reply.kwargs) == (["secret"], {"more": "still"})


def test_errors(responder, originator, uri):
    responder.register(
        uri, {"do": "raise", "uri": "com.app.broken", "args": ["why"], "kwargs": {"at": 7}}
    )
    with pytest.raises(WampError) as raised:
        originator.call(uri)
    error = raised.value
    assert (error.uri, error.arguments, error.kwargs) == ("com.app.broken", ["why"], {"at": 7})


def test_progressive_results(responder, originator, uri):
    responder.register(uri, {"do": "progress", "count": 3})
    reply = result(originator.start_call(uri, options={"receive_progress": True}))
    assert reply.args == ["done"]
    assert [part["kwargs"]["number"] for part in reply.progress] == [0, 1, 2]


@pytest.mark.parametrize("into", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_the_form_on_the_wire(abused, serializer, into):
    """Bytes arrive as the same bytes, by WAMP's convention where JSON lacks them."""

    def octets(content: bytes, of: str) -> object:
        return "\0" + base64.b64encode(content).decode() if of == "json" else content

    encoding = {"enc_algo": "cryptobox", "enc_key": "key", "enc_serializer": "json"}
    secret, answer = bytes(range(256)), b""
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands(into).join() as one,
        RawSocket.tcp(abused.address("tcp")).shake_hands(serializer).join() as two,
    ):
        one.subscribe("com.encoded")
        one.register("com.encoded")
        two.ask(PUBLISH, encoding, "com.encoded", octets(secret, serializer))
        assert one.hear(EVENT)[3:] == [encoding, octets(secret, into)]
        two.ask(CALL, encoding, "com.encoded", octets(secret, serializer))
        invocation = one.hear(INVOCATION)
        assert invocation[3:] == [encoding, octets(secret, into)]
        one.say(YIELD, invocation[1], encoding, octets(answer, into))
        assert two.hear(RESULT)[2:] == [encoding, octets(answer, serializer)]
        two.ask(CALL, {"enc_algo": "x_mine"}, "com.encoded", "text")
        invocation = one.hear(INVOCATION)
        assert invocation[3:] == [{"enc_algo": "x_mine"}, "text"]
        one.say(ERROR, INVOCATION, invocation[1], encoding, "com.failed", octets(answer, into))
        assert two.hear(ERROR)[3:] == [encoding, "com.failed", octets(answer, serializer)]


def test_text_alone_is_no_payload(abused):
    """Without `enc_algo` there is no telling what it is: the session ends, as it always did."""
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        peer.ask(PUBLISH, {"enc_key": "key"}, "com.encoded", "text")
        assert "expected list, found text" in peer.expect_abort()["message"]


def test_it_is_announced_as_crossbar_announces_it(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES})
        roles = peer.hear(WELCOME)[2]["roles"]
    for role in ("broker", "dealer"):
        features = roles[role]["features"]
        assert features["payload_transparency"] is True
        assert features["payload_encryption_cryptobox"] is True
