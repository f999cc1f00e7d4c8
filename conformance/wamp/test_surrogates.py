"""Half of a character in JSON text, as a browser escapes what was cut inside an emoji.

JSON's grammar allows it, Unicode does not, and neither MessagePack nor CBOR can hold it.
"""

from __future__ import annotations

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, INVOCATION, PUBLISH, REGISTER, RESULT, SUBSCRIBE, YIELD
from rig.websocket import TEXT, WebSocket

REPLACED = "lone_surrogates_replaced_total"
REFUSED = "lone_surrogates_refused_total"
WRONG = "wamp.error.invalid_argument"

# As in a message, and as it is read.
CUT = rb"cut \ud83d, whole \ud83d\ude00, \\ud83d"
MENDED = "cut \ufffd, whole \U0001f600, \\ud83d"


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_halves_are_replaced(abused, serializer):
    before = abused.router.metric(REPLACED)
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands(serializer).join() as other,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as cutter,
    ):
        other.subscribe("com.cut")
        other.register("com.cut")
        cutter.send_frame(b'[16,1,{},"com.cut",["' + CUT + b'"],{"\\udfff":1}]')
        assert other.hear(EVENT)[4:] == [[MENDED], {"\ufffd": 1}]
        cutter.send_frame(b'[48,2,{},"com.cut",[["' + CUT + b'"]]]')
        invocation = other.hear(INVOCATION)
        assert invocation[4] == [[MENDED]]
        other.say(YIELD, invocation[1], {}, ["done"])
        assert cutter.hear(RESULT)[3] == ["done"]
        assert abused.router.metric(REPLACED) == before + 3


def test_halves_in_an_answer_are_replaced(abused):
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("msgpack").join() as caller,
        WebSocket.tcp(abused.address("tcp")).open().join() as cutter,
    ):
        cutter.register("com.cut")
        caller.ask(CALL, {}, "com.cut")
        number = cutter.hear(INVOCATION)[1]
        cutter.send_frame(TEXT, b'[70,%d,{},["' % number + CUT + b'"]]')
        assert caller.hear(RESULT)[3] == [MENDED]
        caller.ask(CALL, {}, "com.cut")
        number = cutter.hear(INVOCATION)[1]
        cutter.send_frame(TEXT, b'[8,68,%d,{},"com.error",["' % number + CUT + b'"]]')
        error = caller.hear(ERROR)
        assert error[4:] == ["com.error", [MENDED]]


def test_halves_in_names_are_replaced(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as cutter:
        cutter.send_frame(rb'[1,"realm1",{"roles":{"publisher":{}},"agent":"\ud83d"}]')
        cutter.hear(2)
        cutter.send_frame(rb'[32,1,{},"com.\ud83d"]')
        assert cutter.hear(33)[1] == 1
        cutter.send_frame(b'[16,2,{"exclude_me":false},"com.\xef\xbf\xbd",["here"]]')
        assert cutter.hear(EVENT)[4] == ["here"]


@pytest.fixture
def refusing(start_router):
    """A router that refuses what has halves of characters in it."""
    realm = {
        "name": "realm1",
        "roles": [config.role("anonymous")],
        "options": {"lone_surrogates": "refuse", "request_id_check": "strict"},
    }
    return start_router(config.node([realm], [config.universal("tcp", config.tcp())]))


def test_requests_with_halves_are_refused(refusing):
    with (
        RawSocket.tcp(refusing.address("tcp")).shake_hands().join() as cutter,
        RawSocket.tcp(refusing.address("tcp")).shake_hands().join() as other,
    ):
        other.subscribe("com.cut")
        other.register("com.cut")
        requests = [
            (CALL, rb'[48,1,{},"com.cut",["\ud83d"]]'),
            (PUBLISH, rb'[16,2,{"acknowledge":true},"com.cut",["\ud83d"]]'),
            (SUBSCRIBE, rb'[32,3,{},"com.\ud83d"]'),
            (REGISTER, rb'[64,4,{},"com.\ud83d"]'),
        ]
        for number, (kind, octets) in enumerate(requests, 1):
            cutter.send_frame(octets)
            error = cutter.hear(ERROR)
            assert (error[1], error[2], error[4]) == (kind, number, WRONG)
        # This one has no answer.
        cutter.send_frame(rb'[16,5,{},"com.cut",["\ud83d"]]')
        assert refusing.metric(REFUSED) == 4 + 1
        assert refusing.metric(REPLACED) == 0
        # Its session continues, with the next ids, and no other session heard anything.
        cutter.requests = iter(range(6, 100))
        cutter.round_trip()
        other.round_trip()


def test_a_result_with_halves_is_an_error(refusing):
    with (
        RawSocket.tcp(refusing.address("tcp")).shake_hands().join() as cutter,
        RawSocket.tcp(refusing.address("tcp")).shake_hands("cbor").join() as caller,
    ):
        cutter.register("com.cut")
        for answer in (rb'[70,%d,{},["\ud83d"]]', rb'[8,68,%d,{},"com.error",["\ud83d"]]'):
            request = caller.ask(CALL, {}, "com.cut")
            cutter.send_frame(answer % cutter.hear(INVOCATION)[1])
            error = caller.hear(ERROR)
            assert (error[1], error[2], error[4]) == (CALL, request, WRONG)
        cutter.round_trip()
