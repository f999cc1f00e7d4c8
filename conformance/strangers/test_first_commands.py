"""The command line as a newcomer meets it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from rig import config
from rig.router import ROOT, Router, binary

PRINCIPALS = {"joe": {"ticket": "s3cret", "role": "anonymous"}}


def crosstie(*arguments: object) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=60)


def checked(directory, configuration: dict) -> subprocess.CompletedProcess:
    """Run `crosstie check` on a configuration."""
    (directory / "config.json").write_text(json.dumps(configuration))
    return crosstie("check", "--cbdir", directory)


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """The URL of a router that asks for a ticket."""
    auth = {"ticket": {"type": "static", "principals": PRINCIPALS}}
    transport = config.universal("tcp", config.tcp(), websocket={"ws": {"auth": auth}})
    router = Router(tmp_path_factory.mktemp("router"), config=config.plain(transport))
    yield next(url for url in router.urls("tcp") if url.startswith("ws:"))
    router.stop()


@pytest.mark.parametrize(
    ("authid", "ticket", "realm", "hint"),
    [
        ("joe", "wrong", "realm1", "--secret-file"),
        ("zed", "s3cret", "realm1", "--authid"),
        ("joe", "s3cret", "nowhere", "--realm names another realm"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("call", "com.x"),
        ("publish", "com.x"),
        ("subscribe", "com.x"),
        ("register", "com.x", "--echo"),
    ],
    ids=lambda command: command[0],
)
def test_a_router_that_says_no_is_told_from_one_that_is_not_there(
    url, tmp_path, command, authid, ticket, realm, hint
):
    secret = tmp_path / "ticket"
    secret.write_text(ticket)
    who = ("--authmethod", "ticket", "--authid", authid, "--secret-file", secret)
    done = crosstie(*command, "--url", url, "--realm", realm, *who)
    assert done.returncode == 1, done.stderr
    assert hint in done.stderr
    assert ("names another realm" in done.stderr) == (realm == "nowhere")


def test_a_router_that_is_not_there_is_exit_code_2(tmp_path):
    done = crosstie("call", "com.x", "--url", f"rs+unix:{tmp_path}/none.sock")
    assert done.returncode == 2
    assert "Is the router running?" in done.stderr


def test_help_lists_the_commands_in_the_groups_of_the_book():
    told = crosstie("--help").stdout
    groups = re.findall(r"^(\S.*):\n((?:  .+\n)+)", told, re.MULTILINE)
    groups = {title: re.findall(r"^  ([\w-]+) ", lines, re.MULTILINE) for title, lines in groups}
    del groups["Options"]
    page = (ROOT / "docs/commands.md").read_text()
    for title, commands in groups.items():
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert sorted(commands) == sorted(set(re.findall(r"`crosstie ([\w-]+)", section))), title
    assert len(groups) == 4


def test_a_role_in_a_file_of_users_that_no_realm_has_is_warned_of(tmp_path):
    users = {
        "joe": {"secret": "s3cret", "role": "anonymous"},
        "zed": {"secret": "s3cret", "role": "operatr"},
    }
    (tmp_path / "users.json").write_text(json.dumps(users))
    auth = {"wampcra": {"type": "static", "users_file": "users.json"}}
    transport = {"type": "rawsocket", "endpoint": config.unix(), "auth": auth}
    done = checked(tmp_path, config.plain(transport))
    assert done.returncode == 0, done.stderr
    assert 'no realm that can be joined here has the role "operatr"' in done.stderr
    assert "anonymous" not in done.stderr
    (tmp_path / "tickets.json").write_text(json.dumps(PRINCIPALS))
    auth = {"ticket": {"type": "static", "principals_file": "tickets.json"}}
    transport = {"type": "rawsocket", "endpoint": config.unix(), "auth": auth}
    assert checked(tmp_path, config.plain(transport)).stderr == ""


def test_the_user_of_a_joint_needs_no_password(tmp_path):
    joint = {
        "type": "topic-to-exchange",
        "realm": "realm1",
        "role": "anonymous",
        "user": "joint",
        "topic": "com.shop.order",
        "exchange": "orders",
    }
    amqp = {"type": "amqp", "endpoint": config.tcp()}
    made = config.plain(config.universal("unix", config.unix()), amqp)
    made["workers"][0] |= {"joints": [joint], "amqp": {"users": [{"name": "joint"}]}}
    done = checked(tmp_path, made)
    assert (done.returncode, done.stderr) == (0, "")
    made["workers"][0]["amqp"]["users"].append({"name": "nobody"})
    assert 'the AMQP user "nobody" has no password' in checked(tmp_path, made).stderr
