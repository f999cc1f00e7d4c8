"""Members of a zip file: found, measured, and never more than they say."""

from __future__ import annotations

import hashlib
import http.client
import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.backend import Backend
from rig.http import Http
from rig.node import Node
from web.site import configuration, start

LARGE = bytes(range(256)) * 10_000
FILES = {
    "dist/index.html": b"<p>start",
    "dist/app.js": b"app();" * 100,
    "dist/deep/index.html": b"<p>deep",
    "dist/other.thing": b"thing",
    "dist/large.bin": LARGE,
    "dist/empty.txt": b"",
    "dist/404.html": b"<p>nothing",
    "top.txt": b"top",
}
# Names that lead elsewhere, which no path reaches.
HOSTILE = ["../up.txt", "/root.txt", "a/../../up.txt", "back\\slash.txt", "new\nline.txt", "a//b"]


def archive(method: int = zipfile.ZIP_DEFLATED, **more: bytes) -> bytes:
    """Return a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        for name, content in {**FILES, **more}.items():
            written.writestr(name, content)
        written.mkdir("dist/folder/")
        for name in HOSTILE:
            written.writestr(zipfile.ZipInfo(name), b"hostile")
    return file.getvalue()


def lying(real: bytes, size: int, checksum: int | None = None) -> bytes:
    """Return an archive whose member `lie.txt` says of itself what is not so."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("lie.txt", real)
    octets = bytearray(file.getvalue())
    entry = octets.index(b"PK\x01\x02")
    struct.pack_into("<I", octets, entry + 24, size)
    if checksum is not None:
        struct.pack_into("<I", octets, entry + 16, checksum)
    return bytes(octets)


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Node]:
    """A node with archives."""
    directory = tmp_path_factory.mktemp("archives")
    files = {
        "web.zip": archive(),
        "stored.zip": archive(zipfile.ZIP_STORED),
        "longer.zip": lying(b"a" * 1_000_000, 10),
        "shorter.zip": lying(b"a" * 10, 1000),
        "other.zip": lying(b"a" * 10, 10, 7),
        "large.zip": lying(b"a" * 1_000_000, 100_000),
    }
    for name, octets in files.items():
        (directory / name).write_bytes(octets)
    (directory / "packed.zip").write_bytes(archive(zipfile.ZIP_LZMA))
    hashes = ["0" * 64, hashlib.sha256(files["web.zip"]).hexdigest().upper()]
    web = {
        "type": "archive",
        "archive": "web.zip",
        "object_prefix": "dist",
        "default_object": "index.html",
        "mime_types": {".thing": "application/x-thing"},
        "hashes": hashes,
    }
    paths = {
        "web": web,
        "cached": {**web, "cache": True, "cache_bytes_max": 1000},
        "default": {**web, "options": {"default_file": "404.html"}},
        "small": {**web, "member_bytes_max": 1000},
        "plain": {"type": "archive", "archive": "web.zip"},
        **{
            name.removesuffix(".zip"): {"type": "archive", "archive": name}
            for name in [*list(files)[1:], "packed.zip"]
        },
    }
    node = start(directory, paths)
    yield node
    node.close()


@pytest.fixture
def site(node) -> Http:
    """The node's listener."""
    return Http(node.web)


FOUND = {
    "/web/": ("text/html", "dist/index.html"),
    "/web": ("text/html", "dist/index.html"),
    "/web/deep/": ("text/html", "dist/deep/index.html"),
    "/web/app.js": ("text/javascript", "dist/app.js"),
    "/web/other.thing": ("application/x-thing", "dist/other.thing"),
    "/web/large.bin": ("application/octet-stream", "dist/large.bin"),
    "/web/empty.txt": ("text/plain", "dist/empty.txt"),
    "/plain/top.txt": ("text/plain", "top.txt"),
    "/stored/dist/large.bin": ("application/octet-stream", "dist/large.bin"),
    "/default/no/such": ("text/html", "dist/404.html"),
    "/cached/app.js": ("text/javascript", "dist/app.js"),
    "/cached/large.bin": ("application/octet-stream", "dist/large.bin"),
}


