"""Clients that are there again after a stop: real ones, used as documented, all at once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.node import management
from rig.rabbitmq import free_ports
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import CALL, EVENT, PUBLISH, RESULT
from rig.waiting import await_true

from strangers.returning.program import Program
from strangers.returning.table import hold

HERE = Path(__file__).parent
PROGRAMS = HERE / "returning"
AMQP_JS = HERE / "js/returning.js"
WAMP_JS = ROOT / "conformance/js"
AUTOBAHN = WAMP_JS / "node_modules/autobahn-browser/autobahn.min.js"
FRAMEWORKS = ROOT / "target/frameworks/venv/bin"
ANSWERS = "returning.answers"
# The slowest waits 5 s between two attempts; a browser needs seconds to start on a loaded machine.
PATIENCE_S = 30

pytestmark = pytest.mark.timeout(240)

Way = Callable[[], None]


class Place:
    """A node at ports that it has again after its next start."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.wamp, self.amqp = free_ports(2)
        page = {"type": "static", "directory": "pages"}
        site = {
            "type": "web",
            "id": "site",
            "endpoint": {**config.tcp(), "port": self.wamp},
            "paths": {"/": page, "ws": {"type": "websocket"}},
        }
        broker = {"type": "amqp", "id": "amqp", "endpoint": {**config.tcp(), "port": self.amqp}}
        self.config = config.plain(site, broker, config.universal("tcp", config.tcp()))
        self.url = f"ws://127.0.0.1:{self.wamp}/ws"
        self.amqp_url = f"amqp://guest:guest@127.0.0.1:{self.amqp}"
        self.router = Router(directory, config=self.config)

    def start(self) -> None:
        """Start it again."""
        self.router = Router(self.directory, config=self.config)

    def stop(self) -> None:
        """Stop it in order while a client is connected that answers nothing, and start it again."""
        with socket.create_connection(("127.0.0.1", self.amqp)) as silent:
            Peer(silent).open("guest", "guest")
            self.router.stop()
            self.start()

    def kill(self) -> None:
        """Kill it as a machine that fails does, and start it again."""
        self.router.kill()
        self.router.process.returncode = 0
        self.start()

    def restart_realm(self) -> None:
        """Have the operator stop the realm and start it again."""
        with management(self.directory) as operator:
            realm = self.config["workers"][0]["realms"][0]
            operator.call("crossbar.worker.worker1.stop_router_realm", "realm1")
            operator.call("crossbar.worker.worker1.start_router_realm", "realm1", realm)

    def kill_sessions(self) -> None:
        """Have a session of the realm end all others by the meta API."""
        with RawSocket.tcp(self.router.address("tcp")).shake_hands().join() as killer:
            killer.ask(CALL, {}, "wamp.session.kill_all")
            killer.hear(RESULT)


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    """A node that can be ended and started again."""
    pages = tmp_path / "pages"
    shutil.copytree(HERE / "pages", pages)
    shutil.copy(AUTOBAHN, pages)
    place = Place(tmp_path)
    yield place
    place.router.stop()


@pytest.fixture
def run(tmp_path) -> Iterator[Callable[..., Program]]:
    """Run clients' programs, which end with the test."""
    running: list[Program] = []

    def run(name: str, *command: object, **environment: str) -> Program:
        log = tmp_path / f"{name.replace('/', '.').replace('|', '.')}.log"
        running.append(Program(name, list(command), log, **environment))
        return running[-1]

    yield run
    for program in running:
        program.end()


# --- AMQP


class Amqp:
    """One of AMQP's clients: it answers what it is sent, by its own connection or to the test."""

    def __init__(self, program: Program, queue: str | None):
        self.program, self.queue = program, queue

    def ping(self, channel: pika.channel.Channel, token: str) -> None:
        """Send it a message, which it may find when it is there again."""
        if self.queue is None:
            self.program.tell(token)
            return
        body = json.dumps({"pattern": "ping", "data": token})
        properties = pika.BasicProperties(delivery_mode=2, content_type="application/json")
        channel.basic_publish("", self.queue, body, properties)


