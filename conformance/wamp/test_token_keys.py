"""Keys of issuers that the router fetches: their server answers well, badly or not at all."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rig import certificates
from rig.session import WELCOME
from rig.waiting import await_true
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, expect_refusal, hello
from wamp.test_tokens import Issuer, answer

# A token is refused, and the key server's answer awaited, by a machine that is busy.
PATIENCE_S = 90.0


class KeyServer(http.server.ThreadingHTTPServer):
    """Server of issuers' keys; the test sets its answer."""

    daemon_threads = True

    def __init__(self, *issuers: Issuer, certificate: Path | None = None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked = 0
        self.status = 200
        self.headers: dict[str, str] = {}
        # Cleared, an answer is not given before it is set again.
        self.open = threading.Event()
        self.open.set()
        self.publish(*issuers)
        self.scheme = "http"
        if certificate is not None:
            self.scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "server.pem", certificate / "server.key")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def publish(self, *issuers: Issuer) -> None:
        """Have these keys from now on."""
        self.body = json.dumps({"keys": [issuer.public() for issuer in issuers]}).encode()

    def url(self) -> str:
        """Return where the keys are."""
        return f"{self.scheme}://localhost:{self.server_address[1]}/keys"

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that go are what is tested."""


class Answer(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: KeyServer

    def do_GET(self) -> None:
        """Answer as the server was told to."""
        self.server.asked += 1
        self.server.open.wait(PATIENCE_S)
        body = self.server.body
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


def from_url(server: KeyServer, **more: object) -> dict:
    """Return a node that knows the issuer by its server."""
    # No test waits for this to be over, unless it says another.
    jwt = {"type": "static", "jwks_url": server.url(), "jwks_refresh_s_min": 600, **more}
    jwt = {"jwks_refresh_s_max": 86_400, "issuer": "https://issuer.example", **jwt}
    log = {"file": "audit.log"}
    node = closed({"jwt": jwt}, audit_log=log, limits={"login_delay_ms_max": 0})
    # Each asks for itself.
    del node["workers"][0]["transports"][0]["websocket"]
    return node


def written(node) -> list[dict]:
    """Return the audit log."""
    path = node.directory / "audit.log"
    return [json.loads(line) for line in path.read_text().splitlines()]


def fetches(node, outcome: str) -> float:
    """Return how often that came of asking for the keys."""
    return node.metric("token_keys_fetches_total", outcome=outcome)


def lets_in(node, issuer: Issuer) -> bool:
    """Whether a token of the issuer opens the door."""
    return answer(node, issuer.token())[0] == WELCOME


@pytest.fixture
def first() -> Issuer:
    return Issuer("first")


@pytest.fixture
def second() -> Issuer:
    return Issuer("second")


@pytest.fixture
def server(first):
    running = KeyServer(first)
    yield running
    running.open.set()
    running.shutdown()
    running.server_close()


def test_keys_that_are_fetched(start_router, server, first):
    node = start_router(from_url(server))
    assert lets_in(node, first)
    assert lets_in(node, first)
    assert server.asked == 1
    assert fetches(node, "fetched") == 1


def test_keys_that_come_over_tls(start_router, tmp_path, first):
    authority = certificates.write(tmp_path)
    server = KeyServer(first, certificate=tmp_path)
    node = start_router(from_url(server, jwks_ca_certificates=[str(authority)]))
    assert lets_in(node, first)


def test_a_server_without_a_trusted_certificate(start_router, tmp_path, first):
    certificates.write(tmp_path)
    server = KeyServer(first, certificate=tmp_path)
    node = start_router(from_url(server))
    assert not lets_in(node, first)
    await_true("the reason is written", lambda: len(written(node)) >= 2, PATIENCE_S)
    failed = next(line for line in written(node) if line["event"] == "keys_not_fetched")
    assert "certificate" in failed["reason"], failed
    assert server.asked == 0
    health = node.health()[1]
    assert f"keys of {server.url()} cannot be read" in health, health


def test_an_unknown_key_is_asked_for_once(start_router, server, first, second):
    node = start_router(from_url(server))
    assert lets_in(node, first)
    server.publish(first, second)
    # It was asked just now, and by a rule of the operator's it is left alone.
    for _ in range(20):
        with hello(node, authmethods=["jwt"]) as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, second.token(), {})
            expect_refusal(peer)
    assert server.asked == 1
    assert node.metric("authentications_refused_total", cause="unknown_key") == 20


def test_a_key_that_is_new(start_router, server, first, second):
    node = start_router(from_url(server, jwks_refresh_s_min=1))
    assert lets_in(node, first)
    server.publish(first, second)
    await_true("the new key opens", lambda: lets_in(node, second), PATIENCE_S)
    assert lets_in(node, first)
    server.publish(second)
    nobody = Issuer("nobody")
    # An unknown key causes a request, and then the first key is gone.
    await_true(
        "the old key is gone",
        lambda: not lets_in(node, nobody) and not lets_in(node, first),
        PATIENCE_S,
    )


def test_a_token_that_comes_before_the_keys(start_router, server, first):
    server.open.clear()
    node = start_router(from_url(server, jwks_timeout_ms=60_000))
    with ThreadPoolExecutor() as pool:
        early = [pool.submit(lets_in, node, first) for _ in range(5)]
        pending = lambda: node.metric("handshakes_pending")  # noqa: E731
        await_true("all wait", lambda: pending() == 5, PATIENCE_S)
        server.open.set()
        assert all(came.result(PATIENCE_S) for came in early)
    assert server.asked == 1


def test_keys_hold_as_long_as_their_server_says(start_router, server, first, second):
    server.headers["Cache-Control"] = "public, max-age=1"
    node = start_router(from_url(server, jwks_refresh_s_min=1))
    assert lets_in(node, first)
    server.publish(second)
    # No unknown key arrives meanwhile.
    await_true("they are fetched again", lambda: not lets_in(node, first), PATIENCE_S)
    assert lets_in(node, second)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"status": 500}, "500"),
        ({"status": 302, "headers": {"Location": "/elsewhere"}}, "302"),
        ({"body": b"no JSON"}, "expected JSON"),
        ({"body": b"\xff"}, "expected UTF-8"),
        ({"body": b'{"keys": []}'}, "none of its keys can be used"),
        ({"body": b" " * 300_000}, "length limit exceeded"),
    ],
    ids=["failure", "redirection", "no-json", "no-text", "no-keys", "too-long"],
)
def test_answers_that_are_no_keys(start_router, server, first, what, reason):
    node = start_router(from_url(server, jwks_refresh_s_min=1, jwks_refresh_s_max=1))
    await_true("the first answer is there", lambda: fetches(node, "fetched") >= 1, PATIENCE_S)
    for name, value in what.items():
        setattr(server, name, value)
    await_true("the answer is refused", lambda: fetches(node, "failed") >= 1, PATIENCE_S)
    assert lets_in(node, first)
    why = [line["reason"] for line in written(node) if line["event"] == "keys_not_fetched"]
    assert reason in why[0], why
    server.status = 200
    server.headers.clear()
    server.publish(first)
    before = fetches(node, "fetched")
    await_true("it is asked again", lambda: fetches(node, "fetched") > before, PATIENCE_S)


def test_a_server_that_never_answers(start_router, server, first):
    server.open.clear()
    node = start_router(from_url(server, jwks_timeout_ms=100))
    await_true("it had its time", lambda: fetches(node, "failed") == 1, PATIENCE_S)
    assert not lets_in(node, first)
    await_true("it is written", lambda: len(written(node)) == 2, PATIENCE_S)
    assert written(node)[0]["reason"] == "no whole answer in 100 ms"
