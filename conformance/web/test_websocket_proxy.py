"""WebSocket connections that another server has: handshakes and bytes pass as they are."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.backend import Backend, Got
from rig.http import Http
from rig.node import Node
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import CLOSE, PING, PONG, WebSocket
from web.site import configuration


def proxy(url: str, **more: object) -> dict:
    """Return a service that passes connections on to a URL."""
    return {
        "type": "websocket-reverseproxy",
        "backend": {"type": "websocket", "url": url},
        **more,
    }


def upgraded(got: Got) -> bytes:
    """Answer a handshake, then say back whatever comes."""
    assert got.connection
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Accept: x\r\nX-Own: {got.header('sec-websocket-key')}\r\n\r\n"
    got.connection.sendall(head.encode())
    while octets := got.connection.recv(65536):
        got.connection.sendall(octets)
    return b""


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """A server whose answer each test says."""
    server = Backend(upgraded)
    yield server
    server.close()


@pytest.fixture(scope="module")
def inner(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """A router behind the other, over TCP and TLS."""
    inner = config.plain(
        config.universal("tcp", config.tcp()),
        config.universal("tls", config.tls(certificate_directory)),
    )
    router = Router(tmp_path_factory.mktemp("inner"), config=inner)
    yield router
    router.stop()


@pytest.fixture(scope="module")
def router(
    tmp_path_factory, inner: Router, backend: Backend, certificate_directory: Path
) -> Iterator[Router]:
    """The router in front."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        gone = nobody.getsockname()[1]
    (_, port), (_, tls) = inner.address("tcp"), inner.address("tls")
    echo = f"ws://127.0.0.1:{backend.port}"
    trusted = {"hostname": "localhost", "ca_certificates": [f"{certificate_directory}/ca.pem"]}
    secure = proxy(f"wss://localhost:{tls}/ws")
    endpoint = {"type": "tcp", "host": "localhost", "port": tls, "tls": trusted}
    paths = {
        "/": {"type": "websocket"},
        "wamp": proxy(f"ws://127.0.0.1:{port}/ws"),
        "secure": {**secure, "backend": {**secure["backend"], "endpoint": endpoint}},
        "untrusted": secure,
        "echo": proxy(f"{echo}/inner?x=1", options={"allowed_origins": ["https://good.example"]}),
        "plain": proxy(echo),
        "few": proxy(echo, connections_max=1),
        "hasty": proxy(echo, timeout=1),
        "gone": proxy(f"ws://127.0.0.1:{gone}/"),
    }
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path_factory.mktemp("front"), config=config.plain(web))
    yield router
    router.stop()


@pytest.fixture
def connect(router: Router, backend: Backend) -> Iterator:
    """Return connections to the router, closed with the test; the server is as new."""
    backend.got.clear()
    backend.answer = upgraded
    opened: list[WebSocket] = []

    def connect() -> WebSocket:
        opened.append(WebSocket.tcp(router.address("web")))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.mark.parametrize("path", ["/wamp", "/secure", "/wamp/"])
@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_session_behind_the_router(connect, path: str, serializer: str):
    connect().open(serializer, path).join().round_trip()


def test_handshakes_pass_as_they_are(connect, backend: Backend):
    peer = connect()
    status, headers, _ = peer.upgrade(
        "chat, superchat",
        "/echo",
        Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==",
        Sec_WebSocket_Extensions="permessage-deflate",
        Origin="https://good.example",
        Cookie="a=1",
        X_Forwarded_For="10.1.2.3",
    )
    assert (status, headers["x-own"]) == (101, "dGhlIHNhbXBsZSBub25jZQ==")
    assert headers["sec-websocket-accept"] == "x"
    (got,) = backend.got
    assert got.line == "GET /inner?x=1 HTTP/1.1"
    expected = {
        "host": f"127.0.0.1:{backend.port}",
        "upgrade": "websocket",
        "sec-websocket-protocol": "chat, superchat",
        "sec-websocket-extensions": "permessage-deflate",
        "sec-websocket-version": "13",
        "cookie": "a=1",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-host": "localhost",
    }
    assert {name: got.header(name) for name in expected} == expected
    # Bytes of any kind, as many as there are.
    octets = bytes(range(256)) * 10_000
    threading.Thread(target=peer.send, args=[octets], daemon=True).start()
    assert peer.receive(len(octets)) == octets


def test_pings_and_closes_are_the_servers(connect):
    peer = connect().open("json", "/wamp")
    peer.send_frame(PING, b"here")
    assert peer.receive_frame() == (PONG, b"here")
    peer.send_frame(CLOSE, struct.pack("!H", 1000))
    assert peer.receive_frame()[0] == CLOSE
    peer.expect_end()


def test_a_foreign_page_is_not_let_in(connect, backend: Backend):
    assert connect().upgrade(None, "/echo", Origin="https://evil.example")[0] == 403
    assert not backend.got


def test_malformed_handshakes(connect, router: Router, backend: Backend):
    site = Http(router.address("web"))
    # A request as probes of load balancers send it.
    assert site.get("/echo").status == 200
    assert site.post("/echo", "x").status == 426
    assert connect().upgrade(None, "/echo", Sec_WebSocket_Key=None)[0] in (400, 426)
    assert not backend.got


def test_a_refusal_is_passed_on(connect, backend: Backend):
    backend.answer = lambda _got: b"HTTP/1.1 401 No\r\nX-Own: 1\r\nContent-Length: 2\r\n\r\nno"
    status, headers, body = connect().upgrade(None, "/plain")
    assert (status, headers["x-own"], body) == (401, "1", b"no")


def test_servers_that_are_not_there(connect, backend: Backend):
    assert connect().upgrade(None, "/gone")[0] == 502
    # No authority of the system has signed it.
    assert connect().upgrade(None, "/untrusted")[0] == 502
    backend.answer = lambda _got: b"HTTP/1.1 101 Yes\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
    assert connect().upgrade(None, "/plain")[0] == 502
    over = threading.Event()

    def hang(_got: Got) -> None:
        over.wait(DEADLINE_S)

    backend.answer = hang
    assert connect().upgrade(None, "/hasty")[0] == 504
    over.set()


def test_connections_are_bounded(connect):
    first = connect()
    assert first.upgrade(None, "/few")[0] == 101
    assert connect().upgrade(None, "/few")[0] == 503
    first.close()
    await_true("there is room again", lambda: connect().upgrade(None, "/few")[0] == 101)


def test_a_closed_side_closes_the_other(connect, backend: Backend):
    ended = threading.Event()

    def answer(got: Got) -> bytes:
        upgraded(got)
        ended.set()
        return b""

    backend.answer = answer
    peer = connect()
    assert peer.upgrade(None, "/plain")[0] == 101
    peer.close()
    assert ended.wait(DEADLINE_S)


def test_options_that_cannot_hold_are_named(tmp_path: Path):
    service = proxy("ws://127.0.0.1:1/", options={"auto_ping_interval": 10000})
    node = Node(tmp_path, configuration({"x": service}))
    node.says('"auto_ping_interval" has no effect in a reverse proxy')
    node.says("Ready")
    node.close()
