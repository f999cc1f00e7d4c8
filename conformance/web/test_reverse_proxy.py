"""Requests that another server answers: what it is told, what it may say, and that it is gone."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Iterator

import pytest
from rig import config
from rig.backend import OK, Backend, Got
from rig.http import Http, read, request
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true

HOST = "Host: localhost"


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """A server whose answer each test says."""
    server = Backend()
    yield server
    server.close()


@pytest.fixture(scope="module")
def router(tmp_path_factory, backend: Backend) -> Iterator[Router]:
    """A router in front of it, and of no server."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        gone = nobody.getsockname()[1]
    there = {"type": "reverseproxy", "host": "127.0.0.1", "port": backend.port}
    paths = {
        "/": there,
        "app": {
            **there,
            "path": "/inner/app",
            "forwarded_port": 8443,
            "forwarded_proto": "https",
        },
        "mine": {**there, "path": "/inner/app", "rewrite_answers": True},
        "few": {**there, "requests_max": 2},
        "hasty": {**there, "timeout": 1},
        "gone": {**there, "port": gone},
        "value": {"type": "json", "value": 1},
    }
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path_factory.mktemp("proxy"), config=config.plain(web))
    yield router
    router.stop()


@pytest.fixture
def site(router: Router, backend: Backend) -> Http:
    """The router, and the server behind it as new."""
    backend.got.clear()
    backend.answer = lambda _got: OK
    return Http(router.address("web"))


def test_headers_for_the_server(site: Http, backend: Backend):
    answer = site.raw(
        request(
            "GET",
            "/app/a%20b/%C3%A9?q=1&r=%2F",
            [
                "Host: localhost:1234",
                "Connection: close, X-Mine",
                "X-Mine: 1",
                "Keep-Alive: timeout=5",
                "TE: trailers",
                "Upgrade: h2c",
                "Proxy-Connection: close",
                "X-Forwarded-For: 10.1.2.3",
                "X-Real-IP: 10.1.2.3",
                "X-Forwarded-Host: attacker.example",
                "Forwarded: for=10.1.2.3",
                "Cookie: a=1",
            ],
        )
    )
    assert (answer.status, answer.body) == (200, b"ok")
    (got,) = backend.got
    assert got.line == "GET /inner/app/a%20b/%C3%A9?q=1&r=%2F HTTP/1.1"
    assert sorted(got.headers) == [
        ("cookie", "a=1"),
        ("host", f"127.0.0.1:{backend.port}"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "localhost:1234"),
        ("x-forwarded-port", "8443"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "127.0.0.1"),
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("/", "/"),
        ("/x", "/x"),
        ("/x/?q", "/x/?q"),
        ("/app", "/inner/app"),
        ("/app/", "/inner/app/"),
        ("//x///y", "/x/y"),
    ],
)
def test_targets_of_requests(site: Http, backend: Backend, asked: str, expected: str):
    assert site.get(asked).status == 200
    assert backend.got[0].line == f"GET {expected} HTTP/1.1"


@pytest.mark.parametrize(
    ("path", "location", "cookie"),
    [
        ("/mine/x", "/mine/login?next=1", "a=1; Path=/mine; HttpOnly"),
        # As Crossbar.io has it.
        ("/app/x", None, "a=1; Domain=127.0.0.1; Path=/inner/app; HttpOnly"),
    ],
)
def test_answers_lead_to_where_clients_are(
    site: Http, backend: Backend, path: str, location: str | None, cookie: str
):
    there = f"http://127.0.0.1:{backend.port}/inner/app/login?next=1"
    given = "a=1; Domain=127.0.0.1; Path=/inner/app; HttpOnly"
    backend.answer = lambda _got: (
        f"HTTP/1.1 302 Found\r\nLocation: {there}\r\nSet-Cookie: {given}\r\n"
        "Content-Length: 0\r\n\r\n"
    ).encode()
    answer = site.get(path)
    assert answer.status == 302
    said = dict(answer.headers)
    assert (said["location"], said["set-cookie"]) == (location or there, cookie)


def test_paths_lead_nowhere_else(site: Http, backend: Backend):
    for path in ("/app/../x", "/app/%2e%2e/x", "/app/..%2fx", "/app/%00"):
        assert site.get(path).status == 400
    assert not backend.got


def test_bodies_pass_both_ways(site: Http, backend: Backend):
    backend.answer = lambda got: (
        b"HTTP/1.1 201 Created\r\nX-Own: 1\r\nContent-Length: %d\r\n\r\n" % len(got.body) + got.body
    )
    body = bytes(range(256)) * 20_000
    answer = site.post("/x", body)
    assert (answer.status, answer.header("x-own"), answer.body) == (201, "1", body)
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    chunked = request("PUT", "/x", [HOST, "Transfer-Encoding: chunked"], chunks)
    assert site.raw(chunked, "PUT").body == b"hello world"
    assert [got.body for got in backend.got] == [body, b"hello world"]


