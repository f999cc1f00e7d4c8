"""Definitions of RabbitMQ, parts of which mean nothing here: the node starts, and says which."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.broker import password_hash
from rig.router import Router, binary

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


def user(name: str, algorithm: str = "rabbit_password_hashing_sha256") -> dict:
    """Return a user whose password is its name."""
    return {
        "name": name,
        "password_hash": password_hash(name),
        "hashing_algorithm": algorithm,
        "tags": [],
    }


def define(directory: Path, **more: list) -> dict:
    """Write definitions with a user `test` into the directory; return a node that imports them."""
    definitions = {
        "rabbit_version": "3.10.8",
        "vhosts": [{"name": "/"}],
        **more,
        "users": [user("test"), *more.get("users", [])],
        "permissions": [{"user": "test", "vhost": "/", **ALL}, *more.get("permissions", [])],
    }
    (directory / "definitions.json").write_text(json.dumps(definitions))
    spoken = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    node = config.plain(spoken, config.universal("tcp", config.tcp()))
    node["workers"][0]["amqp"] = {"definitions": "definitions.json"}
    return node


def check(directory: Path, node: dict, *more: str) -> tuple[int, str]:
    """Judge a node's configuration; return the exit code and what was said."""
    (directory / "config.json").write_text(json.dumps(node))
    command = [binary(), "check", "--cbdir", directory, *more]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


STRANGE = user("argon", "my_password_hashing_argon2")
QUEUE = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
BINDING = {"vhost": "/", "destination_type": "queue", "routing_key": "k", "arguments": {}}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"users": [STRANGE], "permissions": [{"user": "argon", "vhost": "/", **ALL}]},
            [
                "user 'argon': not imported: unknown hashing algorithm",
                "permission of user 'argon' in vhost '/': not imported: there is no user 'argon'",
            ],
        ),
        (
            {"permissions": [{"user": "ghost", "vhost": "/", **ALL}]},
            ["permission of user 'ghost' in vhost '/': not imported: there is no user 'ghost'"],
        ),
        (
            {"permissions": [{"user": "test", "vhost": "gone", **ALL}]},
            ["permission of user 'test' in vhost 'gone': not imported"],
        ),
        (
            {"queues": [QUEUE], "bindings": [{"source": "gone", "destination": "q", **BINDING}]},
            ["exchange 'gone' is not imported"],
        ),
        (
            {"bindings": [{"source": "amq.topic", "destination": "gone", **BINDING}]},
            ["queue 'gone' is not imported"],
        ),
        ({"queues": [{**QUEUE, "vhost": "gone"}]}, ["queue 'q' in vhost 'gone': not imported"]),
    ],
)
def test_a_node_starts_without_what_refers_to_nothing(tmp_path, more, said):
    node = define(tmp_path, **more)
    code, found = check(tmp_path, node)
    assert code == 0, found
    assert all(part in found for part in said), found
    router = Router(tmp_path, config=node)
    with Peer.tcp(router.address("amqp")) as peer:
        peer.open("test", "test")
    logged = router.told()
    assert all(part in logged for part in said), logged
    router.stop()


def test_a_file_whose_users_are_all_skipped_admits_no_client(tmp_path):
    node = define(tmp_path)
    definitions = {"rabbit_version": "3.10.8", "users": [STRANGE]}
    (tmp_path / "definitions.json").write_text(json.dumps(definitions))
    router = Router(tmp_path, config=node)
    with Peer.tcp(router.address("amqp")) as peer:
        peer.start("guest", "guest")
        assert peer.expect_connection_close()[0] == 403
    router.stop()


OPERATOR = {"component": "operator_policy", "vhost": "/", "name": "bound"}
# As `rabbitmqctl` writes it.
BOUND = {"pattern": ".*", "apply-to": "queues", "definition": [["max-length", 5]], "priority": 0}
TOPICS = {"user": "test", "vhost": "/", "exchange": "amq.topic", "write": "(", "read": ".*"}


def test_check_fails_where_an_import_would_widen_rights(tmp_path):
    node = define(tmp_path, topic_permissions=[TOPICS])
    code, said = check(tmp_path, node)
    assert code == 1, said
    assert "users may do more than in RabbitMQ" in said
    assert "topic permission of user 'test' in vhost '/'" in said
    assert "--allow-wider" in said
    code, said = check(tmp_path, node, "--allow-wider")
    assert code == 0, said
    assert "users may do more than in RabbitMQ" in said


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"topic_permissions": [{**TOPICS, "write": "^a"}]}, 0),
        ({"parameters": [{**OPERATOR, "value": {**BOUND, "pattern": "("}}]}, 1),
        ({"parameters": [{**OPERATOR, "value": BOUND}]}, 0),
        ({"users": [{**user("joe"), "limits": {"max-connections": "0"}}]}, 1),
        ({"users": [{**user("joe"), "limits": {"max-connections": 0}}]}, 0),
        ({"vhosts": [{"name": "/", "limits": [["max-connections", 0]]}]}, 0),
        ({"vhosts": [{"name": "/", "limits": {"max-messages": 0}}]}, 1),
    ],
)
def test_parts_without_a_restriction_are_no_reason(tmp_path, more, expected):
    code, said = check(tmp_path, define(tmp_path, **more))
    assert code == expected, said


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            {"pattern": "(", "definition": {"max-length": 1}},
            "policy 'p' in vhost '/': not imported: Validation failed: pattern should be regular"
            ' expression but is invalid: {"missing )",1}',
        ),
        (
            {"pattern": "", "definition": {"nope": 1}},
            '[{<<"nope">>,1}] are not recognised policy settings',
        ),
        (
            {"pattern": "", "definition": {"max-length": "x"}, "apply-to": "y"},
            "<<\"x\">> is not a valid maximum length; apply-to 'y' unrecognised; should be"
            " 'queues', 'exchanges' or 'all'",
        ),
        (
            {"pattern": "", "definition": {"ha-mode": "all", "max-length": 3}},
            "'ha-mode' of policy 'p' in vhost '/': not imported: it is about the place or form of",
        ),
    ],
)
def test_check_says_what_becomes_of_a_policy(tmp_path, policy, said):
    given = {"name": "p", "vhost": "/", "priority": 0, **policy}
    code, written = check(tmp_path, define(tmp_path, policies=[given]))
    assert code == 0, written
    assert said in written


def test_a_users_entry_is_made_from_a_password(tmp_path):
    command = [binary(), "passwd", "amqp", "joe", "--tag", "impersonator"]
    done = subprocess.run(command, input="hunter2\n", text=True, capture_output=True, check=True)
    made = json.loads(done.stdout)
    assert made["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    node = define(tmp_path)
    amqp = node["workers"][0]["amqp"]
    amqp["users"] = [made]
    amqp["vhosts"] = [{"name": "/", "permissions": [{"user": "joe", **ALL}]}]
    router = Router(tmp_path, config=node)
    with Peer.tcp(router.address("amqp")) as peer:
        peer.open("joe", "hunter2")
    router.stop()
