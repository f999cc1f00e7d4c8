"""Options that came after Autobahn's clients, as far as these pass them on: shards, links."""

from __future__ import annotations

import pytest
from rig.links import Link, available
from rig.rawsocket import RawSocket
from rig.session import EVENT, PUBLISH, PUBLISHED

PYTHON = available([Link("asyncio", "ws", "tcp", "cbor"), Link("twisted", "rs", "tcp", "msgpack")])
JAVASCRIPT = available([Link("javascript", "ws", "tcp", "json")])
ECHO = {"do": "echo"}
BEHIND = [{"session": 7, "authid": "far", "authrole": "user"}]


@pytest.mark.parametrize("link", JAVASCRIPT, ids=str)
def test_shards(open_link, link, uri):
    """A resource's events and calls go to one shard, and always to the same."""
    caller = open_link(link)
    shards = {name: open_link(link) for name in "ab"}
    for name, shard in shards.items():
        shard.register(uri, {"do": "constant", "value": name}, invoke="roundrobin", nkey=name)
        shard.subscribe(uri, nkey=name)
    of = {}
    for resource in range(12):
        options = {"rkey": f"r{resource}", "acknowledge": True}
        caller.publish(uri, resource, options=options)
    caller.publish(uri, "end", options={"acknowledge": True})
    for name, shard in shards.items():
        while (event := shard.next("published")["args"]) != ["end"]:
            of[event[0]] = name
    assert sorted(of) == list(range(12))
    assert set(of.values()) == {"a", "b"}
    for resource in range(12):
        options = {"rkey": f"r{resource}", "runmode": "partition"}
        of[resource] = caller.call(uri, resource, options=options).args
        assert caller.call(uri, resource, options=options).args == of[resource]
    assert set(map(tuple, of.values())) == {("a",), ("b",)}


@pytest.mark.parametrize("link", PYTHON, ids=str)
def test_forwarding(open_link, router, link, uri):
    """Autobahn says for whom it publishes and calls, and takes what is said so."""
    session = open_link(link)
    with RawSocket.tcp(router.address("tcp")).shake_hands("json").join() as peer:
        peer.subscribe(uri)
        session.publish(uri, "out", options={"acknowledge": True, "forward_for": BEHIND})
        event = peer.hear(EVENT)
        assert (event[3]["forward_for"], event[4]) == (BEHIND, ["out"])
        session.subscribe(uri)
        peer.ask(PUBLISH, {"acknowledge": True, "forward_for": BEHIND}, uri, ["in"])
        peer.hear(PUBLISHED)
        assert session.next("published")["args"] == ["in"]
        session.register(f"{uri}.call", ECHO)
        assert session.call(f"{uri}.call", 1, options={"forward_for": BEHIND}).args == [1]
