"""Users, vhosts, permissions, policies and limits of a running broker, changed by command line:
clients see them at once, and after kill -9; the configuration's are read-only."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika.exceptions import (
    ChannelClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)
from rig.pika_client import closed_by_broker, connect
from rig.router import Router, binary

PASSWORD = "pässword with blanks"


def run(*arguments: object, cwd: Path, password: str = "") -> subprocess.CompletedProcess[str]:
    """Run `crosstie amqp ...`, with a password as standard input."""
    command = [str(binary()), "amqp", *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin", "PASSWORD_OF_TEST": PASSWORD}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        input=f"{password}\n",
        text=True,
        capture_output=True,
        timeout=60,
    )


def say(*arguments: object, cwd: Path, password: str = "") -> str:
    """Return what a command prints."""
    done = run(*arguments, cwd=cwd, password=password)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed(*arguments: object, cwd: Path) -> list[dict]:
    """Return a list in JSON, without the worker of each row."""
    rows = json.loads(say(*arguments, "--json", cwd=cwd))
    assert {row.pop("worker") for row in rows} <= {"worker1"}
    return rows


@pytest.fixture
def broker(tmp_path) -> Iterator[Router]:
    """A node on its embedded default."""
    running = Router(tmp_path, "--listen", "127.0.0.1:0")
    yield running
    running.stop()


def test_a_user_is_added_changed_and_deleted(broker, tmp_path):
    place = broker.address("amqp")
    assert say("user", "add", "ann", "--tag", "monitoring", cwd=tmp_path, password=PASSWORD) == (
        "user 'ann': created"
    )
    again = run("user", "add", "ann", cwd=tmp_path, password=PASSWORD)
    assert (again.returncode, again.stderr) == (1, "crosstie: user 'ann' exists already\n")
    with pytest.raises(ProbableAccessDeniedError, match="access to vhost '/' refused"):
        connect(place, "ann", PASSWORD)
    say("permission", "set", "ann", ".*", ".*", ".*", cwd=tmp_path)
    connection = connect(place, "ann", PASSWORD)
    assert say("user", "set", "ann", "--no-tags", cwd=tmp_path) == "user 'ann': changed"
    connect(place, "ann", PASSWORD).close()
    say("user", "set", "ann", "--password", cwd=tmp_path, password="other")
    with pytest.raises(ProbableAuthenticationError):
        connect(place, "ann", PASSWORD)
    connect(place, "ann", "other").close()
    say("user", "set", "ann", "--password-env", "PASSWORD_OF_TEST", cwd=tmp_path)
    connect(place, "ann", PASSWORD).close()
    nothing = run("user", "set", "ann", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "nothing to change" in nothing.stderr
    ann = {
        "name": "ann",
        "tags": [],
        "limits": {},
        "configuration": None,
    }
    assert ann in listed("user", "list", cwd=tmp_path)
    assert say("user", "delete", "ann", cwd=tmp_path) == "user 'ann': deleted"
    code, text = closed_by_broker(connection)
    assert code == 320
    assert "user 'ann' is deleted" in text
    gone = run("user", "delete", "ann", cwd=tmp_path)
    assert (gone.returncode, gone.stderr) == (1, "crosstie: there is no user 'ann'\n")


def test_changes_survive_a_kill(tmp_path):
    broker = Router(tmp_path, "--listen", "127.0.0.1:0")
    try:
        say("user", "add", "ann", cwd=tmp_path, password=PASSWORD)
        say("vhost", "add", "v", "--description", "of tests", "--tag", "t", cwd=tmp_path)
        say("permission", "set", "ann", "^a", "", ".*", "--vhost", "v", cwd=tmp_path)
        say("policy", "set", "p", "^a", '{"max-length": 1}', "--vhost", "v", cwd=tmp_path)
        operator = ("--operator", "--vhost", "v", "--apply-to", "queues", "--priority", -3)
        say("policy", "set", "o", "^a", '{"expires": 60000}', *operator, cwd=tmp_path)
        say("limit", "set", "max-queues", 1, "--vhost", "v", cwd=tmp_path)
        say("limit", "set", "max-channels", 7, "--user", "ann", cwd=tmp_path)
        say("global-parameter", "set", "p", '{"a": [1]}', cwd=tmp_path)
        say("user", "delete", "guest", cwd=tmp_path)
    finally:
        broker.kill()
    broker = Router(tmp_path, "--listen", "127.0.0.1:0")
    try:
        place = broker.address("amqp")
        with pytest.raises(ProbableAuthenticationError):
            connect(place)
        with connect(place, "ann", PASSWORD, "v") as connection:
            channel = connection.channel()
            channel.queue_declare("a1", durable=True)
            with pytest.raises(ChannelClosedByBroker, match="access to queue 'b'"):
                channel.queue_declare("b")
            full = r"cannot declare queue 'a2': queue limit in vhost 'v' \(1\) is reached"
            with pytest.raises(ChannelClosedByBroker, match=full):
                connection.channel().queue_declare("a2")
        vhosts = listed("vhost", "list", cwd=tmp_path)
        about = [(row["name"], row["description"], row["tags"]) for row in vhosts]
        assert about == [("/", "", []), ("v", "of tests", ["t"])]
        permission = {"user": "ann", "vhost": "v", "configure": "^a", "write": "", "read": ".*"}
        assert listed("permission", "list", cwd=tmp_path) == [permission]
        policy = {"vhost": "v", "name": "p", "pattern": "^a", "apply-to": "all"}
        definition = {"definition": {"max-length": 1}, "priority": 0}
        assert listed("policy", "list", cwd=tmp_path) == [{**policy, **definition}]
        (operators,) = listed("policy", "list", "--operator", cwd=tmp_path)
        assert (operators["apply-to"], operators["priority"]) == ("queues", -3)
        limits = [{"vhost": "v", "value": {"max-queues": 1}}]
        assert listed("limit", "list", cwd=tmp_path) == limits
        limits = [{"user": "ann", "value": {"max-channels": 7}}]
        assert listed("limit", "list", "--users", cwd=tmp_path) == limits
        components = [row["component"] for row in listed("parameter", "list", cwd=tmp_path)]
        assert components == ["operator_policy", "vhost-limits"]
        parameters = listed("global-parameter", "list", cwd=tmp_path)
        assert {"name": "p", "value": {"a": [1]}} in parameters
        say("vhost", "delete", "v", cwd=tmp_path)
        assert listed("permission", "list", cwd=tmp_path) == []
        assert listed("policy", "list", cwd=tmp_path) == []
    finally:
        broker.stop()


def test_what_is_wrong_is_refused_by_the_words_of_rabbitmq(broker, tmp_path):
    for arguments, expected in [
        (
            ("permission", "set", "no", ".*", ".*", ".*"),
            "vhost_or_user_not_found",
        ),
        (("permission", "set", "guest", "(", "", ""), "invalid_regexp: "),
        (
            ("permission", "set", "guest", "", "", "", "--vhost", "no"),
            "no worker of the node has a vhost 'no'",
        ),
        (("permission", "clear", "no"), "there is no permission of user 'no' in vhost '/'"),
        (
            ("policy", "set", "p", "(", '{"max-length": 5}'),
            'pattern should be regular expression but is invalid: {"missing )",1}',
        ),
        (
            ("policy", "set", "p", "x", '{"nope": 1}'),
            '[{<<"nope">>,1}] are not recognised policy settings',
        ),
        (("limit", "set", "nope", 5), 'Unrecognised terms [{<<"nope">>,5}] in limits'),
        (("limit", "set", "max-channels", 5, "--user", "no"), "no_such_user: no"),
        (("vhost", "set", "no"), "there is no vhost 'no'"),
        (("vhost", "delete", "/"), "vhost '/' is read-only"),
        (
            ("user", "add", "u", "--hash", "aGFsbG8="),
            "a password hash of 5 bytes, expected 36",
        ),
    ]:
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 1, arguments
        assert expected in done.stderr, (arguments, done.stderr)


def test_topic_permissions_of_the_command_line(broker, tmp_path):
    say("topic-permission", "set", "guest", "amq.topic", "^a", "^b", cwd=tmp_path)
    rows = listed("topic-permission", "list", "--user", "guest", cwd=tmp_path)
    assert rows == [
        {"user": "guest", "vhost": "/", "exchange": "amq.topic", "write": "^a", "read": "^b"}
    ]
    with connect(broker.address("amqp")) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "a.x", b"")
        refused = "access to topic 'x' in exchange 'amq.topic' in vhost '/' refused"
        with pytest.raises(ChannelClosedByBroker, match=refused):
            channel.basic_publish("amq.topic", "x", b"")
        say("topic-permission", "clear", "guest", cwd=tmp_path)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "x", b"")
