"""Requests that change something: queues, exchanges, bindings, messages, connections.

The statuses and texts are those of RabbitMQ 3.10.8.
"""

from __future__ import annotations

import base64
import json

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker
from rig.waiting import await_true

from mgmt.cases import Api

FETCH = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}


def refused(api: Api, method: str, path: str, body: object = None, user: str = "guest"):
    """Return status, error and reason of a refusal."""
    answer = api.ask(method, path, body, user)
    found = json.loads(answer.body)
    return answer.status, found["error"], found["reason"]


def publish(api: Api, exchange: str, key: str, payload: str = "hello", **changes: object) -> bool:
    """Publish; return whether a queue got the message."""
    body = {"routing_key": key, "properties": {}, "payload": payload, "payload_encoding": "string"}
    answer = api.ask("POST", f"exchanges/%2F/{exchange}/publish", {**body, **changes})
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["routed"]


def fetch(api: Api, queue: str, **changes: object) -> list[dict]:
    """Fetch messages."""
    answer = api.ask("POST", f"queues/%2F/{queue}/get", {**FETCH, **changes})
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def test_queues_are_declared_and_deleted(api):
    path = "queues/%2F/declared"
    assert api.ask("PUT", path, {"durable": "true"}).status == 201
    assert api.ask("PUT", path, {"durable": True}).status == 204
    other = "inequivalent arg 'durable' for queue 'declared' in vhost '/': "
    other += "received 'false' but current is 'true'"
    assert refused(api, "PUT", path, {}) == (400, "bad_request", other)
    publish(api, "amq.default", "declared")
    full = "queue 'declared' in vhost '/' not empty"
    assert refused(api, "DELETE", f"{path}?if-empty=true") == (400, "bad_request", full)
    assert api.ask("DELETE", f"{path}/contents").status == 204
    assert api.json(path)["messages"] == 0
    assert api.ask("DELETE", path).status == 204
    gone = (404, "Object Not Found", "Not Found")
    assert refused(api, "DELETE", path) == gone
    assert refused(api, "DELETE", f"{path}/contents") == gone


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (
            "queues/%2F/bad",
            {"arguments": {"x-message-ttl": "5"}},
            "invalid arg 'x-message-ttl' for queue 'bad' in vhost '/': "
            '"expected integer, got longstr"',
        ),
        (
            "queues/%2F/bad",
            {"arguments": {"x-expires": 0}},
            "invalid arg 'x-expires' for queue 'bad' in vhost '/': {value_zero,0}",
        ),
        ("queues/%2F/bad", {"arguments": {"x": None}}, "null_not_allowed"),
        ("queues/%2F/bad", {"arguments": 5}, "arguments: expected an object, got 5"),
        ("queues/%2F/bad", {"durable": "maybe"}, "not_boolean: maybe"),
        ("queues/%2F/bad", {"node": "rabbit@x"}, "Node rabbit@x could not be contacted"),
        (
            f"queues/%2F/{'x' * 256}",
            {},
            "expected a name of at most 255 octets, got 256",
        ),
        ("exchanges/%2F/bad", {"type": "nope"}, "invalid exchange type 'nope'"),
        (
            "exchanges/%2F/amq.topic",
            {"type": "direct", "durable": True},
            "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': "
            "received 'direct' but current is 'topic'",
        ),
        ("queues/%2F/bad", b"[1]", "not_json"),
        ("queues/%2F/bad", b"{", "not_json"),
        (
            "queues/%2F/bad",
            b'"{}"',
            "invalid payload: the request body JSON-decoded to a string. "
            "Is the input doubly-JSON-encoded?",
        ),
    ],
)
def test_bad_declarations_are_refused(api, path, body, expected):
    assert refused(api, "PUT", path, body) == (400, "bad_request", expected)


def test_rights_are_those_of_the_user(api):
    access = (401, "not_authorised", "Access refused.")
    assert refused(api, "PUT", "queues/%2F/amq.mine", {}) == access
    assert refused(api, "PUT", "queues/%2F/x-mine", {}, "management") == access
    assert api.ask("PUT", "queues/%2F/mine", {}, "management").status == 201
    assert api.ask("DELETE", "queues/%2F/mine", user="management").status == 204
    # The administrator reads every vhost, and needs permissions to declare.
    assert refused(api, "PUT", "queues/v2/mine", {}, "administrator") == access
    hidden = (401, "not_authorised", "User not authorised to access virtual host")
    assert refused(api, "PUT", "queues/v2/mine", {}, "management") == hidden
    absent = (404, "not_found", "vhost_not_found")
    assert refused(api, "PUT", "queues/nope/mine", {}) == absent
    assert refused(api, "PUT", "exchanges/%2F/amq.default", {}) == access
    assert refused(api, "DELETE", "exchanges/%2F/amq.topic") == access


