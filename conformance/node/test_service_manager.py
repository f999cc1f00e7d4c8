"""The node as a service: the messages to its manager, and when the watchdog starves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from rig import config, tracer
from rig.node import Node
from rig.rawsocket import RawSocket
from rig.service_manager import NotifySocket, start
from rig.waiting import DEADLINE_S


@pytest.fixture(params=["path", "name"])
def manager(request, tmp_path, monkeypatch) -> Iterator[NotifySocket]:
    """Start routers under a manager that listens at a path, or at an abstract name."""
    of_kind = {"path": f"{tmp_path}/notify", "name": f"@crosstie-{os.getpid()}-{tmp_path.name}"}
    listens = NotifySocket(of_kind[request.param])
    monkeypatch.setenv("NOTIFY_SOCKET", listens.address)
    yield listens
    listens.close()


def starts_with(*words: str):
    """Return whether a message begins with these words."""
    return lambda message: message.startswith(words)


def sends(manager: NotifySocket, word: str, since: int = 0) -> int:
    """Await a message; return the number after it."""
    return manager.awaits(starts_with(word), DEADLINE_S, since)


def test_a_manager_is_told_of_ready_and_stop(start_router, manager):
    router = start_router(config.plain())
    assert sends(manager, "READY=1\nSTATUS=Transports listen") == 1
    sends(manager, "STATUS=Ready")
    RawSocket.tcp(router.address("tcp")).shake_hands().join().close()
    router.signal(signal.SIGTERM)
    assert router.exit_code() == 0
    sends(manager, "STOPPING=1")
    # Without WATCHDOG_USEC there is no watchdog to feed.
    assert not any(map(starts_with("WATCHDOG=1"), manager.messages))


def test_a_manager_hears_nothing_of_a_node_that_does_not_start(tmp_path, manager):
    taken = config.plain(config.universal("one", config.unix("missing/s.sock")))
    done = start(tmp_path, taken)
    assert done.returncode == 1, done.stderr
    assert manager.messages == []


@pytest.mark.parametrize("manager", ["path"], indirect=True)
@pytest.mark.parametrize("name", ["worker0", "keeper"])
def test_a_blocked_thread_starves_the_watchdog(start_router, manager, monkeypatch, name):
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    router = start_router(config.plain())
    fed = sends(manager, "WATCHDOG=1")
    sends(manager, "WATCHDOG=1", fed)
    # The management realm has threads of these names, too; the watchdog waits for all.
    with tracer.stopped(tracer.thread(router.process.pid, name)):
        line = router.await_log(
            lambda line: (
                line.text.startswith("The watchdog is not fed")
                and f"{name} of worker '" in line.text
            )
        )
        assert line.level == "ERROR"
        said, starved = len(router.log), len(manager.messages)
    router.await_log(lambda line: "the watchdog is fed" in line.text, said)
    sends(manager, "WATCHDOG=1", starved)


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_stopped_worker_does_not_starve_the_watchdog(tmp_path, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    configuration = config.plain()
    [first] = configuration["workers"]
    second = config.plain(config.universal("two", config.unix("two.sock")))["workers"][0]
    configuration["workers"] = [{**first, "id": "first"}, {**second, "id": "second"}]
    configuration["controller"] = {"options": {"shutdown": ["shutdown_on_last_worker_exit"]}}
    node = Node(tmp_path, configuration)
    try:
        node.says("Ready")
        with node.management() as controller:
            controller.call("crossbar.stop_worker", "second")
        # Longer than a thread may go without a turn.
        fed = len(manager.messages)
        for _ in range(5):
            fed = sends(manager, "WATCHDOG=1", fed)
    finally:
        node.close()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NOTIFY_SOCKET": "vsock:2:1"}, "NOTIFY_SOCKET='vsock:2:1': expected the path"),
        (
            {"NOTIFY_SOCKET": "@nobody", "WATCHDOG_USEC": "soon"},
            "WATCHDOG_USEC='soon': expected a number of microseconds",
        ),
    ],
)
def test_a_manager_that_cannot_be_understood_is_an_error(tmp_path, variables, expected):
    done = start(tmp_path, config.plain(), environment=variables)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr


def test_a_manager_that_listens_no_more_does_not_hinder_the_node(start_router, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", f"@crosstie-gone-{os.getpid()}")
    router = start_router(config.plain())
    router.await_log(lambda line: "cannot send READY=1 to the service manager" in line.text)
    RawSocket.tcp(router.address("tcp")).shake_hands().join().close()
