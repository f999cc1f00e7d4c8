"""Browsers, reverse proxies and load balancers: what they ask for, and what they are told."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from rig import config, haproxy
from rig.http import Http
from rig.longpoll import LongPoll
from rig.nginx import Nginx
from rig.plain import Plain
from rig.router import Router, binary
from rig.waiting import await_true
from rig.websocket import WebSocket

SITE = "app.example.com"
COOKIE = "sid=" + "c" * 8_800


def status_of(
    router: Router, origin: str | None, host: str = "localhost", path: str = "/ws"
) -> int:
    """Open a WebSocket as a page of that origin does; return the status of the answer."""
    with WebSocket.tcp(router.address("tcp")) as peer:
        return peer.upgrade(path=path, Host=host, Origin=origin)[0]


def websocket(**options: object) -> dict:
    """Return a transport with one WebSocket that has these options."""
    paths = {"ws": {"options": options}}
    return config.universal("tcp", config.tcp(), websocket=paths)


@pytest.mark.parametrize(
    ("listed", "origin", "status"),
    [
        ("https://app.example.com:443", "https://app.example.com", 101),
        ("http://app.example.com:80", "http://app.example.com", 101),
        ("https://app.example.com", "https://app.example.com:443", 101),
        ("https://*.example.com:443", "https://app.example.com", 101),
        ("https://app.example.com:443", "https://app.example.com:8443", 403),
        ("https://app.example.com:443", "http://app.example.com", 403),
    ],
)
def test_a_page_is_let_in_whether_or_not_the_list_says_its_port(
    start_router, listed: str, origin: str, status: int
):
    router = start_router(config.plain(websocket(allowed_origins=[listed])))
    assert status_of(router, origin) == status


def test_a_host_is_let_in_whether_or_not_the_list_says_its_port(start_router):
    transport = {**websocket(), "allowed_hosts": [f"{SITE}:443"]}
    router = start_router(config.plain(transport))
    assert status_of(router, None, SITE) == 101
    assert status_of(router, None, f"{SITE}:443") == 101
    assert status_of(router, None, f"{SITE}:8443") == 403


@pytest.mark.parametrize(
    "origin", ["https://tauri.localhost", "http://wails.localhost:34115", "http://localhost:1420"]
)
def test_a_desktop_applications_page_is_one_of_this_machine(start_router, origin: str):
    router = start_router(config.plain(websocket()))
    assert status_of(router, origin) == 101


@pytest.mark.parametrize("origin", ["https://localhost.evil.example", "https://evillocalhost"])
def test_a_page_whose_name_looks_like_this_machines_stays_out(start_router, origin: str):
    router = start_router(config.plain(websocket()))
    assert status_of(router, origin) == 403


def nginx(directory: Path, router: Router) -> Nginx:
    """Start nginx in front of a router, as a site's documentation would have it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    host, behind = router.address("tcp")
    directory.mkdir()
    return Nginx(
        directory,
        port,
        f"""location / {{
            proxy_pass http://{host}:{behind}; proxy_http_version 1.1;
            proxy_set_header Host $host; proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
        }}""",
    )


def by_nginx(front: Nginx, origin: str | None) -> int:
    """Open a WebSocket through nginx."""
    with WebSocket.tcp(("127.0.0.1", front.port)) as peer:
        return peer.upgrade(Host=SITE, Origin=origin)[0]


@pytest.mark.parametrize(
    ("origin", "key", "value"),
    [
        (None, "allowed_hosts", SITE),
        (f"https://{SITE}", "allowed_origins", f"https://{SITE}"),
    ],
)
def test_behind_nginx_the_log_says_what_to_set_and_that_opens_the_site(
    start_router, tmp_path: Path, origin: str | None, key: str, value: str
):
    router = start_router(config.plain(websocket()))
    front = nginx(tmp_path / "first", router)
    try:
        assert by_nginx(front, origin) == 403
    finally:
        front.close()
    line = router.await_fault(0, key)
    advised = re.search(rf'"{key}": (\[[^]]*\])', line.text)
    assert advised, line
    assert json.loads(advised[1]) == [value]
    set_so = {key: json.loads(advised[1])}
    transport = websocket(**set_so) if origin else {**websocket(), **set_so}
    router = start_router(config.plain(transport))
    front = nginx(tmp_path / "second", router)
    try:
        assert by_nginx(front, origin) == 101
    finally:
        front.close()


