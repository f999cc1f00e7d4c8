"""`crosstie drain`: clients leave in slices, listeners close, and `undrain` opens them again."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import CALL, INVOCATION, RESULT, YIELD
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import WebSocket

CONNECTION_FORCED = 320
ADMIN = {"endpoint": config.unix("admin.sock"), "pages": ["health"]}


def command(router: Router, *arguments: str) -> list[str]:
    """Return the command line about a node."""
    verb, *options = arguments
    return [str(binary()), verb, "--cbdir", str(router.directory), *options]


def run(router: Router, *arguments: str, code: int = 0) -> str:
    """Run a command; return all that it says."""
    done = subprocess.run(
        command(router, *arguments), capture_output=True, text=True, timeout=4 * DEADLINE_S
    )
    assert done.returncode == code, done
    return done.stdout + done.stderr


@pytest.fixture
def begin():
    """Begin a command that waits; whatever is left at the end is killed."""
    begun = []

    def start(router: Router, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command(router, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a command; return its exit code and all that it said."""
    said, _ = process.communicate(timeout=4 * DEADLINE_S)
    return process.returncode, said


def ready(router: Router) -> tuple[int, str]:
    """Ask the public listener."""
    host, port = router.address("tcp")
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/ready", timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def of_admin(router: Router, path: str) -> tuple[int, str]:
    """Ask the operators' listener."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.settimeout(DEADLINE_S)
        connected.connect(str(router.directory / "admin.sock"))
        connected.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = b""
        while not answer.partition(b"\r\n\r\n")[2].endswith(b"\n"):
            octets = connected.recv(4096)
            assert octets, answer
            answer += octets
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def is_refused(address: tuple[str, int]) -> bool:
    """Say whether nobody listens."""
    try:
        socket.create_connection(address, timeout=DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


def join(router: Router) -> RawSocket:
    """Join the realm."""
    return RawSocket.tcp(router.address("tcp")).shake_hands().join()


def followed(ends: list[Callable[[], None]]) -> tuple[list[threading.Thread], list[int]]:
    """Follow peers, each on a thread; also return the list that those that end are added to."""
    gone: list[int] = []

    def follow(number: int) -> None:
        with contextlib.suppress(ClosedError):
            ends[number]()
        gone.append(number)

    threads = [threading.Thread(target=follow, args=[n], daemon=True) for n in range(len(ends))]
    for thread in threads:
        thread.start()
    return threads, gone


def test_a_draining_node_says_so_and_serves_everybody_until_its_grace_is_over(start_router, begin):
    router = start_router(config.plain(admin=ADMIN))
    assert ready(router) == (200, "ok\n")
    with join(router) as before:
        draining = begin(router, "drain", "--grace", "1h")
        await_true("it says so", lambda: ready(router) == (503, "draining\n"))
        assert of_admin(router, "/ready") == (503, "draining\n")
        assert of_admin(router, "/health") == (200, "ok\n")
        with join(router) as during:
            before.round_trip()
            during.round_trip()
        assert run(router, "undrain") == "The drain is undone\n"
        assert ready(router) == (200, "ok\n")
        before.round_trip()
    code, said = ended(draining)
    assert (code, "the drain was undone" in said) == (1, True), said


def test_clients_leave_in_the_way_after_which_they_come_back(start_router, begin):
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    limits = {"shutdown_timeout_ms": 3_600_000}
    transports = config.universal("tcp", config.tcp()), amqp
    router = start_router(config.plain(*transports, admin=ADMIN, limits=limits))
    address = router.address("tcp")
    raw = [join(router) for _ in range(10)]
    web = [WebSocket.tcp(address).open().join() for _ in range(10)]
    broker = Peer(socket.create_connection(router.address("amqp"))).open("guest", "guest")
    callee, caller = join(router), join(router)
    callee.register("com.slow")
    call = caller.ask(CALL, {}, "com.slow")
    invocation = callee.hear(INVOCATION)
    draining = begin(router, "drain", "--grace", "0s", "--over", "1s")
    for peer in raw:
        peer.expect_end()
    for peer in web:
        peer.expect_close(1001)
    code, text, _, _ = broker.expect_connection_close()
    assert (code, "drain" in text) == (CONNECTION_FORCED, True), text
    callee.say(YIELD, invocation[1], {}, ["late"])
    result = caller.hear(RESULT)
    assert (result[1], result[3]) == (call, ["late"])
    caller.expect_end()
    callee.expect_end()
    for peer in (*raw, *web, broker, callee, caller):
        peer.close()
    assert ended(draining) == (0, "Drained; clients that left: 23\n")
    assert is_refused(address)
    assert is_refused(router.address("amqp"))
    assert of_admin(router, "/ready") == (503, "draining\n")
    # Another one has nothing to wait for.
    assert run(router, "drain") == "Drained; clients that left: 23\n"
    run(router, "undrain")
    with join(router) as again:
        again.round_trip()
    Peer(socket.create_connection(router.address("amqp"))).open("guest", "guest").leave()
    router.signal(signal.SIGTERM)
    assert router.exit_code() == 0


def test_clients_leave_one_after_another(start_router, begin):
    router = start_router(config.plain())
    peers = [join(router) for _ in range(100)]
    # A client leaves every 36 s.
    draining = begin(router, "drain", "--grace", "0s", "--over", "1h")
    threads, gone = followed([peer.expect_end for peer in peers])
    await_true("the first has left", lambda: bool(gone))
    assert len(gone) < 50
    run(router, "undrain")
    assert ended(draining)[0] == 1
    with join(router) as again:
        again.round_trip()
    router.signal(signal.SIGTERM)
    for thread in threads:
        thread.join(DEADLINE_S)
    assert len(gone) == 100
    for peer in peers:
        peer.close()
    assert router.exit_code() == 0


def test_what_would_open_listeners_is_refused_during_a_drain(start_router):
    router = start_router(config.plain())
    run(router, "drain", "--grace", "0s", "--over", "0s")
    assert "the node drains" in run(router, "reload", code=1)
    run(router, "undrain")
    assert run(router, "reload") == "No key has changed\n"
    assert "the node does not drain" in run(router, "undrain", code=1)


def test_an_address_that_another_program_has_taken_is_opened_later(start_router):
    second = config.universal("second", config.tcp())
    router = start_router(config.plain(config.universal("tcp", config.tcp()), second))
    run(router, "drain", "--grace", "0s", "--over", "0s")
    with socket.create_server(router.address("second")):
        assert "transport second of worker worker1" in run(router, "undrain", code=1)
        with join(router) as peer:
            peer.round_trip()
    assert run(router, "undrain") == "The drain is undone\n"
    with RawSocket.tcp(router.address("second")).shake_hands().join() as peer:
        peer.round_trip()


def test_a_stop_ends_a_drain(start_router, begin):
    router = start_router(config.plain())
    with join(router) as peer:
        draining = begin(router, "drain", "--grace", "1h")
        await_true("it says so", lambda: ready(router)[0] == 503)
        router.signal(signal.SIGTERM)
        peer.expect_end()
    assert router.exit_code() == 0
    assert ended(draining)[0] != 0
