"""Processes of a node inherit its environment, without the configuration's secrets."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.node import Node, component, container, node
from rig.router import binary
from rig.waiting import await_true

ENVIRONMENT = {"DATABASE_URL": "postgres://db/shop", "MYTICKET": "s3cret"}
PRINTS = 'echo "guest: $DATABASE_URL, ticket ${MYTICKET-none}"'


@pytest.fixture
def start_node(tmp_path: Path):
    running: list[Node] = []

    def start(configuration: dict) -> Node:
        running.append(Node(tmp_path, configuration, environment=ENVIRONMENT))
        return running[-1]

    yield start
    for each in running:
        each.close()


def guest(**options: object) -> dict:
    """Return a guest that prints what it sees."""
    arguments = ["-c", PRINTS]
    return {"type": "guest", "executable": "sh", "arguments": arguments, "options": options}


def with_ticket(*workers: dict) -> dict:
    """Return a node whose second transport takes a ticket that the environment has."""
    made = node(*workers)
    principals = {"joe": {"ticket": "$MYTICKET", "role": "anonymous"}}
    made["workers"][0]["transports"].append(
        {
            "type": "rawsocket",
            "endpoint": config.unix("ticket.sock"),
            "auth": {"ticket": {"type": "static", "principals": principals}},
        }
    )
    return made


def seen_by(started: Node, prefix: str) -> dict:
    """Return the environment of a component."""
    started.says("Ready; to stop")
    with started.join() as session:
        await_true(
            "it has joined",
            lambda: session.call("wamp.registration.lookup", f"{prefix}.environment"),
        )
        return session.call(f"{prefix}.environment")


def test_a_component_and_a_guest_find_the_database(start_node):
    beside = {
        "type": "class",
        "classname": "parts.Echo",
        "realm": "realm1",
        "extra": {"prefix": "com.beside"},
    }
    workers = container(component("Echo")), guest()
    options = container()["options"]
    started = start_node(node(*workers, components=[beside], options=options))
    started.says("guest: postgres://db/shop, ticket s3cret", "Guest")
    for prefix in ("com.hosted", "com.beside"):
        seen = seen_by(started, prefix)
        assert seen["DATABASE_URL"] == ENVIRONMENT["DATABASE_URL"]
        assert seen["PYTHONUNBUFFERED"] == "1"
    assert not any("does not see" in line.text for line in started.log)


def test_a_secret_of_the_configuration_stays_with_the_node(start_node):
    configuration = with_ticket(
        container(component("Echo")),
        guest(),
        guest(env={"inherit": True}),
        guest(env={"inherit": False}),
        guest(env={"vars": {"MYTICKET": "$MYTICKET"}}),
    )
    started = start_node(configuration)
    assert "MYTICKET" not in seen_by(started, "com.hosted")
    for worker in ("worker2", "worker3"):
        started.says(f"Worker '{worker}' does not see these variables.*: MYTICKET ")
    for expected in (
        "guest: postgres://db/shop, ticket none",
        "guest: , ticket none",
    ):
        started.says(f"{expected}$", "Guest")
    handed = "guest: postgres://db/shop, ticket s3cret"
    await_true(
        "two are told the ticket",
        lambda: sum(line.text == handed for line in started.log) == 2,
    )
    withheld = [line.text for line in started.log if "does not see these" in line.text]
    assert len(withheld) == 2, withheld


def test_check_names_the_variable_and_the_key_that_passes_it_on(tmp_path):
    configuration = with_ticket(container(component("Echo"), id="orders"), guest())
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    checked = subprocess.run(
        [binary(), "check", "--cbdir", tmp_path],
        env={**os.environ, **ENVIRONMENT},
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stderr
    for worker in ("orders", "worker3"):
        assert f'the process of the worker "{worker}" does not see the env' in checked.stderr
    assert '"env": {"vars": {"MYTICKET": "$MYTICKET"}}' in checked.stderr
    assert "s3cret" not in checked.stderr
