"""Calls that their caller cancels, by libraries that do not expect the specification's answer."""

from __future__ import annotations

import pytest
from rig import config
from rig.links import Link, available
from rig.puppet import failure
from rig.rawsocket import RawSocket
from rig.session import CALL, CANCEL, ERROR, INVOCATION, YIELD

PYTHON = [Link("asyncio", "ws", "tcp", "json"), Link("twisted", "rs", "tcp", "cbor")]
JAVASCRIPT = Link("javascript", "ws", "tcp", "json")
HOLD = {"do": "hold"}
CANCELED = "wamp.error.canceled"


@pytest.mark.parametrize("mode", [None, "", "skip", "killnowait"])
@pytest.mark.parametrize("link", available([JAVASCRIPT]), ids=str)
def test_a_javascript_caller_keeps_its_session(open_link, link, uri, mode):
    caller, callee = open_link(link), open_link(link)
    callee.register(uri, HOLD)
    call = caller.start_call(uri)
    invoked = callee.next("invoked")
    caller.cancel(call, mode)
    # The library itself says so; neither an ERROR nor the late RESULT reaches it.
    assert failure(call).uri == "Cancelled"
    callee.release(invoked["invocation"], "too late")
    callee.round_trip()
    caller.round_trip()


@pytest.mark.parametrize("link", available(PYTHON), ids=str)
def test_a_killed_call_is_canceled_whatever_the_callees_library_says(open_link, link, uri):
    callee = open_link(link)
    for caller in (open_link(link), *map(open_link, available([JAVASCRIPT]))):
        callee.register(uri, HOLD)
        call = caller.start_call(uri)
        invoked = callee.next("invoked")
        caller.cancel(call, "kill")
        assert callee.next("interrupted")["invocation"] == invoked["invocation"]
        assert failure(call).uri == CANCELED
        caller.round_trip()
        uri += ".again"


@pytest.mark.parametrize(("answers", "is_answered"), [("by_client", True), ("kill_only", False)])
def test_the_operator_says_whether_cancel_is_answered(start_router, answers, is_answered):
    node = config.plain()
    node["workers"][0]["realms"][0]["options"] = {"cancel_answers": answers}
    router = start_router(node)
    with RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as peer:
        peer.register("com.held")
        call = peer.ask(CALL, {}, "com.held")
        invocation = peer.hear(INVOCATION)[1]
        peer.say(CANCEL, call, {"mode": "skip"})
        if is_answered:
            assert peer.hear(ERROR)[2:5:2] == [call, CANCELED]
        peer.say(YIELD, invocation, {}, ["late"])
        peer.round_trip()
