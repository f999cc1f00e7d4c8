"""The fixtures: one router for all links, puppets that are started once, sessions that end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import certificates, config, links
from rig.failing import HAS_FAILED
from rig.links import Link
from rig.plain import Plain
from rig.process import Process
from rig.puppet import Puppet, Session
from rig.rawsocket import RawSocket
from rig.relay import Relay
from rig.router import Line, Router
from rig.waiting import DEADLINE_S, await_true

pytest_plugins = ["rig.hosting", "rig.brokers", "rig.machines", "rig.console_page", "hostile.stage"]

DISCLOSED = "com.disclosed"
FORBIDDEN = "com.forbidden"


def pytest_sessionstart() -> None:
    """Let what is started here hear every signal, also where the tests run under `nohup`."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Have fixtures know whether their test has failed."""
    report = yield
    item.stash[HAS_FAILED] = report.failed or item.stash.get(HAS_FAILED, False)
    return report


@pytest.fixture(scope="session")
def certificate_directory(tmp_path_factory) -> Path:
    """Make the authority and the server's certificate of this run."""
    directory = tmp_path_factory.mktemp("certificates")
    certificates.write(directory)
    return directory


@pytest.fixture(scope="session")
def router(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """The router that all links lead to; its exit after all that is a test of its own."""
    running = Router(tmp_path_factory.mktemp("router"), config=everything(certificate_directory))
    yield running
    running.stop()


def everything(certificate_directory: Path) -> dict:
    """Every transport, and roles for behaviour that depends on the identity."""
    anonymous = config.role(
        "anonymous",
        config.permission("*"),
        config.permission(f"{DISCLOSED}.*", disclose=True),
        config.permission(f"{FORBIDDEN}.*", call=False),
    )
    realms = [
        {"name": "realm1", "roles": [anonymous, config.role("red"), config.role("blue")]},
        {"name": "realm2", "roles": [config.role("anonymous")]},
    ]
    paths = {
        "ws": {},
        "/": {},
        "red": {"auth": config.static("red", "ruby")},
        "blue": {"auth": config.static("blue", "bert")},
    }
    requests = {"lp": {"type": "longpoll"}}
    return config.node(
        realms,
        [
            config.universal("tcp", config.tcp(), websocket=paths, web={"paths": requests}),
            config.universal("unix", config.unix()),
            config.universal("tls", config.tls(certificate_directory)),
        ],
    )


@pytest.fixture(scope="session")
def puppets(certificate_directory: Path) -> Iterator[Callable[[str], Puppet]]:
    """Client processes, each started when it is first needed."""
    running: dict[str, Puppet] = {}

    def puppet(client: str) -> Puppet:
        # One that has died fails the test that used it, and no other.
        if client in running and running[client].has_ended:
            running.pop(client).close()
        if client not in running:
            running[client] = Puppet(client, certificate_directory / "ca.pem")
        return running[client]

    yield puppet
    for each in running.values():
        each.close()


@pytest.fixture(params=links.ALL, ids=str)
def link(request) -> Link:
    """Every way in turn."""
    return request.param


@pytest.fixture
def place_of(router: Router, certificate_directory: Path) -> Callable[..., dict]:
    """Say where a link finds the router."""

    def place(link: Link, path: str = "/ws", of: Router | None = None) -> dict:
        return where(of or router, link, path, certificate_directory)

    return place


def where(router: Router, link: Link, path: str, certificate_directory: Path) -> dict:
    """Return the address of the transport named like `link.over`, as puppets take it."""
    place = {"kind": link.kind, "over": link.over, "serializer": link.serializer}
    if link.over == "unix":
        socket = str(router.directory / "router.sock")
        url = f"ws+unix:{socket}:{path}" if link.is_javascript else f"ws://localhost{path}"
        return {**place, "path": socket, "url": url}
    host, port = router.address(link.over)
    if link.kind == "lp":
        name = path.removeprefix("/ws").replace("/", "-")
        return {**place, "url": f"http://{host}:{port}/lp{name}"}
    scheme = "wss" if link.over == "tls" else "ws"
    name = "localhost" if link.over == "tls" else host
    return {
        **place,
        "host": host,
        "port": port,
        "url": f"{scheme}://{name}:{port}{path}",
        "authority": str(certificate_directory / "ca.pem"),
    }


@pytest.fixture
def new_session(puppets) -> Iterator[Callable[[str], Session]]:
    """Make sessions that are not open yet; what the test leaves open is dropped after it."""
    sessions: list[Session] = []

    def new(client: str) -> Session:
        session = puppets(client).session()
        sessions.append(session)
        return session

    yield new
    for session in sessions:
        if session.details:
            session.puppet.start({"session": session.name, "do": "drop"}).exception(DEADLINE_S)
        session.puppet.forget(session)


@pytest.fixture
def open_link(new_session, place_of) -> Callable[..., Session]:
    """Open sessions over a link."""

    def open_(link: Link, path: str = "/ws", realm: str = "realm1") -> Session:
        return new_session(link.client).open(place_of(link, path), realm)

    return open_


@pytest.fixture
def session(link: Link, open_link) -> Session:
    """One session over the link under test."""
    return open_link(link)


@pytest.fixture
def other(link: Link, open_link) -> Session:
    """A second session over the link under test."""
    return open_link(link)


@pytest.fixture
def uri(request) -> str:
    """A URI that no other test uses."""
    return f"com.test.n{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def start_router(tmp_path, request) -> Iterator[Callable[..., Router]]:
    """Start routers of the test's own; they must end cleanly with it."""
    running: list[Router] = []

    def start(configuration: dict | None = None, *arguments: str) -> Router:
        directory = tmp_path / f"node{len(running)}"
        directory.mkdir()
        started = Router(directory, *arguments, config=configuration)
        running.append(started)
        return started

    yield start
    if request.node.stash.get(HAS_FAILED, False):
        for each in running:
            print(each.told())
    for each in running:
        each.stop()


@pytest.fixture
def start_process() -> Iterator[Callable[..., Process]]:
    """Start programs; they end with the test."""
    started: list[Process] = []

    def start(*command: object) -> Process:
        process = Process(*command)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


@pytest.fixture
def start_relay() -> Iterator[Callable[[tuple[str, int]], Relay]]:
    """Put relays before servers; they end with the test."""
    started: list[Relay] = []

    def start(target: tuple[str, int]) -> Relay:
        relay = Relay(target)
        started.append(relay)
        return relay

    yield start
    for relay in started:
        relay.close()


class Abused:
    """A router that is shared by tests which mistreat it, with a session that must not notice."""

    def __init__(self, router: Router, witness: RawSocket):
        self.router = router
        self.witness = witness
        self.since = len(router.log)
        self.faults = router.metric("peer_faults_total")

    def address(self, transport: str) -> tuple[str, int]:
        """Return where the router listens."""
        return self.router.address(transport)

    def expect_fault(self, peer: Plain) -> Line:
        """The log names the peer, the fault is counted."""
        line = self.router.await_fault(self.since, peer.name)
        assert line.text, line
        await_true(
            "the fault is counted",
            lambda: self.router.metric("peer_faults_total") > self.faults,
        )
        return line

    def await_connections(self, count: float) -> None:
        """Wait until so many connections are left."""
        await_true(
            f"{count} connections are left",
            lambda: self.router.metric("connections") == count,
        )


# The log tells at most so many faults in a second, so a router sees no more of them in all.
FAULTS_MAX = 16


@pytest.fixture(scope="session")
def abused_routers(tmp_path_factory) -> Iterator[Callable[[], tuple[Router, RawSocket]]]:
    """Routers for `abused` with their witnesses; each serves until it has seen enough faults."""
    running: list[tuple[Router, RawSocket]] = []

    def stop() -> None:
        while running:
            router, witness = running.pop()
            witness.close()
            router.stop()

    def current() -> tuple[Router, RawSocket]:
        if running and running[0][0].count_faults() > FAULTS_MAX:
            stop()
        if not running:
            router = Router(tmp_path_factory.mktemp("abused"), config=config.plain())
            witness = RawSocket.tcp(router.address("tcp")).shake_hands().join()
            running.append((router, witness))
        return running[0]

    yield current
    stop()


@pytest.fixture
def abused(abused_routers) -> Iterator[Abused]:
    """A router to mistreat; afterwards the witness and a newcomer must be served as ever."""
    router, witness = abused_routers()
    yield Abused(router, witness)
    witness.round_trip()
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as newcomer:
        newcomer.round_trip()
