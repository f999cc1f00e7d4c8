"""Bytes that are no WAMP message, and messages that may not come: who sends them goes."""

from __future__ import annotations

import json
import struct

import cbor2
import msgpack
import pytest
from rig.rawsocket import RawSocket
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    ROLES,
    SUBSCRIBE,
    VIOLATION,
)
from rig.websocket import TEXT, WebSocket

BEGINNING = {"roles": ROLES}

DEEP = 10_000

# The fault, the serializer, the bytes. The session has joined before.
MALFORMED = [
    ("nothing at all", "json", b""),
    ("no list", "json", b'{"a":1}'),
    ("an empty list", "json", b"[]"),
    ("a type that is text", "json", b'["CALL",1,{},"com.x"]'),
    ("a type that is a fraction", "json", b'[48.5,1,{},"com.x"]'),
    ("an unknown type", "json", b'[4711,1,{},"com.x"]'),
    ("a type no message has", "json", b'[7,1,{},"com.x"]'),
    ("a negative type", "json", b'[-48,1,{},"com.x"]'),
    ("cut inside a string", "json", b'[48,1,{},"com.x'),
    ("cut before the end", "json", b'[48,1,{},"com.x",[1,2'),
    ("more after the end", "json", b'[48,1,{},"com.x"]]'),
    ("two messages", "json", b'[48,1,{},"com.x"][48,2,{},"com.x"]'),
    ("a comma too many", "json", b'[48,1,{},"com.x",]'),
    ("too few elements", "json", b"[48,1,{}]"),
    ("too many elements", "json", b'[48,1,{},"com.x",[],{},[],1]'),
    ("an id that is text", "json", b'[48,"1",{},"com.x"]'),
    ("an id of zero", "json", b'[48,0,{},"com.x"]'),
    ("a negative id", "json", b'[48,-1,{},"com.x"]'),
    ("an id above 2^53", "json", b'[48,9007199254740993,{},"com.x"]'),
    ("an id that is a fraction", "json", b'[48,1.5,{},"com.x"]'),
    ("an id of many digits", "json", b"[48,1" + b"0" * 400 + b',{},"com.x"]'),
    ("options that are a list", "json", b'[48,1,[],"com.x"]'),
    ("options that are null", "json", b'[48,1,null,"com.x"]'),
    ("a URI that is a number", "json", b"[48,1,{},5]"),
    ("a URI that is null", "json", b"[48,1,{},null]"),
    ("arguments that are a dictionary", "json", b'[48,1,{},"com.x",{}]'),
    ("arguments that are text", "json", b'[48,1,{},"com.x","abc"]'),
    ("keyword arguments that are a list", "json", b'[48,1,{},"com.x",[],[]]'),
    ("an option of the wrong type", "json", b'[48,1,{"timeout":"soon"},"com.x"]'),
    ("a negative timeout", "json", b'[48,1,{"timeout":-1},"com.x"]'),
    ("an acknowledge that is a number", "json", b'[16,1,{"acknowledge":1},"com.x"]'),
    ("an exclude that is no list", "json", b'[16,1,{"exclude":5},"com.x"]'),
    ("a match that is unknown", "json", b'[32,1,{"match":"regex"},"com.x"]'),
    ("invalid UTF-8 in an argument", "json", b'[16,1,{},"com.x",["\xff\xfe"]]'),
    ("overlong UTF-8 in an argument", "json", b'[16,1,{},"com.x",["\xc0\xaf"]]'),
    ("a surrogate in UTF-8", "json", b'[16,1,{},"com.x",["\xed\xa0\x80"]]'),
    ("invalid UTF-8 in the URI", "json", b'[16,1,{},"com.\xff",[]]'),
    ("a control character in a string", "json", b'[16,1,{},"com.x",["a\nb"]]'),
    ("more than a lone surrogate", "json", b'[16,1,{},"com.x",["\\ud800",]]'),
    ("an unknown escape", "json", b'[16,1,{},"com.x",["\\x41"]]'),
    ("a word that begins like NaN", "json", b'[16,1,{},"com.x",[Nan]]'),
    ("a number with a leading zero", "json", b'[16,1,{},"com.x",[01]]'),
    ("a word that is none", "json", b'[16,1,{},"com.x",[trup]]'),
    ("a key without quotes", "json", b'[16,1,{},"com.x",[],{a:1}]'),
    ("a key without a value", "json", b'[16,1,{},"com.x",[],{"a"}]'),
    ("brackets that cross", "json", b'[16,1,{},"com.x",[{"a":[}]]]'),
    ("nesting without end", "json", b'[16,1,{},"com.x",' + b"[" * DEEP),
    ("nesting too deep", "json", b'[16,1,{},"com.x",' + b"[" * DEEP + b"]" * DEEP + b"]"),
    (
        "dictionaries too deep",
        "json",
        b'[16,1,{},"com.x",[],' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"]",
    ),
    ("options too deep", "json", b'[16,1,{"x":' + b"[" * DEEP + b"]" * DEEP + b'},"com.x"]'),
    ("a byte order mark", "json", b'\xef\xbb\xbf[16,1,{},"com.x"]'),
    ("nothing at all", "msgpack", b""),
    ("no list", "msgpack", msgpack.packb({"a": 1})),
    ("the byte that is never used", "msgpack", b"\xc1"),
    ("cut inside the head", "msgpack", msgpack.packb([16, 1, {}, "com.x"])[:-3]),
    ("a list that promises more", "msgpack", b"\x99\x10\x01\x80\xa5com.x"),
    ("a list that promises 2^32 values", "msgpack", b"\xdd\xff\xff\xff\xff\x10\x01"),
    (
        "arguments that promise 2^32 values",
        "msgpack",
        b"\x95\x10\x01\x80\xa5com.x\xdd\xff\xff\xff\xff",
    ),
    ("a string that promises 2^32 bytes", "msgpack", b"\x94\x10\x01\x80\xdb\xff\xff\xff\xffcom"),
    (
        "bytes that promise 2^32 bytes",
        "msgpack",
        b"\x95\x10\x01\x80\xa5com.x\x91\xc6\xff\xff\xff\xff",
    ),
    ("more after the end", "msgpack", msgpack.packb([16, 1, {}, "com.x"]) + b"\xc0"),
    ("invalid UTF-8 in an argument", "msgpack", b"\x95\x10\x01\x80\xa5com.x\x91\xa2\xff\xfe"),
    (
        "the byte that is never used as an argument",
        "msgpack",
        b"\x95\x10\x01\x80\xa5com.x\x91\xc1",
    ),
    ("a key that is no text in the options", "msgpack", b"\x94\x10\x01\x81\x01\x02\xa5com.x"),
    ("a negative id", "msgpack", msgpack.packb([16, -1, {}, "com.x"])),
    ("an id above 2^53", "msgpack", msgpack.packb([16, 2**64 - 1, {}, "com.x"])),
    ("a URI that is bytes", "msgpack", msgpack.packb([16, 1, {}, b"com.x"])),
    ("nesting too deep", "msgpack", b"\x95\x10\x01\x80\xa5com.x" + b"\x91" * DEEP + b"\xc0"),
    ("nesting without end", "msgpack", b"\x95\x10\x01\x80\xa5com.x" + b"\x91" * DEEP),
    ("nothing at all", "cbor", b""),
    ("no list", "cbor", cbor2.dumps({"a": 1})),
    ("a reserved head", "cbor", b"\x84\x10\x01\xa0\x1c"),
    ("a break outside of anything", "cbor", b"\xff"),
    ("cut inside the head", "cbor", cbor2.dumps([16, 1, {}, "com.x"])[:-3]),
    ("a list that promises more", "cbor", b"\x89\x10\x01\xa0\x65com.x"),
    ("a list that promises 2^64 values", "cbor", b"\x9b" + b"\xff" * 8 + b"\x10\x01"),
    ("arguments that promise 2^64 values", "cbor", b"\x85\x10\x01\xa0\x65com.x\x9b" + b"\xff" * 8),
    ("a string that promises 2^64 bytes", "cbor", b"\x84\x10\x01\xa0\x7b" + b"\xff" * 8),
    ("a list that never ends", "cbor", b"\x9f\x10\x01\xa0\x65com.x"),
    ("more after the end", "cbor", cbor2.dumps([16, 1, {}, "com.x"]) + b"\xf6"),
    ("invalid UTF-8 in an argument", "cbor", b"\x85\x10\x01\xa0\x65com.x\x81\x62\xff\xfe"),
    ("an odd dictionary", "cbor", b"\x86\x10\x01\xa0\x65com.x\x80\xbf\x61a\xff"),
    ("a key that is no text in the options", "cbor", b"\x84\x10\x01\xa1\x01\x02\x65com.x"),
    ("a negative id", "cbor", cbor2.dumps([16, -1, {}, "com.x"])),
    ("an id above 2^53", "cbor", cbor2.dumps([16, 2**64 - 1, {}, "com.x"])),
    ("nesting too deep", "cbor", b"\x85\x10\x01\xa0\x65com.x" + b"\x81" * DEEP + b"\xf6"),
    ("tags too deep", "cbor", b"\x85\x10\x01\xa0\x65com.x\x81" + b"\xc1" * DEEP + b"\x01"),
    ("nesting without end", "cbor", b"\x85\x10\x01\xa0\x65com.x" + b"\x9f" * DEEP),
]


