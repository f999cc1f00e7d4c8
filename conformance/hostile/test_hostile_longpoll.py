"""Long-poll clients that try to stop all others: idle ones and greedy ones."""

from __future__ import annotations

import contextlib
import json
import socket

from rig import config
from rig.longpoll import LongPoll, Requests, Waiting
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ENCODE, EVENT, HELLO, PUBLISH, ROLES, SUBSCRIBE
from rig.waiting import await_true

from hostile.stage import MIB

OPEN = b'{"protocols": ["wamp.2.json"]}'
JOIN = json.dumps([HELLO, "realm1", {"roles": ROLES}]).encode()


def join(requests: Requests) -> str:
    """Open a transport and a session in it; return its path."""
    opened = requests.post("/open", OPEN)
    assert opened.status == 200, opened
    path = f"/{json.loads(opened.body)['transport']}"
    assert requests.post(f"{path}/send", JOIN).status == 204
    return path


def test_subscribers_that_never_ask(attacked):
    """Their queued bytes are on the account, and at its bound those with most are closed."""
    limits = {"queue_bytes_total_max": 8 * MIB, "queue_bytes_max": MIB}
    stage = attacked(longpoll={"session_timeout": 3600}, limits=limits)
    requests = Requests(stage.router.address("tcp"))
    paths = [join(requests) for _ in range(300)]
    for path in paths:
        said = ENCODE["json"]([SUBSCRIBE, 1, {}, "com.flood"])
        assert requests.post(f"{path}/send", said).status == 204
    with stage.session() as publisher:
        # Each text differs, and is kept once for all of them.
        for number in range(100):
            publisher.publish("com.flood", number, "x" * 300_000)
    assert stage.metric("held_bytes") <= 10 * MIB
    stage.everybody_else_is_served()
    stage.grew_at_most(96)
    answers = [requests.post(f"{path}/close").status for path in paths]
    assert set(answers) == {204}
    stage.nothing_is_held()


def test_many_who_never_ask(attacked):
    """They are few bytes each, and gone when their time is over."""
    stage = attacked(longpoll={"session_timeout": 8})
    requests = Requests(stage.router.address("tcp"))
    sessions = stage.metric("realm_sessions")
    for _ in range(2000):
        join(requests)
    stage.everybody_else_is_served()
    stage.grew_at_most(32)
    await_true("they are gone", lambda: stage.metric("realm_sessions") <= sessions, 60)


def test_a_flood_of_transports(start_router):
    """A silent transport has the time of a connection, and counts as one."""
    limits = {"sessions_max": 200, "handshake_timeout_ms": 10_000}
    web = {"paths": {"lp": {"type": "longpoll"}}}
    transport = config.universal("tcp", config.tcp(), web=web)
    router = start_router(config.plain(transport, limits=limits))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as other:
        requests = Requests(router.address("tcp"))
        answers = [requests.post("/open", OPEN) for _ in range(400)]
        statuses = [answer.status for answer in answers]
        assert set(statuses) == {200, 503}
        assert statuses.count(200) <= 200
        assert b"the maximum number of connections is reached" in answers[-1].body
        other.round_trip()
        await_true("there is room again", lambda: requests.post("/open", OPEN).status == 200)


def test_a_batch_of_many_publications(attacked):
    stage = attacked()
    session = LongPoll(stage.router.address("tcp"), "wamp.2.json.batched").join()
    with stage.session() as subscriber:
        subscriber.subscribe("com.batch")
        publications = [[PUBLISH, 100 + number, {}, "com.batch", []] for number in range(20_000)]
        sent = session.say_all(*publications)
        assert sent.status == 204
        for _ in publications:
            subscriber.hear(EVENT)
    stage.everybody_else_is_served()
    session.drop()


def test_many_who_ask_at_once(attacked):
    """The last one waits, all others are answered."""
    stage = attacked()
    session = LongPoll(stage.router.address("tcp")).join()
    session.subscribe("com.once")
    waiting = [Waiting(session) for _ in range(100)]
    await_true("one is left", lambda: sum(not each.answer.done() for each in waiting) == 1)
    assert {each.result().body for each in waiting if each.answer.done()} == {b""}
    with stage.session() as publisher:
        publisher.publish("com.once", 1)
    (last,) = [each for each in waiting if each.result().body]
    assert last.message()[0] == EVENT
    stage.everybody_else_is_served()
    session.drop()


def test_a_body_that_never_ends(attacked):
    """It has as long as any message; then the session is gone."""
    limits = {"message_timeout_ms": 1000, "bytes_per_second_min": 1000}
    stage = attacked(limits=limits)
    with slow_sender(stage.router) as (session, sending):
        sending.sendall(b"[48, 1, {}, ")
        await_true("it is gone", lambda: session.receive().status == 410)
        assert stage.metric("connections_closed_for_slow_input_total") >= 1
    stage.everybody_else_is_served()
    stage.nothing_is_held()


def test_a_body_that_never_comes(attacked):
    """Its sender counts as a client without requests."""
    stage = attacked(longpoll={"session_timeout": 4})
    with slow_sender(stage.router) as (session, _):
        gone = Requests(session.address)
        # To look is to ask, so the log is looked at.
        stage.router.await_log(
            lambda line: line.text == "session left" and line.fields["session"] == session.id
        )
        assert gone.post(session.path("receive")).status == 410
        gone.close()
    stage.everybody_else_is_served()


@contextlib.contextmanager
def slow_sender(router: Router):
    """Have a session send a body of which nothing has come."""
    address = router.address("tcp")
    session = LongPoll(address).join()
    sending = socket.create_connection(address, 40)
    head = f"POST /lp{session.path('send')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n"
    sending.sendall(f"{head}\r\n".encode())
    try:
        yield session, sending
    finally:
        sending.close()
        session.drop()
