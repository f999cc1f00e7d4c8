"""The native RPC server and client against the real oslo.messaging, over either broker.

The library runs in a virtual environment of its own, because it brings much along: `$OSLO_PYTHON`
names its interpreter, else it is the one in `target/oslo-messaging/venv`.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.broker import Broker
from rig.process import Process
from rig.router import ROOT, binary

PEER = ROOT / "conformance/rig/oslo_peer.py"
CONTEXT_TIME = r"'time': '\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}'"


@pytest.fixture
def url(broker: Broker) -> str:
    """Return the arguments common to both ends."""
    return broker.url(scheme="rabbit")


@pytest.fixture
def native_server(start_process, url: str, topic: str) -> Process:
    """`crosstie oslo rpc-server native`, which listens already."""
    server = start_process(binary(), "oslo", "rpc-server", "native", "--url", url, "--topic", topic)
    line = server.line()
    assert line == (
        f"Running server, name=native exchange=my-exchange topic={topic} namespace=None"
    )
    return server


@pytest.fixture
def real_server(start_process, python: Path, url: str, topic: str) -> Process:
    """A server of the real library's, which listens already."""
    server = start_process(python, "-P", PEER, "server", url, topic, "real")
    assert server.line() == "ready"
    return server


@pytest.fixture
def real_client(start_process, python: Path, url: str, topic: str) -> Process:
    """A client of the real library's."""
    return start_process(python, "-P", PEER, "client", url, topic)


@pytest.fixture
def client(url: str, topic: str) -> Callable[..., subprocess.CompletedProcess]:
    """Run `crosstie oslo rpc-client` to its end."""

    def client(*arguments: object) -> subprocess.CompletedProcess:
        command = [binary(), "oslo", "rpc-client", "--url", url, "--topic", topic, *arguments]
        return subprocess.run(
            list(map(str, command)), text=True, capture_output=True, timeout=60, check=False
        )

    return client