def ids(case: object) -> str | None:
    return case.replace(" ", "_") if isinstance(case, str) else ""


@pytest.mark.parametrize(("fault", "serializer", "octets"), MALFORMED, ids=ids)
def test_a_malformed_message_ends_its_session(abused, fault, serializer, octets):
    with RawSocket.tcp(abused.address("tcp")).shake_hands(serializer).join() as peer:
        peer.send_frame(octets)
        details = peer.expect_abort()
        assert details["message"], "the sender is told what is wrong"
        abused.expect_fault(peer)


# Good messages that may not come in an established session.
UNEXPECTED = [
    ("HELLO", [HELLO, "realm1", {"roles": ROLES}]),
    ("WELCOME", [2, 1, {}]),
    ("CHALLENGE", [4, "ticket", {}]),
    ("AUTHENTICATE", [5, "secret", {}]),
    ("PUBLISHED", [17, 1, 1]),
    ("SUBSCRIBED", [33, 1, 1]),
    ("UNSUBSCRIBED", [35, 1]),
    ("EVENT", [36, 1, 1, {}]),
    ("RESULT", [50, 1, {}]),
    ("REGISTERED", [65, 1, 1]),
    ("UNREGISTERED", [67, 1]),
    ("INVOCATION", [68, 1, 1, {}]),
    ("INTERRUPT", [69, 1, {}]),
    ("ERROR_of_a_call", [8, 48, 1, {}, "com.x"]),
    ("ERROR_of_nothing", [8, 4711, 1, {}, "com.x"]),
    ("YIELD_without_invocation", [70, 4711, {}]),
]


