"""Topics and exchanges: sessions hear Celery, oslo.messaging and pika, and the reverse."""

from __future__ import annotations

import json
from pathlib import Path

import pika
import pytest
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import EVENT, PUBLISH
from rig.waiting import await_true

from joined.conftest import FRAMEWORKS, OSLO, Joined, node

HERE = Path(__file__).parent


def inward(exchange: str, topic: str, **more: object) -> dict:
    """Return a joint of an exchange to a topic."""
    return {"type": "exchange-to-topic", "exchange": exchange, "topic": topic, **more}


def outward(topic: str, exchange: str, **more: object) -> dict:
    """Return a joint of a topic to an exchange."""
    return {"type": "topic-to-exchange", "topic": topic, "exchange": exchange, **more}


def queue_at(router: Joined, exchange: str, key: str = "#") -> tuple:
    """Return a channel and a queue there that hears an exchange."""
    channel = router.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, exchange, key)
    return channel, queue


def message(channel, queue: str) -> tuple:
    """Wait for the next message of a queue."""
    got: list = []

    def has_come() -> bool:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method:
            got.append((method, properties, body))
        return bool(got)

    await_true("a message comes", has_come)
    return got[0]


def test_a_page_hears_what_celery_publishes(joined, start_process):
    if not FRAMEWORKS.exists():
        pytest.skip(f"no Celery: {FRAMEWORKS} is not there")
    topic = "com.celery.{routing_key}"
    joint = inward("celeryev", topic, binding_keys=["task.#"], properties_argument="amqp")
    router = joined(joint)
    session = router.session()
    session.subscribe("com.celery.", match="prefix")
    url = router.url.replace("rabbit://", "amqp://")
    emitter = start_process(FRAMEWORKS, "-P", HERE / "celery_events.py", url, "task-sent", "task-x")
    for number, kind in enumerate(["sent", "x"]):
        event = session.next("published")
        assert event["topic"] == f"com.celery.task.{kind}"
        said = event["kwargs"]
        assert (said["type"], said["uuid"]) == (f"task-{kind}", f"uuid-{number}")
        assert said["amqp"]["routing_key"] == f"task.{kind}"
        assert said["amqp"]["headers"]["hostname"]
    assert emitter.process.wait(30) == 0


def test_a_page_hears_what_nova_publishes(joined, start_process):
    if not OSLO.exists():
        pytest.skip(f"no oslo.messaging: {OSLO} is not there")
    joint = inward("openstack", "com.nova.notified", durable=False, body="oslo-notification")
    router = joined({**joint, "binding_keys": ["notified.*"]})
    session = router.session()
    session.subscribe("com.nova.notified")
    start_process(OSLO, "-P", HERE / "notify.py", router.url, "notified", "compute.end")
    said = session.next("published")["kwargs"]
    assert (said["event_type"], said["payload"]) == ("compute.end", {"a": 1})
    assert (said["publisher_id"], said["priority"]) == ("compute.host1", "INFO")


def test_pika_hears_what_sessions_publish(joined):
    bodies = {"json": "events", "wamp": "exact", "bytes": "raw"}
    joints = [
        outward(f"com.{body}.", exchange, match="prefix", body=body, routing_key="{rest}")
        for body, exchange in bodies.items()
    ]
    joints[0]["impersonate"] = True
    router = joined(*joints)
    session = router.session()
    places = {body: queue_at(router, exchange) for body, exchange in bodies.items()}

    publication = session.publish("com.json.some.thing", a=1, b="ä")
    method, properties, body = message(*places["json"])
    assert method.routing_key == "some.thing"
    assert json.loads(body) == {"a": 1, "b": "ä"}
    assert (properties.content_type, properties.delivery_mode) == ("application/json", 2)
    assert properties.message_id == str(publication)
    assert properties.user_id == session.details["authid"]
    assert properties.headers["wamp-publisher"] == session.id
    assert properties.headers["crosstie-hops"] == 1

    for args, kwargs, expected in [
        ([[1, None]], {}, [1, None]),
        ([1, 2], {}, {"args": [1, 2], "kwargs": {}}),
        ([], {}, {}),
        ([{"a": 1}], {}, {"args": [{"a": 1}], "kwargs": {}}),
    ]:
        session.publish("com.json.x", *args, **kwargs)
        assert json.loads(message(*places["json"])[2]) == expected
    session.publish("com.wamp.x", 1, a=2)
    assert json.loads(message(*places["wamp"])[2]) == {"args": [1], "kwargs": {"a": 2}}
    session.publish("com.bytes.x", b"\0\xff")
    _, properties, body = message(*places["bytes"])
    assert (body, properties.content_type) == (b"\0\xff", "application/octet-stream")


