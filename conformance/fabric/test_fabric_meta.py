"""The meta API of a realm of several nodes: every node answers for all."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from rig.router import Router
from rig.session import CALL, ERROR, GOODBYE, RESULT
from rig.waiting import await_true

from fabric.stage import Session


def ask(session: Session, procedure: str, *args: object, **kwargs: object) -> object:
    """Return what the meta API answers, or the URI of its error."""
    session._request += 1
    session.peer.say(CALL, session._request, {}, procedure, list(args), kwargs)
    answer = session.peer.hear_any()
    if answer[0] == ERROR:
        return answer[4]
    assert answer[0] == RESULT, answer
    return answer[3][0]


def is_stopped(node: Router) -> bool:
    """Return whether none of its threads runs."""
    threads = Path(f"/proc/{node.process.pid}/task").iterdir()
    return all((each / "stat").read_text().rpartition(")")[2].split()[0] == "T" for each in threads)


@pytest.fixture
def three(nats, nodes, session) -> list[Session]:
    """Return a session of each of three nodes."""
    return [session(node) for node in nodes(3, nats(3))]


def test_sessions_of_all_nodes(three) -> None:
    ids = {each.id for each in three}
    for each in three:
        assert ask(each, "wamp.session.count") == 3
        assert ask(each, "wamp.session.count", ["nobody"]) == 0
        assert set(ask(each, "wamp.session.list")) == ids
        for other in three:
            told = ask(each, "wamp.session.get", other.id)
            assert told["session"] == other.id
            assert told["realm"] == "realm1"
        pages = [ask(each, "wamp.session.list", offset=place, limit=1) for place in range(4)]
        assert [len(page) for page in pages] == [1, 1, 1, 0]
        assert {page[0] for page in pages[:3]} == ids
        assert ask(each, "wamp.session.get", 1) == "wamp.error.no_such_session"
        assert ask(each, "wamp.session.get") == "wamp.error.invalid_argument"


def test_subscriptions_of_all_nodes(three) -> None:
    here, there, elsewhere = three
    shared = here.subscribe("com.a")
    assert there.subscribe("com.a") == shared
    pattern = there.subscribe("com.", match="prefix")
    for each in three:
        assert ask(each, "wamp.subscription.lookup", "com.a") == shared
        assert ask(each, "wamp.subscription.lookup", "com.", {"match": "prefix"}) == pattern
        assert ask(each, "wamp.subscription.lookup", "com.none") is None
        assert set(ask(each, "wamp.subscription.match", "com.a")) == {shared, pattern}
        assert ask(each, "wamp.subscription.match", "org") is None
        listed = ask(each, "wamp.subscription.list")
        assert listed == {"exact": [shared], "prefix": [pattern], "wildcard": []}
        assert ask(each, "wamp.subscription.list", here.id)["prefix"] == []
        assert ask(each, "wamp.subscription.get", pattern)["uri"] == "com."
        subscribers = ask(each, "wamp.subscription.list_subscribers", shared)
        assert set(subscribers) == {here.id, there.id}
        assert ask(each, "wamp.subscription.count_subscribers", shared) == 2
        gone = ask(each, "wamp.subscription.get", 5)
        assert gone == "wamp.error.no_such_subscription"
    assert ask(elsewhere, "wamp.subscription.remove_subscriber", shared, here.id) is None
    assert ask(elsewhere, "wamp.subscription.list_subscribers", shared) == [there.id]
    again = ask(elsewhere, "wamp.subscription.remove_subscriber", shared, here.id)
    assert again == "wamp.error.no_such_subscription"


def test_registrations_of_all_nodes(three) -> None:
    here, there, elsewhere = three
    shared = here.register("com.shared", invoke="roundrobin")
    assert there.register("com.shared", invoke="roundrobin") == shared
    single = there.register("com.single")
    for each in three:
        assert ask(each, "wamp.registration.lookup", "com.single") == single
        assert ask(each, "wamp.registration.match", "com.shared") == shared
        listed = ask(each, "wamp.registration.list")
        assert set(listed["exact"]) == {shared, single}
        assert ask(each, "wamp.registration.list", here.id)["exact"] == [shared]
        told = ask(each, "wamp.registration.get", shared)
        assert (told["uri"], told["invoke"]) == ("com.shared", "roundrobin")
        assert told == ask(here, "wamp.registration.get", shared)
        callees = ask(each, "wamp.registration.list_callees", shared)
        assert set(callees) == {here.id, there.id}
        assert ask(each, "wamp.registration.count_callees", shared) == 2
    assert ask(elsewhere, "wamp.registration.remove_callee", single, there.id) is None
    assert ask(elsewhere, "wamp.registration.remove_callee", single, there.id) == (
        "wamp.error.no_such_registration"
    )
    await_true(
        "it is gone",
        lambda: ask(elsewhere, "wamp.registration.lookup", "com.single") is None,
    )


def test_sessions_of_other_nodes_are_killed(three, session) -> None:
    here, there, elsewhere = three
    assert ask(here, "wamp.session.kill", here.id) == "wamp.error.no_such_session"
    reason = {"reason": "com.reason", "message": "because"}
    assert ask(here, "wamp.session.kill", there.id, **reason) is None
    goodbye = there.peer.hear(GOODBYE)
    assert (goodbye[1]["message"], goodbye[2]) == ("because", "com.reason")
    assert ask(here, "wamp.session.kill", there.id) == "wamp.error.no_such_session"
    assert ask(here, "wamp.session.kill", elsewhere.id, "no uri") == "wamp.error.invalid_uri"
    authid = ask(here, "wamp.session.get", elsewhere.id)["authid"]
    assert ask(here, "wamp.session.kill_by_authid", authid) == [elsewhere.id]
    assert elsewhere.peer.hear(GOODBYE)[2] == "wamp.close.killed"
    assert ask(here, "wamp.session.kill_by_authrole", "nobody") == 0
    assert ask(here, "wamp.session.kill_all") == 0
    assert ask(here, "wamp.session.count") == 1


def test_all_are_killed_but_the_caller(nats, nodes, session) -> None:
    found = nodes(3, nats(3))
    caller = session(found[1])
    others = [session(node) for node in found for _ in range(5)]
    assert ask(caller, "wamp.session.kill_all") == len(others)
    for other in others:
        assert other.peer.hear(GOODBYE)[2] == "wamp.close.killed"


def test_meta_events_come_from_all_nodes_once(nats, nodes, session) -> None:
    found = nodes(3, nats(3))
    watcher = session(found[0])
    for topic in ("on_join", "on_leave"):
        watcher.subscribe(f"wamp.session.{topic}")
    joined = [session(node) for node in found]
    # Of different nodes they come in any order.
    told = [watcher.event()[4][0] for _ in joined]
    assert {each["session"] for each in told} == {each.id for each in joined}
    leaving = joined.pop(1)
    leaving.close()
    assert watcher.event()[4] == [leaving.id]
    watcher.subscribe("wamp.registration.", match="prefix")
    here, there = joined

    def events(count: int) -> list[tuple[str, int]]:
        heard = [watcher.event() for _ in range(count)]
        return [(event[3]["topic"].rpartition(".")[2], event[4][0]) for event in heard]

    registration = there.register("com.shared", invoke="random")
    assert events(2) == [("on_create", there.id), ("on_register", there.id)]
    assert here.register("com.shared", invoke="random") == registration
    assert events(1) == [("on_register", here.id)]
    there.unregister(registration)
    assert events(1) == [("on_unregister", there.id)]
    here.unregister(registration)
    assert events(2) == [("on_unregister", here.id), ("on_delete", here.id)]


def test_ends_are_announced_when_a_node_dies(nats, nodes, session) -> None:
    here, there, doomed = nodes(3, nats())
    watcher, other, early = session(here), session(there), session(doomed)
    shared = early.register("com.shared", invoke="random")
    assert other.register("com.shared", invoke="random") == shared
    single = early.register("com.single")
    names = {watcher.subscribe("com.marker"): "marker"}
    for topic in ("session.on_leave", "registration.on_unregister", "registration.on_delete"):
        names[watcher.subscribe(f"wamp.{topic}")] = topic.partition(".")[2]
    late = session(doomed)
    own = late.register("com.own")

    def told(count: int) -> list[tuple]:
        heard = [watcher.event() for _ in range(count)]
        return [(names[event[1]], *event[4]) for event in heard]

    for each in (other, late):
        each.publish("com.marker")
    assert told(2) == [("marker",)] * 2
    await_true("all are known", lambda: here.metric("fabric_sessions_known") == 3)
    assert there.metric("fabric_sessions_known") == 0
    doomed.kill()
    ended = told(7)
    assert set(ended) == {
        ("on_unregister", early.id, shared),
        ("on_unregister", early.id, single),
        ("on_delete", early.id, single),
        ("on_unregister", late.id, own),
        ("on_delete", late.id, own),
        ("on_leave", early.id),
        ("on_leave", late.id),
    }
    assert [what for what, *_ in ended[-2:]] == ["on_leave"] * 2
    assert ask(watcher, "wamp.session.count") == 2
    # And nothing twice.
    other.publish("com.marker")
    assert told(1) == [("marker",)]
    assert here.metric("fabric_sessions_known") == 1


def test_a_node_that_does_not_answer_is_left_out(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    asking, quick, far = session(here), session(here), session(there)
    there.signal(signal.SIGSTOP)
    await_true("all of it has stopped", lambda: is_stopped(there))
    try:
        # A client with many list requests is refused some of them; others' requests work.
        for _ in range(100):
            asking.call("wamp.session.list")
        assert ask(quick, "wamp.session.count") == 2
        assert ask(quick, "wamp.session.get", far.id) == "wamp.error.network_failure"
        answers = [asking.peer.hear_any() for _ in range(100)]
        lists = [answer[3][0] for answer in answers if answer[0] == RESULT]
        assert 0 < len(lists) < 100
        assert all(set(part) == {asking.id, quick.id} for part in lists)
        refused = {answer[4] for answer in answers if answer[0] == ERROR}
        assert refused == {"crosstie.error.realm_calls_max"}
        assert here.metric("fabric_answers_partial_total") == len(lists) + 2
    finally:
        there.signal(signal.SIGCONT)
    await_true("it answers again", lambda: ask(quick, "wamp.session.count") == 3)
    assert here.metric("fabric_questions") == 0
