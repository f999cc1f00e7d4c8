"""Procedures and targets: Autobahn calls servers of oslo.messaging, whose clients call back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pika
import pytest
from rig.puppet import WampError, failure, result
from rig.rawsocket import RawSocket
from rig.session import CALL, INVOCATION, RESULT, YIELD
from rig.waiting import await_true

from joined.conftest import EXCHANGE, Joined, node


def outward(topic: str, **more: object) -> dict:
    """Return a joint of the procedures below `com.real.` to a topic."""
    return {
        "type": "procedure-to-target",
        "procedure": "com.real.",
        "match": "prefix",
        "exchange": EXCHANGE,
        "topic": topic,
        **more,
    }


def inward(topic: str, **more: object) -> dict:
    """Return a joint of a topic to the procedures below `com.component.`."""
    return {
        "type": "target-to-procedure",
        "procedure": "com.component.{method}",
        "exchange": EXCHANGE,
        "topic": topic,
        "server": "joint",
        **more,
    }


def refused(session, procedure: str, *args: object, **kwargs: object) -> WampError:
    """Return the error that a call comes to."""
    return failure(session.start_call(procedure, *args, **kwargs))


def test_autobahn_calls_a_server_of_oslo(joined, oslo_server, topic):
    router = joined(outward(topic, arguments=["first"], context={"tenant": "t"}))
    oslo_server(router)
    session = router.session()
    said = session.call("com.real.echo", "one", b=[1, 2.5, None, "ä"]).args[0]
    assert said["args"] == {"first": "one", "b": [1, 2.5, None, "ä"]}
    assert said["context"]["tenant"] == "t"
    assert said["context"]["wamp_caller"] == session.id
    assert said["context"]["wamp_caller_authrole"] == "anonymous"
    assert session.call("com.real.sleep", timeout=0, reply={"a": 1}).args == [{"a": 1}]
    # Null, which Autobahn does not tell from nothing.
    assert session.call("com.real.sink").args == []


def test_an_exception_is_an_error(joined, oslo_server, topic):
    errors = [{"uri": "com.real.error.odd", "exception": "builtins.TypeError"}]
    router = joined(outward(topic, errors=errors, tracebacks=True))
    oslo_server(router)
    session = router.session()
    error = refused(session, "com.real.fail")
    assert (error.uri, error.arguments) == ("wamp.error.runtime_error", ["fail method invoked!"])
    exception = error.kwargs["exception"]
    assert (exception["class"], exception["module"]) == ("RuntimeError", "builtins")
    assert "fail method invoked!" in "".join(exception["traceback"])
    assert refused(session, "com.real.nothing").uri == "wamp.error.no_such_procedure"
    # The error of the server's own float().
    error = refused(session, "com.real.sleep", timeout="soon")
    assert error.uri == "oslo.error.builtins.ValueError"
    assert refused(session, "com.real.sleep", timeout=[]).uri == "com.real.error.odd"
    error = refused(session, "com.real.echo", 1)
    assert error.uri == "wamp.error.invalid_argument"
    assert "positional" in error.arguments[0]


def test_a_target_without_a_server_fails_at_once(joined, topic):
    router = joined(outward(topic))
    error = refused(router.session(), "com.real.echo")
    assert error.uri == "crosstie.error.no_such_target"
    assert topic in error.arguments[0]


def bound_queue(router: Joined, topic: str):
    """Return a channel, and declare what a server of `topic` would have, without one."""
    channel = router.channel()
    channel.exchange_declare(EXCHANGE, "topic")
    channel.queue_declare(topic)
    channel.queue_bind(topic, EXCHANGE, topic)
    return channel


def test_a_server_that_does_not_answer_is_waited_for_so_long(joined, topic):
    router = joined(outward(topic, timeout_ms=300, pending_max=1))
    channel = bound_queue(router, topic)
    session = router.session()
    # Its place is free each time.
    for _ in range(2):
        assert refused(session, "com.real.echo").uri == "wamp.error.timeout"
    # Requests without a waiting call leave their queue.
    waiting = lambda: channel.queue_declare(topic, passive=True).method.message_count  # noqa: E731
    await_true("the requests expire", lambda: waiting() == 0)


def test_only_so_many_calls_wait(joined, topic):
    router = joined(outward(topic, pending_max=1))
    bound_queue(router, topic)
    session = router.session()
    first = session.start_call("com.real.echo", a=1)
    assert refused(session, "com.real.echo").uri == "crosstie.error.joint_pending_max"
    session.cancel(first, "kill")
    assert failure(first).uri == "wamp.error.canceled"


def test_a_call_is_cancelled(joined, oslo_server, topic):
    router = joined(outward(topic, pending_max=1))
    oslo_server(router)
    session = router.session()
    call = session.start_call("com.real.sleep", timeout=1, reply="late")
    session.cancel(call, "kill")
    assert failure(call).uri == "wamp.error.canceled"
    # Its place is free, and its late reply is dropped.
    assert session.call("com.real.sleep", timeout=1, reply="in time").args == ["in time"]
    await_true("the late reply is dropped", lambda: router.counted("dropped") == 1)


def test_a_cast_is_answered_by_the_broker(joined, oslo_server, topic):
    one = outward(topic, mode="cast")
    every = outward(topic, mode="cast", fanout=True, procedure="com.every.")
    nobody = outward(topic, mode="cast", procedure="com.nobody.", server="nobody")
    router = joined(one, every, nobody)
    servers = [oslo_server(router, name) for name in ("one", "two")]
    session = router.session()
    assert session.call("com.every.sink", n=0).args == []
    for server in servers:
        assert json.loads(server.line()) == {"n": 0}
    assert session.call("com.real.sink", n=1).args == []
    assert refused(session, "com.nobody.sink").uri == "crosstie.error.no_such_target"


def test_callers_are_named_to_the_broker(joined, topic):
    router = joined(outward(topic, impersonate=True, mode="cast"))
    channel = bound_queue(router, topic)
    session = router.session()
    session.call("com.real.sink")
    _, properties, body = channel.basic_get(topic, auto_ack=True)
    message = json.loads(json.loads(body)["oslo.message"])
    assert properties.user_id == session.details["authid"] == message["_context_wamp_caller_authid"]
    assert properties.headers["crosstie-hops"] == 1


@pytest.fixture
def component(joined, topic):
    """A router with a joint of `topic` to a component of Autobahn's."""

    def start(**more: object) -> tuple[Joined, object]:
        router = joined(inward(topic, **more))
        session = router.session()
        session.register("com.component.echo", {"do": "echo"})
        return router, session

    return start


