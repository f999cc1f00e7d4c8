"""WebSockets of a server that stands behind the node, at a path of a reverse proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig import config
from rig.backend import Backend
from rig.http import Http
from rig.router import Router
from rig.websocket import WebSocket


def web(**paths: dict) -> dict:
    """Return a transport of web services."""
    return {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}


@pytest.fixture(scope="module")
def behind(tmp_path_factory) -> Iterator[Router]:
    """A router that stands behind a reverse proxy of another, below `/app` and at its root."""
    inner = Router(
        tmp_path_factory.mktemp("inner"), config=config.plain(config.universal("tcp", config.tcp()))
    )
    host, port = inner.address("tcp")
    proxy = {"type": "reverseproxy", "host": host, "port": port}
    full = {**proxy, "path": "/ws", "requests_max": 1}
    paths = {"app": proxy, "full": full, "own": {"type": "websocket"}, "/": proxy}
    front = Router(tmp_path_factory.mktemp("front"), config=config.plain(web(**paths)))
    yield front
    front.stop()
    inner.stop()


@pytest.mark.parametrize("path", ["/app/ws", "/ws", "/own"])
@pytest.mark.parametrize("serializer", ["json", "cbor"])
def test_a_websocket_behind_a_reverse_proxy_is_passed_on(
    behind: Router, path: str, serializer: str
):
    with WebSocket.tcp(behind.address("web")) as peer:
        peer.open(serializer, path).join().round_trip()


def test_plain_requests_behind_a_reverse_proxy_are_as_before(behind: Router):
    site = Http(behind.address("web"))
    assert site.get("/app/health").body == b"ok\n"
    assert site.get("/app/ws").status == 200


def test_a_reverse_proxy_passes_a_refused_upgrade_on(behind: Router):
    with WebSocket.tcp(behind.address("web")) as peer:
        assert peer.upgrade("mqtt", "/app/ws")[0] == 400
    with WebSocket.tcp(behind.address("web")) as peer:
        assert peer.upgrade(path="/app/nowhere")[0] == 404


def test_websockets_behind_a_reverse_proxy_are_bounded(behind: Router):
    with WebSocket.tcp(behind.address("web")) as first:
        first.open("json", "/full").join()
        with WebSocket.tcp(behind.address("web")) as second:
            assert second.upgrade(path="/full")[0] == 503
        first.round_trip()


def test_a_server_behind_a_reverse_proxy_is_asked_as_by_any_proxy(start_router):
    def refuse(_got: object) -> bytes:
        return b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"

    backend = Backend(refuse)
    try:
        proxy = {"type": "reverseproxy", "host": "127.0.0.1", "port": backend.port, "path": "/in"}
        router = start_router(config.plain(web(app=proxy)))
        with WebSocket.tcp(router.address("web")) as peer:
            assert peer.upgrade(path="/app/ws?x=1", Origin="https://a.example")[0] == 401
        (got,) = backend.got
        assert got.line == "GET /in/ws?x=1 HTTP/1.1"
        assert got.header("upgrade") == "websocket"
        assert got.header("origin") == "https://a.example"
        assert got.header("x-forwarded-for") == "127.0.0.1"
    finally:
        backend.close()
