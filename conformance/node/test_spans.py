"""Spans of messages that belong to traces, at a collector that speaks OTLP over HTTP in JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pika
import pytest
from rig import config
from rig.http import Http
from rig.http_site import Site
from rig.mqtt_peer import Peer
from rig.mqtt_wire import Will
from rig.pika_client import connect
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import CALL, CANCEL, ERROR, EVENT, INVOCATION, PUBLISH, PUBLISHED, RESULT, YIELD
from rig.waiting import await_true

TRACE, SENDER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = f"00-{TRACE}-{SENDER}-01"
SAMPLED = {"_traceparent": CONTEXT}
NOT_SAMPLED = {"_traceparent": f"00-{TRACE}-{SENDER}-00"}


class Collector(Site):
    """A collector that keeps the spans of all requests."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[dict] = []
        self.resource: dict = {}
        self.headers: dict = {}

    @property
    def endpoint(self) -> str:
        """Where spans are sent."""
        return f"{self.url}/v1/traces"

    def span(self) -> dict:
        """Return the next span, with its attributes by name."""
        while not self.waiting:
            asked = self.next()
            self.headers = asked["headers"]
            assert (asked["method"], asked["path"]) == ("POST", "/v1/traces")
            assert self.headers["content-type"] == "application/json"
            for resource in json.loads(asked["body"])["resourceSpans"]:
                self.resource = plain(resource["resource"]["attributes"])
                for scope in resource["scopeSpans"]:
                    self.waiting += scope["spans"]
        span = self.waiting.pop(0)
        span["attributes"] = plain(span["attributes"])
        return span

    def named(self, *names: str) -> list[dict]:
        """Return as many spans, which have these names in any order."""
        spans = {}
        for _ in names:
            span = self.span()
            spans[span["name"]] = span
        assert sorted(spans) == sorted(names)
        return [spans[name] for name in names]


def plain(attributes: list[dict]) -> dict[str, str]:
    """Return attributes by name."""
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


def node(endpoint: str | None, *transports: dict, **more: object) -> dict:
    """Return a node that sends its spans there."""
    whole = config.plain(config.universal("tcp", config.tcp()), *transports)
    if endpoint:
        whole["otlp"] = {"endpoint": endpoint, "interval_ms": 100, **more}
    return whole


def amqp() -> dict:
    return {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}


def join(router: Router) -> RawSocket:
    return RawSocket.tcp(router.address("tcp")).shake_hands().join()


def assert_child(span: dict, name: str, **attributes: str) -> None:
    """Check a span of the trace, which has succeeded."""
    assert span["status"] == {}
    assert "error.type" not in span["attributes"]
    assert_in_trace(span, name, **attributes)


def assert_failed(span: dict, name: str, kind: str, why: str) -> None:
    """Check a span of the trace, which has failed."""
    assert span["status"] == {"code": 2, "message": why}
    assert_in_trace(span, name, error_type=kind)


def assert_in_trace(span: dict, name: str, **attributes: str) -> None:
    """Check a span of the trace."""
    assert span["name"] == name
    assert (span["traceId"], span["parentSpanId"]) == (TRACE, SENDER)
    assert len(span["spanId"]) == len(SENDER)
    assert span["spanId"] != SENDER
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    found = {name.replace(".", "_"): value for name, value in span["attributes"].items()}
    assert attributes.items() <= found.items()


def test_a_call_lasts_until_its_answer(start_router, collector):
    router = start_router(node(collector.endpoint, headers={"x-key": "k"}, service_name="shop"))
    with join(router) as caller, join(router) as callee:
        callee.register("com.example.traced")
        caller.ask(CALL, NOT_SAMPLED, "com.example.traced")
        callee.say(YIELD, callee.hear(INVOCATION)[1], {})
        caller.hear(RESULT)
        caller.ask(CALL, {**SAMPLED, "receive_progress": True}, "com.example.traced")
        invocation = callee.hear(INVOCATION)
        callee.say(YIELD, invocation[1], {"progress": True})
        assert caller.hear(RESULT)[2]["progress"]
        callee.say(YIELD, invocation[1], {})
        caller.hear(RESULT)
        # The first one was not sampled.
        span = collector.span()
        assert_child(span, "call com.example.traced", crosstie_realm="realm1", rpc_system="wamp")
        assert collector.resource["service.name"] == "shop"
        assert collector.headers["x-key"] == "k"
    await_true("the answer", lambda: router.metric("spans_total", outcome="exported") == 1)