def test_an_answer_passes_as_it_comes(site: Http, backend: Backend):
    seen = threading.Event()

    def answer(got: Got) -> bytes:
        assert got.connection
        got.connection.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
        )
        assert seen.wait(DEADLINE_S)
        return b"4\r\nlast\r\n0\r\n\r\n"

    backend.answer = answer
    with site.connect() as connection:
        connection.sendall(request("GET", "/x", [HOST]))
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.read(5) == b"first"
        seen.set()
        assert response.read() == b"last"


def test_a_client_that_does_not_read_holds_the_server(site: Http, backend: Backend):
    piece, pieces = bytes(1 << 20), 128
    sent = 0

    def answer(got: Got) -> bytes:
        nonlocal sent
        assert got.connection
        if got.line.startswith("GET /small"):
            return OK
        length = len(piece) * pieces
        got.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        for _ in range(pieces):
            got.connection.sendall(piece)
            sent += 1
        return b""

    backend.answer = answer
    with site.connect() as connection:
        connection.sendall(request("GET", "/large", [HOST]))
        await_true("it has begun", lambda: sent > 0)
        for _ in range(50):
            assert site.get("/small").status == 200
        # The bytes of sockets and one connection's queue, and no more.
        assert sent < pieces / 2
        answered = read(connection)
        assert answered.body == piece * pieces


def test_a_server_that_is_gone(site: Http):
    assert site.get("/gone/x").status == 502
    assert site.get("/value").status == 200


def test_a_server_that_hangs(site: Http, backend: Backend):
    over = threading.Event()

    def answer(_got: Got) -> bytes:
        over.wait(DEADLINE_S)
        return OK

    backend.answer = answer
    assert site.get("/hasty/x").status == 504
    over.set()


def test_a_server_that_stops_in_its_answer(site: Http, backend: Backend):
    over = threading.Event()

    def answer(got: Got) -> None:
        assert got.connection
        got.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        over.wait(DEADLINE_S)

    backend.answer = answer
    with pytest.raises(http.client.IncompleteRead):
        site.get("/hasty/x")
    over.set()


BROKEN = {
    "nothing": None,
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "half a header": b"HTTP/1.1 200 OK\r\nX-A: b",
    "no name": b"HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "endless header": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 1_000_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_malformed_answers(site: Http, backend: Backend, name: str):
    def answer(got: Got) -> None:
        assert got.connection
        if BROKEN[name]:
            got.connection.sendall(BROKEN[name])

    backend.answer = answer
    assert site.get("/x").status == 502
    backend.answer = lambda _got: OK
    assert site.get("/x").status == 200


def test_an_answers_framing_is_made_anew(site: Http, backend: Backend):
    backend.answer = lambda _got: (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
        b"Connection: X-Lost\r\nX-Lost: 1\r\nKeep-Alive: timeout=5\r\nX-Kept: 1\r\n\r\n"
        b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n"
    )
    answer = site.get("/x")
    assert answer.body == b"hello"
    names = {name for name, _ in answer.headers}
    assert "content-length" not in names
    assert not names & {"x-lost", "keep-alive", "x-trailer"}
    assert answer.header("x-kept") == "1"


SMUGGLED = {
    "length and chunks": [
        "Content-Length: 40",
        "Transfer-Encoding: chunked",
    ],
    "chunks twice": ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    "hidden chunks": ["Transfer-Encoding:\x0bchunked", "Content-Length: 40"],
    "named length": ["Connection: Content-Length", "Content-Length: 40"],
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_no_request_is_hidden_in_another(site: Http, backend: Backend, name: str):
    body = b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    body += b" " * (40 - len(body))
    with site.connect() as connection:
        connection.sendall(request("POST", "/x", [HOST, *SMUGGLED[name]], body))
        answer = read(connection, "POST")
    # Taken with the one framing that it has then, or not at all.
    assert answer.status in (200, 400)
    assert not any("hidden" in got.line for got in backend.got)
    for got in backend.got:
        assert not (got.header("content-length") and got.header("transfer-encoding"))


def test_a_hanging_server_holds_its_own_places(site: Http, backend: Backend):
    over = threading.Event()

    def answer(got: Got) -> bytes:
        if got.line.startswith("GET /hang"):
            over.wait(2 * DEADLINE_S)
        return OK

    backend.answer = answer
    asked = [site.connect() for _ in range(10)]
    try:
        for connection in asked:
            connection.sendall(request("GET", "/few/hang", [HOST, "Connection: close"]))
        # Two are answered at a time and two wait; all others are told at once.
        await_true("the others are told", lambda: len(readable(asked)) == 6)
        refused = readable(asked)
        for connection in refused:
            assert read(connection).status == 503
        await_true("two are there", lambda: len([g for g in backend.got if "hang" in g.line]) == 2)
        assert site.get("/x").status == 200
        over.set()
        for connection in asked:
            if connection not in refused:
                assert read(connection).status == 200
    finally:
        for connection in asked:
            connection.close()


def readable(connections: list[socket.socket]) -> list[socket.socket]:
    """Return those that were answered."""
    return select.select(connections, [], [], 0)[0]