def test_oslo_calls_a_component_of_autobahn(component, oslo_client):
    router, _ = component(context_argument="context", properties_argument="amqp")
    client = oslo_client(router)
    said = client.ask(method="echo", args={"a": [1, "ä", None]})["result"]
    assert said["args"] == []
    assert said["kwargs"]["a"] == [1, "ä", None]
    assert said["kwargs"]["context"]["who"] == "peer"
    assert said["kwargs"]["amqp"]["exchange"] == EXCHANGE
    for target in ({"server": "joint"}, {"fanout": True}):
        assert client.ask(method="echo", target=target, cast=True)["result"] is None
    await_true("the casts are called", lambda: router.counted("passed") == 3)


def test_an_error_is_an_exception(component, oslo_client):
    router, session = component(
        errors=[{"uri": "com.component.error.bad", "exception": "builtins.ValueError"}]
    )
    session.register(
        "com.component.fail",
        {"do": "raise", "uri": "com.component.error.other", "args": ["it broke"], "kwargs": {}},
    )
    session.register(
        "com.component.bad",
        {"do": "raise", "uri": "com.component.error.bad", "args": ["bad"], "kwargs": {}},
    )
    client = oslo_client(router)
    failed = client.ask(method="fail")
    assert failed["failure"] == "com.component.error.other"
    assert client.ask(method="bad")["failure"].startswith("ValueError")
    failed = client.ask(method="nothing")
    assert failed["failure"] == "NoSuchMethod"
    assert "Endpoint does not support RPC method nothing" in failed["text"]
    assert client.ask(method="not a uri")["failure"] == "NoSuchMethod"
    assert client.ask(method="echo", target={"version": "2.0"})["failure"] == "UnsupportedVersion"
    assert client.ask(method="echo", target={"namespace": "n"})["failure"] == "UnsupportedVersion"


def test_a_component_that_does_not_answer_is_waited_for_so_long(component, oslo_client):
    router, session = component(timeout_ms=200)
    session.register("com.component.hold", {"do": "hold"})
    failed = oslo_client(router).ask(method="hold")
    assert failed["failure"] == "MessagingTimeout"
    assert session.next("invoked")