def test_what_fails_says_why(start_router, collector):
    router = start_router(node(collector.endpoint))
    with join(router) as callee:
        callee.register("com.example.traced")
        with join(router) as caller:
            caller.ask(CALL, SAMPLED, "com.example.absent")
            caller.hear(ERROR)
            why = "wamp.error.no_such_procedure"
            assert_failed(collector.span(), "call com.example.absent", why, why)
            caller.ask(CALL, SAMPLED, "com.example.traced")
            own = "com.example.error.sold_out"
            callee.say(ERROR, INVOCATION, callee.hear(INVOCATION)[1], {}, own)
            caller.hear(ERROR)
            assert_failed(collector.span(), "call com.example.traced", own, own)
            caller.ask(CALL, SAMPLED, "com.example.traced")
            callee.hear(INVOCATION)
        why = ("caller_left", "the caller has left")
        assert_failed(collector.span(), "call com.example.traced", *why)


@pytest.mark.parametrize("mode", ["skip", "killnowait"])
def test_a_canceled_call_without_an_answer_ends(start_router, collector, mode):
    whole = node(collector.endpoint)
    whole["workers"][0]["realms"][0]["options"] = {"cancel_answers": "kill_only"}
    router = start_router(whole)
    with join(router) as caller, join(router) as callee:
        callee.register("com.example.traced")
        call = caller.ask(CALL, SAMPLED, "com.example.traced")
        callee.hear(INVOCATION)
        caller.say(CANCEL, call, {"mode": mode})
        why = "wamp.error.canceled"
        assert_failed(collector.span(), "call com.example.traced", why, why)


def test_a_late_part_of_a_call_has_no_span(start_router, collector):
    router = start_router(node(collector.endpoint))
    feature = {"features": {"progressive_call_invocations": True, "call_canceling": True}}
    roles = {"caller": feature, "callee": feature}
    tcp = router.address("tcp")
    with (
        RawSocket.tcp(tcp).shake_hands().join(roles=roles) as caller,
        RawSocket.tcp(tcp).shake_hands().join(roles=roles) as callee,
    ):
        callee.register("com.example.traced")
        part = {**SAMPLED, "progress": True}
        call = caller.ask(CALL, part, "com.example.traced")
        callee.say(YIELD, callee.hear(INVOCATION)[1], {})
        caller.hear(RESULT)
        assert_child(collector.span(), "call com.example.traced")
        caller.say(CALL, call, part, "com.example.traced")
        caller.ask(CALL, SAMPLED, "wamp.session.count")
        caller.hear(RESULT)
        assert_child(collector.span(), "call wamp.session.count")
    # The session has left, and none of its calls was open.
    with join(router) as other:
        other.ask(CALL, SAMPLED, "wamp.session.count")
        other.hear(RESULT)
        assert_child(collector.span(), "call wamp.session.count")


def test_the_keys_of_a_collector_are_not_shown(start_router, collector, monkeypatch):
    monkeypatch.setenv("COLLECTOR_KEY", "hush")
    headers = {"Authorization": "Bearer $COLLECTOR_KEY"}
    whole = node(collector.endpoint, headers=headers)
    router = start_router(whole)
    with join(router) as session:
        session.ask(CALL, SAMPLED, "wamp.session.count")
        session.hear(RESULT)
        collector.span()
    assert collector.headers["authorization"] == "Bearer hush"
    for changed in ({"Authorization": "Bearer other"}, {"X-Team": "other"}, {}):
        whole["otlp"]["headers"] = changed
        (router.directory / "config.json").write_text(json.dumps(whole))
        for more in (["--dry-run"], []):
            command = [str(binary()), "reload", "--cbdir", str(router.directory), *more]
            told = subprocess.run(command, check=True, capture_output=True, text=True)
            assert "otlp" in told.stdout
            assert "hush" not in told.stdout + told.stderr
            assert "other" not in told.stdout + told.stderr
    assert "hush" not in router.told()
    assert "Bearer" not in router.told()


