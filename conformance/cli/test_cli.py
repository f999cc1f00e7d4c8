"""The command line, each command as a user would type it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rig import certificates, config
from rig.router import binary
from rig.waiting import DEADLINE_S


def crosstie(*arguments: object, cwd: Path | None = None, timeout: float = 60):
    """Run a command to its end."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=timeout)


class Running:
    """A command that goes on until it is told to end."""

    def __init__(self, *arguments: object, cwd: Path | None = None):
        self.process = subprocess.Popen(
            [str(binary()), *map(str, arguments)],
            cwd=cwd,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.stderr: list[str] = []

    def await_stderr(self, text: str) -> str:
        """Return the first line on standard error that holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr.append(line)
            if text in line:
                # Later output must not fill the pipe.
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return line
        raise AssertionError(f"{text!r} never came: {''.join(self.stderr)}")

    def line(self) -> str:
        """Return the next line of standard output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(DEADLINE_S)


@pytest.fixture
def running() -> Iterator:
    """Start commands; whatever still runs after the test is ended."""
    started: list[Running] = []

    def start(*arguments: object, cwd: Path | None = None) -> Running:
        command = Running(*arguments, cwd=cwd)
        started.append(command)
        return command

    yield start
    for command in started:
        command.process.kill()
        command.process.wait()


@pytest.fixture
def url(router) -> str:
    """Return the shared router's URL for WebSocket."""
    return router.urls("tcp")[0]


def registered(running, url: str, *arguments: object) -> Running:
    command = running("register", *arguments, "--url", url)
    command.await_stderr("registered")
    return command


# --- start


def test_help_names_every_command():
    said = crosstie("--help").stdout
    for command in ("start", "check", "call", "register", "publish", "subscribe", "bench"):
        assert re.search(rf"^  {command} ", said, re.MULTILINE), command
        more = crosstie(command, "--help")
        assert more.returncode == 0
        assert more.stdout.strip()


def test_version():
    assert re.fullmatch(r"crosstie \d+\.\d+\.\d+\n", crosstie("--version").stdout)


def test_start_without_a_file(running, tmp_path):
    """The embedded default: its banner, its URLs, Ctrl-C."""
    router = running("start", "--listen", "127.0.0.1:0", cwd=tmp_path)
    router.await_stderr("Ready")
    banner = "".join(router.stderr)
    for text in (
        "Crosstie Version: ",
        "Controller process starting",
        f"process {router.process.pid}",
        "realm 'realm1'",
        "set from hostname",
        f"{tmp_path}",
    ):
        assert text in banner, text
    (web,) = set(re.findall(r"ws://127\.0\.0\.1:\d+/ws\b", banner))
    (raw,) = set(re.findall(r"rs://127\.0\.0\.1:\d+", banner))
    assert (tmp_path / "crosstie.sock").is_socket()
    for url in (web, raw, "rs+unix:crosstie.sock", "ws+unix:crosstie.sock"):
        done = crosstie("publish", "com.x", 1, "--acknowledge", "--url", url, cwd=tmp_path)
        assert done.returncode == 0, (url, done.stderr)
    assert router.interrupt() == 0
    assert not (tmp_path / "crosstie.sock").exists()


def test_start_with_a_file(running, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "version: 2\n"
        "workers:\n"
        "  - type: router\n"
        "    realms: [{name: shop, roles: [{name: anonymous, permissions: [{uri: '*', "
        "allow: {publish: true}}]}]}]\n"
        "    transports: [{type: rawsocket, endpoint: {type: unix, path: shop.sock}}]\n"
    )
    router = running("start", "--config", file, cwd="/")
    router.await_stderr("Ready")
    url = f"rs+unix:{tmp_path}/shop.sock"
    assert crosstie("publish", "com.x", "--url", url, "--realm", "shop").returncode == 0
    done = crosstie("subscribe", "com.x", "--url", url, "--realm", "shop")
    assert done.returncode == 1
    assert "wamp.error.not_authorized" in done.stderr
    assert router.interrupt() == 0


def test_start_refuses_a_bad_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{\n  "version": 2,\n  "wrokers": []\n}\n')
    done = crosstie("start", "--config", file)
    assert done.returncode == 2
    assert f"{file}:3:3: " in done.stderr
    assert 'did you mean "workers"?' in done.stderr


def test_start_says_which_address_is_taken(router, tmp_path):
    host, port = router.address("tcp")
    done = crosstie("start", "--listen", f"{host}:{port}", cwd=tmp_path)
    assert done.returncode == 1
    assert str(port) in done.stderr or "transport" in done.stderr


def test_the_log_can_be_read_by_machines(running, tmp_path):
    router = running("start", "--listen", "127.0.0.1:0", "--logformat", "json", cwd=tmp_path)
    line = router.await_stderr("Ready")
    assert json.loads(line)["level"] == "INFO"
    assert router.interrupt() == 0


def test_a_quiet_log(running, tmp_path):
    router = running("start", "--listen", "127.0.0.1:0", "--loglevel", "none", cwd=tmp_path)
    while not (tmp_path / "crosstie.sock").exists():
        assert router.process.poll() is None
    assert router.interrupt() == 0
    assert router.process.stderr is not None
    assert router.process.stderr.read() == ""


# --- check


def test_check_accepts(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config.plain()))
    done = crosstie("check", "--config", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(file) in done.stdout


def test_check_shows_every_problem_at_once(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(
        '{"version": 2,\n "workers": [{"type": "router", "relams": [],\n'
        '  "transports": [{"type": "websocket", "endpoint": {"type": "tcp", "port": 99999}}]}]}\n'
    )
    done = crosstie("check", "--config", file)
    assert done.returncode == 1
    assert f"{file}:2:" in done.stderr
    assert f"{file}:3:" in done.stderr


def test_check_says_that_a_file_is_missing(tmp_path):
    done = crosstie("check", "--config", tmp_path / "none.json")
    assert done.returncode != 0
    assert "none.json" in done.stderr


# --- call, register


def test_echo(running, url):
    registered(running, url, "com.cli.echo", "--echo")
    done = crosstie("call", "com.cli.echo", "5", "--url", url)
    assert (done.returncode, done.stdout) == (0, "5\n")
    done = crosstie(
        "call", "com.cli.echo", "hello", '{"a": [1, null]}', "--kwargs", '{"k": 1.5}', "--url", url
    )
    said = json.loads(done.stdout)
    assert said == {"args": ["hello", {"a": [1, None]}], "kwargs": {"k": 1.5}}
    assert crosstie("call", "com.cli.echo", "--url", url).stdout == "null\n"


def test_answer_with_a_constant(running, url):
    registered(running, url, "com.cli.constant", "--answer", '{"ready": true}')
    done = crosstie("call", "com.cli.constant", "--url", url)
    assert json.loads(done.stdout) == {"ready": True}


def test_answer_with_a_command(running, url):
    command = "python3 -c 'import json; print(sum(json.loads(input())[\"args\"]))'"
    registered(running, url, "com.cli.sum", "--command", command)
    assert crosstie("call", "com.cli.sum", "2", "3", "-4", "--url", url).stdout == "1\n"


def test_a_command_that_fails_is_an_error(running, url):
    registered(running, url, "com.cli.fails", "--command", "echo why >&2; exit 3")
    done = crosstie("call", "com.cli.fails", "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "crosstie.error.command_failed" in done.stderr
    assert "why" in done.stderr


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("scheme", ["ws", "rs", "ws+unix", "rs+unix"])
def test_every_transport_and_serializer(running, router, serializer, scheme):
    """The URLs are typed just as the router's log prints them."""
    urls = router.urls("tcp") + router.urls("unix")
    url = next(url for url in urls if url.startswith(f"{scheme}:"))
    how = ("--url", url, "--serializer", serializer)
    procedure = f"com.cli.{serializer}.{scheme.replace('+', '_')}"
    callee = running("register", procedure, "--echo", *how)
    callee.await_stderr("registered")
    done = crosstie("call", procedure, "ü", *how)
    assert (done.returncode, done.stdout) == (0, '"ü"\n'), done.stderr


def test_tls(running, router, certificate_directory):
    authority = certificate_directory / "ca.pem"
    for at in router.urls("tls"):
        url = at.replace("127.0.0.1", "localhost")
        done = crosstie("publish", "com.x", "--acknowledge", "--url", url, "--ca", authority)
        assert done.returncode == 0, done.stderr
    done = crosstie("publish", "com.x", "--acknowledge", "--url", url)
    assert done.returncode == 2
    assert "--ca" in done.stderr
    done = crosstie("publish", "com.x", "--acknowledge", "--url", url, "--insecure")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("names", [[], ["localhost"]], ids=["common name", "names"])
def test_the_usual_self_signed_certificate(start_router, tmp_path, names):
    certificate = certificates.write_self_signed(tmp_path, names)
    router = start_router(config.plain(config.universal("tls", config.tls(tmp_path))))
    url = router.urls("tls")[0].replace("127.0.0.1", "localhost")
    publish = ("publish", "com.x", "--acknowledge", "--url", url)
    done = crosstie(*publish, "--ca", certificate)
    assert done.returncode == 0, done.stderr
    # Another one of the same name is not the one that is trusted.
    (tmp_path / "other").mkdir()
    other = certificates.write_self_signed(tmp_path / "other", names)
    done = crosstie(*publish, "--ca", other)
    assert done.returncode == 2
    assert "that of a certificate authority (CA:TRUE)" in done.stderr
    elsewhere = url.replace("localhost", "127.0.0.1")
    done = crosstie("publish", "com.x", "--url", elsewhere, "--ca", certificate)
    assert done.returncode == 2
    assert 'not valid for name "127.0.0.1"' in done.stderr


def test_a_certificate_of_version_1_is_shown_to_clients_that_look_at_none(start_router, tmp_path):
    certificates.write_version_1(tmp_path)
    router = start_router(config.plain(config.universal("tls", config.tls(tmp_path))))
    assert any("X.509 version 1" in line.text for line in router.log)
    where = urlsplit(router.urls("tls")[0])
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((where.hostname, where.port), timeout=DEADLINE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert secured.recv(12) == b"HTTP/1.1 200"


def test_no_such_procedure(url):
    done = crosstie("call", "com.cli.none", "--url", url)
    assert done.returncode == 1
    assert "wamp.error.no_such_procedure" in done.stderr


def test_a_call_that_takes_too_long(running, url):
    registered(running, url, "com.cli.slow", "--command", "sleep 60")
    done = crosstie("call", "com.cli.slow", "--timeout", "100ms", "--url", url)
    assert done.returncode == 1
    assert done.stderr.strip()


def test_no_router(tmp_path):
    done = crosstie("call", "com.x", "--url", f"rs+unix:{tmp_path}/none.sock")
    assert done.returncode == 2
    assert "crosstie start" in done.stderr


def test_no_such_realm(url):
    done = crosstie("call", "com.x", "--realm", "com.nowhere", "--url", url)
    assert done.returncode == 1
    assert "wamp.error.no_such_realm" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("call",),
        ("call", "com.x", "{broken"),
        ("call", "com.x", "--kwargs", "[1]"),
        ("call", "com.x", "--timeout", "soon"),
        ("call", "com.x", "--url", "http://127.0.0.1"),
        ("register", "com.x"),
        ("register", "com.x", "--echo", "--answer", "1"),
        ("subscribe", "com.x", "--match", "regex"),
        ("start", "--listen", "here"),
        ("start", "--config", "a.json", "--listen", "127.0.0.1:0"),
        ("bench", "rpc", "--case", "carrier-pigeon"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_malformed_arguments(arguments):
    done = crosstie(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip()


def test_register_ends_with_ctrl_c(running, url):
    command = registered(running, url, "com.cli.interrupted", "--echo")
    assert command.interrupt() == 0
    done = crosstie("call", "com.cli.interrupted", "--url", url)
    assert "wamp.error.no_such_procedure" in done.stderr


def test_register_for_a_number_of_calls(running, url):
    command = registered(running, url, "com.cli.counted", "--echo", "--count", "2")
    assert crosstie("call", "com.cli.counted", "1", "--url", url).stdout == "1\n"
    assert crosstie("call", "com.cli.counted", "2", "--url", url).stdout == "2\n"
    assert command.process.wait(DEADLINE_S) == 0


def test_register_refuses_a_name_that_is_taken(running, url):
    registered(running, url, "com.cli.taken", "--echo")
    done = crosstie("register", "com.cli.taken", "--echo", "--url", url)
    assert done.returncode == 1
    assert "wamp.error.procedure_already_exists" in done.stderr


def test_register_comes_back_after_the_router_did(running, start_router):
    first = start_router(config.plain(config.universal("unix", config.unix())))
    socket = first.directory / "router.sock"
    command = registered(running, f"ws+unix:{socket}", "com.cli.back", "--echo")
    first.stop()
    again = config.plain(config.universal("unix", config.unix(str(socket))))
    second = start_router(again)
    done = crosstie("call", "com.cli.back", "7", "--url", f"ws+unix:{socket}", "--timeout", "0")
    while "no_such_procedure" in done.stderr:
        done = crosstie("call", "com.cli.back", "7", "--url", f"ws+unix:{socket}")
    assert done.stdout == "7\n", done.stderr
    assert command.interrupt() == 0
    second.stop()


# --- publish, subscribe


def test_subscribe_prints_events_as_they_come(running, url):
    subscriber = running("subscribe", "com.cli.news", "--count", "2", "--url", url)
    subscriber.await_stderr("subscribed")
    done = crosstie("publish", "com.cli.news", '"it works"', "--acknowledge", "--url", url)
    assert done.returncode == 0
    assert int(done.stdout) > 0
    assert json.loads(subscriber.line()) == {"args": ["it works"], "kwargs": {}}
    crosstie("publish", "com.cli.news", "--kwargs", '{"n": 2}', "--url", url)
    assert json.loads(subscriber.line()) == {"args": [], "kwargs": {"n": 2}}
    assert subscriber.process.wait(DEADLINE_S) == 0


def test_subscribe_to_a_pattern(running, url):
    subscriber = running(
        "subscribe", "com.cli..end", "--match", "wildcard", "--details", "--url", url
    )
    subscriber.await_stderr("subscribed")
    crosstie("publish", "com.cli.any.end", "1", "--disclose-me", "--url", url)
    event = json.loads(subscriber.line())
    assert event["topic"] == "com.cli.any.end"
    assert event["args"] == [1]
    assert event["publisher"]["authrole"] == "anonymous"
    assert subscriber.interrupt() == 0


def test_events_of_a_pattern_say_their_topic(running, url):
    subscriber = running("subscribe", "com.cli.topic.", "--match", "prefix", "--url", url)
    subscriber.await_stderr("subscribed")
    crosstie("publish", "com.cli.topic.a", "1", "--url", url)
    expected = {"topic": "com.cli.topic.a", "args": [1], "kwargs": {}}
    assert json.loads(subscriber.line()) == expected
    assert subscriber.interrupt() == 0


def test_retained_events_come_first(running, url):
    done = crosstie("publish", "com.cli.kept", "1", "--retain", "--acknowledge", "--url", url)
    assert done.returncode == 0
    subscriber = running(
        "subscribe", "com.cli.kept", "--get-retained", "--count", "1", "--url", url
    )
    assert json.loads(subscriber.line())["args"] == [1]
    assert subscriber.process.wait(DEADLINE_S) == 0


def test_a_procedure_is_taken_by_force(running, url):
    first = running("register", "com.cli.mine", "--answer", "1", "--url", url)
    first.await_stderr("registered")
    second = running("register", "com.cli.mine", "--answer", "2", "--force", "--url", url)
    second.await_stderr("registered")
    assert first.process.wait(DEADLINE_S) == 1
    assert crosstie("call", "com.cli.mine", "--url", url).stdout == "2\n"
    assert second.interrupt() == 0


def test_publish_to_some_only(running, router):
    path = router.urls("tcp")[0].rsplit("/", 1)[0]
    red = running("subscribe", "com.cli.some", "--url", f"{path}/red", "--count", "1")
    blue = running("subscribe", "com.cli.some", "--url", f"{path}/blue", "--count", "1")
    for subscriber in (red, blue):
        subscriber.await_stderr("subscribed")
    url = f"{path}/ws"
    crosstie("publish", "com.cli.some", "red", "--eligible-authrole", "red", "--url", url)
    crosstie("publish", "com.cli.some", "blue", "--exclude-authid", "ruby", "--url", url)
    assert json.loads(red.line())["args"] == ["red"]
    assert json.loads(blue.line())["args"] == ["blue"]


def test_a_publication_that_is_refused(url):
    done = crosstie("publish", "com.forbidden..x", "--acknowledge", "--url", url)
    assert done.returncode == 1
    assert "wamp.error.invalid_uri" in done.stderr


def test_a_reader_that_goes_away_is_no_error(running, url):
    subscriber = running("subscribe", "com.cli.pipe", "--url", url)
    subscriber.await_stderr("subscribed")
    assert subscriber.process.stdout is not None
    subscriber.process.stdout.close()
    crosstie("publish", "com.cli.pipe", "1", "--acknowledge", "--url", url)
    assert subscriber.process.wait(DEADLINE_S) == 0


# --- bench


def expect_figures(done) -> None:
    """On a busy machine a figure may not count, which the exit code says too; that is no fault."""
    counts = done.returncode == 0
    assert counts or (done.returncode == 1 and "not counted" in done.stdout), done.stderr


def test_bench_rpc_prints_the_documents_line_and_a_table(tmp_path):
    file = tmp_path / "rpc.json"
    done = crosstie(
        *("bench", "rpc", "--seconds", "0.1", "--batch", "5", "--runs", "1"),
        *("--placement", "free", "--json", file),
        cwd=tmp_path,
    )
    expect_figures(done)
    for name in ("WAMP-UDS-RawSocket-MessagePack", "WAMP-TCP-WebSocket-JSON"):
        line = rf"\[{name}\] - average round-trip time \(ms\): \d+\.\d+"
        assert re.search(line, done.stdout), done.stdout
    report = json.loads(file.read_text())
    assert {"bench", "version", "commit", "machine", "settings", "results"} <= report.keys()
    cases = {result["case"] for result in report["results"]}
    assert cases == {"uds-rawsocket-msgpack", "tcp-websocket-json"}
    assert {result["subject"] for result in report["results"]} >= {"crosstie", "floor"}
    ours = [result for result in report["results"] if result["subject"] == "crosstie"]
    for result in ours:
        assert result["metrics"]["calls_per_s"] > 0
        assert {"avg", "p50", "p99", "p99_9", "max"} <= result["metrics"]["rtt_us"].keys()


def test_bench_rpc_of_an_external_router(router, tmp_path):
    done = crosstie(
        *("bench", "rpc", "--seconds", "0.1", "--runs", "1", "--placement", "free"),
        *("--url", router.urls("tcp")[-1], "--router-pid", router.process.pid),
        *("--serializer", "cbor", "--outstanding", "4", "--pairs", "2", "--payload", "100"),
        cwd=tmp_path,
    )
    expect_figures(done)


def test_bench_says_how_to_get_a_missing_peer(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [binary(), "bench", "rpc", "--peer", "crossbar", "--seconds", "0.1", "--runs", "1"],
        env=environment,
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert "crossbar" in (done.stdout + done.stderr).lower()


def test_bench_footprint(tmp_path):
    file = tmp_path / "footprint.json"
    done = crosstie(
        *("bench", "footprint", "--sessions", "10,60", "--starts", "2", "--json", file),
        cwd=tmp_path,
    )
    expect_figures(done)
    assert json.loads(file.read_text())["bench"] == "footprint"


def test_bench_leaves_no_process_behind_when_it_is_interrupted(running, tmp_path):
    arguments = ("--seconds", "60", "--runs", "1", "--calls-per-line", "50")
    command = running("bench", "rpc", *arguments, cwd=tmp_path)
    assert "round-trip" in command.line()
    children = [os.pidfd_open(child) for child in children_of(command.process.pid)]
    assert children
    command.interrupt()
    # Readable once the process has ended. Asking /proc again and again would hold up the kernel in
    # letting it go.
    for child in children:
        select.select([child], [], [])
        os.close(child)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def test_a_terminal_gets_what_it_can_show(running, tmp_path):
    """On a terminal nothing is different but, perhaps, colours."""
    master, slave = pty.openpty()
    process = subprocess.Popen([binary(), "--help"], stdout=slave, stderr=slave)
    assert process.wait(DEADLINE_S) == 0
    os.close(slave)
    assert b"Usage:" in os.read(master, 65536)
    os.close(master)


PRINTING = [
    ["version"],
    ["status", "--cbdir", "."],
    ["keys", "--cbdir", "."],
    ["check", "--config", "config.json"],
    ["convert", "config.json", "--output", "-"],
    ["init", "--list"],
    ["stop", "--cbdir", "."],
]


@pytest.mark.parametrize("arguments", PRINTING, ids=lambda arguments: arguments[0])
def test_a_standard_output_that_takes_nothing(tmp_path, arguments):
    (tmp_path / "config.json").write_text(json.dumps(config.plain()))
    assert crosstie("start", "--cbdir", ".", "--shutdownafter", "0", cwd=tmp_path).returncode == 0
    command = [str(binary()), *arguments]
    usual = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert usual.stdout, usual.stderr

    with open("/dev/full", "w") as full:
        failed = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert failed.returncode == 1
    assert failed.stderr.startswith("crosstie: cannot write to standard output: No space left")

    gone, pipe = os.pipe()
    os.close(gone)
    try:
        quiet = subprocess.run(
            command, cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=60
        )
    finally:
        os.close(pipe)
    assert (quiet.returncode, quiet.stderr) == (usual.returncode, usual.stderr.decode())


def test_a_warning_of_the_configuration_is_one_line_of_the_log(tmp_path):
    configuration = config.plain()
    del configuration["version"]
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    done = crosstie("start", "--cbdir", ".", "--shutdownafter", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    (warning,) = [line for line in lines if "config.json:1:1:" in line]
    assert "WARNING: " in warning
    assert "warning:" not in warning
    assert all(re.match(r"\d{4}-", line) for line in lines), lines


@pytest.mark.parametrize("options", [["--logtofile"], ["--logformat", "json"]])
def test_the_log_says_why_a_node_did_not_start(tmp_path, options):
    configuration = config.plain()
    configuration["wokers"] = configuration.pop("workers")
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    done = crosstie("start", "--cbdir", ".", *options, cwd=tmp_path)
    assert done.returncode == 2
    log = tmp_path / "node.log"
    text = log.read_text() if log.exists() else done.stderr
    first = text.splitlines()[0]
    assert "ERROR" in first
    assert "config.json:1:" in first
    assert "wokers" in first


@pytest.mark.parametrize("command", ["status", "stop", "keys"])
def test_a_directory_above_the_nodes_is_not_taken_for_one(tmp_path, command):
    assert crosstie("init", cwd=tmp_path).returncode == 0
    done = crosstie(command, "--cbdir", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "is no node's directory" in done.stderr
    assert ".crossbar" in done.stderr
