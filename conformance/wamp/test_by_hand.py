"""Features of the router that the client libraries lack, spoken by hand."""

from __future__ import annotations

import pytest
from rig.rawsocket import RawSocket
from rig.session import CALL, EVENT, INVOCATION, PUBLISH, RESULT, YIELD

PROGRESSIVE = {"features": {"progressive_call_invocations": True, "call_canceling": True}}
ROLES = {"caller": PROGRESSIVE, "callee": PROGRESSIVE}


def test_progressive_invocations(abused):
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("msgpack").join(roles=ROLES) as callee,
        RawSocket.tcp(abused.address("tcp")).shake_hands("json").join(roles=ROLES) as caller,
    ):
        callee.register("com.stream")
        request = caller.ask(CALL, {"progress": True}, "com.stream", ["one"])
        caller.say(CALL, request, {"progress": True}, "com.stream", ["two"])
        caller.say(CALL, request, {}, "com.stream", ["three"])
        said = [callee.hear(INVOCATION) for _ in range(3)]
        assert [message[4] for message in said] == [["one"], ["two"], ["three"]]
        assert len({message[1] for message in said}) == 1
        assert [bool(message[3].get("progress")) for message in said] == [True, True, False]
        callee.say(YIELD, said[0][1], {}, ["done"])
        assert caller.hear(RESULT)[3] == ["done"]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_payload_attributes_are_passed_on(abused, serializer):
    """Encrypted payloads are none of the router's business; their description has to arrive."""
    announced = {"features": {"payload_passthru_mode": True}}
    roles = dict.fromkeys(("caller", "callee", "publisher", "subscriber"), announced)
    attributes = {"ppt_scheme": "x_custom", "ppt_serializer": "cbor", "ppt_keyid": "key"}
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands(serializer).join(roles=roles) as one,
        RawSocket.tcp(abused.address("tcp")).shake_hands("cbor").join(roles=roles) as two,
    ):
        one.subscribe("com.passthru")
        one.register("com.passthru")
        two.ask(PUBLISH, attributes, "com.passthru", [b"opaque"])
        assert attributes.items() <= one.hear(EVENT)[3].items()
        two.ask(CALL, attributes, "com.passthru", [b"opaque"])
        invocation = one.hear(INVOCATION)
        assert attributes.items() <= invocation[3].items()
        one.say(YIELD, invocation[1], attributes, ["opaque"])
        assert attributes.items() <= two.hear(RESULT)[2].items()


def test_one_event_of_one_publication_per_session_and_subscription(abused):
    """Subscribing twice is one subscription: SUBSCRIBED says the same id, EVENT comes once."""
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as subscriber,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as publisher,
    ):
        assert subscriber.subscribe("com.twice") == subscriber.subscribe("com.twice")
        publisher.publish("com.twice", 1)
        subscriber.hear(EVENT)
        subscriber.round_trip()


def test_requests_may_be_pipelined(abused):
    """Nothing has to wait for an answer; answers come in the order of the requests."""
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.send_frame(b'[1,"realm1",{"roles":{"publisher":{}}}]')
        for request in range(1, 501):
            peer.send_frame(b'[16,%d,{"acknowledge":true},"com.pipe",[%d]]' % (request, request))
        peer.hear(2)
        assert [peer.hear(17)[1] for _ in range(500)] == list(range(1, 501))
