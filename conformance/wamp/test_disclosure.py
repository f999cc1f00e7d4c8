"""`disclose_me`, which only autobahn-js sends; its receivers, and its form."""

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, INVOCATION, PUBLISH


@pytest.mark.parametrize("wish", [True, False, None])
def test_at_the_callers_own_wish(abused, wish):
    options = {} if wish is None else {"disclose_me": wish}
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("cbor").join() as callee,
        RawSocket.tcp(abused.address("tcp")).shake_hands("json").join() as caller,
    ):
        callee.register("com.disclosing")
        caller.ask(CALL, options, "com.disclosing")
        details = callee.hear(INVOCATION)[3]
        if wish:
            assert details["caller"] == caller.id
            assert details["caller_authrole"] == "anonymous"
            assert details["caller_authid"]
        else:
            assert not [key for key in details if key.startswith("caller")]


@pytest.mark.parametrize("wish", [True, False, None])
def test_at_the_publishers_own_wish(abused, wish):
    options = {"acknowledge": True} | ({} if wish is None else {"disclose_me": wish})
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands("msgpack").join() as subscriber,
        RawSocket.tcp(abused.address("tcp")).shake_hands("json").join() as publisher,
    ):
        subscriber.subscribe("com.disclosing")
        publisher.ask(PUBLISH, options, "com.disclosing")
        details = subscriber.hear(EVENT)[3]
        if wish:
            assert details["publisher"] == publisher.id
            assert details["publisher_authrole"] == "anonymous"
            assert details["publisher_authid"]
        else:
            assert not [key for key in details if key.startswith("publisher")]


def test_a_role_that_speaks_for_itself(start_router):
    """`forward_for` is for those who carry what others say; a role may be kept from it."""
    alone = {**config.role("anonymous"), "forward_for": False}
    realm = {"name": "realm1", "roles": [alone]}
    node = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    others = [{"session": 7, "authid": "far", "authrole": "trusted"}]
    with RawSocket.tcp(node.address("tcp")).shake_hands("cbor").join() as peer:
        peer.subscribe("com.t")
        peer.register("com.p")
        said = {"acknowledge": True, "exclude_me": False, "forward_for": others}
        for kind, uri in ((PUBLISH, "com.t"), (CALL, "com.p")):
            peer.ask(kind, said, uri)
            assert peer.hear(ERROR)[4] == "wamp.error.option_not_allowed"
        peer.ask(PUBLISH, {"exclude_me": False}, "com.t")
        assert "forward_for" not in peer.hear(EVENT)[3]
