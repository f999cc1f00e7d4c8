"""Lines, rings and parallel links: everything comes once, and nothing goes round."""

from __future__ import annotations

import pytest
from rig.router import Router
from rig.session import UNREGISTER, UNREGISTERED, UNSUBSCRIBE, UNSUBSCRIBED
from rig.waiting import await_true

from rlinks.linked import (
    answered,
    await_there,
    hear_event,
    mirrors,
    node,
    open_at,
    publish,
    register,
    to,
)


def line(start_router) -> list[Router]:
    """Three nodes, each with a link to the one before."""
    first = start_router(node())
    second = start_router(node(to(first.address("tcp"))))
    await_there(second)
    third = start_router(node(to(second.address("tcp"))))
    await_there(third)
    return [first, second, third]


def test_a_line_is_crossed(start_router):
    first, second, third = line(start_router)
    here, there = open_at(first), open_at(third)
    there.subscribe("com.topic")
    register(there, "com.procedure")
    mirrors(second, "remote", "subscription", 1)
    mirrors(second, "remote", "registration", 1)
    publish(here, "com.topic", "far")
    assert hear_event(there, "far")["forward_for"][0]["session"] == here.id
    answered(there, here, "com.procedure", 1)
    # And back.
    subscription = here.subscribe("com.back")
    mirrors(third, "local", "subscription", 1)
    publish(there, "com.back", "near")
    hear_event(here, "near")
    here.ask(UNSUBSCRIBE, subscription)
    here.hear(UNSUBSCRIBED)
    mirrors(third, "local", "subscription", 0)
    mirrors(second, "local", "subscription", 0)


def test_a_ring_ends(start_router):
    """The third node has a link to each of the others; no two links keep each other's mirrors."""
    first = start_router(node())
    second = start_router(node(to(first.address("tcp"))))
    await_there(second)
    both = [to(first.address("tcp"), "to_first"), to(second.address("tcp"), "to_second")]
    third = start_router(node(*both))
    await_there(third, "to_first")
    await_there(third, "to_second")
    peers = [open_at(router) for router in (first, second, third)]
    subscriptions = [peer.subscribe("com.topic") for peer in peers]
    links = [(second, "rlink1"), (third, "to_first"), (third, "to_second")]
    for router, link in links:
        for side in ("local", "remote"):
            mirrors(router, side, "subscription", 1, link)
    for number, publisher in enumerate(peers):
        publish(publisher, "com.topic", number)
        for other in peers:
            if other is not publisher:
                hear_event(other, number)
    # A duplicate would come before this.
    for peer in peers:
        peer.round_trip()

    callee = peers[1]
    registration = register(callee, "com.procedure")

    def is_one(side: str, *held_by: tuple[Router, str]) -> bool:
        held = {"side": side, "kind": "registration"}
        return sum(node.metric("rlink_mirrors", link=link, **held) for node, link in held_by) == 1

    # Whichever comes first: straight, or by the node between.
    await_true(
        "the first node has it by one link",
        lambda: is_one("remote", (second, "rlink1"), (third, "to_first")),
    )
    await_true(
        "the third node has it by one link",
        lambda: is_one("local", (third, "to_first"), (third, "to_second")),
    )
    for caller in (peers[0], peers[2]):
        answered(callee, caller, "com.procedure", caller.id)
    callee.ask(UNREGISTER, registration)
    callee.hear(UNREGISTERED)
    for peer, subscription in zip(peers, subscriptions, strict=True):
        peer.ask(UNSUBSCRIBE, subscription)
        peer.hear(UNSUBSCRIBED)
    for router, link in links:
        for side in ("local", "remote"):
            for kind in ("subscription", "registration"):
                mirrors(router, side, kind, 0, link)


@pytest.mark.parametrize("stopped", ["one", "two"])
def test_of_two_links_between_the_same_nodes_one_works(start_router, start_relay, stopped):
    remote = start_router(node())
    relays = {name: start_relay(remote.address("tcp")) for name in ("one", "two")}
    links = [to(relay.address, f"link_{name}") for name, relay in relays.items()]
    local = start_router(node(*links))
    await_there(local, "link_one")
    await_there(local, "link_two")
    here, there = open_at(local), open_at(remote)
    there.subscribe("com.topic")
    register(there, "com.procedure")
    publish_until_one(local, here, there)
    answered(there, here, "com.procedure", 1)
    relays[stopped].close()
    local.await_log(lambda line: f"'link_{stopped}' reconnects in" in line.text)
    publish_until_one(local, here, there)
    answered(there, here, "com.procedure", 2)


def publish_until_one(local: Router, here, there) -> None:
    """One link has the topic and the procedure, and events come once."""

    def is_one() -> bool:
        held = [
            sum(
                local.metric("rlink_mirrors", link=f"link_{name}", side="local", kind=kind)
                for name in ("one", "two")
            )
            for kind in ("subscription", "registration")
        ]
        return held == [1, 1]

    await_true("one link has what there is", is_one)
    publish(here, "com.topic", "once")
    hear_event(there, "once")
    there.round_trip()
