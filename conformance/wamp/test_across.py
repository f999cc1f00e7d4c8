"""Between unlike links: every serializer and transport talks to every other, through one router."""

from __future__ import annotations

import pytest
from rig.links import ALL, CLIENTS, Link, available

ECHO = {"do": "echo"}
# JSON over WebSocket, MessagePack over RawSocket, CBOR over either: the ways that differ most.
SIDES = available(
    [
        Link("asyncio", "ws", "tcp", "json"),
        Link("twisted", "rs", "tcp", "msgpack"),
        Link("asyncio", "rs", "unix", "cbor"),
        Link("twisted", "ws", "tls", "cbor.batched"),
        Link("asyncio", "ws", "tcp", "msgpack.batched"),
        Link("javascript", "ws", "tcp", "cbor"),
        Link("javascript", "ws", "unix", "msgpack"),
        Link("javascript", "rs", "tcp", "json"),
    ]
)
VALUES = [
    None,
    True,
    0,
    -1,
    127,
    128,
    255,
    256,
    65536,
    -129,
    2**32,
    2**53 - 1,
    -(2**53) + 1,
    0.5,
    -1.25e-7,
    1e100,
    "",
    'ü€😀\\"\n\u0001',
    "x" * 70_000,
    [],
    {},
    [[], [[]]],
    {"a": [{"b": {}}], "": None},
    list(range(300)),
]


@pytest.mark.parametrize("callee_link", SIDES, ids=str)
@pytest.mark.parametrize("caller_link", SIDES, ids=str)
def test_calls(open_link, uri, caller_link, callee_link):
    callee, caller = open_link(callee_link), open_link(caller_link)
    callee.register(uri, ECHO)
    reply = caller.call(uri, *VALUES, key="ü", nested={"list": VALUES})
    assert reply.args == VALUES
    assert reply.kwargs == {"key": "ü", "nested": {"list": VALUES}}


@pytest.mark.parametrize("callee_link", [s for s in SIDES if s.holds_binary], ids=str)
@pytest.mark.parametrize("caller_link", [s for s in SIDES if s.holds_binary], ids=str)
def test_octets_both_ways(open_link, uri, caller_link, callee_link):
    callee, caller = open_link(callee_link), open_link(caller_link)
    octets = bytes(range(256))
    callee.register(uri, ECHO)
    callee.register(f"{uri}.give", {"do": "constant", "value": octets})
    reply = caller.call(uri, octets, [b"", {"deep": b"\0"}], data=octets[:-1])
    assert reply.args == [octets, [b"", {"deep": b"\0"}]]
    assert reply.kwargs == {"data": octets[:-1]}
    assert caller.call(f"{uri}.give").args == [octets]


def test_text_that_looks_like_octets_stays_text(open_link, uri):
    callee = open_link(Link("asyncio", "rs", "tcp", "msgpack"))
    caller = open_link(Link("asyncio", "rs", "tcp", "cbor"))
    callee.register(uri, ECHO)
    assert caller.call(uri, "\0AAEC", "\0").args == ["\0AAEC", "\0"]


@pytest.mark.parametrize("publisher_link", SIDES, ids=str)
def test_one_event_to_all_clients(open_link, uri, publisher_link):
    publisher = open_link(publisher_link)
    subscribers = [open_link(link) for link in ALL]
    for subscriber in subscribers:
        subscriber.subscribe(uri)
    publication = publisher.publish(uri, *VALUES, key="ü")
    for subscriber, link in zip(subscribers, ALL, strict=True):
        event = subscriber.next("published")
        assert (event["publication"], event["args"], event["kwargs"]) == (
            publication,
            VALUES,
            {"key": "ü"},
        ), link


@pytest.mark.parametrize("client", CLIENTS)
def test_progress_across(open_link, uri, client):
    callee = open_link(Link(client, "ws", "tcp", "msgpack"))
    caller = open_link(Link("twisted", "rs", "tcp", "cbor"))
    callee.register(uri, {"do": "progress", "count": 3})
    call = caller.start_call(uri, options={"receive_progress": True})
    assert [step["args"] for step in call.result(30)["progress"]] == [[0], [1], [2]]


def test_shared_between_unlike_callees(open_link, uri):
    for link in SIDES:
        open_link(link).register(uri, {"do": "constant", "value": str(link)}, invoke="roundrobin")
    caller = open_link(SIDES[0])
    called = [caller.call(uri).args[0] for _ in range(2 * len(SIDES))]
    assert sorted(called[: len(SIDES)]) == sorted(str(link) for link in SIDES)
    assert called[: len(SIDES)] == called[len(SIDES) :]
