"""A node, its guests and its management realm; nothing here needs a Python component."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import config
from rig.container import RefusedError
from rig.node import Node, is_alive, node
from rig.rawsocket import RawSocket
from rig.router import binary
from rig.session import CALL, RESULT
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import TEXT, WebSocket

URL = re.compile(r"rs\+unix://\S+")


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Start nodes in one directory; nothing of them is left after the test."""
    running: list[Node] = []

    def start(configuration: dict | None = None, *arguments: str, **more: object) -> Node:
        running.append(Node(tmp_path, configuration, *arguments, **more))
        return running[-1]

    yield start
    for each in running:
        each.close()


def guest(*command: str, **more: object) -> dict:
    """Return a guest worker."""
    executable, *arguments = command
    return {"type": "guest", "executable": executable, "arguments": arguments, **more}


def shell(script: str, **options: object) -> dict:
    """Return a guest that is a shell script."""
    return guest("sh", "-c", script, options=options)


def crosstie(*arguments: object, cwd: Path | None = None):
    """Run a command to its end."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=60)


def ask(started: Node, procedure: str, *arguments: object):
    """Call in the management realm by command line, as an operator would."""
    known = json.loads((started.directory / "node.pid").read_text())
    texts = [each if isinstance(each, str) else json.dumps(each) for each in arguments]
    where = ("--url", known["management"], "--realm", "crossbar")
    return crosstie("call", procedure, *texts, *where)


def answer(started: Node, procedure: str, *arguments: object):
    """Call a management procedure that has a result."""
    done = ask(started, procedure, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error(started: Node, procedure: str, *arguments: object) -> str:
    """Call a management procedure that fails; return the error with its text."""
    done = ask(started, procedure, *arguments)
    assert done.returncode == 1, (done.stdout, done.stderr)
    return done.stderr


def replies(session, *requests: int) -> dict[int, str]:
    """Wait for the answers to calls; each is empty, or an error's URI and text."""
    said: dict[int, str] = {}
    while len(said) < len(requests):
        message = session._next()
        if message[0] == RESULT:
            said[message[1]] = ""
        else:
            said[message[2]] = f"{message[4]} {message[5][0]}"
    return said


def pid_of(line) -> int:
    """Return the process that a line says was started."""
    return int(re.search(r"PID (\d+)", line.text)[1])


# The start.


def test_the_log_tells_the_start_in_order(start_node):
    started = start_node(node(guest("sleep", "1000")))
    started.says("^Ready")
    wanted = [
        "Crosstie Version: ",
        "Node Public Key: [0-9a-f]{64}$",
        f"Running from node directory '{started.directory}'",
        "Controller process starting",
        "Node configuration loaded from 'config.json'",
        "Node ID '.*' set from hostname",
        r"Using configured node shutdown triggers \['shutdown_on_shutdown_requested'\]",
        "Joined realm 'crossbar' on node management router",
        r"File descriptors: \d+ may be open",
        "Starting Router with ID 'worker1'...",
        f"Router with ID 'worker1' and PID {started.process.pid} started",
        r"Router 'worker1': realm 'realm1' \(named 'realm1'\) started",
        r"Router 'worker1': role 'role1' \(named 'anonymous'\) started on realm 'realm1'",
        r"Router 'worker1': role 'role2' \(named 'red'\) started on realm 'realm1'",
        "Router 'worker1': transport 'unix' started at ",
        "Starting Guest with ID 'worker2'...",
        r"Guest with ID 'worker2' and PID \d+ started",
        "Ready",
    ]
    said = [line.text for line in started.log if line.role == "Controller"]
    assert len(said) == len(wanted), started.text()
    for text, pattern in zip(said, wanted, strict=True):
        assert re.match(pattern, text), (pattern, text)


def test_the_defaults_are_said(start_node):
    configuration = node()
    del configuration["controller"]
    started = start_node({**configuration, "controller": {"id": "mine"}})
    started.says("Node ID 'mine' set from configuration")
    started.says(r"Using default node shutdown triggers \['shutdown_on_worker_exit'\]")


def test_output_of_a_guest_is_logged_with_its_process(start_node):
    started = start_node(node(shell("echo one; echo '<4>two' >&2; sleep 1000")))
    pid = pid_of(started.says("^Guest with ID 'worker2'"))
    assert started.says("^one$", role="Guest").pid == pid
    assert started.says("^WARNING: two$", role="Guest").pid == pid


