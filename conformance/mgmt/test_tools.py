"""Tools of RabbitMQ: rabbitmqadmin as RabbitMQ's plugin serves it, and the requests of others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mgmt.cases import Api

PLUGINS = Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/plugins")
FOUND = [
    found for plugins in PLUGINS for found in plugins.glob("rabbitmq_management-*/**/rabbitmqadmin")
]


def rabbitmqadmin(api: Api, *words: str) -> str:
    """Run it; it must succeed."""
    host, port = api.http.address
    command = [sys.executable, str(FOUND[0]), "-H", host, "-P", str(port), *words]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def rows(api: Api, *words: str) -> list[dict]:
    """Return the rows of a list."""
    return json.loads(rabbitmqadmin(api, "-f", "raw_json", *words))


@pytest.mark.skipif(not FOUND, reason="rabbitmq-server is not installed")
def test_rabbitmqadmin_works(api, tmp_path):
    def run(*words: str) -> str:
        return rabbitmqadmin(api, *words)

    assert "3." in run("show", "overview")
    run("declare", "vhost", "name=tool")
    run("declare", "user", "name=tool", "password=tool", "tags=management")
    run(
        *["declare", "permission", "vhost=tool", "user=tool"],
        *["configure=.*", "write=.*", "read=.*"],
    )
    run("declare", "queue", "name=tool", "durable=true", 'arguments={"x-max-length": 5}')
    run("declare", "exchange", "name=tool", "type=topic")
    run("declare", "binding", "source=tool", "destination=tool", "routing_key=a.#")
    run("declare", "policy", "name=tool", "pattern=^tool$", 'definition={"expires": 900000}')
    run("publish", "exchange=tool", "routing_key=a.b", "payload=hello")
    (message,) = rows(api, "get", "queue=tool", "count=1", "ackmode=ack_requeue_true")
    assert (message["payload"], message["routing_key"]) == ("hello", "a.b")
    (queue,) = [row for row in rows(api, "list", "queues") if row["name"] == "tool"]
    assert (queue["messages"], queue["arguments"]) == (1, {"x-max-length": 5})
    for what in (
        *["exchanges", "bindings", "users", "permissions", "vhosts", "connections", "channels"],
        *["consumers", "nodes", "policies", "operator_policies", "parameters"],
    ):
        assert isinstance(rows(api, "list", what), list)
    file = tmp_path / "definitions.json"
    run("export", str(file))
    exported = json.loads(file.read_text())
    assert "tool" in [queue["name"] for queue in exported["queues"]]
    assert "tool" in [policy["name"] for policy in exported["policies"]]
    run("purge", "queue", "name=tool")
    run("delete", "policy", "name=tool")
    run("delete", "binding", *binding())
    run("delete", "exchange", "name=tool")
    run("delete", "queue", "name=tool")
    run("delete", "permission", "vhost=tool", "user=tool")
    run("delete", "user", "name=tool")
    run("delete", "vhost", "name=tool")


def binding() -> list[str]:
    """Return the words that name the binding."""
    key = "properties_key=a.%23"
    return ["source=tool", "destination_type=queue", "destination=tool", key]


def test_requests_of_keda(api):
    assert api.ask("PUT", "queues/%2F/scaled", {}).status == 201
    found = api.json("queues/%2F/scaled")
    assert (found["messages"], found["messages_ready"]) == (0, 0)
    query = "page=1&use_regex=true&pagination=false&name=%5Escaled%24&page_size=100"
    page = api.json(f"queues/%2F?{query}")
    assert (page["page_count"], [item["name"] for item in page["items"]]) == (1, ["scaled"])
    assert api.ask("DELETE", "queues/%2F/scaled").status == 204


def test_requests_of_flower(api):
    assert api.ask("PUT", "queues/%2F/celery", {"durable": True}).status == 201
    found = {queue["name"]: queue for queue in api.json("queues/")}["celery"]
    assert (found["messages"], found["messages_unacknowledged"], found["consumers"]) == (0, 0, 0)
    assert api.ask("DELETE", "queues/%2F/celery").status == 204


def test_requests_of_pyrabbit(api):
    # It sends no content type, an empty list for arguments, and `requeue` beside `ackmode`.
    assert api.ask("PUT", "queues/%2F/pyrabbit", b"{}").status == 201
    assert (
        api.ask("PUT", "exchanges/%2F/pyrabbit", b'{"type":"direct","arguments":[]}').status == 201
    )
    bound = api.ask(
        "POST", "bindings/%2F/e/pyrabbit/q/pyrabbit", b'{"routing_key":"k","arguments":[]}'
    )
    assert bound.status == 201
    body = b'{"routing_key":"k","payload":"x","payload_encoding":"string","properties":{}}'
    published = api.ask("POST", "exchanges/%2F/pyrabbit/publish", body)
    assert json.loads(published.body) == {"routed": True}
    body = b'{"count":1,"requeue":false,"ackmode":"ack_requeue_false","encoding":"auto"}'
    (message,) = json.loads(api.ask("POST", "queues/%2F/pyrabbit/get", body).body)
    assert message["payload"] == "x"
    assert api.ask("DELETE", "exchanges/%2F/pyrabbit").status == 204
    assert api.ask("DELETE", "queues/%2F/pyrabbit").status == 204


def test_requests_of_rabbitmqadmin_2(api):
    # Its default exchange is an empty segment, and it decodes every key of a node and its memory.
    body = {"durable": True, "auto_delete": False, "exclusive": False}
    declared = {"name": "ng", **body, "arguments": {"x-queue-type": "classic"}}
    assert api.ask("PUT", "queues/%2F/ng", declared).status == 201
    message = {"routing_key": "ng", "payload": "x", "payload_encoding": "string", "properties": {}}
    published = api.ask("POST", "exchanges/%2F//publish", message)
    assert json.loads(published.body) == {"routed": True}
    fetch = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    (found,) = json.loads(api.ask("POST", "queues/%2F/ng/get", fetch).body)
    assert found["payload"] == "x"
    (node,) = api.json("nodes")
    kinds = {
        "os_pid": str,
        "processors": int,
        "proc_total": int,
        "rates_mode": str,
        "enabled_plugins": list,
        "being_drained": bool,
        "fd_total": int,
        "uptime": int,
    }
    assert {key: type(node[key]) for key in kinds} == kinds
    memory = api.json(f"nodes/{node['name']}/memory")["memory"]
    total = memory.pop("total")
    assert memory.pop("strategy") == "rss"
    assert sum(memory.values()) == total["rss"] == total["allocated"] == total["erlang"]
    assert api.ask("DELETE", "queues/%2F/ng").status == 204


def test_requests_of_nservicebus(api):
    overview = api.json("overview")
    assert overview["disable_stats"] is False
    major, minor, *_ = overview["rabbitmq_version"].split(".")
    assert (int(major), int(minor)) >= (3, 10)
    flags = {flag["name"]: flag["state"] for flag in api.json("feature-flags")}
    assert flags["stream_queue"] == "enabled"
    assert (
        api.ask(
            "PUT", "queues/%2F/nsb", {"arguments": {"x-queue-type": "quorum"}, "durable": True}
        ).status
        == 201
    )
    body = {
        "pattern": "^nsb$",
        "definition": {"delivery-limit": 5},
        "priority": 0,
        "apply-to": "queues",
    }
    assert api.ask("PUT", "policies/%2F/nsb.nsb.delivery-limit", body).status == 201
    found = api.json("queues/%2F/nsb")["effective_policy_definition"]
    assert found == {"delivery-limit": 5}
    assert api.ask("DELETE", "policies/%2F/nsb.nsb.delivery-limit").status == 204
    assert api.ask("DELETE", "queues/%2F/nsb").status == 204
