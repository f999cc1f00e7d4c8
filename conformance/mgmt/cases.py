"""Requests to the management API, which RabbitMQ and Crosstie answer alike.

`prepare` makes the same objects in either. A case is compared by its status, and by the shape of
its body: keys and types. Bodies of refusals are compared as they are.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from urllib.parse import quote

import pika
from pika.adapters.blocking_connection import BlockingChannel
from rig.http import Answer, Http

# Name: tags. The password is the name.
USERS = {
    "guest": ["administrator"],
    "management": ["management"],
    "monitoring": ["monitoring"],
    "policymaker": ["policymaker"],
    "administrator": ["administrator"],
    "plain": [],
}
# Of a page that the configuration allows.
ORIGIN = "https://app.example"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
VHOSTS = {
    "/": {
        "guest": ALL,
        "management": {"configure": "^m", "write": "^m", "read": "^m"},
        "plain": {"configure": "", "write": "", "read": ""},
    },
    "v2": {"guest": ALL},
}


@dataclass
class Api:
    """A management API and the broker behind it."""

    http: Http
    amqp: tuple[str, int]

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        user: str | None = "guest",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Ask below `/api`; a body that is not bytes is sent as JSON."""
        given = dict(headers or {})
        if user is not None:
            secret = base64.b64encode(f"{user}:{user}".encode()).decode()
            given["Authorization"] = f"Basic {secret}"
        if body is None:
            octets = b""
        elif isinstance(body, bytes):
            octets = body
        else:
            octets = json.dumps(body).encode()
            given.setdefault("Content-Type", "application/json")
        return self.http.ask(method, f"/api/{path}", given, octets)

    def json(self, path: str, user: str = "guest") -> object:
        """Return what a GET returns."""
        answer = self.ask("GET", path, user=user)
        assert answer.status == 200, (path, answer.status, answer.body)
        return json.loads(answer.body)

    def connect(self, user: str = "guest", vhost: str = "/") -> pika.BlockingConnection:
        """Return a connection of pika's."""
        credentials = pika.PlainCredentials(user, user)
        properties = {"connection_name": "the client"}
        return pika.BlockingConnection(
            pika.ConnectionParameters(*self.amqp, vhost, credentials, client_properties=properties)
        )


@dataclass(frozen=True)
class Case:
    """A request that changes no object."""

    path: str
    user: str | None = "guest"
    method: str = "GET"
    accept: str = ""
    # Other headers, and a body.
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None

    @property
    def name(self) -> str:
        """Return how answers name it."""
        words = [f"{self.method} {self.path} as {self.user}"]
        words += [f"accept {self.accept}"] if self.accept else []
        words += [f"{name} {value}" for name, value in self.headers]
        words += [f"with {self.body}"] if self.body is not None else []
        return " ".join(words)


def prepare(api: Api) -> pika.BlockingConnection:
    """Make the objects that the cases read; return a connection with a channel and a consumer."""

    def put(path: str, body: dict) -> None:
        answer = api.ask("PUT", path, body)
        assert answer.status in (201, 204), (path, answer.status, answer.body)

    put("queues/%2F/m1", {"durable": True, "arguments": {"x-max-length": 10}})
    put("queues/%2F/x1", {"durable": True})
    put("queues/v2/m1", {"durable": True})
    put("queues/%2F/quorum", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    put("exchanges/%2F/e1", {"type": "topic", "durable": True})
    for key, arguments in (("a.#", {}), ("", {"x": 1})):
        binding = {"routing_key": key, "arguments": arguments}
        assert api.ask("POST", "bindings/%2F/e/e1/q/m1", binding).status == 201
    message = {
        "routing_key": "m1",
        "properties": {},
        "payload": "hello",
        "payload_encoding": "string",
    }
    assert api.ask("POST", "exchanges/%2F/amq.default/publish", message).status == 200
    policy = {"pattern": "^x1$", "definition": {"max-length": 100}, "priority": 1}
    put("policies/%2F/one", {**policy, "apply-to": "queues"})
    put("operator-policies/%2F/bound", {"pattern": "^x1$", "definition": {"expires": 900000}})
    put("vhost-limits/v2/max-queues", {"value": 500})
    put("user-limits/management/max-channels", {"value": 50})
    topics = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    put("topic-permissions/%2F/management", topics)
    connection = api.connect()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=5)
    channel.queue_declare("consumed", exclusive=True)
    channel.basic_consume("consumed", lambda *_: None, consumer_tag="tag")
    pass_messages(channel)
    return connection


