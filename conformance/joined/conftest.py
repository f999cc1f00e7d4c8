"""Fixtures: a router whose WAMP and AMQP are joined, and oslo.messaging in a process of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable

import pika
import pytest
from rig import config
from rig.process import Process
from rig.puppet import Session
from rig.router import ROOT, Router

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
OSLO = TARGET / "oslo-messaging/venv/bin/python"
FRAMEWORKS = TARGET / "frameworks/venv/bin/python"
PEER = ROOT / "conformance/rig/oslo_peer.py"
EXCHANGE = "my-exchange"
AUTOBAHN = {"kind": "ws", "serializer": "cbor"}

JOINT = {"realm": "realm1", "role": "joint", "user": "joint"}
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
AMQP = {
    "users": [
        {"name": "joint", "password": "joint", "tags": ["impersonator"]},
        {"name": "test", "password": "test"},
        {"name": "weak", "password": "weak"},
    ],
    "vhosts": [
        {
            "name": "/",
            "permissions": [
                {"user": "joint", **ALL},
                {"user": "test", **ALL},
                {"user": "weak", "configure": "^weak", "write": ".*", "read": ".*"},
            ],
        }
    ],
}


def node(*joints: dict) -> dict:
    """Return a node with these joints, each of the role and user that may do everything."""
    roles = [
        config.role("anonymous", config.permission("*"), config.permission("com.*", disclose=True)),
        config.role("joint", config.permission("*", disclose=True)),
        config.role("silent", config.permission("*", subscribe=True)),
        {"name": "asked", "authorizer": "com.authorizer"},
    ]
    realm = {"name": "realm1", "roles": roles}
    transports = [
        config.universal("tcp", config.tcp()),
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
    ]
    whole = config.node([realm], transports)
    joined = [{"id": f"joint_{at}", **JOINT, **joint} for at, joint in enumerate(joints)]
    whole["workers"][0].update(amqp=AMQP, joints=joined)
    return whole


class Joined:
    """A router with joints, and the ways to both of its sides."""

    def __init__(self, router: Router, open_session: Callable[..., Session]):
        self.router = router
        self.open_session = open_session

    @property
    def url(self) -> str:
        """Return its URL for oslo.messaging and kombu."""
        host, port = self.router.address("amqp")
        return f"rabbit://test:test@{host}:{port}/"

    def session(self) -> Session:
        """Open a session of Autobahn's."""
        return self.open_session(self.router)

    def channel(self, user: str = "test") -> pika.adapters.blocking_connection.BlockingChannel:
        """Open a channel of pika's."""
        host, port = self.router.address("amqp")
        credentials = pika.PlainCredentials(user, user)
        parameters = pika.ConnectionParameters(host, port, credentials=credentials)
        return pika.BlockingConnection(parameters).channel()

    def counted(self, outcome: str, joint: str = "joint_0") -> float:
        """Return how many messages a joint has treated so."""
        return self.router.metric("joint_messages_total", joint=joint, outcome=outcome)

    def await_ready(self, *joints: str) -> None:
        """Wait until these joints are there."""
        for joint in joints:
            ready = f"Joint '{joint}' is there"
            self.router.await_log(lambda line, ready=ready: line.text == ready)


@pytest.fixture
def open_at(new_session) -> Callable[[Router], Session]:
    """Open sessions of Autobahn's at any router."""

    def open_session(router: Router) -> Session:
        host, port = router.address("tcp")
        url = f"ws://{host}:{port}/ws"
        place = {**AUTOBAHN, "over": "tcp", "host": host, "port": port, "url": url}
        return new_session("asyncio").open(place, "realm1")

    return open_session


@pytest.fixture
def joined(start_router, open_at) -> Callable[..., Joined]:
    """Start a router with joints, and wait until they are there."""

    def start(*joints: dict) -> Joined:
        started = Joined(start_router(node(*joints)), open_at)
        started.await_ready(*(f"joint_{at}" for at in range(len(joints))))
        return started

    return start


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def oslo_server(start_process, topic: str) -> Callable[..., Process]:
    """Start a server of oslo.messaging's that serves `topic`."""
    if not OSLO.exists():
        pytest.skip(f"no oslo.messaging: {OSLO} is not there")

    def start(joined: Joined, name: str = "real") -> Process:
        server = start_process(OSLO, "-P", PEER, "server", joined.url, topic, name)
        assert server.line() == "ready"
        return server

    return start


@pytest.fixture
def oslo_client(start_process, topic: str) -> Callable[..., Process]:
    """Start a client of oslo.messaging's that calls `topic`."""
    if not OSLO.exists():
        pytest.skip(f"no oslo.messaging: {OSLO} is not there")
    return lambda joined: start_process(OSLO, "-P", PEER, "client", joined.url, topic)