def test_requests_beyond_the_bound_wait_in_their_queue(component, topic):
    router, session = component(pending_max=2, prefetch=1)
    session.register("com.component.hold", {"do": "hold"})
    channel = router.channel()
    for number in range(5):
        body = json.dumps({"method": "hold", "args": {"number": number}})
        channel.basic_publish(EXCHANGE, topic, body.encode())
    held = [session.next("invoked") for _ in range(2)]
    # One is with the joint and waits for its turn, the others for it.
    count = lambda: channel.queue_declare(topic, passive=True).method.message_count  # noqa: E731
    await_true("two wait", lambda: count() == 2)
    for one in held:
        session.release(one["invocation"])
    held = [session.next("invoked") for _ in range(2)]
    for one in held:
        session.release(one["invocation"])
    session.release(session.next("invoked")["invocation"])
    await_true("all are done", lambda: router.counted("passed") == 5)


def test_both_ways_at_once(joined, oslo_server, oslo_client, topic):
    back = inward(f"{topic}-back")
    router = joined(outward(topic), back)
    oslo_server(router)
    session = router.session()
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(lambda n=n: session.call("com.real.echo", n=n).args[0]["args"]["n"])
            for n in range(100)
        ]
        assert [call.result() for call in calls] == list(range(100))


def await_again(router: Joined, since: int) -> None:
    """Wait until the first joint is there again."""
    router.router.await_log(lambda line: line.text == "Joint 'joint_0' is there", since)


def test_a_joint_whose_session_is_killed_comes_back(joined, oslo_server, topic):
    router = joined(outward(topic))
    oslo_server(router)
    session = router.session()
    call = session.start_call("com.real.sleep", timeout=30)
    assert session.call("com.real.echo").args
    seen = len(router.router.log)
    session.call("wamp.session.kill_by_authid", "joint_0")
    assert failure(call).uri == "wamp.error.canceled"
    await_again(router, seen)
    assert session.call("com.real.echo", a=1).args[0]["args"] == {"a": 1}


def test_a_joint_whose_exchange_is_deleted_comes_back(joined, topic):
    router = joined(outward(topic))
    session = router.session()
    router.channel().exchange_delete(EXCHANGE)
    seen = len(router.router.log)
    assert refused(session, "com.real.echo").uri == "crosstie.error.target_unavailable"
    await_again(router, seen)
    assert refused(session, "com.real.echo").uri == "crosstie.error.no_such_target"


def test_a_joint_whose_queue_is_deleted_comes_back(component, oslo_client, topic):
    router, _ = component()
    seen = len(router.router.log)
    router.channel().queue_delete(topic)
    await_again(router, seen)
    said = oslo_client(router).ask(method="echo", args={"a": 1})
    assert said["result"] == {"args": [], "kwargs": {"a": 1}}


def test_a_joint_that_its_user_may_not_have_is_not_there(start_router, topic):
    configuration = node(inward(topic, user="weak"))
    router = start_router(configuration)
    router.await_log(lambda line: "joint_0" in line.text and "access to exchange" in line.text)


def test_pika_is_a_server_without_an_envelope(joined, topic):
    """Replies without an envelope, in two parts, as servers of old send them."""
    router = joined(outward(topic))
    channel = bound_queue(router, topic)
    call = router.session().start_call("com.real.anything")
    requests: list = []

    def has_come() -> bool:
        method, _, body = channel.basic_get(topic, auto_ack=True)
        if method:
            requests.append(json.loads(json.loads(body)["oslo.message"]))
        return bool(requests)

    await_true("the request comes", has_come)
    (request,) = requests
    for reply in ({"result": 7, "ending": False}, {"result": None, "ending": True}):
        said = {"_msg_id": request["_msg_id"], "failure": None, **reply}
        channel.basic_publish("", request["_reply_q"], json.dumps(said).encode())
    assert result(call).args == [7]
    # A message that is no reply is dropped.
    for body in (b"[", b"{}", b"\xff", json.dumps({"_msg_id": "x"}).encode()):
        channel.basic_publish("", request["_reply_q"], body, pika.BasicProperties(expiration="1"))
    await_true("it is dropped", lambda: router.counted("dropped") == 4)


def test_a_call_keeps_its_trace(joined, topic):
    parent = {"_traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    router = joined(outward(topic), inward(topic))
    address = router.router.address("tcp")
    with (
        RawSocket.tcp(address).shake_hands().join() as caller,
        RawSocket.tcp(address).shake_hands().join() as callee,
    ):
        callee.register("com.component.echo")
        caller.say(CALL, 1, parent, "com.real.echo")
        invocation = callee.hear(INVOCATION)
        assert parent.items() <= invocation[3].items()
        callee.say(YIELD, invocation[1], {}, ["done"])
        assert caller.hear(RESULT)[3] == ["done"]