@pytest.mark.parametrize("path", FOUND)
def test_members(site: Http, path: str):
    kind, name = FOUND[path]
    for _ in range(2):
        answer = site.get(path)
        assert (answer.status, answer.header("content-type")) == (200, kind)
        assert answer.body == FILES[name]
        assert answer.header("content-length") == str(len(FILES[name]))
    asked = site.ask("HEAD", path)
    assert (asked.body, asked.header("content-length")) == (b"", str(len(FILES[name])))
    tag = answer.header("etag")
    assert tag
    for said in (tag, f'"x", W/{tag}', "*"):
        assert site.get(path, {"If-None-Match": said}).status == 304
    assert site.get(path, {"If-None-Match": '"x"'}).status == 200


MISSING = [
    "/web/no",
    "/web/folder",
    "/web/folder/",
    "/web/deep",
    "/web/top.txt",
    "/plain/",
    "/plain/dist",
    "/plain/up.txt",
    "/plain/root.txt",
    "/small/large.bin",
    "/packed/top.txt",
]


@pytest.mark.parametrize("path", MISSING)
def test_missing_archives(site: Http, path: str):
    assert site.get(path).status == 404


@pytest.mark.parametrize(
    "path", ["/plain/../up.txt", "/plain/%2e%2e/up.txt", "/plain/back%5cslash"]
)
def test_paths_lead_nowhere_else(site: Http, path: str):
    assert site.get(path).status == 400


def test_only_looking(site: Http):
    assert site.post("/web/app.js", "x").status == 405


def test_members_that_lie(site: Http, node: Node):
    for name in ("longer", "shorter", "other"):
        answer = site.get(f"/{name}/lie.txt")
        assert answer.status == 500
        assert len(answer.body) < 1000
    with pytest.raises(http.client.IncompleteRead) as cut:
        site.get("/large/lie.txt")
    assert len(cut.value.partial) <= 100_000
    node.says("6 members of an archive are not served")


def test_an_archive_is_fetched_once(tmp_path: Path):
    octets = archive()
    backend = Backend(
        lambda _got: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(octets) + octets
    )
    service = {
        "type": "archive",
        "archive": "fetched.zip",
        "origin": f"http://127.0.0.1:{backend.port}/web.zip",
        "download": True,
        "hashes": [hashlib.sha256(octets).hexdigest()],
    }
    try:
        for _ in range(2):
            node = start(tmp_path, {"web": service})
            assert Http(node.web).get("/web/top.txt").body == b"top"
            node.close()
    finally:
        backend.close()
    assert [got.line for got in backend.got] == ["GET /web.zip HTTP/1.1"]
    assert (tmp_path / "fetched.zip").read_bytes() == octets
    assert not (tmp_path / "fetched.zip.part").exists()


REFUSED = {
    "not there": ({}, "No such file|is not there"),
    "not fetched": ({"origin": "http://127.0.0.1:1/x"}, '"download" is not set'),
    "nobody there": ({"origin": "http://127.0.0.1:1/x", "download": True}, "http://127.0.0.1:1/x"),
    "another": ({"archive": "web.zip", "hashes": ["0" * 64]}, "its SHA-256 is [0-9a-f]{64}"),
    "no archive": ({"archive": "config.json"}, "config.json: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_archives_that_are_refused(tmp_path: Path, name: str):
    more, text = REFUSED[name]
    (tmp_path / "web.zip").write_bytes(archive())
    service = {"type": "archive", "archive": "missing.zip", **more}
    node = Node(tmp_path, configuration({"web": service}))
    node.says(text)
    assert node.exit_code() != 0


def test_a_fetched_archive_is_checked(tmp_path: Path):
    octets = archive()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(octets)
    backend = Backend(lambda _got: head + octets)
    service = {
        "type": "archive",
        "archive": "fetched.zip",
        "origin": f"http://127.0.0.1:{backend.port}/web.zip",
        "download": True,
    }
    try:
        for more in ({"hashes": ["0" * 64]}, {"archive_bytes_max": 100}):
            node = Node(tmp_path, configuration({"web": {**service, **more}}))
            assert node.exit_code() != 0
            assert not (tmp_path / "fetched.zip").exists()
    finally:
        backend.close()