def test_a_reload_with_a_wrong_exporter_changes_nothing(start_router, collector):
    whole = node(collector.endpoint)
    router = start_router(whole)
    command = [str(binary()), "reload", "--cbdir", str(router.directory)]
    right = whole["otlp"]
    for _ in range(2):
        whole["otlp"] = {**right, "ca_certificates": ["absent.pem"]}
        (router.directory / "config.json").write_text(json.dumps(whole))
        told = subprocess.run(command, capture_output=True, text=True)
        assert told.returncode == 1
        assert "absent.pem" in told.stdout + told.stderr
    with join(router) as session:
        session.ask(CALL, SAMPLED, "wamp.session.count")
        session.hear(RESULT)
        assert_child(collector.span(), "call wamp.session.count")


def test_one_trace_over_four_hops(start_router, collector):
    paths = {"/": {"type": "caller", "realm": "realm1", "role": "anonymous", "options": {}}}
    paths["publish"] = {**paths["/"], "type": "publisher"}
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    whole = node(collector.endpoint, amqp(), web)
    joint = {"id": "out", "realm": "realm1", "role": "anonymous", "user": "guest", "vhost": "/"}
    joint.update(type="topic-to-exchange", topic="com.example.topic", exchange="out")
    whole["workers"][0]["joints"] = [joint]
    router = start_router(whole)
    router.await_log(lambda line: line.text == "Joint 'out' is there")
    http = Http(router.address("web"))
    headers = {"traceparent": CONTEXT}
    with connect(router.address("amqp")) as connection:
        channel = connection.channel()
        channel.queue_declare("end")
        channel.queue_bind("end", "out", "#")
        body = json.dumps({"topic": "com.example.topic"}).encode()
        assert http.post("/publish", body, headers).status == 200
        published, routed = collector.named("publish com.example.topic", "publish out")
        assert_child(published, "publish com.example.topic", messaging_system="wamp")
        assert_child(routed, "publish out", messaging_system="amqp", crosstie_vhost="/")
        found = next(iter(channel.consume("end", auto_ack=True)))
        assert found[1].headers["traceparent"] == CONTEXT
        delivered = collector.span()
        assert_child(delivered, "deliver out", messaging_operation_name="deliver")
        assert int(published["startTimeUnixNano"]) <= int(delivered["endTimeUnixNano"])
    with join(router) as callee, ThreadPoolExecutor() as pool:
        callee.register("com.example.traced")
        call = json.dumps({"procedure": "com.example.traced"}).encode()
        answer = pool.submit(http.post, "/", call, headers)
        callee.say(YIELD, callee.hear(INVOCATION)[1], {})
        assert answer.result().status == 200
        assert_child(collector.span(), "call com.example.traced")


def test_messages_of_amqp(start_router, collector):
    router = start_router(node(collector.endpoint, amqp()))
    with connect(router.address("amqp")) as connection:
        channel = connection.channel()
        channel.queue_declare("traced")
        for flags in ("00", "01"):
            headers = {"traceparent": f"00-{TRACE}-{SENDER}-{flags}"}
            # Of several frames, too.
            for body in (b"body", bytes(300_000)):
                properties = pika.BasicProperties(headers=headers)
                channel.basic_publish("", "traced", body, properties)
                assert channel.basic_get("traced", auto_ack=True)[2] == body
        for size in ("4", "300000"):
            for verb in ("publish", "get"):
                sized = {"messaging_message_body_size": size}
                assert_child(collector.span(), f"{verb} traced", **sized)


def test_what_amqp_refuses_or_returns_has_a_reply_code(start_router, collector):
    router = start_router(node(collector.endpoint, amqp()))
    headers = pika.BasicProperties(headers={"traceparent": CONTEXT})
    with connect(router.address("amqp")) as connection:
        channel = connection.channel()
        channel.basic_publish("amq.direct", "nowhere", b"body", headers, mandatory=True)
        published, returned = collector.named("publish amq.direct", "return amq.direct")
        assert_child(published, "publish amq.direct")
        assert_failed(returned, "return amq.direct", "312", "NO_ROUTE")
        for body in (b"body", bytes(300_000)):
            channel = connection.channel()
            channel.basic_publish("absent", "key", body, headers)
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                channel.queue_declare("", exclusive=True)
            why = "NOT_FOUND - no exchange 'absent' in vhost '/'"
            assert_failed(collector.span(), "publish absent", "404", why)