def test_machines_read_who_said_it(start_node):
    started = start_node(node(shell("echo hello; sleep 1000")), "--logformat", "json")
    line = started.says('"message":"hello"')
    fields = json.loads(line.text)["fields"]
    assert fields["role"] == "Guest"
    assert is_alive(fields["pid"])


def test_a_guest_gets_its_input_and_its_surroundings(start_node, tmp_path):
    (tmp_path / "below").mkdir()
    options = {
        "stdin": {"type": "json", "value": {"a": [1, None]}},
        "workdir": "below",
        "env": {"inherit": ["PATH"], "vars": {"COLOUR": "red"}},
    }
    started = start_node(node(shell("cat; echo; pwd; echo $COLOUR-$HOME-; sleep 9", **options)))
    assert json.loads(started.says(r"^\{", role="Guest").text) == {"a": [1, None]}
    started.says(f"^{tmp_path}/below$", role="Guest")
    started.says("^red--$", role="Guest")


def test_discarded_output_is_not_logged(start_node):
    script = "echo out; echo err >&2; sleep 1000"
    started = start_node(node(shell(script, stdout="drop", stderr="close"), shell("echo last")))
    started.says("^last$", role="Guest")
    assert not [line for line in started.log if line.text in {"out", "err"}]


def test_a_flood_is_cut_and_the_node_lives(start_node):
    script = (
        "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; echo '<3>end' >&2; sleep 99"
    )
    started = start_node(node(shell(script)))
    started.says("lines left out", role="Guest")
    assert answer(started, "crossbar.get_workers") == ["worker1", "worker2"]
    assert len(answer(started, "crossbar.get_worker_log", "worker2", 5000)) <= 1000


# Ends of workers.


@pytest.mark.parametrize(
    "trigger",
    [
        "shutdown_on_worker_exit",
        "shutdown_on_worker_exit_with_error",
        "shutdown_on_shutdown_requested",
        "shutdown_on_last_worker_exit",
    ],
)
def test_a_node_does_not_die_of_its_guests(start_node, trigger):
    guests = (shell("exit 0"), shell("exit 3"), shell("kill -9 $$"))
    started = start_node(node(*guests, shutdown=trigger))
    started.says("Node worker worker2 ended successfully")
    started.says("Node worker worker3 ended with error: exit code 3")
    started.says(r"Node worker worker4 ended with error: signal 9 \(SIGKILL\)")
    assert answer(started, "crossbar.get_workers") == ["worker1"]
    assert started.stop() == 0


def test_a_node_whose_guest_is_not_there_does_not_start(start_node):
    started = start_node(node(guest("not-there"), shutdown="shutdown_on_shutdown_requested"))
    started.says("Node worker worker2 ended with error: program 'not-there' not found on PATH")
    started.says("Worker 'worker2' could not be started: the node ends")
    assert started.exit_code() == 1


def test_a_guest_is_started_again(start_node):
    """It takes longer from time to time; the triggers do not see it end."""
    script = "echo run >> runs; test $(wc -l < runs) -ge 4 && sleep 1000; exit 1"
    started = start_node(
        node(shell(script, restart="restart-on-failed"), shutdown="shutdown_on_worker_exit")
    )
    for delay_ms in (200, 400, 800):
        started.says(f"Worker worker2 is started again in {delay_ms} ms")
    await_true(
        "it runs at last",
        lambda: answer(started, "crossbar.get_worker", "worker2")["status"] == "started",
    )
    assert started.stop() == 0


def test_a_guest_that_may_end_is_not_started_again(start_node):
    script = shell("exit 0", restart="restart-on-failed")
    started = start_node(node(script, shutdown="shutdown_on_worker_exit"))
    started.says("Node worker worker2 ended successfully")
    assert answer(started, "crossbar.get_workers") == ["worker1"]
    assert started.stop() == 0


def test_a_guest_killed_with_9_comes_back(start_node):
    started = start_node(node(guest("sleep", "1000", options={"restart": "restart-always"})))
    first = pid_of(started.says("^Guest with ID 'worker2'"))
    since = len(started.log)
    os.kill(first, signal.SIGKILL)
    started.says(r"ended with error: signal 9 \(SIGKILL\)", since=since)
    assert pid_of(started.says("^Guest with ID 'worker2'", since=since)) != first