def test_check_says_which_keys_open_a_listener_behind_a_proxy(tmp_path: Path):
    transport = websocket()
    transport["websocket"]["ws"]["url"] = f"wss://{SITE}/ws"
    file = tmp_path / "config.json"

    def check(transport: dict) -> str:
        file.write_text(json.dumps(config.plain(transport)))
        checked = subprocess.run(
            [binary(), "check", "--config", file], capture_output=True, text=True, timeout=60
        )
        assert checked.returncode == 0, checked.stderr
        return checked.stdout

    said = check(transport)
    assert f'"allowed_hosts": ["{SITE}"]' in said
    assert f'"allowed_origins": ["https://{SITE}"]' in said
    assert "allowed_" not in check({**transport, "allowed_hosts": [SITE, "localhost"]})


def web(**paths: dict) -> dict:
    """Return a transport of web services."""
    return {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}


def everything_http() -> list[dict]:
    """Return a transport of each kind that takes HTTP requests."""
    files = {"value": {"type": "json", "value": 1}, "lp": {"type": "longpoll"}}
    return [websocket(), web(**files, ws={"type": "websocket"})]


def test_long_cookies_of_single_sign_on_are_no_obstacle(start_router):
    router = start_router(config.plain(*everything_http()))
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade(Cookie=COOKIE)[0] == 101
    with WebSocket.tcp(router.address("web")) as peer:
        assert peer.upgrade(path=f"/ws?token={'t' * 12_000}", Cookie=COOKIE)[0] == 101
    for transport, path in [
        ("tcp", "/health"),
        ("web", "/value"),
        ("web", "/value?" + "q" * 12_000),
    ]:
        site = Http(router.address(transport))
        assert site.get(path, {"Cookie": COOKIE}).status == 200, path
    poll = Http(router.address("web")).post(
        "/lp/open", b'{"protocols": ["wamp.2.json"]}', {"Cookie": COOKIE}
    )
    assert poll.status == 200
    with LongPoll(router.address("web")) as session:
        session.join().round_trip()


def test_a_head_beyond_the_bound_is_told_which_it_is(start_router):
    limits = {"request_head_bytes_max": 8_192}
    router = start_router(config.plain(*everything_http(), limits=limits))
    with WebSocket.tcp(router.address("tcp")) as peer:
        status, _, body = peer.upgrade(Cookie=COOKIE)
        assert (status, b"8192" in body) == (431, True), body
    for transport in ["tcp", "web"]:
        assert Http(router.address(transport)).get("/health", {"Cookie": COOKIE}).status == 431


def http2(router: Router, cookie: str) -> str:
    """Ask over HTTP/2 with a cookie; return the version and the status of the answer."""
    host, port = router.address("web")
    command = ["curl", "-sS", "--http2-prior-knowledge", "-o", "/dev/null"]
    command += ["-H", f"Cookie: {cookie}", "-w", "%{http_version} %{http_code}"]
    done = subprocess.run(
        [*command, f"http://{host}:{port}/value"], capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_the_same_bound_holds_over_http2(start_router):
    router = start_router(config.plain(*everything_http()))
    assert http2(router, COOKIE) == "2 200"
    assert http2(router, "c" * 40_000) == "2 431"


@pytest.mark.parametrize("pages", [[], ["health"]])
def test_a_load_balancer_that_probes_the_websocket_finds_it_well(start_router, pages: list[str]):
    universal = {**websocket(), "pages": pages}
    plain = {"type": "websocket", "id": "plain", "endpoint": config.tcp(), "pages": pages}
    services = web(ws={"type": "websocket"})
    router = start_router(config.plain(universal, plain, services))
    for transport, path in [("tcp", "/ws"), ("plain", "/"), ("plain", "/any"), ("web", "/ws")]:
        site = Http(router.address(transport))
        answer = site.get(path)
        assert (answer.status, b"WebSocket" in answer.body) == (200, True), (transport, path)
        assert site.ask("HEAD", path).status == 200, (transport, path)
        # HAProxy's default check, but for its path.
        assert site.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode()).status == 200
        assert site.post(path, b"x").status == 426, (transport, path)