def pass_messages(channel: BlockingChannel) -> None:
    """Pass messages in each way that has a counter."""
    channel.queue_declare("counted", durable=True)
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("amq.direct", "nowhere", b"dropped")
        channel.basic_publish("", "counted", b"passes")
    channel.basic_publish("", "consumed", b"is delivered")
    method, *_ = channel.basic_get("counted")
    channel.basic_reject(method.delivery_tag)
    method, *_ = channel.basic_get("counted")
    channel.basic_ack(method.delivery_tag)
    channel.basic_get("counted", auto_ack=True)
    channel.basic_get("counted", auto_ack=True)
    assert channel.basic_get("counted") == (None, None, None)


def names(api: Api) -> dict[str, str]:
    """Return the names that differ between brokers, encoded for a path."""
    (connection,) = api.json("connections")
    return {
        "{node}": quote(api.json("overview")["node"], safe=""),
        "{connection}": quote(connection["name"], safe=""),
        "{channel}": quote(f"{connection['name']} (1)", safe=""),
        "{port}": str(api.amqp[1]),
    }


LISTS = (
    "overview",
    "whoami",
    "nodes",
    "vhosts",
    "connections",
    "channels",
    "consumers",
    "exchanges",
    "queues",
    "bindings",
    "users",
    "permissions",
    "definitions",
    "feature-flags",
    "cluster-name",
    "extensions",
    "auth/attempts/{node}",
    "health/checks/alarms",
    "vhosts/%2F",
    "vhosts/v2",
    "vhosts/v2/connections",
    "vhosts/v2/channels",
    "vhosts/%2F/permissions",
    "queues/%2F",
    "queues/v2",
    "queues/v2/m1",
    "queues/%2F/x1",
    "queues/v2/m1/bindings",
    "exchanges/%2F",
    "exchanges/v2",
    "exchanges/v2/amq.topic",
    "exchanges/v2/amq.topic/bindings/source",
    "bindings/v2",
    "consumers/v2",
    "users/management",
    "users/guest/permissions",
    "users/without-permissions",
    "permissions/%2F/guest",
    "definitions/v2",
    "healthchecks/node",
    "aliveness-test/v2",
    "policies",
    "policies/v2",
    "operator-policies",
    "topic-permissions",
    "parameters",
    "global-parameters",
    "vhost-limits",
    "vhost-limits/v2",
    "user-limits",
    "user-limits/guest",
    "all-configuration",
    "nodes/{node}/memory",
    "auth/attempts/{node}/source",
)
SINGLE = (
    "auth",
    "queues/%2F/m1",
    "queues/%2F/quorum",
    "queues/%2F/consumed",
    "queues/%2F/counted",
    "queues/%2F/counted?columns=message_stats.ack,messages_details.rate",
    "queues/%2F/counted?columns=message_stats.publish_details.rate",
    "queues/%2F/counted?columns=message_stats.nope",
    "exchanges/%2F/amq.direct",
    "overview?columns=churn_rates.queue_created,message_stats.publish",
    "vhosts/%2F?columns=message_stats.deliver_get,recv_oct",
    "queues/",
    "queues?columns=name,messages",
    "queues?columns=nope",
    "queues?columns=arguments.x-max-length",
    "queues?sort=name&sort_reverse=true&columns=name",
    "queues?page=1",
    "queues?page=1&page_size=2&name=M&columns=name",
    "queues?page=1&name=%5Em&use_regex=true&columns=name",
    "queues?page=1&name=zz",
    "queues?page=9&page_size=2",
    "queues?page=0",
    "queues?page=1&page_size=501",
    "queues?page=1&page_size=0",
    "queues?page=x",
    "queues?page=",
    "queues?page=1&name=(&use_regex=true",
    "queues?page_size=2&columns=name",
    "queues?disable_stats=true",
    "queues?disable_stats=true&enable_queue_totals=true",
    "queues/nope",
    "queues/%2F/nope",
    "queues/nope/m1",
    "queues/%2F/%zz",
    "queues/%2F/nope/bindings",
    "vhosts?page=1&page_size=1&columns=name",
    "users?page=1&columns=name",
    "connections?page=1",
    "channels?page=1",
    "exchanges?page=1&name=amq.t",
    "exchanges/%2F/e1",
    "exchanges/%2F/amq.default",
    "exchanges/%2F/nope",
    "exchanges/%2F/?columns=name",
    "exchanges/%2F/e1/bindings/source",
    "exchanges/%2F/e1/bindings/destination",
    "exchanges/%2F/nope/bindings/source",
    "bindings/%2F/e/e1/q/m1",
    "bindings/%2F/e/e1/q/m1/a.%2523",
    "bindings/%2F/e/e1/q/m1/~9nmLZQ",
    "bindings/%2F/e/e1/q/m1/nope",
    "bindings/%2F/e/amq.topic/q/nope",
    "bindings/%2F/e/amq.default/q/m1/m1",
    "bindings/nope",
    "nodes/{node}",
    "nodes/nope",
    "nodes/{node}/memory/relative",
    "nodes/{node}/memory/ets",
    "nodes/{node}/memory/ets/relative",
    "nodes/{node}/memory/ets/management",
    "nodes/{node}/memory/ets/management/relative",
    "nodes/{node}/memory/nope",
    "nodes/nope/memory",
    "nodes/nope/memory/ets",
    "connections/{connection}",
    "connections/{connection}/channels",
    "connections/nope",
    "connections/username/guest",
    "channels/{channel}",
    "channels/nope",
    "consumers/nope",
    "vhosts/nope",
    "vhosts/nope/connections",
    "users/nope",
    "users/nope/permissions",
    "permissions/%2F/nope",
    "permissions/nope/guest",
    "definitions/nope",
    "policies/%2F/one",
    "policies/%2F/nope",
    "policies/nope",
    "operator-policies/%2F/bound",
    "topic-permissions/%2F/management",
    "topic-permissions/%2F/plain",
    "vhosts/%2F/topic-permissions",
    "users/management/topic-permissions",
    "parameters/vhost-limits",
    "parameters/vhost-limits/v2",
    "parameters/nope",
    "global-parameters/nope",
    "health/checks/local-alarms",
    "health/checks/virtual-hosts",
    "health/checks/port-listener/{port}",
    "health/checks/port-listener/1",
    "health/checks/port-listener/x",
    "health/checks/protocol-listener/amqp",
    "health/checks/protocol-listener/AMQP091",
    "health/checks/protocol-listener/mqtt",
    "health/checks/certificate-expiration/1/weeks",
    "health/checks/certificate-expiration/x/weeks",
    "health/checks/certificate-expiration/1/foo",
    "health/checks/node-is-quorum-critical",
    "health/checks/node-is-mirror-sync-critical",
    "health/checks/ready-to-serve-clients",
    "deprecated-features",
    "aliveness-test/%2F",
    "aliveness-test/nope",
    "nope",
    "",
)
METHODS = (
    ("DELETE", "whoami"),
    ("POST", "queues"),
    ("PATCH", "queues/%2F/m1"),
    ("OPTIONS", "queues/%2F/m1"),
    ("OPTIONS", "queues/%2F/m1/get"),
    ("OPTIONS", "queues/%2F/m1/contents"),
    ("OPTIONS", "bindings/%2F/e/e1/q/m1"),
    ("OPTIONS", "bindings/%2F/e/e1/q/m1/k"),
    ("OPTIONS", "exchanges/%2F/e1/publish"),
    ("OPTIONS", "connections/nope"),
    ("HEAD", "queues"),
    *(
        ("OPTIONS", path)
        for path in (
            *("login", "reset", "reset/{node}", "rebalance/queues", "nodes/{node}/memory"),
            *("nodes/{node}/memory/ets", "vhosts/%2F/start/{node}", "feature-flags/x/enable"),
            *("auth/attempts/{node}/source", "all-configuration"),
        )
    ),
    ("GET", "login"),
    ("GET", "reset"),
    ("GET", "rebalance/queues"),
    ("GET", "vhosts/%2F/start/{node}"),
    ("GET", "feature-flags/quorum_queue/enable"),
    ("DELETE", "auth/attempts/{node}/source"),
    ("POST", "rebalance/queues"),
    ("POST", "vhosts/%2F/start/{node}"),
    ("POST", "vhosts/%2F/start/nope"),
    ("POST", "vhosts/nope/start/{node}"),
    ("PUT", "feature-flags/quorum_queue/enable"),
)
JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
PAGE = (("Origin", ORIGIN),)
# Requests with bodies or headers of their own.
OTHERS = (
    Case("login", None, "POST", headers=FORM, body="username=guest&password=guest"),
    Case("login", None, "POST", headers=FORM, body="username=guest&password=wrong"),
    Case("login", None, "POST", headers=FORM, body="username=nobody&password=wrong"),
    Case("login", None, "POST", headers=FORM, body="username=plain&password=plain"),
    Case("login", None, "POST", headers=FORM, body="username=guest"),
    Case("login", None, "POST", headers=FORM, body=""),
    Case("login", None, "POST", headers=JSON, body='{"username":"guest","password":"guest"}'),
    Case("rebalance/queues", "guest", "POST", headers=JSON, body="{}"),
    Case("rebalance/queues", "monitoring", "POST"),
    Case("vhosts/%2F/start/{node}", "monitoring", "POST"),
    Case("vhosts/%2F/start/{node}", "guest", "POST", headers=JSON, body="{}"),
    Case("feature-flags/quorum_queue/enable", "guest", "PUT", headers=JSON, body="{}"),
    Case("feature-flags/nope/enable", "guest", "PUT", headers=JSON, body="{}"),
    Case("feature-flags/quorum_queue/enable", "monitoring", "PUT", headers=JSON, body="{}"),
    Case("whoami", headers=PAGE),
    Case("nope", headers=PAGE),
    Case("whoami", None, headers=PAGE),
    Case("queues/%2F/m1", headers=PAGE, method="PATCH"),
    Case("queues/%2F/m1", None, "OPTIONS", headers=PAGE),
    Case(
        *("queues/%2F/m1", None, "OPTIONS"),
        headers=(*PAGE, ("Access-Control-Request-Headers", "authorization,content-type")),
    ),
    Case("whoami", headers=(("Origin", "https://other.example"),)),
    Case("whoami", None, "OPTIONS", headers=(("Origin", "https://other.example"),)),
    Case("queues", headers=(("Accept-Encoding", "gzip"),)),
    Case("queues", headers=(("Accept-Encoding", "deflate, gzip;q=0.5, *;q=0"),)),
    Case("queues", headers=(("Accept-Encoding", "gzip;q=0"),)),
    Case("queues", headers=(("Accept-Encoding", "identity"),)),
    Case("whoami", headers=(("Accept-Encoding", "gzip"),)),
    Case("nope", headers=(("Accept-Encoding", "gzip"),)),
)