def test_a_caller_has_a_share_of_the_open_spans(start_router, collector):
    router = start_router(node(collector.endpoint))
    with join(router) as caller, join(router) as other, join(router) as callee:
        callee.register("com.example.traced")
        for _ in range(1_025):
            caller.ask(CALL, SAMPLED, "com.example.traced")
        await_true("the last", lambda: router.metric("spans_total", outcome="dropped") == 1)
        other.ask(CALL, SAMPLED, "wamp.session.count")
        other.hear(RESULT)
        assert_child(collector.span(), "call wamp.session.count")


def test_a_collector_that_names_a_time_is_asked_again(start_router, collector):
    router = start_router(node(collector.endpoint))

    def exported(outcome: str) -> float:
        return router.metric("spans_total", outcome=outcome)

    with join(router) as session:
        for number, status in enumerate((503, 429), 1):
            # The second attempt fails, too. A collector that fails, and names no time, has one.
            collector.refusals += [(status, {"Retry-After": "0"})] * 2 + [(status, {})]
            for procedure in ("count", "list"):
                session.ask(CALL, SAMPLED, f"wamp.session.{procedure}")
                session.hear(RESULT)
                failed = 2 * number - (procedure == "count")
                await_true("the failure", lambda failed=failed: exported("failed") == failed)
            collector.refusals += [(status, {"Retry-After": "1"})]
            session.ask(CALL, SAMPLED, "wamp.session.get")
            session.hear(ERROR)
            await_true("the export", lambda number=number: exported("exported") == number)
            names = [collector.span()["name"].rpartition(".")[2] for _ in range(5)]
            assert names == ["count", "count", "list", "get", "get"]
    assert collector.requests.empty()


def test_a_stop_does_not_wait_for_the_time_that_a_collector_names(start_router, collector):
    router = start_router(node(collector.endpoint))
    collector.refusals += [(503, {"Retry-After": "86400"})]
    with join(router) as session:
        session.ask(CALL, SAMPLED, "wamp.session.count")
        session.hear(RESULT)
        assert_child(collector.span(), "call wamp.session.count")
        session.ask(CALL, SAMPLED, "wamp.session.list")
        session.hear(RESULT)
    router.stop()
    for name in ("count", "list"):
        assert_child(collector.span(), f"call wamp.session.{name}")
    assert collector.requests.empty()


# The look-up of a host whose name servers never answer.
def mqtt(name: str, **options: object) -> dict:
    return {"type": "mqtt", "id": name, "endpoint": config.tcp(), "options": options}


