"""Services without another process: values, redirections, the node's page, WebSocket; TLS."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.http import Http
from rig.router import Router
from rig.websocket import WebSocket

PATHS = {
    "/": {"type": "none"},
    "value": {"type": "json", "value": {"a": [1, 2.5, None, "é"]}},
    "pretty": {
        "type": "json",
        "value": {"a": 1},
        "options": {"prettify": True, "allow_cross_origin": True, "discourage_caching": True},
    },
    "away": {"type": "redirect", "url": "https://example.com/x?y=z"},
    "node": {"type": "nodeinfo"},
    "ws": {"type": "websocket"},
    "deep": {
        "type": "path",
        "paths": {"er": {"type": "path", "paths": {"ws": {"type": "websocket"}}}},
    },
}


@pytest.fixture(scope="module")
def router(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """The same services on a port of their own, beside RawSocket, and over TLS."""
    options = {"hsts": True, "hsts_max_age": 1234, "access_log": True}
    web = {"paths": PATHS, "options": options}
    router = Router(
        tmp_path_factory.mktemp("services"),
        config=config.plain(
            {"type": "web", "id": "web", "endpoint": config.tcp(), **web},
            {"type": "web", "id": "tls", "endpoint": config.tls(certificate_directory), **web},
            {
                **config.universal("universal", config.tcp()),
                "websocket": {"ws": {}},
                "web": {"paths": {"value": PATHS["value"]}},
                "pages": ["health"],
            },
        ),
    )
    yield router
    router.stop()


@pytest.fixture(scope="module")
def site(router: Router) -> Http:
    """The plain one."""
    return Http(router.address("web"))


def test_a_value(site: Http):
    answer = site.get("/value")
    assert answer.status == 200
    assert answer.body == '{"a":[1,2.5,null,"é"]}'.encode()
    assert answer.header("content-type") == "application/json; charset=utf-8"
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("cache-control") is None


def test_options_of_a_value(site: Http):
    answer = site.get("/pretty")
    assert b"\n" in answer.body
    assert json.loads(answer.body) == {"a": 1}
    assert answer.header("access-control-allow-origin") == "*"
    assert "no-store" in answer.header("cache-control")


def test_a_redirection_leads_where_it_says_and_nowhere_else(site: Http):
    for path in ("/away", "/away/", "/away//attacker.example", "/away?url=//attacker.example"):
        answer = site.get(path)
        assert answer.status == 302
        assert answer.header("location") == "https://example.com/x?y=z"


def test_the_page_of_the_node(site: Http):
    page = site.get("/node").body.decode()
    assert "version" in page
    assert "process" in page


def test_missing_services(site: Http):
    for path in ("/", "/missing", "/values", "/deep", "/deep/er"):
        answer = site.get(path)
        assert answer.status == 404
        assert answer.header("content-type").startswith("text/html")


@pytest.mark.parametrize("path", ["/value", "/pretty", "/away", "/node", "/ws", "/missing"])
def test_a_page_of_another_origin_gets_no_credentials(site: Http, path: str):
    said = {"Origin": "https://attacker.example", "Cookie": "cbtid=known"}
    answer = site.get(path, said)
    assert answer.header("access-control-allow-origin") in (None, "*")
    assert answer.header("access-control-allow-credentials") is None
    assert answer.header("set-cookie") is None


def test_a_websocket_tells_others_what_it_is(site: Http):
    assert site.get("/ws").status == 200
    answer = site.post("/ws", "x")
    assert (answer.status, answer.header("upgrade")) == (426, "websocket")


@pytest.mark.parametrize("path", ["/ws", "/ws/", "/ws/below", "/deep/er/ws"])
def test_websockets_among_services(router: Router, path: str):
    websocket = WebSocket.tcp(router.address("web")).open(path=path)
    websocket.close()


@pytest.mark.parametrize("path", ["/", "/value", "/deep", "/wsx"])
def test_no_websocket_elsewhere(router: Router, path: str):
    status, _, body = WebSocket.tcp(router.address("web")).upgrade(path=path)
    assert (status, b"no WebSocket" in body) == (404, True)


def test_services_beside_rawsocket_and_pages(router: Router):
    site = Http(router.address("universal"))
    assert site.get("/value").status == 200
    assert site.get("/health").body == b"ok\n"
    assert site.get("/metrics").status == 404


def trusting(certificate_directory: Path, *protocols: str) -> ssl.SSLContext:
    """Return a client's side that trusts the tests' authority, and asks for these protocols."""
    context = ssl.create_default_context(cafile=str(certificate_directory / "ca.pem"))
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def test_only_over_tls_browsers_are_told_to_stay(
    router: Router, site: Http, certificate_directory: Path
):
    secure = Http(router.address("tls"), trusting(certificate_directory, "http/1.1"))
    answer = secure.get("/value")
    assert answer.header("strict-transport-security") == "max-age=1234"
    assert site.get("/value").header("strict-transport-security") is None


def test_the_protocol_is_agreed_on(router: Router, certificate_directory: Path):
    for asked, agreed in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)):
        context = trusting(certificate_directory, *asked)
        with Http(router.address("tls"), context).connect() as connection:
            assert connection.selected_alpn_protocol() == agreed


def test_requests_are_logged_where_that_is_asked_for(router: Router, site: Http):
    site.get("/value?logged", {"User-Agent": 'a test\u00e9"'})
    line = router.await_log(lambda line: "/value?logged" in line.text)
    assert "200" in line.text


def test_requests_beside_each_other_over_http2(router: Router, certificate_directory: Path):
    """curl asks for many things at once on one connection."""
    base = f"https://localhost:{router.address('tls')[1]}"
    urls = [f"{base}/value?{n}" for n in range(50)]
    command = ["curl", "-sS", "--parallel", "--http2", "--cacert", certificate_directory / "ca.pem"]
    asked = subprocess.run(
        [*command, "-w", "%{http_version} %{http_code}\n", *urls],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.count('{"a":[1,2.5,null,"é"]}') == 50
    assert asked.stdout.count("2 200") == 50


def test_http2_known_beforehand(router: Router):
    """Without TLS the first bytes say it; they may come in parts."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
    with Http(router.address("web")).connect() as connection:
        for at in range(0, len(preface), 5):
            connection.sendall(preface[at : at + 5])
        # The server's own SETTINGS, and its word that ours are taken.
        head = b""
        while len(head) < 5:
            head += connection.recv(1)
        assert head[3:5] == b"\4\0"