def amqp_clients(run: Callable[..., Program], place: Place) -> list[Amqp]:
    """Start all of them."""

    def consumer(name: str, *command: object) -> Amqp:
        queue = f"returning.{name}"
        return Amqp(run(name, *command, place.amqp_url, queue), queue)

    javascript = [
        "amqp-connection-manager",
        "@golevelup/nestjs-rabbitmq",
        "@nestjs/microservices",
        "rascal",
        "foo-foo-mq",
        "rabbitmq-client",
    ]
    clients = [consumer(name, "node", AMQP_JS, name) for name in javascript]
    clients.append(consumer("bunny", "ruby", PROGRAMS / "bunny.rb"))
    clients.append(consumer("aio-pika", FRAMEWORKS / "python", PROGRAMS / "aiopika.py"))
    clients.append(Amqp(run("moleculer", "node", AMQP_JS, "moleculer", place.amqp_url, "-"), None))
    celery = {"BROKER": place.amqp_url, "PYTHONPATH": str(PROGRAMS), "PYTHONUNBUFFERED": "1"}
    worker = ["-m", "celery", "-A", "tasks", "worker", "-P", "solo", "--loglevel", "WARNING"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    run("celery worker", FRAMEWORKS / "python", *worker, **celery)
    publisher = run("celery", FRAMEWORKS / "python", PROGRAMS / "tasks.py", **celery)
    clients.append(Amqp(publisher, None))
    return clients


def answers(channel: pika.channel.Channel, heard: list[str]) -> list[str]:
    """Collect what has come."""
    while (found := channel.basic_get(ANSWERS, auto_ack=True))[0]:
        heard.append(found[2].decode())
    return heard


def ping_all(place: Place, clients: list[Amqp], programs: list[Program], token: str) -> set[str]:
    """Send each a message; return who has answered in time."""
    with pika.BlockingConnection(pika.URLParameters(place.amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare(ANSWERS, durable=True)
        for client in clients:
            client.ping(channel, token)
        heard: list[str] = []

        def answered() -> set[str]:
            answers(channel, heard)
            lines = [line for program in programs for line in program.lines]
            names = {client.program.name for client in clients}
            return {n for n in names if any(f"{n} {token}" in said for said in [*heard, *lines])}

        deadline = time.monotonic() + PATIENCE_S
        while len(answered()) < len(clients) and time.monotonic() < deadline:
            connection.process_data_events(0.1)
        return answered()


def test_clients_of_amqp_are_back_after_a_restart(place, run):
    programs: list[Program] = []

    def remember(*arguments: object, **more: str) -> Program:
        programs.append(run(*arguments, **more))
        return programs[-1]

    with pika.BlockingConnection(pika.URLParameters(place.amqp_url)) as connection:
        connection.channel().queue_declare(ANSWERS, durable=True)
    clients = amqp_clients(remember, place)
    for client in clients:
        is_there = lambda client=client: client.program.says("there")  # noqa: E731
        await_true(f"{client.program.name} is there", is_there, PATIENCE_S)
    everybody = {client.program.name for client in clients}
    assert ping_all(place, clients, programs, "first") == everybody
    ways: dict[str, Way] = {"stop": place.stop, "kill -9": place.kill}
    outcomes: dict[str, dict[str, bool]] = {name: {} for name in everybody}
    for way, end in ways.items():
        end()
        answered = ping_all(place, clients, programs, f"after-{way.split()[0]}")
        for name in everybody:
            outcomes[name][way] = name in answered
    hold("clients of AMQP", list(ways), outcomes)


# --- WAMP


class Browser(Program):
    """A page in Chromium; what it says comes by the realm."""

    def hear(self, said: list[str]) -> None:
        """Note what it has said."""
        self.lines += said


def wamp_clients(run: Callable[..., Program], place: Place, directory: Path) -> list[Program]:
    """Start all of them."""
    component = [sys.executable, PROGRAMS / "component.py", place.url]
    clients = [
        run("Autobahn|JS in Node.js", "node", WAMP_JS / "returning.js", place.url),
        run("wampy", "node", WAMP_JS / "returning.mjs", place.url),
        run("Autobahn|Python, asyncio", *component, "asyncio"),
        run("Autobahn|Python, Twisted", *component, "twisted"),
    ]
    if "browser" not in os.environ.get("CROSSTIE_WITHOUT", "") and shutil.which("chromium"):
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-extensions", "--disable-sync"]
        command += ["--disable-component-update", "--disable-dev-shm-usage"]
        command += ["--remote-debugging-port=0", f"--user-data-dir={directory}/profile"]
        page = f"http://127.0.0.1:{place.wamp}/returning.html"
        clients.append(run("Autobahn|JS in Chromium", *command, page))
    return clients


def publish_until_heard(place: Place, clients: list[Program], token: str) -> set[str]:
    """Publish until each client has had it or says that it stays away; return who has had it."""
    heard: set[str] = set()
    since = {client.name: len(client.lines) for client in clients}
    with RawSocket.tcp(place.router.address("tcp")).shake_hands().join() as publisher:
        page = publisher.subscribe("com.returning.page")
        browser = [client for client in clients if "Chromium" in client.name]
        deadline = time.monotonic() + PATIENCE_S
        left = set(since)
        publisher.socket.settimeout(0.2)
        while left and time.monotonic() < deadline:
            publisher.say(PUBLISH, next(publisher.requests), {}, "com.returning", [token])
            try:
                while True:
                    event = publisher.hear(EVENT)
                    assert event[1] == page
                    for client in browser:
                        client.lines += event[4]
            except TimeoutError:
                pass
            for client in clients:
                if client.says(f"got {token}", 0):
                    heard.add(client.name)
                    left.discard(client.name)
                elif client.says("away", since[client.name]):
                    left.discard(client.name)
    return heard


def test_clients_of_wamp_are_back_after_a_restart(place, run, tmp_path):
    clients = wamp_clients(run, place, tmp_path)
    everybody = {client.name for client in clients}
    assert publish_until_heard(place, clients, "first") == everybody
    ways: dict[str, Way] = {
        "stop": place.stop,
        "kill -9": place.kill,
        "realm restarted": place.restart_realm,
        "killed by the meta API": place.kill_sessions,
    }
    outcomes: dict[str, dict[str, bool]] = {name: {} for name in everybody}
    for way, end in ways.items():
        end()
        heard = publish_until_heard(place, clients, f"after-{way}")
        for name in everybody:
            outcomes[name][way] = name in heard
    if "Autobahn|JS in Chromium" not in everybody:
        pytest.skip(f"there is no chromium; the others: {outcomes}")
    hold("clients of WAMP", list(ways), outcomes)