def test_events_that_cannot_be_said_are_dropped(joined):
    joint = outward("com.events.", "events", match="prefix", body="bytes", body_bytes_max=1024)
    router = joined(joint)
    session = router.session()
    session.publish("com.events.x", "text")
    session.publish("com.events.x", bytes(2000))
    session.publish("com.events." + "x" * 250, b"")
    await_true("they are dropped", lambda: router.counted("dropped") == 3)
    place = queue_at(router, "events")
    session.publish("com.events.x", b"said")
    assert message(*place)[2] == b"said"


def test_messages_that_cannot_be_events_are_dead_letters(joined):
    joint = inward("news", "com.news.{routing_key}", queue="news", body_bytes_max=1024, hops_max=2)
    router = joined(joint)
    session = router.session()
    session.subscribe("com.news.", match="prefix")
    channel = router.channel()
    deep = b"[" * 600 + b"]" * 600
    rows = [(b"", {}), (b"not JSON", {}), (deep, {}), (b" " * 3000, {}), (b'{"a": NaN}', {})]
    rows += [
        (b"{}", {"content_encoding": "gzip"}),
        (b"{}", {"headers": {"crosstie-hops": 2}}),
    ]
    for body, properties in rows:
        channel.basic_publish("news", "bad", body, pika.BasicProperties(**properties))
    await_true("they are rejected", lambda: router.counted("refused") == len(rows))
    channel.basic_publish("news", "a b#..c", b"[1]", pika.BasicProperties(headers={"x": "y"}))
    event = session.next("published")
    assert (event["topic"], event["args"]) == ("com.news.a_b_._.c", [[1]])
    assert channel.queue_declare("news", passive=True).method.message_count == 0
    assert session.told_nothing()


def test_a_realm_that_refuses_rejects(joined):
    router = joined({**inward("news", "com.{routing_key}"), "role": "silent"})
    channel = router.channel()
    channel.basic_publish("news", "x", b"{}")
    await_true("it is rejected", lambda: router.counted("refused") == 1)


def test_a_message_waits_for_an_authorizer_that_is_not_there(joined):
    router = joined({**inward("news", "com.news.{routing_key}", queue="news"), "role": "asked"})
    session = router.session()
    session.subscribe("com.news.x")
    router.channel().basic_publish("news", "x", b"[1]")
    metric = router.router.metric
    await_true(
        "the joint begins anew", lambda: metric("joint_restarts_total", joint="joint_0") >= 1
    )
    session.register("com.authorizer", {"do": "constant", "value": True})
    assert session.next("published")["args"] == [[1]]
    assert router.counted("refused") == 0


@pytest.mark.parametrize("kill", [False, True])
def test_events_not_handed_over_come_again(request, tmp_path, open_at, kill):
    """Events published while the joint is absent, and those that it has not finished."""
    joint = inward("news", "com.news.{routing_key}", queue="news")
    persistent = pika.BasicProperties(delivery_mode=2)
    first = Joined(Router(tmp_path, config=node({**joint, "role": "asked"})), open_at)
    request.addfinalizer(first.router.kill)
    first.await_ready("joint_0")
    # The authorizer does not answer.
    authorizer = first.session()
    authorizer.register("com.authorizer", {"do": "hold"})
    channel = first.channel()
    channel.confirm_delivery()
    for n in range(3):
        channel.basic_publish("news", "x", json.dumps({"n": n}).encode(), persistent)
    assert authorizer.next("invoked")["args"][1] == "com.news.x"
    first.router.kill() if kill else first.router.stop()

    second = Joined(Router(tmp_path, config=node(joint)), open_at)
    request.addfinalizer(second.router.kill)
    second.await_ready("joint_0")
    await_true("all come again", lambda: second.counted("passed") == 3)
    assert second.channel().queue_declare("news", passive=True).method.message_count == 0
    second.router.stop()


def test_a_trace_passes_both_ways(joined):
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    trace["tracestate"] = "a=1"
    options = {f"_{name}": value for name, value in trace.items()}
    router = joined(outward("com.out", "traced"), inward("traced", "com.in"))
    channel, queue = queue_at(router, "traced")
    with RawSocket.tcp(router.router.address("tcp")).shake_hands().join() as session:
        session.subscribe("com.in")
        session.ask(PUBLISH, options, "com.out")
        _, properties, _ = message(channel, queue)
        assert trace.items() <= properties.headers.items()
        assert options.items() <= session.hear(EVENT)[3].items()