def test_mqtt_in_a_realm(start_router, collector):
    joint = {"id": "out", "realm": "realm1", "role": "anonymous", "user": "guest", "vhost": "/"}
    joint.update(type="topic-to-exchange", topic="com.example.topic", exchange="out")
    whole = node(collector.endpoint, amqp(), mqtt("mqtt", realm="realm1"))
    whole["workers"][0]["joints"] = [joint]
    router = start_router(whole)
    router.await_log(lambda line: line.text == "Joint 'out' is there")
    user = [("traceparent", CONTEXT), ("tracestate", "a=1"), ("other", "1")]
    details = {"_traceparent": CONTEXT, "_tracestate": "a=1"}
    with (
        connect(router.address("amqp")) as connection,
        join(router) as session,
        Peer.to(router.address("mqtt")) as client,
    ):
        channel = connection.channel()
        channel.queue_declare("end")
        channel.queue_bind("end", "out", "#")
        client.connect("client")
        session.subscribe("com.example", match="prefix")
        client.publish("com/example/topic", b"1", 1, user_property=user)
        heard = session.hear(EVENT)[3]
        assert details.items() <= heard.items()
        assert "other" not in heard
        published, routed = collector.named("publish com.example.topic", "publish out")
        assert_child(published, "publish com.example.topic", crosstie_realm="realm1")
        assert_child(routed, "publish out", crosstie_vhost="/")
        properties = next(iter(channel.consume("end", auto_ack=True)))[1]
        assert properties.headers["traceparent"] == CONTEXT
        assert properties.headers["tracestate"] == "a=1"
        assert_child(collector.span(), "deliver out")
        # A topic without a URI: the realm decides on the nearest one.
        client.publish("com//example", b"2", 1, user_property=user)
        assert_child(collector.span(), "publish com._.example")
        client.subscribe("com/example/+", qos=1)
        for options in ({}, {"retain": True}):
            session.ask(PUBLISH, {**details, **options}, "com.example.b", ["3"])
            message = client.message()
            assert (message.topic, message.payload) == ("com/example/b", b"3")
            assert message.properties == {"user_property": user[:2]}
            assert_child(collector.span(), "publish com.example.b")
        client.unsubscribe("com/example/+")
        client.subscribe("com/example/#", qos=1)
        retained = client.message()
        assert retained.retain
        assert retained.properties == {"user_property": user[:2]}
        will = Will("com/example/will", b"4", properties={"user_property": user})
        with Peer.to(router.address("mqtt")) as leaving:
            leaving.connect("leaving", will=will)
        assert details.items() <= session.hear(EVENT)[3].items()


def test_mqtt_in_a_vhost(start_router, collector):
    whole = node(collector.endpoint, amqp(), mqtt("mqtt", vhost="/", anonymous_user="guest"))
    whole["workers"][0]["amqp"] = {"users": [{"name": "guest", "password": "guest"}]}
    router = start_router(whole)
    user = [("traceparent", CONTEXT), ("tracestate", "a=1")]
    with connect(router.address("amqp")) as connection, Peer.to(router.address("mqtt")) as client:
        channel = connection.channel()
        channel.queue_declare("end")
        channel.queue_bind("end", "amq.topic", "#")
        client.connect("client")
        client.publish("a/b", b"1", 1, user_property=user)
        properties = next(iter(channel.consume("end", auto_ack=True)))[1]
        assert dict(user).items() <= properties.headers.items()
        for found in collector.named("publish amq.topic", "deliver amq.topic"):
            assert_child(found, found["name"], crosstie_vhost="/")
        channel.cancel()
        client.subscribe("c", qos=1)
        channel.basic_publish("amq.topic", "c", b"2", pika.BasicProperties(headers=dict(user)))
        assert client.message().properties == {"user_property": user}
        collector.named("publish amq.topic", "deliver amq.topic")


def test_a_collector_that_fails_stops_nobody(start_router, collector):
    router = start_router(node(f"{collector.url}/missing"))
    with join(router) as session:
        session.subscribe("com.example.topic")
        options = {**SAMPLED, "exclude_me": False, "acknowledge": True}
        session.ask(PUBLISH, options, "com.example.topic")
        assert {session.hear_any()[0], session.hear_any()[0]} == {PUBLISHED, EVENT}
        await_true("the failure", lambda: router.metric("spans_total", outcome="failed") == 1)
    why = "has not taken 1 spans: it answers 404 Not Found"
    router.await_log(lambda line: line.text.endswith(why))


def test_a_reload_changes_the_collector_and_a_stop_sends_the_last(start_router, collector):
    whole = node(None)
    router = start_router(whole)
    with join(router) as session:
        session.ask(CALL, SAMPLED, "wamp.session.count")
        session.hear(RESULT)
        # Nothing but the stop sends it.
        whole["otlp"] = {"endpoint": collector.endpoint, "interval_ms": 60_000}
        (router.directory / "config.json").write_text(json.dumps(whole))
        command = [str(binary()), "reload", "--cbdir", str(router.directory)]
        subprocess.run(command, check=True, capture_output=True)
        session.ask(CALL, SAMPLED, "wamp.session.list")
        session.hear(RESULT)
    router.stop()
    assert_child(collector.span(), "call wamp.session.list")
    assert not collector.waiting
    assert collector.requests.empty()
