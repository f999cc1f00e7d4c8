"""Principals in a file of their own, which is read again when it changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli.test_cli import crosstie
from rig.router import Router
from rig.session import ABORT, WELCOME
from rig.waiting import await_true
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, hello, signature

STATIC = {"type": "static"}
AUTH = {
    "ticket": {**STATIC, "principals_file": "tickets.yaml", "default-role": "user"},
    "wampcra": {**STATIC, "users_file": "users.json"},
}
TICKETS = "joe:\n  ticket: hunter2\nann: {ticket: {file: ann.ticket}, role: anonymous}\n"


def write(directory: Path) -> None:
    """Put the files there."""
    (directory / "tickets.yaml").write_text(TICKETS)
    (directory / "ann.ticket").write_text("hunter3\n")
    (directory / "users.json").write_text(json.dumps({"joe": {"secret": "s", "role": "user"}}))


@pytest.fixture
def node(tmp_path):
    write(tmp_path)
    running = Router(tmp_path, config=closed(AUTH, limits={"login_delay_ms_max": 0}))
    yield running
    running.stop()


def comes_in(node: Router, authid: str, ticket: str) -> bool:
    """Whether a ticket is taken."""
    with hello(node, authmethods=["ticket"], authid=authid) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, ticket, {})
        return peer.hear_any()[0] == WELCOME


def test_they_come_in(node):
    assert comes_in(node, "joe", "hunter2")
    assert comes_in(node, "ann", "hunter3")
    assert not comes_in(node, "ann", "hunter2")
    with hello(node, authmethods=["wampcra"], authid="joe") as peer:
        peer.say(AUTHENTICATE, signature(peer.hear(CHALLENGE)[2]["challenge"], "s"), {})
        peer.hear(WELCOME)


def test_a_file_that_changes(node, tmp_path):
    file = tmp_path / "tickets.yaml"
    # A handshake goes on with what there was when it began.
    with hello(node, authmethods=["ticket"], authid="joe") as peer:
        peer.hear(CHALLENGE)
        file.write_text("zed: {ticket: hunter4}\n")
        await_true("the new file is read", lambda: comes_in(node, "zed", "hunter4"))
        assert not comes_in(node, "joe", "hunter2")
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.hear(WELCOME)
    # One with an error changes nothing, and is complained of without what is secret in it.
    file.write_text("zed: {ticket: hunter5, rôle: user}\n")
    node.await_log(lambda line: "stay in force" in str(line))
    assert comes_in(node, "zed", "hunter4")
    health = node.health()[1]
    assert re.search("keys of .*tickets.yaml.* those read before are in force", health), health
    assert "hunter" not in health
    assert node.metric("login_sources_outdated") == 1
    file.unlink()
    file.write_text("eve: {ticket: hunter6}\n")
    await_true("the next file is read", lambda: comes_in(node, "eve", "hunter6"))
    await_true("it is in order", lambda: node.health() == (200, "ok\n"))
    assert node.metric("login_sources_outdated") == 0
    assert "hunter" not in str(node.log)


def test_a_connection_that_is_there_sees_the_new_ones(node, tmp_path):
    with hello(node, authmethods=["ticket"], authid="zed") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter4", {})
        assert peer.hear_any()[0] == ABORT
        (tmp_path / "tickets.yaml").write_text("zed: {ticket: hunter4}\n")
        await_true("the new file is read", lambda: comes_in(node, "zed", "hunter4"))
        peer.say(1, "realm1", {"roles": {"caller": {}}, "authmethods": ["ticket"], "authid": "zed"})
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter4", {})
        peer.hear(WELCOME)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("[]", "must be an object"),
        ("joe: {ticket: hunter2", "tickets.yaml:1"),
        ("joe: {ticket: {file: nowhere}}", "cannot be read from"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, said):
    (tmp_path / "config.json").write_text(json.dumps(closed(AUTH)))
    write(tmp_path)
    assert crosstie("check", "--cbdir", ".", cwd=tmp_path).returncode == 0
    file = tmp_path / "tickets.yaml"
    file.unlink()
    if text is not None:
        file.write_text(text)
    for command in (["check"], ["start", "--shutdownafter", "0"]):
        done = crosstie(*command, "--cbdir", ".", cwd=tmp_path)
        told = done.stderr + "".join(p.read_text() for p in tmp_path.glob("*.log"))
        assert done.returncode != 0
        assert said in told
        assert "hunter2" not in told