@pytest.mark.parametrize(("name", "message"), UNEXPECTED, ids=ids)
def test_a_message_that_may_not_come(abused, name, message):
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        peer.say(*message)
        peer.expect_abort()
        abused.expect_fault(peer)


FIRST = [
    ("CALL", [48, 1, {}, "com.x"]),
    ("SUBSCRIBE", [32, 1, {}, "com.x"]),
    ("AUTHENTICATE", [5, "secret", {}]),
    ("WELCOME", [2, 1, {}]),
]


@pytest.mark.parametrize(("name", "message"), FIRST, ids=ids)
def test_the_first_message_is_hello(abused, name, message):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.say(*message)
        peer.expect_abort()
        abused.expect_fault(peer)


HELLOS = [
    ("no roles", b'[1,"realm1",{}]'),
    ("roles that are a list", b'[1,"realm1",{"roles":["caller"]}]'),
    ("no role known", b'[1,"realm1",{"roles":{"broker":{}}}]'),
    ("no details", b'[1,"realm1"]'),
    ("a realm that is a number", b'[1,7,{"roles":{"caller":{}}}]'),
    (
        "authmethods that are text",
        b'[1,"realm1",{"roles":{"caller":{}},"authmethods":"anonymous"}]',
    ),
]


@pytest.mark.parametrize(("fault", "octets"), HELLOS, ids=ids)
def test_a_bad_hello(abused, fault, octets):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.send_frame(octets)
        peer.expect_abort()


@pytest.mark.parametrize("kind", [RawSocket, WebSocket])
def test_another_hello_after_a_refusal(abused, kind):
    """A refused request may be repeated in another form, on the same connection."""
    with kind.tcp(abused.address("tcp")) as peer:
        peer.shake_hands() if kind is RawSocket else peer.open()
        peer.say(HELLO, "com.nowhere", BEGINNING)
        assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"
        peer.say(HELLO, "realm1", {**BEGINNING, "authmethods": ["ticket"]})
        assert peer.hear(ABORT)[2] == "wamp.error.no_matching_auth_method"
        peer.join().round_trip()


@pytest.mark.parametrize("kind", [RawSocket, WebSocket])
def test_refusals_have_an_end(abused, kind):
    with kind.tcp(abused.address("tcp")) as peer:
        peer.shake_hands() if kind is RawSocket else peer.open()
        # A session in between begins the count anew.
        for _ in range(4):
            peer.say(HELLO, "com.nowhere", BEGINNING)
            assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"
        peer.join()
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
        for _ in range(4):
            peer.say(HELLO, "com.nowhere", BEGINNING)
            assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"
        peer.say(HELLO, "com.nowhere", BEGINNING)
        reason = "wamp.error.no_such_realm"
        peer.expect_abort(reason) if kind is RawSocket else peer.expect_abort(1000, reason=reason)


def test_a_message_after_a_refusal(abused):
    """A client that did not wait for WELCOME violates the protocol, as without the refusal."""
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "com.nowhere", BEGINNING)
        peer.say(SUBSCRIBE, 1, {}, "com.x")
        assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"
        peer.expect_abort()


