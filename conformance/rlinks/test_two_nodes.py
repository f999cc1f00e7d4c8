"""Two nodes with a link between them: what crosses, and in which form."""

from __future__ import annotations

import pytest
from rig.rawsocket import RawSocket
from rig.session import (
    CANCEL,
    ERROR,
    INTERRUPT,
    INVOCATION,
    RESULT,
    UNREGISTER,
    UNREGISTERED,
    UNSUBSCRIBE,
    UNSUBSCRIBED,
    YIELD,
)

from rlinks.linked import (
    answered,
    await_there,
    call,
    hear_event,
    mirrors,
    node,
    open_at,
    publish,
    register,
    to,
)


@pytest.fixture
def two(start_router):
    """Two nodes, of which the first has a link to the second; a session in each."""
    remote = start_router(node())
    local = start_router(node(to(remote.address("tcp"))))
    await_there(local)
    return local, open_at(local), open_at(remote)


def sides(two: tuple, is_turned: bool) -> tuple[RawSocket, RawSocket, str]:
    """Return who subscribes or registers, who publishes or calls, and the side of the mirror."""
    _, here, there = two
    return (here, there, "remote") if is_turned else (there, here, "local")


TURNED = pytest.mark.parametrize("is_turned", [False, True], ids=["outward", "inward"])


@TURNED
def test_events_cross_by_every_kind_of_match(two, is_turned):
    local = two[0]
    subscriber, publisher, side = sides(two, is_turned)
    subscriptions = [
        subscriber.subscribe("com.exact"),
        subscriber.subscribe("com.pre", match="prefix"),
        subscriber.subscribe("com..wild", match="wildcard"),
    ]
    mirrors(local, side, "subscription", 3)
    published = publish(publisher, "com.exact", 1, {"two": [3.5, None]})
    details = hear_event(subscriber, 1, {"two": [3.5, None]})
    origin, link = details["forward_for"]
    assert origin["session"] == publisher.id
    assert origin["publication"] == published
    assert link["session"] != publisher.id
    publish(publisher, "com.prefix.of", "a")
    assert hear_event(subscriber, "a")["topic"] == "com.prefix.of"
    publish(publisher, "com.very.wild", "b")
    assert hear_event(subscriber, "b")["topic"] == "com.very.wild"
    # Its own comes once.
    publish(subscriber, "com.exact", "own", exclude_me=False)
    assert "forward_for" not in hear_event(subscriber, "own")
    for subscription in subscriptions:
        subscriber.ask(UNSUBSCRIBE, subscription)
        subscriber.hear(UNSUBSCRIBED)
    mirrors(local, side, "subscription", 0)


@TURNED
def test_calls_cross_with_all_that_belongs_to_them(two, is_turned):
    local = two[0]
    callee, caller, side = sides(two, is_turned)
    registration = register(callee, "com.exact")
    register(callee, "com.pre", match="prefix")
    register(callee, "com..wild", match="wildcard")
    mirrors(local, side, "registration", 3)
    invocation = answered(callee, caller, "com.exact", 1, "two")
    assert invocation[3]["forward_for"][0]["session"] == caller.id
    assert answered(callee, caller, "com.prefix.of")[3]["procedure"] == "com.prefix.of"
    assert answered(callee, caller, "com.very.wild")[3]["procedure"] == "com.very.wild"

    # An error comes back whole.
    request = call(caller, "com.exact")
    invocation = callee.hear(INVOCATION)
    callee.say(ERROR, INVOCATION, invocation[1], {}, "com.app.wrong", ["why", 1], {"more": True})
    error = caller.hear(ERROR)
    assert error[2] == request
    assert error[4:] == ["com.app.wrong", ["why", 1], {"more": True}]

    # Progressive results, and chunks of arguments.
    request = call(caller, "com.exact", 0, receive_progress=True)
    invocation = callee.hear(INVOCATION)
    assert invocation[3]["receive_progress"]
    for part in range(3):
        callee.say(YIELD, invocation[1], {"progress": True}, [part])
        assert caller.hear(RESULT)[1:] == [request, {"progress": True}, [part]]
    callee.say(YIELD, invocation[1], {}, ["all"])
    assert caller.hear(RESULT)[3] == ["all"]

    # Cancelling, by the caller and by a timeout.
    request = call(caller, "com.exact")
    invocation = callee.hear(INVOCATION)
    caller.say(CANCEL, request, {"mode": "kill"})
    assert callee.hear(INTERRUPT)[1] == invocation[1]
    callee.say(ERROR, INVOCATION, invocation[1], {}, "com.app.stopped")
    assert caller.hear(ERROR)[4] == "wamp.error.canceled"
    call(caller, "com.exact", timeout=50)
    invocation = callee.hear(INVOCATION)
    assert callee.hear(INTERRUPT)[1] == invocation[1]
    assert caller.hear(ERROR)[4] == "wamp.error.timeout"
    callee.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.canceled")

    callee.ask(UNREGISTER, registration)
    callee.hear(UNREGISTERED)
    mirrors(local, side, "registration", 2)
    call(caller, "com.exact")
    assert caller.hear(ERROR)[4] == "wamp.error.no_such_procedure"


def test_earlier_subscriptions_and_registrations_cross_too(start_router):
    remote = start_router(node())
    there = open_at(remote)
    there.subscribe("com.topic")
    register(there, "com.procedure")
    local = start_router(node(to(remote.address("tcp"))))
    await_there(local)
    here = open_at(local)
    answered(there, here, "com.procedure", 1)
    publish(here, "com.topic", "x")
    hear_event(there, "x")


def test_directions_can_be_closed(start_router):
    remote = start_router(node())
    closed = {"forward_remote_events": False, "forward_local_invocations": False}
    local = start_router(node(to(remote.address("tcp"), **closed)))
    await_there(local)
    here, there = open_at(local), open_at(remote)
    here.subscribe("com.topic")
    register(there, "com.procedure")
    mirrors(local, "remote", "subscription", 1)
    mirrors(local, "local", "registration", 1)
    there.subscribe("com.other")
    register(here, "com.another")
    # In order behind what is not to be seen.
    here.subscribe("com.last")
    register(there, "com.last")
    mirrors(local, "remote", "subscription", 2)
    mirrors(local, "local", "registration", 2)
    mirrors(local, "local", "subscription", 0)
    mirrors(local, "remote", "registration", 0)


def test_callees_of_a_side_serve_that_side(two):
    """A shared procedure that both sides have is called on its own side."""
    local, here, there = two
    register(here, "com.shared", invoke="roundrobin")
    mirrors(local, "remote", "registration", 1)
    second = open_at(local)
    caller = open_at(local)
    register(second, "com.shared", invoke="roundrobin")
    answered(here, caller, "com.shared", 1)
    answered(second, caller, "com.shared", 2)
    answered(here, there, "com.shared", 3)