def test_exchanges_and_bindings_come_and_go(api):
    assert api.ask("PUT", "queues/%2F/bound", {}).status == 201
    assert api.ask("PUT", "exchanges/%2F/source", {"auto_delete": "false"}).status == 201
    assert api.ask("PUT", "exchanges/%2F/source", {}).status == 204
    path = "bindings/%2F/e/source/q/bound"
    for body, location in (
        ({"routing_key": "a.**b+~c%"}, "bound/a.%252A%252Ab%252B%257Ec%2525"),
        ({"routing_key": "k", "arguments": {"x": 1}}, "bound/k~9nmLZQ"),
        ({}, "bound/~"),
        ({}, "bound/~"),
    ):
        answer = api.ask("POST", path, body)
        assert (answer.status, answer.header("location")) == (201, location)
    assert len(api.json(path)) == 3
    assert api.json(f"{path}/k~9nmLZQ")["arguments"] == {"x": 1}
    assert api.ask("DELETE", f"{path}/k~9nmLZQ").status == 204
    gone = (404, "Object Not Found", "Not Found")
    assert refused(api, "DELETE", f"{path}/k~9nmLZQ") == gone
    no_queue = (404, "not_found", "no queue 'nope' in vhost '/'")
    assert refused(api, "POST", "bindings/%2F/e/source/q/nope", {}) == no_queue
    no_exchange = (404, "not_found", "no exchange 'nope' in vhost '/'")
    assert refused(api, "POST", "bindings/%2F/e/nope/q/bound", {}) == no_exchange
    access = (401, "not_authorised", "Access refused.")
    assert refused(api, "POST", "bindings/%2F/e/amq.default/q/bound", {}) == access
    to_exchange = api.ask("POST", "bindings/%2F/e/source/e/amq.topic", {"routing_key": "z"})
    assert to_exchange.status == 201
    (found,) = api.json("exchanges/%2F/amq.topic/bindings/destination")
    assert (found["source"], found["properties_key"]) == ("source", "z")
    used = "exchange 'source' in vhost '/' in use"
    unused = "exchanges/%2F/source?if-unused=true"
    assert refused(api, "DELETE", unused) == (400, "bad_request", used)
    assert api.ask("DELETE", "exchanges/%2F/source").status == 204
    assert api.ask("DELETE", "queues/%2F/bound").status == 204


def test_messages_are_published_and_fetched(api):
    api.ask("PUT", "queues/%2F/messages", {"durable": True})
    assert not publish(api, "amq.topic", "nowhere")
    properties = {
        "delivery_mode": 2,
        "headers": {"a": 1, "b": "x", "c": [1], "d": {"e": True}, "f": 1.5},
        "content_type": "text/plain",
        "timestamp": 123,
    }
    assert publish(api, "amq.default", "messages", properties=properties)
    # The default exchange may be an empty segment.
    assert publish(api, "", "messages", "naïve")
    (first,) = fetch(api, "messages", ackmode="ack_requeue_true")
    assert first == {
        "payload_bytes": 5,
        "redelivered": False,
        "exchange": "",
        "routing_key": "messages",
        "message_count": 1,
        "properties": properties,
        "payload": "hello",
        "payload_encoding": "string",
    }
    both = fetch(api, "messages", count="-1", truncate=3, ackmode="reject_requeue_true")
    assert both[0]["payload"] == "hel"
    cut = base64.b64encode("naïve".encode()[:3]).decode()
    assert (both[1]["payload"], both[1]["payload_encoding"]) == (cut, "base64")
    assert [message["redelivered"] for message in both] == [True, False]
    (encoded,) = fetch(api, "messages", encoding="base64")
    assert base64.b64decode(encoded["payload"]) == b"hello"
    (last,) = fetch(api, "messages", count=5)
    assert (last["payload"], last["properties"], last["message_count"]) == ("naïve", [], 0)
    assert fetch(api, "messages") == []
    api.ask("DELETE", "queues/%2F/messages")


@pytest.mark.parametrize(
    ("changes", "status", "error", "expected"),
    [
        ({"ackmode": "x"}, 400, "bad_request", None),
        ({"count": "x"}, 400, "bad_request", "not_integer: x"),
        (
            {"encoding": "zip"},
            400,
            "bad_request",
            "Unsupported encoding. Please use auto or base64.",
        ),
        ({}, 404, "not_found", "NOT_FOUND - no queue 'nope' in vhost '/'"),
    ],
)
def test_bad_fetches_are_refused(api, changes, status, error, expected):
    found = refused(api, "POST", "queues/%2F/nope/get", {**FETCH, **changes})
    assert found[:2] == (status, error)
    assert expected in (None, found[2])


