"""Requests as attackers write them: what could be read in two ways is refused (RFC 9112)."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator

import pytest
from rig import config
from rig.http import Http, read, request, until_end
from rig.router import Router

JSON = {"type": "json", "value": {"answer": 42}}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Http]:
    """A listener of web services at loopback."""
    transport = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": {"value": JSON}}
    router = Router(tmp_path_factory.mktemp("requests"), config=config.plain(transport))
    yield Http(router.address("web"))
    router.stop()


HOST = "Host: localhost"
REFUSED = {
    "no host": request("GET", "/value"),
    "two hosts": request("GET", "/value", [HOST, "Host: localhost"]),
    "foreign host": request("GET", "/value", ["Host: attacker.example"]),
    "foreign host in the target": request("GET", "http://attacker.example/value", [HOST]),
    "host with a path": request("GET", "/value", ["Host: attacker.example/localhost"]),
    "length and chunks": request(
        "POST", "/value", [HOST, "Content-Length: 3", "Transfer-Encoding: chunked"], b"0\r\n\r\n"
    ),
    "two lengths": request(
        "POST", "/value", [HOST, "Content-Length: 3", "Content-Length: 4"], b"abcd"
    ),
    "list of lengths": request("POST", "/value", [HOST, "Content-Length: 3, 4"], b"abcd"),
    "signed length": request("POST", "/value", [HOST, "Content-Length: +3"], b"abc"),
    "negative length": request("POST", "/value", [HOST, "Content-Length: -3"]),
    "hexadecimal length": request("POST", "/value", [HOST, "Content-Length: 0x3"], b"abc"),
    "endless length": request("POST", "/value", [HOST, "Content-Length: " + "9" * 40]),
    "unknown coding": request("POST", "/value", [HOST, "Transfer-Encoding: nonsense"]),
    "chunked is not last": request("POST", "/value", [HOST, "Transfer-Encoding: chunked, gzip"]),
    "space before colon": request("GET", "/value", [HOST, "X-A : b"]),
    "line folding": request("GET", "/value", [HOST, "X-A: b", " c: d"]),
    "bare carriage return": b"GET /value HTTP/1.1\rHost: localhost\r\n\r\n",
    "null in a value": request("GET", "/value", [HOST, "X-A: b\0c"]),
    "null in a name": request("GET", "/value", [HOST, "X\0A: b"]),
    "space in the target": b"GET /va lue HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /value\r\nHost: localhost\r\n\r\n",
    "version 3": b"GET /value HTTP/3.0\r\nHost: localhost\r\n\r\n",
    "lower case": b"get /value http/1.1\r\nHost: localhost\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "huge head": request("GET", "/value", [HOST, "X-A: " + "a" * 100_000]),
    "very many headers": request("GET", "/value", [HOST, *[f"X-{n}: b" for n in range(5_000)]]),
    "huge target": request("GET", "/" + "a" * 100_000, [HOST]),
    "half an escape": request("GET", "/%4", [HOST]),
    "connect": request("CONNECT", "attacker.example:80", [HOST]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_requests_are_refused(site: Http, name: str):
    # An end without an answer is a refusal too.
    no_answer = contextlib.suppress(ConnectionError, http.client.HTTPException)
    with site.connect() as connection, no_answer:
        connection.sendall(REFUSED[name])
        answer = read(connection)
        assert 400 <= answer.status < 600, answer
        assert b"answer" not in answer.body


def test_a_second_request_is_no_part_of_the_first(site: Http):
    """Bytes after a refused body are never taken for a request."""
    smuggled = request("GET", "/value", [HOST])
    for head in (
        [HOST, "Content-Length: 5", "Transfer-Encoding: chunked"],
        [HOST, "Content-Length: 0", "Content-Length: 5"],
    ):
        with site.connect() as connection:
            connection.sendall(request("POST", "/value", head, b"0\r\n\r\n" + smuggled))
            everything = until_end(connection)
            # Its value, which no date is.
            assert b"answer" not in everything, everything


def test_requests_follow_each_other_on_one_connection(site: Http):
    with site.connect() as connection:
        for _ in range(3):
            connection.sendall(request("GET", "/value", [HOST]))
            assert read(connection).body == b'{"answer":42}'
        # All at once, and in parts that end anywhere.
        both = request("GET", "/value", [HOST]) * 2
        for at in range(0, len(both), 7):
            connection.sendall(both[at : at + 7])
        connection.sendall(request("GET", "/value", [HOST, "Connection: close"]))
        assert until_end(connection).count(b'{"answer":42}') == 3


def test_names_of_loopback_are_let_in(site: Http):
    port = site.address[1]
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"127.0.0.1:{port}", "[::1]"):
        assert site.get("/value", {"Host": host}).status == 200, host


def test_other_names_are_let_in_where_they_are_listed(tmp_path):
    transport = {
        "type": "web",
        "id": "web",
        "endpoint": config.tcp(),
        "paths": {"value": JSON},
        "allowed_hosts": ["*.example.com"],
    }
    router = Router(tmp_path, config=config.plain(transport))
    site = Http(router.address("web"))
    assert site.get("/value", {"Host": "www.example.com"}).status == 200
    assert site.get("/value", {"Host": "www.example.org"}).status == 403
    router.stop()


def test_an_old_request_needs_no_host(site: Http):
    answer = site.raw(b"GET /value HTTP/1.0\r\n\r\n")
    assert (answer.status, answer.body) == (200, b'{"answer":42}')


def test_slow_heads_are_given_up(tmp_path):
    """A client that sends next to nothing is closed, and others are served meanwhile."""
    transport = {
        "type": "web",
        "id": "web",
        "endpoint": config.tcp(),
        "paths": {"value": JSON},
        "options": {"client_timeout": 1},
    }
    limits = {"handshake_timeout_ms": 1_000}
    router = Router(tmp_path, config=config.plain(transport, limits=limits))
    site = Http(router.address("web"))
    slow = [site.connect() for _ in range(20)]
    for connection in slow:
        connection.sendall(b"GET /val")
    idle = site.connect()
    idle.sendall(request("GET", "/value", [HOST]))
    assert read(idle).status == 200
    half = site.connect()
    half.sendall(request("GET", "/value", [HOST]) + b"GET /val")
    assert read(half).status == 200
    assert site.get("/value").status == 200
    for connection in [*slow, idle, half]:
        until_end(connection)
        connection.close()
    router.stop()