def test_directories_to_watch_may_come_later(start_node, tmp_path):
    watch = {"directories": ["later"]}
    started = start_node(node(guest("sleep", "1000", options={"watch": watch})))
    started.says("WARNING: .*cannot watch '.*/later'")
    assert answer(started, "crossbar.get_worker", "worker2")["status"] == "started"


def test_a_change_of_its_files_restarts_a_guest(start_node, tmp_path):
    (tmp_path / "watched").mkdir()
    watch = {"directories": ["watched"]}
    started = start_node(node(guest("sleep", "1000", options={"watch": watch})))
    started.says("^Ready")
    first = pid_of(started.says("^Guest with ID 'worker2'"))
    since = len(started.log)
    (tmp_path / "watched/file").write_text("new")
    started.says("watched/file' changed: restarting worker worker2", since=since)
    assert pid_of(started.says("^Guest with ID 'worker2'", since=since)) != first


def test_a_change_does_not_undo_a_stop(start_node, tmp_path):
    """Nor ask a guest twice that writes its state when it is asked to end."""
    (tmp_path / "watched").mkdir()
    watch = {"directories": ["watched"]}
    goodbye = "echo asked; echo state > watched/state; until test -e go; do sleep 0.05; done; exit"
    script = f"trap '{goodbye}' TERM; echo set; while :; do sleep 0.05; done"
    started = start_node(node(shell(script, watch=watch), shell("sleep 1000", watch=watch)))
    started.says("^set$", role="Guest")
    started.says("^Ready")
    with started.management() as session:
        stop = session.ask(CALL, {}, "crossbar.stop_worker", ["worker2"], {})
        started.says("state' changed: restarting worker worker3")
        (tmp_path / "go").touch()
        assert replies(session, stop) == {stop: ""}
    assert answer(started, "crossbar.get_workers") == ["worker1", "worker3"]
    assert not [line for line in started.log if "restarting worker worker2" in line.text]
    assert len([line for line in started.log if line.text == "asked"]) == 1


def test_a_guest_that_changes_its_own_files_waits_longer_and_longer(start_node, tmp_path):
    (tmp_path / "watched").mkdir()
    script = "while :; do date > watched/file; sleep 0.3; done"
    started = start_node(node(shell(script, watch={"directories": ["watched"]})))
    for delay_ms in (300, 400, 800):
        started.says(f"Worker worker2 is started again in {delay_ms} ms")
    assert started.stop() == 0


def test_a_guest_is_told_when_its_directory_is_there_again(start_node, tmp_path):
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched/version").write_text("1")
    script = "echo version $(cat watched/version); exec sleep 1000"
    started = start_node(node(shell(script, watch={"directories": ["watched"]})))
    started.says("^version 1$", role="Guest")
    (tmp_path / "watched").rename(tmp_path / "old")
    started.says("WARNING: .*cannot watch '.*/watched'")
    (tmp_path / "next").mkdir()
    (tmp_path / "next/version").write_text("2")
    (tmp_path / "next").rename(tmp_path / "watched")
    started.says("^version 2$", role="Guest")


def test_a_testee_is_a_worker_of_its_own(start_node):
    transport = {"type": "websocket", "endpoint": config.tcp()}
    started = start_node(node({"type": "websocket-testee", "transport": transport}))
    started.says("^WebSocketTestee with ID 'worker2' and PID")
    line = started.says("^WebSocketTestee 'worker2': transport 'transport1' started at")
    host, port = re.search(r"ws://([\d.]+):(\d+)", line.text).groups()
    with WebSocket.tcp((host, int(port))) as peer:
        peer.upgrade(None, "/")
        peer.send_frame(TEXT, b"hello")
        assert peer.receive_frame() == (TEXT, b"hello")


# Containers that cannot start: the node says why, and lives.


def container(python: str, **options: object) -> dict:
    """Return a container without components."""
    return {"type": "container", "components": [], "options": {"python": python, **options}}


def test_an_interpreter_that_is_not_there(start_node):
    started = start_node(node(container("no-such-python")))
    started.says(
        "Node worker worker2 ended with error: .*option 'python'.*'no-such-python' not found"
    )
    started.says("Worker 'worker2' could not be started: the node ends")
    assert started.exit_code() == 1


