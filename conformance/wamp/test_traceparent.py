"""A trace context (W3C `traceparent`) passes with its message, in WAMP and in AMQP."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pika
import pytest
from rig import config
from rig.http import Http
from rig.pika_client import connect
from rig.rawsocket import RawSocket
from rig.session import CALL, EVENT, INVOCATION, PUBLISH, RESULT, YIELD

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
