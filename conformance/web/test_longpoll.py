"""WAMP over HTTP long-poll, request by request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig import config
from rig.longpoll import AUTOBAHN_SEPARATOR, LongPoll, Requests, Waiting
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    ABORT,
    CALL,
    ENCODE,
    EVENT,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    RESULT,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    VIOLATION,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true

PROTOCOLS = [
    f"wamp.2.{serializer}{batched}"
    for serializer in ("json", "msgpack", "cbor")
    for batched in ("", ".batched")
]
NEVER = "0" * 32
PATHS = {
    "/": {"type": "none"},
    "lp": {"type": "longpoll"},
    "brief": {"type": "longpoll", "options": {"session_timeout": 4}},
    "prompt": {"type": "longpoll", "options": {"request_timeout": 1}},
    "long": {"type": "longpoll", "options": {"request_timeout": 9, "session_timeout": 4}},
    "tight": {"type": "longpoll", "options": {"queue_limit_messages": 4}},
    "narrow": {"type": "longpoll", "options": {"queue_limit_bytes": 4096}},
    "small": {"type": "longpoll", "options": {"max_message_size": 1024}},
    "json": {"type": "longpoll", "serializers": ["json"]},
    "deep": {"type": "path", "paths": {"er": {"type": "longpoll"}}},
}


def web(endpoint: dict, **more: object) -> dict:
    """Return a web transport with every kind of long-poll."""
    return {"type": "web", "id": "web", "endpoint": endpoint, "paths": PATHS, **more}


@pytest.fixture(scope="module")
def router(tmp_path_factory) -> Iterator[Router]:
    """Long-poll beside RawSocket, and pages."""
    roles = [config.role("anonymous")]
    configuration = config.node(
        [{"name": "realm1", "roles": roles}],
        [web(config.tcp()), config.universal("tcp", config.tcp())],
    )
    running = Router(tmp_path_factory.mktemp("longpoll"), config=configuration)
    yield running
    running.stop()


@pytest.fixture
def opened(router: Router) -> Iterator:
    """Open transports; their connections end with the test."""
    sessions: list[LongPoll] = []

    def open_(protocol: str = "wamp.2.json", base: str = "/lp") -> LongPoll:
        sessions.append(LongPoll(router.address("web"), protocol, base))
        return sessions[-1]

    yield open_
    for session in sessions:
        session.drop()


@pytest.fixture
def other(router: Router) -> Iterator[RawSocket]:
    """A client with a stream."""
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as session:
        yield session


@pytest.fixture
def requests(router: Router) -> Iterator[Requests]:
    """Requests without a transport."""
    made = Requests(router.address("web"))
    yield made
    made.close()


def ask(session: LongPoll | RawSocket, procedure: str, *args: object) -> list:
    """Call; return the answer."""
    session.ask(CALL, {}, procedure, list(args))
    return session.hear_any()


def leaves(other: RawSocket) -> None:
    """Have `other` told who leaves."""
    other.subscribe("wamp.session.on_leave")


def has_left(other: RawSocket, session: int) -> None:
    """The session leaves."""
    while other.hear(EVENT)[4][0] != session:
        pass


# --- sessions


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_session_does_what_any_does(opened, other, protocol):
    session = opened(protocol).join()
    session.round_trip()
    topic = f"com.topic.n{session.id}"
    subscription = session.subscribe(topic)
    other.publish(topic, "é", 1, None)
    event = session.hear(EVENT)
    assert (event[1], event[4]) == (subscription, ["é", 1, None])
    procedure = f"com.procedure.n{session.id}"
    registration = session.register(procedure)
    request = other.ask(CALL, {}, procedure, ["ping"])
    invocation = session.hear(INVOCATION)
    assert (invocation[2], invocation[4]) == (registration, ["ping"])
    session.say(YIELD, invocation[1], {}, ["pong"])
    result = other.hear(RESULT)
    assert (result[1], result[3]) == (request, ["pong"])
    session.say(GOODBYE, {}, "wamp.close.close_realm")
    assert session.hear(GOODBYE)[2] == "wamp.close.goodbye_and_out"
    # Another one on the same transport.
    session.join().round_trip()
    assert session.post("close").status == 204


def test_details_that_other_sessions_see(opened, other):
    session = opened("wamp.2.cbor").join()
    known = ask(other, "wamp.session.get", session.id)[3][0]
    assert known["transport"]["channel_framing"] == "longpoll"
    assert known["transport"]["channel_serializer"] == "cbor"


def test_large_payloads_go_both_ways(opened, other):
    session = opened("wamp.2.msgpack.batched").join()
    topic = f"com.large.n{session.id}"
    session.subscribe(topic)
    text = "x" * (3 << 20)
    other.publish(topic, text)
    assert session.hear(EVENT)[4] == [text]
    other.subscribe(topic)
    session.publish(topic, text)
    assert other.hear(EVENT)[4] == [text]


@pytest.mark.parametrize("protocol", ["wamp.2.json.batched", "wamp.2.cbor.batched"])
def test_a_batch_is_many_messages_in_order(opened, protocol):
    session = opened(protocol).join()
    topics = [f"com.batch.n{session.id}.n{number}" for number in range(200)]
    requests = [[SUBSCRIBE, next(session.requests), {}, topic] for topic in topics]
    assert session.say_all(*requests).status == 204
    answers = [session.hear(SUBSCRIBED) for _ in topics]
    assert [answer[1] for answer in answers] == [request[1] for request in requests]


def test_a_batch_has_all_that_waits_and_one_message_has_one(opened, other):
    for protocol in ("wamp.2.json.batched", "wamp.2.json"):
        session = opened(protocol).join()
        topic = f"com.waits.n{session.id}"
        session.subscribe(topic)
        for number in range(5):
            other.publish(topic, number)
        bodies = []
        while sum(map(len, bodies)) < 5:
            bodies.append(session.messages(session.receive().body))
        found = [json.loads(octets)[4][0] for body in bodies for octets in body]
        assert found == list(range(5))
        assert len(bodies) == (1 if session.is_batched else 5)


def test_autobahn_is_answered_in_kind(opened):
    session = opened("wamp.2.json.batched")
    session.separator = AUTOBAHN_SEPARATOR
    session.join().round_trip()


def test_the_octets_that_end_messages_may_be_mixed(opened):
    session = opened("wamp.2.json.batched").join()
    calls = [
        json.dumps([CALL, next(session.requests), {}, "wamp.session.count"]).encode()
        for _ in range(2)
    ]
    assert session.post("send", calls[0] + b"\x18" + calls[1] + b"\x1e").status == 204
    assert [session.hear_any()[0] for _ in calls] == [RESULT, RESULT]


# --- requests


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "could not parse"),
        (b"{", "could not parse"),
        (b"\xff\xfe", "could not parse"),
        (b"[]", "invalid type"),
        (b"{}", "missing attribute 'protocols'"),
        (b'{"protocols": "wamp.2.json"}', "missing attribute 'protocols'"),
        (b'{"protocols": []}', "no common protocol"),
        (b'{"protocols": [7, null, "wamp.3.json"]}', "no common protocol"),
        (b'{"protocols": ["wamp.2.ubjson"]}', "no common protocol"),
    ],
)
def test_requests_that_open_no_transport(requests, body, text):
    answer = requests.post("/open", body)
    assert answer.status == 400
    assert text in answer.body.decode()
    assert answer.header("content-type") == "text/plain; charset=utf-8"


def test_protocols_follow_the_configuration(router):
    asked = Requests(router.address("web"), "/json")
    refused = asked.post("/open", b'{"protocols": ["wamp.2.cbor"]}')
    assert refused.status == 400
    assert b"wamp.2.json" in refused.body
    assert b"cbor" not in refused.body
    both = asked.post("/open", b'{"protocols": ["wamp.2.cbor", "wamp.2.json.batched"]}')
    assert json.loads(both.body)["protocol"] == "wamp.2.json.batched"


def test_an_open_request_is_short(requests):
    assert requests.post("/open", b'{"protocols": [' + b" " * 5000).status == 413


def test_the_answers_to_each_operation(opened, requests):
    session = opened()
    answer = requests.post("/open?x=382913", b'{"protocols": ["wamp.2.json"]}')
    assert (answer.status, answer.header("content-type")) == (
        200,
        "application/json; charset=utf-8",
    )
    assert re.fullmatch(r"[0-9a-f]{32}", json.loads(answer.body)["transport"])
    hello = json.dumps([HELLO, "realm1", {"roles": ROLES}]).encode()
    sent = requests.post(session.path("send?x=1"), hello)
    assert (sent.status, sent.body, sent.header("content-length")) == (204, b"", None)
    received = requests.post(session.path("receive?x=2"))
    assert json.loads(received.body)[0] == WELCOME
    assert received.header("cache-control") == "no-store, no-cache, must-revalidate, max-age=0"
    closed = requests.post(session.path("close?x=3"))
    assert (closed.status, closed.body) == (204, b"")


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        ("wamp.2.json", "application/json; charset=utf-8"),
        ("wamp.2.msgpack.batched", "application/x-msgpack"),
        ("wamp.2.cbor", "application/cbor"),
    ],
)
def test_the_type_of_messages(opened, protocol, kind):
    session = opened(protocol)
    session.say(HELLO, "realm1", {"roles": ROLES})
    assert session.receive().header("content-type") == kind


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "", 200),
        ("GET", "/", 200),
        ("POST", "", 404),
        ("GET", "/open", 405),
        ("PUT", "/open", 405),
        ("POST", "/open/", 404),
        ("POST", f"/{NEVER}/send", 404),
        ("POST", f"/{NEVER}/receive", 404),
        ("POST", f"/{NEVER}/close", 404),
        ("GET", f"/{NEVER}/receive", 405),
        ("POST", f"/{NEVER}/open", 404),
        ("POST", f"/{NEVER}", 404),
        ("POST", "/x/send", 404),
        ("POST", f"/{NEVER.upper()}x/send", 404),
        ("POST", f"/{NEVER}/send/more", 404),
    ],
)
def test_requests_without_a_transport(requests, method, path, status):
    assert requests.ask(method, path).status == status


def test_it_stands_where_it_was_put(router):
    session = LongPoll(router.address("web"), base="/deep/er").join()
    session.round_trip()
    session.drop()


def test_the_type_of_a_body_is_not_asked_for(opened):
    session = opened()
    hello = json.dumps([HELLO, "realm1", {"roles": ROLES}]).encode()
    for kind in ("text/plain", "application/octet-stream", "nonsense"):
        sent = session.sending.post(session.path("send"), hello, Content_Type=kind)
        assert sent.status == 204
        assert session.hear(WELCOME)
        session.say(GOODBYE, {}, "wamp.close.close_realm")
        assert session.hear(GOODBYE)


def test_a_compressed_body_is_refused(opened):
    session = opened()
    sent = session.sending.post(session.path("send"), b"x", Content_Encoding="gzip")
    assert sent.status == 415
    session.join().round_trip()


def test_ids_are_drawn(opened):
    ids = {opened().transport for _ in range(20)}
    assert len(ids) == 20
    firsts = {each[:8] for each in ids}
    assert len(firsts) == 20


# --- pages of browsers


def test_pages_of_this_machine_may_ask(requests):
    answer = requests.post("/open", b'{"protocols": ["wamp.2.json"]}', Origin="http://localhost:1")
    assert answer.status == 200
    assert answer.header("access-control-allow-origin") == "http://localhost:1"
    assert answer.header("access-control-allow-credentials") == "true"
    before = requests.ask(
        "OPTIONS",
        f"/{NEVER}/send",
        Origin="http://localhost:1",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="content-type",
    )
    assert before.status == 204
    assert before.header("access-control-allow-headers") == "content-type"
    assert before.header("access-control-allow-methods") == "POST"


def test_pages_from_elsewhere_may_not(requests):
    answer = requests.post(
        "/open", b'{"protocols": ["wamp.2.json"]}', Origin="https://evil.example"
    )
    assert answer.status == 403


def test_other_names_are_refused(requests):
    answer = requests.post("/open", b'{"protocols": ["wamp.2.json"]}', Host="evil.example")
    assert answer.status == 403


# --- who waits


def test_a_request_for_messages_waits(opened, other):
    session = opened().join()
    topic = f"com.waiting.n{session.id}"
    session.subscribe(topic)
    waiting = Waiting(session)
    session.post("send", ENCODE["json"]([CALL, next(session.requests), {}, "wamp.session.count"]))
    assert waiting.message()[0] == RESULT
    waiting = Waiting(session)
    other.publish(topic, 1)
    assert waiting.message()[0] == EVENT


def test_the_last_who_asks_gets_it(opened, other):
    session = opened().join()
    topic = f"com.last.n{session.id}"
    session.subscribe(topic)
    first, second = Waiting(session), Waiting(session)
    # One of them, whichever came first.
    await_true("one is answered", lambda: first.answer.done() or second.answer.done())
    early, late = (first, second) if first.answer.done() else (second, first)
    assert (early.result().status, early.result().body) == (200, b"")
    other.publish(topic, 1)
    assert late.message()[0] == EVENT


def test_a_client_lost_while_waiting_misses_nothing(opened, other):
    session = opened().join()
    topic = f"com.gone.n{session.id}"
    session.subscribe(topic)
    # Bytes to a lost connection are lost until the loss is noticed.
    Waiting(session).abandon()
    waiting = Waiting(session)
    other.publish(topic, 1)
    while not (answer := waiting.result()).body:
        assert answer.status == 200
        waiting = Waiting(session)
    assert json.loads(answer.body)[0] == EVENT


def test_an_answer_comes_in_time(opened):
    session = opened(base="/prompt").join()
    assert (session.receive().status, session.receive().body) == (200, b"")


def test_a_waiting_client_is_alive(opened, other):
    """For longer than a session lives without a request."""
    session = opened(base="/long").join()
    answer = session.receive()
    assert (answer.status, answer.body) == (200, b"")
    assert ask(other, "wamp.session.get", session.id)[0] == RESULT


def test_a_client_without_requests_is_gone(opened, other):
    session = opened(base="/brief").join()
    leaves(other)
    has_left(other, session.id)
    session.expect_gone()


def test_a_client_without_hello_is_gone(start_router):
    router = start_router(
        config.plain(web(config.tcp()), config.universal("tcp", config.tcp()))
        | {"limits": {"handshake_timeout_ms": 3000}}
    )
    session = LongPoll(router.address("web"))
    await_true("it is told", lambda: session.receive().status == 410)


# --- ends


def test_close(opened, other):
    session = opened().join()
    leaves(other)
    waiting = Waiting(session)
    await_true("it has asked", lambda: waiting.requests.connection.sock is not None)
    assert session.post("close").status == 204
    has_left(other, session.id)
    assert waiting.result().status in (200, 410)
    session.expect_gone()
    assert session.post("close").status == 204


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("wamp.2.json", b""),
        ("wamp.2.json", b"nonsense"),
        ("wamp.2.json", b"[]"),
        ("wamp.2.json", b'["no", "number"]'),
        ("wamp.2.json", b"\xff"),
        ("wamp.2.json", b"[1, " * 10_000),
        ("wamp.2.json.batched", b""),
        ("wamp.2.json.batched", b"[]"),
        ("wamp.2.json.batched", b"\x1e"),
        ("wamp.2.msgpack", b"\xc1"),
        ("wamp.2.msgpack.batched", b"\x00\x00\x00\x05\x93"),
        ("wamp.2.cbor.batched", b"\x00\x00"),
        ("wamp.2.cbor.batched", b"\xff\xff\xff\xff\x80"),
    ],
)
def test_malformed_messages(opened, other, protocol, body):
    session = opened(protocol).join()
    leaves(other)
    sent = session.post("send", body)
    assert (sent.status, sent.body) == (400, b"could not unserialize WAMP message.\n")
    assert sent.header("content-type") == "text/plain; charset=utf-8"
    abort = session.hear(ABORT)
    assert abort[2] == VIOLATION
    has_left(other, session.id)
    session.expect_gone()


def test_messages_before_a_fault_are_handled(opened, other):
    session = opened("wamp.2.json.batched").join()
    topic = f"com.before.n{session.id}"
    other.subscribe(topic)
    publish = json.dumps([PUBLISH, next(session.requests), {}, topic, ["last"]]).encode()
    assert session.post("send", publish + b"\x1enonsense\x1e").status == 400
    assert other.hear(EVENT)[4] == ["last"]
    assert session.hear(ABORT)[2] == VIOLATION


def test_a_message_that_may_not_come(opened):
    """It is one, and so its request is answered as any; what is wrong with it is told by ABORT."""
    session = opened()
    session.say(CALL, 1, {}, "com.early")
    assert session.hear(ABORT)[2] == VIOLATION
    session.expect_gone()


def test_a_message_that_is_too_long(opened):
    session = opened(base="/small").join()
    assert session.post("send", b"x" * 1025).status == 413
    assert "1024" in session.hear(ABORT)[1]["message"]
    session.expect_gone()


def test_bodies_before_joining_are_short(opened):
    session = opened()
    assert session.post("send", b"[" + b" " * (64 << 10)).status == 413
    assert session.hear(ABORT)


def test_a_realm_that_is_not_there(opened):
    session = opened()
    session.say(HELLO, "nowhere", {"roles": ROLES})
    assert session.hear(ABORT)[2] == "wamp.error.no_such_realm"
    session.join().round_trip()


def test_abort(opened, other):
    session = opened().join()
    leaves(other)
    session.say(ABORT, {}, "wamp.error.system_shutdown")
    has_left(other, session.id)
    session.expect_gone()


def test_a_session_is_killed(opened, other):
    session = opened().join()
    killed = ask(other, "wamp.session.kill", session.id)
    assert killed[0] == RESULT, killed
    goodbye = session.hear(GOODBYE)
    assert goodbye[2] == "wamp.close.killed"
    session.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
    # As on a stream: another one may follow.
    session.join().round_trip()


@pytest.mark.parametrize("has_goodbye", [False, True], ids=["closed", "goodbye"])
def test_the_node_ends(start_router, has_goodbye):
    configuration = config.plain(web(config.tcp()), config.universal("tcp", config.tcp()))
    router = start_router(config.with_goodbye(configuration) if has_goodbye else configuration)
    session = LongPoll(router.address("web")).join()
    waiting = Waiting(session)
    silent = LongPoll(router.address("web")).join()
    await_true(
        "both are there",
        lambda: (
            router.metric("realm_sessions") == 2 and waiting.requests.connection.sock is not None
        ),
    )
    router.stop()
    answer = waiting.result()
    if has_goodbye:
        assert json.loads(answer.body)[2] == "wamp.close.system_shutdown"
    else:
        # The client's next request is refused, and the client comes back.
        assert (answer.status, answer.body) == (200, b"")
    silent.drop()


# --- bounds


def test_messages_that_wait_are_bounded(opened, other):
    session = opened(base="/tight").join()
    topic = f"com.tight.n{session.id}"
    session.subscribe(topic)
    for number in range(50):
        other.publish(topic, number)
    found = [session.hear(EVENT)[4][0] for _ in range(4)]
    assert found == list(range(4))
    session.round_trip()
    other.publish(topic, "again")
    assert session.hear(EVENT)[4] == ["again"]


def test_bytes_that_wait_are_bounded(opened, other):
    session = opened(base="/narrow").join()
    topic = f"com.narrow.n{session.id}"
    session.subscribe(topic)
    for number in range(50):
        other.publish(topic, number, "x" * 500)
    found = []
    session.ask(SUBSCRIBE, {}, topic)
    while (message := session.hear_any())[0] == EVENT:
        found.append(message[4][0])
    assert message[0] in (SUBSCRIBED, ABORT)
    assert found == list(range(len(found)))
    assert 2 <= len(found) <= 8


def test_a_client_that_sends_without_receiving_is_ended(opened, other):
    """An answer that cannot be queued: the session cannot be told the truth any more."""
    session = opened(base="/tight").join()
    leaves(other)
    for _ in range(5):
        session.ask(CALL, {}, "wamp.session.count")
    has_left(other, session.id)
    heard = [session.hear_any() for _ in range(5)]
    assert [message[0] for message in heard] == [RESULT] * 4 + [ABORT]
    assert heard[-1][2] == "crosstie.error.queue_bytes_max"
    session.expect_gone()


def test_a_client_that_reads_nothing_is_gone(start_router):
    router = start_router(
        config.plain(
            {
                "type": "web",
                "id": "web",
                "endpoint": config.tcp(),
                "paths": {"lp": {"type": "longpoll", "options": {"session_timeout": 3600}}},
            },
            config.universal("tcp", config.tcp()),
        )
        | {"limits": {"queue_stall_timeout_ms": 4000}}
    )
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as other:
        session = LongPoll(router.address("web")).join()
        leaves(other)
        session.ask(CALL, {}, "wamp.session.count")
        has_left(other, session.id)
        session.expect_gone()


def test_many_send_at_once(opened):
    """Each is handled whole, one behind the other."""
    session = opened().join()
    topic = f"com.many.n{session.id}"
    session.subscribe(topic)
    hundred = range(100)

    def publish(number: int) -> int:
        requests = Requests(session.address, session.base)
        message = [PUBLISH, 1000 + number, {"acknowledge": True, "exclude_me": False}, topic, []]
        sent = requests.post(session.path("send"), ENCODE["json"](message))
        requests.close()
        return sent.status

    with ThreadPoolExecutor(8) as threads:
        sending = threads.map(publish, hundred)
        heard = [session.hear_any()[0] for _ in range(200)]
        assert list(sending) == [204] * 100
    assert sorted(heard) == [PUBLISHED] * 100 + [EVENT] * 100


def test_messages_arrive_in_order(opened, other):
    session = opened("wamp.2.cbor.batched").join()
    topic = f"com.order.n{session.id}"
    session.subscribe(topic)
    for number in range(500):
        other.ask(PUBLISH, {}, topic, [number])
    assert [session.hear(EVENT)[4][0] for _ in range(500)] == list(range(500))