@pytest.mark.parametrize("kind", ["native", "real"])
def test_a_native_client_calls(request, kind: str, client, topic: str):
    request.getfixturevalue(f"{kind}_server")
    done = client("echo", "a=1", "b")
    assert done.returncode == 0, done.stderr
    calling, result, complete = done.stdout.splitlines()
    assert calling == (
        "Calling echo ({'a': '1', 'b': None}) on server=None exchange=my-exchange"
        f" topic={topic} namespace=None fanout=False cast=False"
    )
    assert re.fullmatch(
        r"RPC return value=\{'method': 'echo', 'context': \{'application': 'rpc-client', "
        + CONTEXT_TIME
        + r", 'client_timeout': None\}, 'args': \{'a': '1', 'b': None\}\}",
        result,
    )
    assert complete == "RPC complete!  Cleaning up transport..."

    done = client("sleep", "timeout=0.01", "reply=it's late", "--server", kind)
    assert "\nRPC return value=it's late\n" in done.stdout

    done = client("fail", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "crosstie: RuntimeError: fail method invoked!\n"

    done = client("nothing", "--quiet")
    expected = "NoSuchMethod: Endpoint does not support RPC method nothing"
    assert (done.returncode, done.stderr) == (1, f"crosstie: {expected}\n")


@pytest.mark.parametrize("kind", ["native", "real"])
def test_a_native_client_counts(request, kind: str, client):
    request.getfixturevalue(f"{kind}_server")
    for arguments in (["--threads", 2], ["--cast"], ["--fanout"]):
        method = "echo" if "--threads" in arguments else "sink"
        done = client(method, "--repeat", 20, "--stats", "--quiet", *arguments)
        assert done.returncode == 0, done.stderr
        document, honest = done.stdout.splitlines()
        assert re.fullmatch(r"Messages per second: \d+\.\d{4}", document)
        count, what = (40, "calls") if "--threads" in arguments else (20, "casts")
        assert re.fullmatch(
            rf"Connected: \d+\.\d{{4}} {what} per second \({count} in \d+\.\d{{4}} s, "
            r"after \d+\.\d{4} s of connecting\); 0 failed",
            honest,
        )


def test_failures_are_not_in_the_rate(client):
    done = client("echo", "--timeout", 0.2, "--repeat", 100, "--stats", "--quiet")
    assert done.returncode == 1
    assert "timed out after 0.2 s waiting for a reply to message ID" in done.stderr
    document, honest = done.stdout.splitlines()
    assert document == "Messages per second: 0.0000"
    assert re.search(r"^Connected: 0\.0000 calls per second \(0 in .*; 1 failed$", honest)


def test_a_cast_reaches_a_real_server(real_server: Process, client, tmp_path: Path):
    payload = tmp_path / "payload"
    payload.write_text('grün\n"quoted"\\' * 100_000)
    for arguments in (["--cast"], ["--cast", "--server", "real"], ["--fanout"]):
        done = client("sink", "a=1", "--payload", payload, *arguments)
        assert done.returncode == 0, done.stderr
        assert json.loads(real_server.line()) == {"a": "1", "payload": payload.read_text()}


def test_a_real_client_calls_a_native_server(native_server: Process, real_client: Process):
    args = {"number": 1.5, "text": 'it\'s "grün" 😀\n', "list": [None, True, {"x": []}]}
    said = real_client.ask(method="echo", args=args)
    context = {"who": "peer", "client_timeout": None}
    assert said["result"] == {"method": "echo", "context": context, "args": args}
    shown = native_server.line()
    assert shown.startswith(
        "native::TestEndpoint::echo( ctxt={'who': 'peer', 'client_timeout': None} arg="
        "{'number': 1.5, 'text': 'it\\'s \"grün\" 😀\\n', 'list': [None, True, {'x': []}]}"
    )
    assert shown.endswith(" ) called!!!")

    said = real_client.ask(method="sleep", args={"timeout": 0.01, "reply": [1]})
    assert said["result"] == [1]
    said = real_client.ask(method="echo", target={"server": "native"})
    assert said["result"]["args"] == {}


def test_a_large_message_passes(native_server: Process, real_client: Process):
    """In many frames, both ways; the server shows all of it, and waits until that is read."""
    shown: list[str] = []
    reader = threading.Thread(target=lambda: shown.append(native_server.line()))
    reader.start()
    large = "x" * 1_000_000
    said = real_client.ask(method="sleep", args={"timeout": 0, "reply": large})
    assert said.get("result") == large
    reader.join()
    assert large in shown[0]


def test_a_real_client_sees_a_native_servers_failures(native_server: Process, real_client: Process):
    said = real_client.ask(method="fail")
    assert said["failure"].startswith("RuntimeError"), said
    assert "fail method invoked!" in said["text"]
    for request, failure, text in (
        ({"method": "nothing"}, "NoSuchMethod", "Endpoint does not support RPC method nothing"),
        (
            {"method": "echo", "target": {"version": "1.1"}},
            "UnsupportedVersion",
            "Endpoint does not support RPC version 1.1. Attempted method: echo",
        ),
        (
            {"method": "echo", "target": {"namespace": "other"}},
            "UnsupportedVersion",
            "Endpoint does not support RPC version 1.0. Attempted method: echo",
        ),
    ):
        said = real_client.ask(**request)
        assert said["failure"] == failure, said
        assert text in said["text"]


def test_a_long_call_is_heard_of(native_server: Process, real_client: Process):
    """The caller gives up after two silent seconds; the call takes three."""
    said = real_client.ask(
        method="sleep",
        args={"timeout": 3, "reply": "done"},
        options={"call_monitor_timeout": 2},
    )
    assert said.get("result") == "done", said


def test_a_native_server_hears_casts(native_server: Process, real_client: Process):
    for target in ({}, {"server": "native"}, {"fanout": True}):
        real_client.ask(method="sink", args={"n": 1}, target=target, cast=True)
        line = native_server.line()
        assert line.startswith("native::TestEndpoint:sink( ctxt={'who': 'peer'"), line


def test_a_native_server_ends_in_good_order(native_server: Process, real_client: Process):
    """The current call is finished and answered; the next call finds no server."""
    asked = threading.Thread(
        target=lambda: answers.append(
            real_client.ask(method="sleep", args={"timeout": 1, "reply": "last"})
        )
    )
    answers: list[dict] = []
    asked.start()
    assert "::TestEndpoint::sleeps(" in native_server.line()
    code, rest = native_server.interrupt()
    assert (code, rest) == (0, "Stopping..\n")
    asked.join()
    assert answers[0]["result"] == "last"
    assert "".join(native_server.errors) == ""


@pytest.mark.parametrize(
    ("user", "password", "vhost", "text"),
    [
        ("test", "wrong", "/", "403 ACCESS_REFUSED - Login was refused"),
        ("test", "test", "missing", "530 NOT_ALLOWED - vhost missing not found"),
        ("test", "test", "empty", "530 NOT_ALLOWED - access to vhost 'empty' refused"),
    ],
)
def test_a_refused_login_is_explained(broker, user, password, vhost, text):
    url = broker.url(user, password, vhost, scheme="rabbit")
    for command in (["rpc-server", "x"], ["rpc-client", "echo"]):
        done = subprocess.run(
            [binary(), "oslo", *command, "--url", url],
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode != 0
        assert text in done.stderr


def test_a_host_that_does_not_answer_is_passed_over(broker, client, native_server, topic):
    """The second of two hosts is taken; none that answers is an error that names them all."""
    dead = "localhost:1"
    both = f"rabbit://test:test@{dead},test:test@{broker.host}:{broker.port}/"
    done = client("echo", "--quiet", "--url", both)
    # The last of two --url is refused by the command line; the fixture's own stands first.
    assert done.returncode == 2
    command = [binary(), "oslo", "rpc-client", "--topic", topic, "echo", "--quiet", "--url"]
    done = subprocess.run([*command, both], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [*command, f"rabbit://{dead}"], text=True, capture_output=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "cannot connect: localhost:1: " in done.stderr