def test_a_node_can_do_without_a_container(start_node):
    worker = container("no-such-python")
    worker["options"]["needs_components"] = False
    started = start_node(node(worker))
    started.says("Node worker worker2 ended with error: ")
    started.says("^Ready")
    assert answer(started, "crossbar.get_workers") == ["worker1"]


def test_an_interpreter_without_the_package(start_node, tmp_path):
    python = tmp_path / "python-alone"
    python.write_text('#!/bin/sh\nexec python3 -I -S "$@"\n')
    python.chmod(0o755)
    started = start_node(node(container(str(python), restart="restart-on-failed")))
    started.says(f"Worker worker2: .*`{python} -m pip install ./python`")
    started.says("Worker worker2 is started again in 400 ms")
    assert answer(started, "crossbar.get_worker", "worker2")["type"] == "container"
    assert started.stop() == 0


def test_a_container_that_ends_pulls_the_trigger(start_node):
    started = start_node(node(container("false"), shutdown="shutdown_on_worker_exit_with_error"))
    started.says("Node worker worker2 ended with error: exit code 1")
    assert started.exit_code() == 1


def test_a_container_that_was_never_ready_is_no_success(start_node):
    started = start_node(node(container("true"), shutdown="shutdown_on_worker_exit_with_error"))
    started.says("Node worker worker2 ended with error: exit code 0, before it was ready")
    assert started.exit_code() == 1


def test_an_interpreter_behind_a_script(start_node, tmp_path):
    """The host is not the child itself; it ends in good order all the same."""
    python = tmp_path / "python-within"
    python.write_text(f'#!/bin/sh\n{sys.executable} "$@"\n')
    python.chmod(0o755)
    started = start_node(node(container(str(python))))
    started.says("^Container with ID 'worker2' and PID")
    started.says("^Ready")
    assert started.stop() == 0
    started.says("Shutdown of worker requested!", role="Container")
    started.says("Node worker worker2 ended successfully")


def test_a_stranger_is_not_taken_for_a_container(start_node, tmp_path):
    python = tmp_path / "python-that-sleeps"
    python.write_text("#!/bin/sh\nexec sleep 1000\n")
    python.chmod(0o755)
    started = start_node(node(container(str(python))))
    started.says("Starting Container")
    topic = "crossbar.worker.worker2.on_worker_ready"

    def url() -> str | None:
        return json.loads((started.directory / "node.pid").read_text())["management"]

    await_true("it can be reached", lambda: url() is not None)
    where = ("--url", url(), "--realm", "crossbar", "--acknowledge")
    assert crosstie("publish", topic, '{"pid": 1}', *where).returncode == 0
    started.says("WARNING: Process 1 says that it is the host of components of worker 'worker2'")


# The end.


def test_the_log_tells_the_end_in_order(start_node):
    started = start_node(node(guest("sleep", "1000"), shutdown="shutdown_on_worker_exit"))
    pid = pid_of(started.says("^Guest with ID 'worker2'"))
    started.says("^Ready")
    since = len(started.log)
    assert started.stop() == 0
    assert [line.text for line in started.log[since:]] == [
        "Received SIGINT, shutting down.",
        f"sending TERM to subprocess {pid}",
        f"waiting for {pid} to exit...",
        "Node worker worker2 ended successfully",
        "Node worker worker1 ended successfully",
        "Node worker ended, and trigger 'shutdown_on_worker_exit' active",
        "Node shutting down ..",
        "Shutting down node...",
        "Node ended",
    ]


def test_guests_that_connect_during_the_stop_are_refused(start_node):
    """Listeners close first; what a guest has to say it says over the connection that it has."""
    script = (
        f"trap '{binary()} publish com.bye --acknowledge --url rs+unix:node.sock || exit 0' TERM; "
    )
    started = start_node(node(shell(script + "echo set; while :; do sleep 0.05; done")))
    started.says("^set$", role="Guest")
    assert started.stop() == 0
    assert started.says("Node worker worker2 ended").text.endswith("successfully")


