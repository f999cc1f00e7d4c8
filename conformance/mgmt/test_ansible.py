"""The calls of `rabbitmqctl` that Ansible's collection for RabbitMQ makes, and how it reads."""

from __future__ import annotations

import json
import re

import pytest

from mgmt.named import Named

# The node's name that all of its modules have by default.
NODE = ("-q", "-n", "rabbit")


@pytest.fixture(scope="module")
def ctl(tmp_path_factory):
    """Run `rabbitmqctl` as a module does; it must succeed."""
    named = Named.started(tmp_path_factory)

    def run(*words: str) -> str:
        done = named.run("rabbitmqctl", words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    run.named = named
    yield run
    named.stop()


def test_a_user(ctl):
    def permissions() -> list[dict]:
        words = ("list_user_permissions", "joe", "--formatter", "json")
        return json.loads(ctl(*NODE, *words))

    def users() -> dict[str, list[str]]:
        rows = json.loads(ctl(*NODE, "list_users", "--formatter", "json"))
        return {row["user"]: row["tags"] for row in rows}

    version = json.loads(ctl(*NODE, "status", "--formatter", "json"))["rabbitmq_version"]
    assert re.fullmatch(r"3\.\d+\.\d+", version)
    assert "joe" not in users()
    ctl(*NODE, "add_user", "joe", "changeme")
    ctl(*NODE, "set_user_tags", "joe", "monitoring", "management")
    ctl(*NODE, "set_permissions", "-p", "/", "joe", ".*", "^$", ".*")
    assert users()["joe"] == ["monitoring", "management"]
    assert permissions() == [{"vhost": "/", "configure": ".*", "write": "^$", "read": ".*"}]
    ctl(*NODE, "authenticate_user", "joe", "changeme")
    ctl(*NODE, "change_password", "joe", "other")
    wrong = ctl.named.run("rabbitmqctl", (*NODE, "authenticate_user", "joe", "changeme"))
    assert wrong.returncode != 0
    ctl(*NODE, "clear_password", "joe")
    ctl(*NODE, "clear_permissions", "-p", "/", "joe")
    assert permissions() == []
    ctl(*NODE, "delete_user", "joe")
    ctl(*NODE, "add_user", "joe", "")
    ctl(*NODE, "clear_password", "joe")
    ctl(*NODE, "delete_user", "joe")


def test_a_vhost(ctl):
    def vhosts() -> dict[str, str]:
        lines = ctl(*NODE, "list_vhosts", "name", "tracing").splitlines()
        return dict(line.split("\t") for line in lines if "\t" in line)

    ctl(*NODE, "add_vhost", "/test")
    assert vhosts()["/test"] == "false"
    ctl(*NODE, "trace_on", "-p", "/test")
    assert vhosts()["/test"] == "true"
    ctl(*NODE, "trace_off", "-p", "/test")
    assert vhosts()["/test"] == "false"
    ctl(*NODE, "delete_vhost", "/test")
    assert "/test" not in vhosts()


def test_a_policy(ctl):
    def policies() -> list[list[str]]:
        lines = ctl(*NODE, "list_policies", "-p", "/").splitlines()
        return [line.split("\t") for line in lines[1:] if line]

    version = re.search("RabbitMQ version: (?P<version>.*)", ctl(*NODE, "status"))
    assert version
    assert version["version"].startswith("3.")
    assert policies() == []
    definition = json.dumps({"ha-mode": "all", "max-length": 5})
    words = ("HA", ".*", definition, "--priority", "3", "--apply-to", "queues")
    ctl(*NODE, "set_policy", "-p", "/", *words)
    ((vhost, name, pattern, apply_to, found, priority),) = policies()
    assert (vhost, name, pattern, apply_to, priority) == ("/", "HA", ".*", "queues", "3")
    assert json.loads(found) == json.loads(definition)
    ctl(*NODE, "clear_policy", "-p", "/", "HA")
    assert policies() == []


def test_parameters(ctl):
    def pairs(*words: str) -> list[list[str]]:
        lines = ctl(*NODE, *words).strip().splitlines()
        return [line.split("\t") for line in lines if line.strip()]

    ctl(*NODE, "set_global_parameter", "team", json.dumps({"name": "a"}))
    assert dict(pairs("list_global_parameters"))["team"] == '{"name":"a"}'
    ctl(*NODE, "clear_global_parameter", "team")
    limits = json.dumps({"max-queues": 7})
    ctl(*NODE, "set_parameter", "-p", "/", "vhost-limits", "limits", limits)
    found = pairs("list_parameters", "-p", "/")
    assert found[1:] == [["vhost-limits", "limits", '{"max-queues":7}']]
    ctl(*NODE, "clear_parameter", "-p", "/", "vhost-limits", "limits")
    assert pairs("list_parameters", "-p", "/") == []


def test_limits(ctl):
    def of_vhost() -> dict:
        first = ctl("-q", "-p", "/", "-n", "rabbit", "list_vhost_limits").splitlines()[0]
        return json.loads(first) if first else {}

    def of_user() -> dict:
        return json.loads(ctl(*NODE, "list_user_limits", "--user", "guest"))

    assert of_vhost() == {}
    limits = '{"max-connections": 64, "max-queues": -1}'
    ctl("-q", "-p", "/", "set_vhost_limits", limits)
    assert of_vhost() == {"max-connections": 64, "max-queues": -1}
    ctl("-q", "-p", "/", "clear_vhost_limits")
    assert of_vhost() == {}
    assert of_user() == {}
    ctl(*NODE, "set_user_limits", "guest", '{"max-connections": 64}')
    ctl(*NODE, "set_user_limits", "guest", '{"max-channels": 256}')
    assert of_user() == {"max-connections": 64, "max-channels": 256}
    ctl(*NODE, "clear_user_limits", "guest", "max-channels")
    assert of_user() == {"max-connections": 64}
    ctl(*NODE, "clear_user_limits", "guest", "all")
    assert of_user() == {}


def test_feature_flags_and_maintenance(ctl):
    lines = ctl(*NODE, "list_feature_flags").splitlines()
    flags = dict(line.split("\t") for line in lines)
    assert flags["stream_queue"] == "enabled"
    ctl(*NODE, "enable_feature_flag", "stream_queue")
    words = ("--formatter", "json", "status", "-n", "rabbit")
    status = ctl.named.run("rabbitmq-diagnostics", words)
    assert json.loads(status.stdout)["is_under_maintenance"] is False