def cases() -> list[Case]:
    """Return all of them."""
    every = [Case(path, user) for user in USERS for path in LISTS]
    every += [Case(path) for path in SINGLE]
    every += [Case(path, None) for path in ("whoami", "nope", "queues/%2F/m1", "auth")]
    every += [Case("whoami", "nobody")]
    every += [Case(path, method=method) for method, path in METHODS]
    every += OTHERS
    every += [Case("queues", None, "OPTIONS"), Case("whoami", accept="text/html")]
    every += [Case("whoami", accept="text/html, application/json;q=0.5")]
    return [*every, *RESETS]


# The last ones: RabbitMQ forgets its statistics.
RESETS = (
    Case("reset", "monitoring", "DELETE"),
    Case("reset/nope", method="DELETE"),
    Case("reset/{node}", method="DELETE"),
    Case("reset", method="DELETE"),
)
KEPT = (
    *("allow", "www-authenticate", "location", "set-cookie", "content-encoding"),
    *(f"access-control-{name}" for name in ("allow-origin", "allow-credentials", "allow-methods")),
    *(f"access-control-{name}" for name in ("allow-headers", "max-age")),
)


def outcome(api: Api, case: Case, found: dict[str, str]) -> dict:
    """Ask, and return what is compared."""
    path = case.path
    for name, value in found.items():
        path = path.replace(name, value)
    headers = {"Accept": case.accept} if case.accept else {}
    headers |= dict(case.headers)
    given = None if case.body is None else case.body.encode()
    answer = api.ask(case.method, path, given, case.user, headers)
    kept: dict = {"status": answer.status}
    for name in KEPT:
        if value := answer.header(name):
            kept[name] = value
    if not answer.body:
        return kept
    octets = answer.body
    if answer.header("content-encoding") == "gzip":
        octets = gzip.decompress(octets)
    body = json.loads(octets)
    for name, value in found.items():
        body = replaced(body, value, name)
    kept["body"] = shape(body) if answer.status == 200 else body
    return kept


