"""Contexts lead every command to a node; its lists, ends, waits, messages and completions."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from rig import config
from rig.router import Router, binary
from rig.waiting import DEADLINE_S, await_true

EVIL = "jobs\x1b[2J;$(touch broken)"


class Desk:
    """A user in a directory that is no node's, with contexts."""

    def __init__(self, home: Path, router: Router):
        self.home, self.router = home, router
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(home / "config")}
        for name in ("CROSSTIE_CONTEXT", "CROSSTIE_DIR", "CROSSBAR_DIR"):
            self.environment.pop(name, None)

    def run(self, *words: object, stdin: str = "", to: int = subprocess.PIPE, **variables: str):
        """Run a command to its end."""
        return subprocess.run(
            [str(binary()), *map(str, words)],
            cwd=self.home,
            env={**self.environment, **variables},
            input=stdin,
            text=True,
            stdout=to,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_S,
        )

    def said(self, *words: object, stdin: str = "", **variables: str) -> str:
        """Return the output of a command that succeeds."""
        done = self.run(*words, stdin=stdin, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listed(self, *words: object) -> list[dict]:
        """Return the rows of a list."""
        return json.loads(self.said(*words, "--json"))

    def starts(self, *words: object) -> subprocess.Popen:
        """Start a command that goes on until it is killed."""
        return subprocess.Popen(
            [str(binary()), *map(str, words)],
            cwd=self.home,
            env=self.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Iterator[Desk]:
    auth = {"ticket": {"type": "static", "principals": {"joe": {"ticket": "t", "role": "user"}}}}
    transports = [
        config.universal("tcp", config.tcp(), websocket={"ws": {"auth": auth}}),
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
    ]
    realms = [{"name": "realm1", "roles": [config.role("user")]}]
    router = Router(tmp_path_factory.mktemp("node"), config=config.node(realms, transports))
    desk = Desk(tmp_path_factory.mktemp("desk"), router)
    host, port = router.address("amqp")
    directory = router.directory
    desk.said("context", "add", "local", "--cbdir", directory)
    status = json.loads(desk.said("status", "--json", "--context", "local"))
    (url,) = [url for url in status["wamp"] if url.startswith("ws://")]
    login = ("--authmethod", "ticket", "--authid", "joe", "--secret-file", "-")
    place = ("--url", url, "--management", status["management"])
    broker = ("--amqp", f"amqp://guest:guest@{host}:{port}")
    desk.said("context", "add", "shop", *place, *login, *broker, "--select", stdin="t\n")
    yield desk
    router.stop()


def test_contexts_have_secrets_for_their_owner_alone(desk):
    file = desk.home / "config/crosstie/contexts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    shown = desk.said("context", "list", "--columns", "name,authid,amqp")
    assert re.search(r"shop +joe +amqp://guest@127.0.0.1:\d+ vhost /", shown), shown
    assert "secret" not in desk.said("context", "list", "--json")
    assert desk.said("call", "wamp.session.count") == "1\n"
    assert desk.said("call", "wamp.session.count", CROSSTIE_CONTEXT="shop") == "1\n"
    done = desk.run("queues", CROSSTIE_CONTEXT="")
    assert (done.returncode, "no node runs here" in done.stderr) == (2, True)
    done = desk.run("queues", "--context", "none")
    assert "there is no context 'none', expected one of local, shop" in done.stderr
    done = desk.run("call", "x", "--context", "local")
    assert "`crosstie context add local --replace` names one" in done.stderr
    # The secret of a context is for its own address.
    (url,) = [row["url"] for row in desk.listed("context", "list") if row["name"] == "shop"]
    done = desk.run("call", "wamp.session.count", "--url", url)
    assert (done.returncode, "authmethod" in done.stderr) == (1, True), done.stderr
    assert desk.said("status").startswith("running\n")
    file.chmod(0o644)
    done = desk.run("queues")
    assert "expected mode 600, got 644; `chmod 600" in done.stderr
    file.chmod(0o600)


def test_lists_of_realms_and_their_sessions_end(desk):
    callee = desk.starts("register", "com.shop.price", "--answer", "1")
    watcher = desk.starts("subscribe", "com.shop.", "--match", "prefix")
    try:
        desk.said("wait-for", "procedure", "com.shop.price")
        await_true("the subscription", lambda: desk.listed("subscriptions"))
        (row,) = desk.listed("registrations")
        found = [row[key] for key in ("realm", "uri", "match", "invoke", "callees")]
        assert found == ["realm1", "com.shop.price", "exact", "single", 1]
        (row,) = desk.listed("topics", "--realm", "realm1")
        assert [row["uri"], row["match"], row["subscribers"]] == ["com.shop.", "prefix", 1]
        assert desk.run("registrations", "--realm", "none").returncode == 1
        rows = desk.listed("sessions", "--columns", "session,registrations")
        (session,) = [row["session"] for row in rows if row["registrations"] == 1]
        assert all(set(row) == {"session", "registrations"} for row in rows)
        done = desk.run("kill", session, 1)
        assert done.stdout == f"Closed session {session}\n"
        assert "neither a session nor a connection 1" in done.stderr
        (busy,) = [row for row in desk.listed("top", "--once") if row["authid"] == "joe"][:1]
        assert busy["requests_per_second"] > 0
        done = desk.run("sessions", "--columns", "nothing")
        assert "there is no column 'nothing', expected some of session, realm," in done.stderr
        done = desk.run("sessions", "close", session, "--watch")
        assert "--watch is for lists" in done.stderr
    finally:
        callee.kill()
        watcher.kill()


def test_messages_are_published_seen_and_consumed(desk):
    assert desk.run("amqp", "publish", "jobs", "x").returncode == 1
    consumer = desk.starts("amqp", "consume", "jobs")
    assert consumer.wait(DEADLINE_S) == 2
    connection = pika.BlockingConnection(pika.ConnectionParameters(*desk.router.address("amqp")))
    channel = connection.channel()
    for queue in ("jobs", EVIL):
        channel.queue_declare(queue)
    desk.said("wait-for", "queue", "jobs")
    said = desk.said("amqp", "publish", "jobs", "--lines", "--header", "a=b", stdin="one\ntwo\n")
    assert said == "Published 2 messages, confirmed\n"
    for is_again in (False, True):
        first = json.loads(desk.said("amqp", "get", "jobs"))
        assert [first["body"], first["redelivered"]] == ["one", is_again]
    assert first["properties"] == {"delivery_mode": 2, "headers": {"a": "b"}}
    # A message that was not printed stays, and a selected context needs no place of a node.
    reader, writer = os.pipe()
    os.close(reader)
    place = {"CROSSTIE_DIR": str(desk.router.directory)}
    done = desk.run("amqp", "get", "jobs", "--ack", to=writer, **place)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    desk.said("wait-for", "queue", "jobs", "--messages", 2)
    # A refusal ends a publisher whose input goes on.
    publisher = desk.starts("amqp", "publish", "gone", "--lines")
    publisher.stdin.write("one\n")
    publisher.stdin.flush()
    assert publisher.wait(DEADLINE_S) == 1
    assert "no queue is bound with this routing key" in publisher.stderr.read()
    assert desk.said("amqp", "consume", "jobs", "--count", 2, "--raw") == "one\ntwo\n"
    done = desk.run("amqp", "get", "jobs")
    assert (done.returncode, "no ready message" in done.stderr) == (1, True)
    done = desk.run("wait-for", "queue", "gone", "--timeout", "1s")
    assert (done.returncode, "there is no queue 'gone'" in done.stderr) == (1, True)
    host, port = desk.router.address("amqp")
    done = desk.run("wait-for", "queue", "jobs", "--url", f"amqp://guest:wrong@{host}:{port}")
    assert (done.returncode, "403 ACCESS_REFUSED" in done.stderr) == (1, True)
    channel.basic_consume("jobs", lambda *_: None, consumer_tag="taker")
    (row,) = desk.listed("consumers")
    assert [row["queue"], row["consumer_tag"], row["vhost"]] == ["jobs", "taker", "/"]
    (row,) = desk.listed("channels", "--vhost", "/")
    assert [row["number"], row["consumer_count"], row["user"]] == [1, 1, "guest"]
    (row,) = desk.listed("connections", "--columns", "connection")
    assert desk.said("kill", row["connection"]) == f"Closed connection {row['connection']}\n"
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connection.process_data_events(5)


BASH = """
source <("$0" completions bash)
COMP_WORDS=("$0" "$@"); COMP_CWORD=$#
_crosstie
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() { }
compadd() { shift 4; print -l -- "${(@P)1}"; }
words=("$0" "$@"); CURRENT=$#words
source <("$0" completions zsh)
_crosstie
"""
FISH = "$argv[1] completions fish | source; complete -C (string join ' ' -- crosstie $argv[2..])"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_have_live_names(desk, shell):
    def completed(*words: str) -> list[str]:
        command = {
            "bash": ["bash", "-c", BASH, binary(), *words],
            "zsh": ["zsh", "-f", "-c", ZSH, binary(), *words],
            "fish": ["fish", "--no-config", "-c", FISH, binary(), *words],
        }[shell]
        path = f"{Path(binary()).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            list(map(str, command)),
            cwd=desk.home,
            env={**desk.environment, "PATH": path},
            text=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
        assert done.stderr == ""
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert completed("queues", "pu") == ["purge"]
    assert completed("queues", "purge", "jo") == ["jobs"]
    assert completed("context", "select", "s") == ["shop"]
    assert completed("queues", "--vhost", "/") == ["/"]


def screen(desk: Desk, *words: str) -> list[str]:
    """Return the lines of a terminal when it has been drawn twice."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 120, 0, 0))
    watching = subprocess.Popen(
        [binary(), *words],
        cwd=desk.home,
        env=desk.environment,
        stdout=slave,
        stderr=subprocess.DEVNULL,
    )
    os.close(slave)
    shown = b""
    try:
        while shown.count(b"\x1b[J") < 2:
            assert select.select([master], [], [], DEADLINE_S)[0]
            shown += os.read(master, 65536)
    finally:
        watching.kill()
        watching.wait()
        os.close(master)
    drawn = shown.decode().split("\x1b[H")[2].split("\x1b[J")[0]
    lines = drawn.split("\r\n")
    assert all(line.endswith("\x1b[K") for line in lines[:-1])
    assert not any("\x1b" in line.removesuffix("\x1b[K") for line in lines)
    return [line.removesuffix("\x1b[K") for line in lines]


def test_a_terminal_is_drawn_again_and_again(desk):
    assert "\x1b" not in desk.said("queues")
    lines = screen(desk, "queues", "--watch=100ms", "--columns", "queue,ready")
    assert re.fullmatch(r"queue +ready", lines[0]), lines
    assert "jobs\\u{1b}[2J;$(touch broken)       0" in lines
    await_true("the former sessions' end", lambda: not desk.listed("sessions"))
    lines = screen(desk, "top", "--interval", "100ms", "--columns", "realm,requests/s,calls")
    assert lines == ["realm   requests/s   calls", "─" * 26, ""]
    watchers = [desk.starts("subscribe", "com.shop.news") for _ in range(9)]
    try:
        await_true("nine", lambda: len(desk.listed("sessions")) == 9)
        lines = screen(desk, "top", "--interval", "100ms", "--columns", "realm,requests/s,calls")
        assert lines[2:] == ["realm1          0.0       0"] * 5 + ["… and 4 more"]
    finally:
        for watcher in watchers:
            watcher.kill()


def test_a_node_is_awaited_and_stopped_by_its_context(desk):
    desk.said("wait-for", "ready")
    said = desk.said("tail", "--once", "--lines", 1000, "--containing", "Controller process")
    assert said.count("\n") == 1
    (first, *_) = desk.said("tail", "--once", "--lines", 1000).splitlines()
    tail = desk.starts("tail", "--lines", 0)
    while not select.select([tail.stdout], [], [], 0.1)[0]:
        # It logs a line.
        desk.said("reload", "--context", "local")
    assert tail.stdout.readline().rstrip("\n") != first
    tail.kill()
    tail.wait()
    assert desk.said("stop", "--context", "shop") == "Stopped the node of context 'shop'\n"
    done = desk.run("wait-for", "ready", "--timeout", "50ms")
    assert (done.returncode, "not within 50ms" in done.stderr) == (1, True)