@pytest.mark.parametrize("uri", ["", ".", "com..x", ".com", "com.", "com x", "com.#x", "wamp.mine"])
@pytest.mark.parametrize("kind", ["call", "register", "subscribe", "publish"])
def test_a_bad_uri_is_an_error_and_no_more(abused, kind, uri):
    if (kind, uri) in (("call", "wamp.mine"), ("subscribe", "wamp.mine")):
        # Asking the router's own names is allowed; there is just nothing there.
        return
    code = {"call": CALL, "register": 64, "subscribe": SUBSCRIBE, "publish": PUBLISH}[kind]
    options = {"acknowledge": True} if kind == "publish" else {}
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        request = peer.ask(code, options, uri)
        error = peer.hear(ERROR)
        assert error[1:3] == [code, request]
        assert error[4] == "wamp.error.invalid_uri"
        peer.round_trip()


def test_a_malformed_payload_reaches_no_receiver(abused):
    """A good head in front of bad arguments: the sender goes, the receivers hear nothing."""
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as subscriber,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as callee,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as publisher,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as caller,
    ):
        subscriber.subscribe("com.bad.topic")
        callee.register("com.bad.procedure")
        publisher.send_frame(b'[16,1,{},"com.bad.topic",["good",tru]]')
        publisher.expect_abort()
        caller.send_frame(b'[48,1,{},"com.bad.procedure",["good"],{"a":"\xff"}]')
        caller.expect_abort()
        # A forwarded message would come before these.
        subscriber.round_trip()
        callee.round_trip()


def test_a_malformed_result_fails_the_call(abused):
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as callee,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as caller,
    ):
        callee.register("com.bad.result")
        request = caller.ask(CALL, {}, "com.bad.result")
        invocation = callee.hear(INVOCATION)
        callee.send_frame(json.dumps([70, invocation[1], {}]).encode()[:-1] + b",[tru]]")
        callee.expect_abort()
        error = caller.hear(ERROR)
        assert (error[1], error[2], error[4]) == (CALL, request, "wamp.error.canceled")


def test_a_value_that_json_cannot_hold_is_an_error_to_the_caller(abused):
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("json").join() as callee,
        RawSocket.tcp(abused.address("tcp")).shake_hands("cbor").join() as caller,
    ):
        callee.register("com.odd.procedure")
        for odd in (float("nan"), float("inf"), {b"key": 2}):
            request = caller.ask(CALL, {}, "com.odd.procedure", [odd])
            error = caller.hear(ERROR)
            assert error[1:3] == [CALL, request]
            assert error[4] == "wamp.error.invalid_argument", error
        callee.round_trip()


def test_an_event_that_json_cannot_hold_is_skipped_and_counted(abused):
    metric = "events_dropped_unrepresentable_total"
    before = abused.router.metric(metric)
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("json").join() as in_json,
        RawSocket.tcp(abused.address("tcp")).shake_hands("msgpack").join() as in_msgpack,
        RawSocket.tcp(abused.address("tcp")).shake_hands("msgpack").join() as publisher,
    ):
        in_json.subscribe("com.odd.topic")
        in_msgpack.subscribe("com.odd.topic")
        publisher.publish("com.odd.topic", float("inf"))
        assert in_msgpack.hear(36)[4] == [float("inf")]
        in_json.round_trip()
    assert abused.router.metric(metric) == before + 1


def test_invalid_utf8_closes_a_websocket_with_its_code(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        peer.send_frame(TEXT, b'[16,1,{},"com.x",["\xff"]]')
        peer.expect_abort(1007)
        abused.expect_fault(peer)


def test_a_violation_over_websocket_is_aborted_and_closed(abused):
    with WebSocket.tcp(abused.address("tcp")).open().join() as peer:
        peer.say(50, 1, {})
        peer.expect_abort(1000, 1002)
        abused.expect_fault(peer)


def test_abort_says_why(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        peer.send_frame(b'[48,"one",{},"com.x"]')
        message = peer.expect_abort(VIOLATION)["message"]
        assert "CALL" in message
        assert "expected" in message


def test_half_a_message_and_then_the_end(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        peer.send(struct.pack("!I", 100) + b'[48,1,{},"co')
        peer.finish()
        assert peer.receive_all() == b""
        abused.expect_fault(peer)


def test_a_peer_that_resets_is_gone(abused):
    subscriber = RawSocket.tcp(abused.address("tcp")).shake_hands().join()
    subscriber.subscribe("com.reset")
    before = abused.router.metric("connections")
    subscriber.reset()
    abused.await_connections(before - 1)