def test_a_second_signal_does_not_wait(start_node):
    started = start_node(node(shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done")))
    started.says("^deaf$", role="Guest")
    started.process.send_signal(signal.SIGTERM)
    started.says("Received SIGTERM, shutting down.")

    def ends_when_told_again() -> bool:
        # Signals that come close to the first one are taken for the same.
        if started.process.poll() is None:
            started.process.send_signal(signal.SIGTERM)
        return started.process.poll() is not None

    await_true("the second signal ends it", ends_when_told_again)
    assert started.exit_code() == 1
    assert not (started.directory / "node.pid").exists()


def test_a_guest_that_does_not_end_is_killed(start_node):
    started = start_node(node(shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done")))
    started.says("^deaf$", role="Guest")
    started.process.send_signal(signal.SIGTERM)
    started.says("has not ended 10 s after TERM: killing it")
    assert started.exit_code() == 1


def test_a_killed_node_leaves_no_process(start_node):
    """Not even what a guest started and what does not listen to TERM."""
    script = "trap '' TERM; sleep 1000 & sleep 1001 & echo there; wait; sleep 1000"
    started = start_node(node(shell(script), guest("sleep", "1000")))
    started.says("^there$", role="Guest")
    started.says("^Ready")
    started.kill()


def test_a_node_ends_after_the_time_it_was_given(start_node):
    started = start_node(node(guest("sleep", "1000")), "--shutdownafter", "0.2")
    assert started.exit_code() == 0
    started.says("--shutdownafter is over")


def test_stop_and_status(start_node):
    started = start_node(node(guest("sleep", "1000")))
    started.says("^Ready")
    where = ("--cbdir", started.directory)
    assert crosstie("status", *where, "--assert", "running").returncode == 0
    assert crosstie("stop", *where).returncode == 0
    assert started.exit_code() == 0
    assert crosstie("status", *where, "--assert", "stopped").returncode == 0


def test_status_names_every_url_and_a_restart_loop(start_node):
    loops = shell("exit 3", restart="restart-always")
    started = start_node(node(loops))
    started.says("worker2 is started again in 800 ms")
    said = crosstie("status", "--cbdir", started.directory).stdout
    assert f"wamp: ws+unix://{started.directory}/node.sock" in said
    found = re.search("worker: worker2 is in a restart loop: it has ended (\\d+) times", said)
    assert found
    assert int(found[1]) >= 3
    assert "the last time with: exit code 3" in said


# The directory.


def test_a_second_node_is_told_about_the_first(start_node):
    started = start_node(node())
    started.says("^Ready")
    second = crosstie("start", "--cbdir", started.directory)
    assert second.returncode == 2
    assert f"process {started.process.pid}" in second.stderr
    assert answer(started, "crossbar.get_workers") == ["worker1"]


def test_files_of_a_killed_node_are_taken_over(start_node):
    first = start_node(node())
    first.says("^Ready")
    key = (first.directory / "key.pub").read_text()
    first.kill()
    assert (first.directory / "node.sock").is_socket()
    second = start_node()
    second.says("^Ready")
    with RawSocket.unix(second.directory / "node.sock").shake_hands().join() as peer:
        peer.round_trip()
    assert (second.directory / "key.pub").read_text() == key


def test_a_port_in_use_is_named(start_node):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        configuration = node(guest("sleep", "1000"))
        endpoint = {**config.tcp(), "port": port}
        configuration["workers"][0]["transports"].append(config.universal("tcp", endpoint))
        started = start_node(configuration)
        assert started.exit_code() == 1
        started.says(f"cannot start worker 'worker1'.*transport tcp.*{port}", role="RAW")
    assert not (started.directory / "node.pid").exists()


def test_a_log_file(start_node):
    started = start_node(node(shell("echo hello; sleep 1000")), "--logdir", "logs")
    started.says("^hello$", role="Guest")
    assert started.stop() == 0
    text = (started.directory / "logs/node.log").read_text()
    assert "hello" in text
    assert text.endswith("Node ended\n")


def test_a_full_disk_does_not_stop_the_log(start_node, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/node.log").symlink_to("/dev/full")
    started = start_node(node(), "--logdir", "logs")
    started.says("^Ready")
    assert started.stop() == 0
    complaints = [line for line in started.log if "node.log takes no more lines" in line.text]
    assert len(complaints) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_read_only_directory(start_node, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(node(guest("sleep", "1000"))))
    configuration = json.loads((tmp_path / "config.json").read_text())
    configuration["workers"][0]["transports"] = [config.universal("tcp", config.tcp())]
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    mounted = subprocess.run(["mount", "--bind", tmp_path, tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", tmp_path], check=True)
        started = start_node()
        started.says("^Ready")
        started.says("WARNING: .*node.pid")
        started.says("WARNING: The node's key cannot be kept")
        assert started.stop() == 0
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert not (tmp_path / "key.priv").exists()


def test_old_makefiles_words_are_taken(start_node, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(node()))
    command = [str(binary()), "edge", "start", "--cbdir", str(tmp_path), "--color", "false"]
    command += ["--logformat", "syslogd", "--shutdownafter", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "WARNING: --color" in done.stderr
    assert "WARNING: --logformat" in done.stderr
    done = crosstie("standalone", "status", "--cbdir", tmp_path, "--assert", "stopped")
    assert done.returncode == 0


def test_crossbars_directory_is_told_about_timeouts(tmp_path):
    directory = tmp_path / ".crossbar"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(node()))
    done = crosstie("start", "--shutdownafter", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("timeouts of calls count milliseconds") == 1


def test_the_embedded_default_writes_nothing(tmp_path):
    done = crosstie("start", "--listen", "127.0.0.1:0", "--shutdownafter", "0.1", cwd=tmp_path)
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


# The management realm.


def test_the_node_tells_about_itself(start_node):
    started = start_node(node(guest("sleep", "1000")))
    started.says("^Ready")
    status = answer(started, "crossbar.get_status")
    assert status["pid"] == started.process.pid
    assert status["workers_by_type"] == {"guest": 1, "router": 1}
    assert status["directory"] == str(started.directory)
    key = answer(started, "crossbar.get_public_key")
    started.says(f"Node Public Key: {key}")
    assert answer(started, "crossbar.get_system_stats")["memory"]["total"] > 0


def test_only_the_nodes_user_reaches_it(start_node):
    started = start_node(node())
    started.says("^Ready")
    known = json.loads((started.directory / "node.pid").read_text())
    path = Path(known["management"].removeprefix("rs+unix://"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert started.stop() == 0
    assert not path.parent.exists()


def test_workers_are_started_and_stopped(start_node):
    started = start_node(node(shutdown="shutdown_on_worker_exit"))
    started.says("^Ready")
    options = {"executable": "sh", "arguments": ["-c", "echo hi; sleep 1000"]}
    about = answer(started, "crossbar.start_worker", "mine", "guest", options)
    assert about["status"] == "started"
    assert is_alive(about["pid"])
    assert answer(started, "crossbar.get_workers") == ["worker1", "mine"]
    assert answer(started, "crossbar.get_workers", ["guest"]) == ["mine"]
    started.says("^hi$", role="Guest")
    log = answer(started, "crossbar.get_worker_log", "mine", 10)
    assert log == [{"level": "info", "text": "hi"}]
    again = answer(started, "crossbar.restart_worker", "mine")
    assert again["pid"] != about["pid"]
    assert not is_alive(about["pid"])
    assert answer(started, "crossbar.stop_worker", "mine")["id"] == "mine"
    await_true("it is gone", lambda: not is_alive(again["pid"]))
    assert answer(started, "crossbar.get_workers") == ["worker1"]
    assert started.stop() == 0


def test_each_of_those_who_ask_at_once_is_answered(start_node, tmp_path):
    goodbye = "until test -e go; do sleep 0.05; done; exit"
    script = f"trap '{goodbye}' TERM; echo set; while :; do sleep 0.05; done"
    started = start_node(node(shell(script)))
    started.says("^set$", role="Guest")
    with started.management() as session:

        def send(procedure: str) -> int:
            return session.ask(CALL, {}, procedure, ["worker2"], {})

        restart = send("crossbar.restart_worker")
        await_true(
            "it is asked to end",
            lambda: answer(started, "crossbar.get_worker", "worker2")["status"] == "stopping",
        )
        stop = send("crossbar.stop_worker")
        too_late = send("crossbar.restart_worker")
        refused = "crossbar.error.not_running worker 'worker2' is being stopped"
        assert replies(session, too_late) == {too_late: refused}
        again = send("crossbar.stop_worker")
        (tmp_path / "go").touch()
        assert replies(session, restart, stop, again) == {
            restart: "crossbar.error.not_running worker 'worker2' was stopped",
            stop: "",
            again: "",
        }
    assert answer(started, "crossbar.get_workers") == ["worker1"]


def test_events_tell_of_each_run(start_node):
    started = start_node(node(guest("sleep", "1000")))
    first = pid_of(started.says("^Guest with ID 'worker2'"))
    started.says("^Ready")
    name = answer(started, "crossbar.get_status")["id"]
    with started.management() as session:
        session.listen("crossbar.node.", match="prefix")

        def next_event(what: str) -> tuple[str, object]:
            [about] = session.await_event(f"crossbar.node.{name}.on_worker_{what}")
            return about["id"], about["pid"]

        second = session.call("crossbar.restart_worker", "worker2")["pid"]
        assert next_event("stopped") == ("worker2", first)
        assert next_event("starting") == ("worker2", None)
        assert next_event("started") == ("worker2", second)
        session.call("crossbar.stop_worker", "worker2")
        assert next_event("stopped") == ("worker2", second)
        transport = {"type": "rawsocket", "endpoint": config.unix("no/such/directory")}
        with pytest.raises(RefusedError, match="cannot_start"):
            session.call("crossbar.start_worker", "vain", "router", {"transports": [transport]})
        assert next_event("starting") == ("vain", None)
        assert next_event("stopped") == ("vain", started.process.pid)
        assert session.events == []


def test_a_limit_is_not_negative(start_node):
    started = start_node(node())
    started.says("^Ready")
    with (
        started.management() as session,
        pytest.raises(RefusedError, match="'limit': expected 0 to 1000, got -1"),
    ):
        session.call("crossbar.get_worker_log", "worker1", -1)


def test_a_deaf_worker_can_be_killed(start_node):
    started = start_node(node(shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done")))
    started.says("^deaf$", role="Guest")
    assert answer(started, "crossbar.stop_worker", "worker2", True)["id"] == "worker2"


@pytest.mark.parametrize(
    ("procedure", "arguments", "wanted"),
    [
        ("get_worker", [], "wamp.error.invalid_argument"),
        ("get_worker", [5], "wamp.error.invalid_argument"),
        ("get_worker", ["nobody"], "crossbar.error.no_such_worker"),
        ("get_worker_log", ["worker1", "many"], "wamp.error.invalid_argument"),
        ("stop_worker", ["nobody"], "crossbar.error.no_such_worker"),
        ("restart_worker", ["worker1"], "wamp.error.invalid_argument"),
        ("start_worker", ["worker1", "router"], "crossbar.error.worker_already_running"),
        ("start_worker", ["other", "car"], "crossbar.error.invalid_configuration"),
        ("start_worker", ["other", "router", 5], "wamp.error.invalid_argument"),
        ("start_worker", ["other", "guest", {}], "executable"),
        ("start_worker", ["other", "guest", {"executable": "no-such"}], "cannot_start"),
        ("worker.worker2.get_router_realms", [], "worker 'worker2' is no router"),
        ("worker.nobody.get_router_realms", [], "crossbar.error.no_such_worker"),
        ("worker.worker1.get_router_realm", ["nowhere"], "crossbar.error.no_such_object"),
        ("worker.worker1.stop_router_transport", ["none"], "crossbar.error.no_such_object"),
        ("worker.worker1.start_router_realm", ["a"], "wamp.error.invalid_argument"),
        ("worker.worker1.start_router_realm", ["a", {"nam": "b"}], "did you mean"),
        ("worker.worker1.start_router_realm", ["realm1", {"name": "b"}], "already_running"),
        ("worker.worker1.start_router_realm", ["a", {"name": "realm1"}], "already_running"),
        ("worker.worker1.get_monitoring", [], "no host monitor"),
        ("worker.worker1.stop_router_component", ["none"], "crossbar.error.no_such_object"),
        (
            "worker.worker1.start_router_component",
            ["new", {"type": "class", "classname": "a.B", "realm": "realm9", "role": "red"}],
            "there is no realm named 'realm9'",
        ),
        (
            "worker.worker1.start_router_component",
            ["new", {"type": "class", "classname": "a.B", "realm": "realm1", "role": "nobody"}],
            "there is no role named 'nobody' in realm 'realm1'",
        ),
    ],
)
def test_wrong_calls_have_clear_errors(shared_node, procedure, arguments, wanted):
    assert wanted in error(shared_node, f"crossbar.{procedure}", *arguments)
    assert answer(shared_node, "crossbar.get_workers") == ["worker1", "worker2"]


@pytest.fixture(scope="module")
def shared_node(tmp_path_factory) -> Iterator[Node]:
    """A node that every wrong call leaves as it was."""
    started = Node(tmp_path_factory.mktemp("shared"), node(guest("sleep", "1000")))
    started.says("^Ready")
    yield started
    started.close()


def test_realms_roles_and_transports_come_and_go(start_node):
    started = start_node(node())
    started.says("^Ready")
    of = "crossbar.worker.worker1."
    assert answer(started, of + "get_router_realms") == ["realm1"]
    assert answer(started, of + "get_router_realm_roles", "realm1") == ["role1", "role2"]
    assert answer(started, of + "get_router_transports") == ["unix"]

    answer(started, of + "start_router_realm", "extra", {"name": "second"})
    answer(started, of + "start_router_realm_role", "extra", "all", config.role("anonymous"))
    transport = {"type": "rawsocket", "endpoint": config.unix("second.sock")}
    urls = answer(started, of + "start_router_transport", "more", transport)["urls"]
    url = f"rs+unix://{started.directory}/second.sock"
    assert urls == [url]

    done = crosstie("publish", "com.x", "--acknowledge", "--url", url, "--realm", "second")
    assert done.returncode == 0, done.stderr
    about = answer(started, of + "get_router_realm", "extra")
    assert (about["name"], about["roles"]) == ("second", ["all"])
    assert answer(started, of + "get_router_realm_role", "extra", "all")["name"] == "anonymous"
    assert answer(started, of + "get_router_realm_role", "extra", "anonymous")["id"] == "all"
    assert answer(started, of + "get_router_transport", "more")["type"] == "rawsocket"

    answer(started, of + "stop_router_transport", "more")
    assert not (started.directory / "second.sock").exists()
    answer(started, of + "stop_router_realm_role", "extra", "all")
    answer(started, of + "stop_router_realm", "extra")
    assert answer(started, of + "get_router_realms") == ["realm1"]
    assert answer(started, of + "get_router_transports") == ["unix"]


def test_events_tell_what_happens(start_node):
    started = start_node(node())
    started.says("^Ready")
    known = json.loads((started.directory / "node.pid").read_text())
    where = ("--url", known["management"], "--realm", "crossbar")
    listener = subprocess.Popen(
        [str(binary()), "subscribe", "crossbar.", "--match", "prefix", "--count", "4", *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert listener.stderr is not None
    assert "subscribed" in listener.stderr.readline()
    answer(
        started,
        "crossbar.start_worker",
        "mine",
        "guest",
        {"executable": "sleep", "arguments": ["99"]},
    )
    answer(started, "crossbar.stop_worker", "mine")
    answer(started, "crossbar.worker.worker1.start_router_realm", "new", {"name": "new"})
    said = listener.communicate(timeout=DEADLINE_S)[0]
    for what in ("mine", "new"):
        assert what in said, said


def test_a_host_monitor_publishes(start_node):
    started = start_node(node({"type": "hostmonitor", "options": {"interval": 100}}))
    started.says("HostMonitor with ID 'worker2'")
    started.says("^Ready")
    known = json.loads((started.directory / "node.pid").read_text())
    topic = "crossbar.worker.worker2.on_stats"
    where = ("--url", known["management"], "--realm", "crossbar")
    done = crosstie("subscribe", topic, "--count", "2", *where)
    assert done.stdout.count('"cpu"') == 2, done.stderr
    of = "crossbar.worker.worker2."
    assert answer(started, of + "get_monitoring")["is_monitoring"] is True
    answer(started, of + "stop_monitoring")
    assert "not_running" in error(started, of + "stop_monitoring")
    answer(started, of + "start_monitoring")


def test_a_shutdown_can_be_asked_for(start_node):
    started = start_node(node(guest("sleep", "1000")))
    started.says("^Ready")
    assert answer(started, "crossbar.shutdown")["pid"] == started.process.pid
    assert started.exit_code() == 0
    started.says("Shutdown requested in the management realm")
