"""Other people's servers and frameworks behind the router: nginx, and Flask."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.http import Http, read, request
from rig.nginx import Nginx
from rig.router import Router
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import WebSocket
from web.site import Site, start

HOST = "Host: localhost"
TEXT = b"".join(b"line %d\n" % number for number in range(50_000))


@pytest.fixture(scope="module")
def nginx(tmp_path_factory) -> Iterator[Nginx]:
    """Files, and WebSockets of a router behind it."""
    inner = Router(tmp_path_factory.mktemp("inner"), config=config.plain())
    (_, behind) = inner.address("tcp")
    directory = tmp_path_factory.mktemp("nginx")
    files = directory / "files"
    files.mkdir()
    (files / "text.txt").write_bytes(TEXT)
    (files / "index.html").write_text("<p>index</p>")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    locations = f"""
        root {files};
        location /moved {{ return 301 /index.html; }}
        location /ws {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }}
    """
    server = Nginx(directory, port, locations)
    yield server
    server.close()
    inner.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory, nginx: Nginx) -> Iterator[Router]:
    """A router in front of it."""
    websocket = {"type": "websocket", "url": f"ws://127.0.0.1:{nginx.port}/ws"}
    paths = {
        "/": {"type": "reverseproxy", "host": "127.0.0.1", "port": nginx.port},
        "ws": {"type": "websocket-reverseproxy", "backend": websocket},
    }
    web = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path_factory.mktemp("front"), config=config.plain(web))
    yield router
    router.stop()


@pytest.fixture
def site(front: Router) -> Http:
    """The router's listener."""
    return Http(front.address("web"))


def test_files_of_nginx(site: Http):
    whole = site.get("/text.txt")
    assert (whole.status, whole.body) == (200, TEXT)
    assert whole.header("server").startswith("nginx")
    assert site.get("/").body == b"<p>index</p>"
    # Changed files, compressed ones, and a part.
    tag = whole.header("etag")
    assert tag
    assert site.get("/text.txt", {"If-None-Match": tag}).status == 304
    compressed = site.get("/text.txt", {"Accept-Encoding": "gzip"})
    assert compressed.header("content-encoding") == "gzip"
    assert compressed.header("content-length") is None
    assert gzip.decompress(compressed.body) == TEXT
    part = site.get("/text.txt", {"Range": "bytes=5-9"})
    assert (part.status, part.body) == (206, TEXT[5:10])
    assert part.header("content-range") == f"bytes 5-9/{len(TEXT)}"


def test_other_answers_of_nginx(site: Http, nginx: Nginx):
    head = site.ask("HEAD", "/text.txt")
    assert (head.status, head.header("content-length"), head.body) == (200, str(len(TEXT)), b"")
    assert site.get("/nothing").status == 404
    assert site.post("/text.txt", b"body").status == 405
    moved = site.get("/moved")
    # By the name that it was asked by, which is its own: answers pass as they are.
    there = f"http://127.0.0.1:{nginx.port}/index.html"
    assert (moved.status, moved.header("location")) == (301, there)
    # nginx answers first and writes its log after.
    logged = lambda: any('"GET /moved HTTP/1.1" 301' in line for line in nginx.requests())  # noqa: E731
    await_true("nginx has logged it", logged)
    # One connection for all of it, as a browser has it.
    with site.connect() as connection:
        for path in ("/text.txt", "/nothing", "/text.txt"):
            connection.sendall(request("GET", path, [HOST]))
            answer = read(connection)
            assert (answer.body == TEXT) == (path == "/text.txt")


@pytest.mark.parametrize("serializer", ["json", "cbor"])
def test_a_session_through_nginx(front: Router, serializer: str):
    peer = WebSocket.tcp(front.address("web")).open(serializer, "/ws").join()
    peer.round_trip()
    peer.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Site]:
    """An application in Flask, with files and a resource of Twisted beside it."""
    here = Path(__file__).parent
    paths = {
        "/": {"type": "wsgi", "module": "programs.shop", "object": "application"},
        "mounted": {"type": "wsgi", "module": "programs.shop", "object": "application"},
        "pages": {"type": "static", "directory": str(here / "programs" / "pages")},
        "tree": {"type": "resource", "classname": "programs.programs.Tree"},
    }
    node = start(tmp_path_factory.mktemp("shop"), paths, pythonpath=[str(here)])
    served = lambda: sum("is served" in line.text for line in node.log) >= 3  # noqa: E731
    await_true("all programs are served", served, 3 * DEADLINE_S)
    yield node
    node.close()


@pytest.mark.parametrize("base", ["", "/mounted"])
def test_an_application_in_flask(shop: Site, base: str):
    site = Http(shop.web)
    said = json.loads(site.get(f"{base}/", {"Host": "localhost:8080"}).body)
    assert said == {"cart": f"{base}/cart", "outside": f"http://localhost:8080{base}/cart"}
    # A form, a cookie, and where to look next.
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    chosen = site.post(f"{base}/cart", "article=a+hat", form)
    assert (chosen.status, chosen.header("location")) == (303, f"{base}/cart")
    cookie = chosen.header("set-cookie")
    assert cookie
    kept = site.get(f"{base}/cart", {"Cookie": cookie.split(";")[0]})
    assert json.loads(kept.body) == {"chosen": ["a hat"], "client": "127.0.0.1"}
    content = b"\x00\r\n" * 100_000
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    body += content + b"\r\n--x--\r\n"
    sent = site.post(f"{base}/picture", body, {"Content-Type": "multipart/form-data; boundary=x"})
    assert json.loads(sent.body) == {"name": "a.png", "length": len(content)}
    long = site.get(f"{base}/long")
    assert long.body == b"".join(b"line %d\n" % number for number in range(20_000))
    assert site.get(f"{base}/broken").status == 500
    assert site.ask("DELETE", f"{base}/cart").status == 405


def test_services_beside_it(shop: Site):
    site = Http(shop.web)
    assert site.get("/pages/deep/x.txt").status == 200
    assert site.get("/tree/leaf/a/b").body == b"a|b"
    # Paths without another service are Flask's 404.
    missing = site.get("/pagesand/x")
    assert (missing.status, b"The requested URL was not found" in missing.body) == (404, True)