def test_missing_keys_are_named(api):
    keys = "[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]"
    assert refused(api, "POST", "queues/%2F/nope/get", {}) == (400, "bad_request", keys)
    keys = "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n"
    keys += " {key_missing,payload_encoding}]"
    path = "exchanges/%2F/amq.topic/publish"
    assert refused(api, "POST", path, {}) == (400, "bad_request", keys)


@pytest.mark.parametrize(
    ("exchange", "changes", "expected"),
    [
        ("nope", {}, "404 NOT_FOUND - no exchange 'nope' in vhost '/'"),
        (
            "amq.topic",
            {"properties": {"user_id": "nope"}},
            "406 PRECONDITION_FAILED - user_id property set to 'nope' but authenticated user was "
            "'guest'",
        ),
        ("amq.topic", {"properties": {"delivery_mode": "x"}}, "not_int: delivery_mode"),
        ("amq.topic", {"properties": {"headers": {"x": None}}}, "null_not_allowed"),
        ("amq.topic", {"payload": 5}, "payload_not_string"),
        ("amq.topic", {"payload": "!!", "payload_encoding": "base64"}, "not_base64"),
        ("amq.topic", {"payload_encoding": "x"}, "unsupported_encoding: x"),
    ],
)
def test_bad_publications_are_refused(api, exchange, changes, expected):
    body = {"routing_key": "k", "properties": {}, "payload": "x", "payload_encoding": "string"}
    path = f"exchanges/%2F/{exchange}/publish"
    assert refused(api, "POST", path, {**body, **changes}) == (400, "bad_request", expected)


def test_connections_are_closed_with_a_reason(api):
    await_true("no other connection is left", lambda: api.json("connections") == [])
    connection = api.connect()
    (found,) = api.json("connections")
    name = found["name"].replace(" ", "%20").replace(">", "%3E")
    headers = {"X-Reason": "because"}
    assert api.ask("DELETE", f"connections/{name}", headers=headers).status == 204
    with pytest.raises(ConnectionClosedByBroker) as closed:
        connection.process_data_events(10)
    assert (closed.value.reply_code, closed.value.reply_text) == (
        320,
        "CONNECTION_FORCED - because",
    )
    await_true("it is not listed", lambda: api.json("connections") == [])
    assert api.ask("DELETE", f"connections/{name}").status == 404


def test_connections_of_a_user_are_closed(api):
    connection = api.connect("management")
    assert api.ask("DELETE", "connections/username/guest").status == 204
    connection.process_data_events(0)
    assert api.ask("DELETE", "connections/username/management").status == 204
    with pytest.raises(ConnectionClosedByBroker) as closed:
        connection.process_data_events(10)
    expected = "CONNECTION_FORCED - Closed via management plugin"
    assert closed.value.reply_text == expected


def test_a_request_leaves_no_connection(api):
    api.ask("PUT", "queues/%2F/quick", {})
    api.ask("DELETE", "queues/%2F/quick")
    await_true("none is listed", lambda: api.json("connections") == [])
    await_true(
        "the vhost has none either",
        lambda: api.json("overview")["object_totals"]["connections"] == 0,
    )


def test_another_clients_exclusive_queue_is_locked(api):
    connection = api.connect()
    channel = connection.channel()
    channel.queue_declare("locked", exclusive=True)
    answer = refused(api, "DELETE", "queues/%2F/locked")
    assert answer[:2] == (400, "bad_request")
    assert answer[2].startswith("cannot obtain exclusive access to locked queue 'locked'")
    answer = refused(api, "POST", "queues/%2F/locked/get", FETCH)
    assert answer[2].startswith("405 RESOURCE_LOCKED - cannot obtain exclusive access")
    assert api.json("queues/%2F/locked")["owner_pid_details"]["peer_host"] == "127.0.0.1"
    connection.close()


def test_lists_of_many_queues_are_complete(api):
    connection = pika.BlockingConnection(
        pika.ConnectionParameters(*api.amqp, "v2", pika.PlainCredentials("guest", "guest"))
    )
    channel = connection.channel()
    names = [f"many-{number:03}" for number in range(300)]
    for name in names:
        channel.queue_declare(name, exclusive=True)
    listed = api.json("queues/v2?columns=name")
    assert [queue["name"] for queue in listed] == names
    backwards = api.json("queues/v2?columns=name&sort=name&sort_reverse=true")
    assert [queue["name"] for queue in backwards] == names[::-1]
    page = api.json("queues/v2?page=3&page_size=100&columns=name")
    assert [queue["name"] for queue in page["items"]] == names[200:]
    connection.close()