def test_a_probe_gets_426_where_that_is_asked_for(start_router):
    options = {"enable_webstatus": False}
    services = web(ws={"type": "websocket", "options": options})
    router = start_router(config.plain(websocket(**options), services))
    for transport in ["tcp", "web"]:
        assert Http(router.address(transport)).get("/ws").status == 426


def test_a_probe_is_no_fault(start_router):
    router = start_router(
        config.plain({**websocket(), "pages": []}, config.universal("metrics", config.tcp()))
    )
    for _ in range(3):
        assert Http(router.address("tcp")).get("/ws").status == 200
        assert Http(router.address("tcp")).get("/favicon.ico").status == 204
    assert router.count_faults() == 0


def test_a_browsers_spare_connection_is_no_fault(start_router):
    pages = config.universal("tcp", config.tcp())
    router = start_router(config.plain(pages, limits={"handshake_timeout_ms": 100}))

    with Plain.tcp(router.address("tcp")) as spare, Plain.tcp(router.address("tcp")) as mute:
        # The first bytes of a handshake, and then nothing: that is one.
        mute.send(b"GET /ws")
        assert spare.receive_all() == b""
        assert mute.receive_all() == b""
    await_true(
        "the spare connection is counted",
        lambda: router.metric("connections_closed_unused_total") == 1,
    )
    fault = router.await_fault(0, "no session was opened in time")
    assert router.count_faults() == 1, fault


def test_a_browsers_spare_connection_over_tls_is_no_fault(start_router, certificate_directory):
    secure = config.universal("tls", config.tls(certificate_directory))
    pages = config.universal("tcp", config.tcp())
    router = start_router(config.plain(secure, pages, limits={"handshake_timeout_ms": 100}))
    with Plain.tls(router.address("tls"), certificate_directory / "ca.pem") as spare:
        spare.receive_all()
    assert router.metric("connections_closed_unused_total") == 1
    assert router.count_faults() == 0


def test_a_browser_on_the_status_page_asks_for_no_picture_in_vain(start_router):
    router = start_router(config.plain(config.universal("tcp", config.tcp())))
    site = Http(router.address("tcp"))
    assert b'<link rel=icon href="data:,">' in site.get("/").body
    assert site.get("/favicon.ico").status == 204


@pytest.mark.skipif(bool(haproxy.obstacle()), reason=haproxy.obstacle())
def test_haproxy_finds_the_node_well_and_passes_websockets_on(start_router, tmp_path: Path):
    """With HTTP/2 to the node `ws h1` is needed, as the book says."""
    router = start_router(
        config.plain(web(ws={"type": "websocket"}, x={"type": "json", "value": 1}))
    )
    words = ["check", "proto h2 ws h1", "proto h2"]
    front = haproxy.HAProxy(tmp_path, router.address("web"), *words)
    try:
        checked = Http(("127.0.0.1", front.ports["check"]))
        checked.await_answer("/x", lambda answer: answer.status == 200)
        for each in ["check", "proto h2 ws h1"]:
            with WebSocket.tcp(("127.0.0.1", front.ports[each])) as peer:
                peer.open("json").join().round_trip()
        over_http2 = ("127.0.0.1", front.ports["proto h2"])
        assert Http(over_http2).get("/x").status == 200
        with WebSocket.tcp(over_http2) as peer:
            assert peer.upgrade()[0] == 502
    finally:
        front.close()
    assert router.count_faults() == 0