def replaced(value: object, old: str, new: str) -> object:
    """Replace a name in all texts, and its number."""
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return new if str(value) == old and not isinstance(value, bool) else value


# Objects with keys of the client's own.
FREE = {"arguments", "client_properties", "cluster_state", "socket_opts", "value"}


def shape(value: object) -> object:
    """Return keys and types; the elements of a list are one."""
    if isinstance(value, dict):
        return {
            key: "free" if key in FREE and isinstance(item, dict | list) else shape(item)
            for key, item in sorted(value.items())
        }
    if isinstance(value, list):
        merged: object = "none"
        for item in value:
            merged = merge(merged, shape(item))
        return [merged]
    if value is None:
        return "null"
    return {bool: "boolean", int: "int", float: "float", str: "text"}[type(value)]


def merge(one: object, other: object) -> object:
    """Return the shape that has what either has."""
    if one == "none":
        return other
    if other == "none":
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        both = sorted({*one, *other})
        return {key: merge(one.get(key, "none"), other.get(key, "none")) for key in both}
    if isinstance(one, list) and isinstance(other, list):
        return [merge(one[0], other[0])]
    if one == other:
        return one
    kinds = {*str(one).split("|"), *str(other).split("|")}
    return "|".join(sorted(kinds - {"none"}))
