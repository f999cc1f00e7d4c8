"""A trace context (W3C `traceparent`) passes with its message, in WAMP and in AMQP."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pika
import pytest
from rig import config
from rig.http import Answer, Http
from rig.http_site import Site
from rig.pika_client import connect
from rig.rawsocket import RawSocket
from rig.session import CALL, EVENT, INVOCATION, PUBLISH, RESULT, YIELD
from rig.waiting import await_true

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
CONTEXT = {"_traceparent": PARENT, "_tracestate": "a=1"}


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.product(("json", "msgpack", "cbor"), repeat=2))
)
def test_calls_and_events_of_wamp(start_router, one, other):
    router = start_router(config.plain())
    first = RawSocket.tcp(router.address("tcp")).shake_hands(one).join()
    second = RawSocket.tcp(router.address("tcp")).shake_hands(other).join()
    with first, second:
        second.register("com.example.traced")
        first.ask(CALL, CONTEXT, "com.example.traced")
        invocation = second.hear(INVOCATION)
        assert CONTEXT.items() <= invocation[3].items()
        second.say(YIELD, invocation[1], {"_traceparent": OTHER})
        assert first.hear(RESULT)[2]["_traceparent"] == OTHER
        second.subscribe("com.example.topic")
        first.ask(PUBLISH, CONTEXT, "com.example.topic")
        assert CONTEXT.items() <= second.hear(EVENT)[3].items()


def test_messages_of_amqp(start_router):
    node = config.plain({"type": "amqp", "id": "amqp", "endpoint": config.tcp()})
    router = start_router(node)
    headers = {"traceparent": PARENT, "tracestate": "a=1"}
    with connect(router.address("amqp")) as connection:
        channel = connection.channel()
        channel.queue_declare("traced")
        properties = pika.BasicProperties(headers=headers)
        channel.basic_publish("", "traced", b"body", properties)
        _, found, _ = channel.basic_get("traced", auto_ack=True)
        assert found.headers == headers


def test_the_http_bridge(start_router):
    caller = {"type": "caller", "realm": "realm1", "role": "anonymous", "options": {}}
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": {"/": caller}}
    router = start_router(config.plain(config.universal("tcp", config.tcp()), web))
    call = {"procedure": "com.example.traced", "args": [], "options": CONTEXT}
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as callee:
        callee.register("com.example.traced")
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(Http(router.address("web")).post, "/", json.dumps(call).encode())
            invocation = callee.hear(INVOCATION)
            assert CONTEXT.items() <= invocation[3].items()
            callee.say(YIELD, invocation[1], {}, ["done"])
            assert json.loads(answer.result().body)["args"] == ["done"]


def test_headers_of_http_become_options(start_router):
    services = {
        "/": {"type": "caller", "realm": "realm1", "role": "anonymous", "options": {}},
        "publish": {"type": "publisher", "realm": "realm1", "role": "anonymous", "options": {}},
        "hook": {
            "type": "webhook",
            "realm": "realm1",
            "role": "anonymous",
            "options": {"topic": "com.example.hook"},
        },
    }
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": services}
    router = start_router(config.plain(config.universal("tcp", config.tcp()), web))
    headers = {"traceparent": PARENT, "tracestate": "a=1"}

    def post(path: str, body: dict) -> Answer:
        return Http(router.address("web")).post(path, json.dumps(body).encode(), headers)

    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as callee:
        callee.register("com.example.traced")
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(post, "/", {"procedure": "com.example.traced"})
            invocation = callee.hear(INVOCATION)
            assert CONTEXT.items() <= invocation[3].items()
            callee.say(YIELD, invocation[1], {})
            assert answer.result().status == 200
        for path, topic in (("/publish", "com.example.topic"), ("/hook", "com.example.hook")):
            callee.subscribe(topic)
            assert post(path, {"topic": topic}).status in (200, 202)
            assert CONTEXT.items() <= callee.hear(EVENT)[3].items()


def looked_up(session: RawSocket, kind: str, name: str) -> bool:
    """Whether somebody has subscribed to a topic, or registered a procedure."""
    session.ask(CALL, {}, f"wamp.{kind}.lookup", [name])
    return session.hear(RESULT)[3] != [None]


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    yield found
    found.close()


def test_options_become_headers_of_http(start_router, site):
    def component(name: str, **extra: object) -> dict:
        return {
            "type": "class",
            "id": name,
            "classname": f"crossbar.bridge.rest.{name}",
            "realm": "realm1",
            "role": "anonymous",
            "extra": extra,
        }

    node = config.plain(config.universal("tcp", config.tcp()))
    forwarded = [{"topic": "com.forward", "url": f"{site.url}/forwarded"}]
    node["workers"][0]["components"] = [
        component("MessageForwarder", subscriptions=forwarded, method="POST"),
        component("RESTCallee", baseurl=site.url, procedure="com.rest"),
    ]
    router = start_router(node)
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as session:
        await_true("events", lambda: looked_up(session, "subscription", "com.forward"))
        await_true("calls", lambda: looked_up(session, "registration", "com.rest"))
        session.ask(PUBLISH, CONTEXT, "com.forward")
        headers = site.next()["headers"]
        assert (headers["traceparent"], headers["tracestate"]) == (PARENT, "a=1")
        session.ask(CALL, CONTEXT, "com.rest", ["GET", "x"])
        assert site.next()["headers"]["traceparent"] == PARENT
        session.hear(RESULT)
        # What a call says itself counts.
        said = {"headers": {"traceparent": OTHER}}
        session.ask(CALL, CONTEXT, "com.rest", ["GET", "x"], said)
        headers = site.next()["headers"]
        assert (headers["traceparent"], headers.get("tracestate")) == (OTHER, None)
