"""Files below a directory: contents, headers, and that no path leaves it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.http import Answer, Http
from rig.router import Router

TEXT = "".join(f"line {n}\n" for n in range(20_000))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Http]:
    """A node with directories of files, below several paths."""
    directory = tmp_path_factory.mktemp("files")
    (directory / "secret.txt").write_text("not to be served")
    web = directory / "web"
    (web / "deep" / "er").mkdir(parents=True)
    (web / "index.html").write_text("<p>home")
    (web / "small.txt").write_text("0123456789")
    (web / "large.txt").write_text(TEXT)
    (web / "app.wasm").write_bytes(b"\0asm")
    (web / "data.special").write_text("x")
    (web / "deep" / "a b&.html").write_text("named")
    (web / "deep" / "er" / "index.html").write_text("deeper")
    (web / "inside.txt").symlink_to("small.txt")
    (web / "outside.txt").symlink_to("../secret.txt")
    (web / "etc").symlink_to("/etc")
    os.mkfifo(web / "pipe")
    (web / "denied.txt").write_text("denied")
    static = {"type": "static", "directory": "web"}
    paths = {
        "/": static,
        "plain": {**static, "options": {"cache_timeout": None}},
        "listed": {
            **static,
            "options": {"enable_directory_listing": True, "mime_types": {".special": "a/b"}},
        },
        "app": {**static, "options": {"default_file": "index.html", "cache_timeout": 60}},
        "packed": {**static, "options": {"compress": True}},
        "below": {"type": "path", "paths": {"files": static, "/": {"type": "none"}}},
    }
    transport = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(
        directory, config=config.plain(config.universal("tcp", config.tcp()), transport)
    )
    yield Http(router.address("web"))
    router.stop()


def test_a_file_and_what_is_said_of_it(site: Http):
    answer = site.get("/small.txt")
    assert (answer.status, answer.body) == (200, b"0123456789")
    assert answer.header("content-type") == "text/plain"
    assert answer.header("content-length") == "10"
    assert answer.header("accept-ranges") == "bytes"
    assert answer.header("cache-control") == "max-age=43200, public"
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("expires").endswith("GMT")
    assert answer.header("last-modified").endswith("GMT")
    assert answer.header("etag").startswith('"')


def test_head_says_the_same_and_sends_nothing(site: Http):
    got, head = site.get("/large.txt"), site.ask("HEAD", "/large.txt")
    assert (head.status, head.body) == (200, b"")
    ignored = {"date", "expires"}
    assert {k: v for k, v in head.headers if k not in ignored} == {
        k: v for k, v in got.headers if k not in ignored
    }


def test_a_large_file_is_sent_whole(site: Http):
    assert site.get("/large.txt").body.decode() == TEXT


@pytest.mark.parametrize(
    ("range_", "status", "body", "content_range"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("bytes=x", 200, b"0123456789", None),
    ],
)
def test_ranges(site: Http, range_: str, status: int, body: bytes, content_range: str | None):
    answer = site.get("/small.txt", {"Range": range_})
    assert (answer.status, answer.body) == (status, body)
    assert answer.header("content-range") == content_range


def test_a_range_of_a_large_file(site: Http):
    answer = site.get("/large.txt", {"Range": "bytes=70000-199999"})
    assert answer.status == 206
    assert answer.body.decode() == TEXT[70_000:200_000]


def test_unchanged_files_are_not_sent_again(site: Http):
    first = site.get("/small.txt")
    tag, modified = first.header("etag"), first.header("last-modified")
    for headers, status in [
        ({"If-None-Match": tag}, 304),
        ({"If-None-Match": f'"x", W/{tag}'}, 304),
        ({"If-None-Match": '"x"', "If-Modified-Since": modified}, 200),
        ({"If-Modified-Since": modified}, 304),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 200),
        ({"If-Match": '"x"'}, 412),
        ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 412),
        ({"Range": "bytes=0-0", "If-Range": tag}, 206),
        ({"Range": "bytes=0-0", "If-Range": '"x"'}, 200),
    ]:
        answer = site.get("/small.txt", headers)
        assert answer.status == status, headers
        if status == 304:
            assert answer.body == b""
            assert answer.header("etag") == tag


def test_media_types(site: Http):
    assert site.get("/app.wasm").header("content-type") == "application/wasm"
    assert site.get("/data.special").header("content-type") == "application/octet-stream"
    assert site.get("/listed/data.special").header("content-type") == "a/b"


def test_caching_can_be_left_to_the_client(site: Http):
    answer = site.get("/plain/small.txt")
    assert answer.header("cache-control") is None
    assert answer.header("expires") is None
    assert site.get("/app/small.txt").header("cache-control") == "max-age=60, public"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/", 200, "home"),
        ("/index.html", 200, "home"),
        ("/deep/er/", 200, "deeper"),
        ("/deep/a%20b%26.html", 200, "named"),
        ("/below/files/small.txt", 200, "0123456789"),
        ("/inside.txt", 200, "0123456789"),
        ("/deep/", 404, ""),
        ("/small.txt/", 404, ""),
        ("/small.txt/more", 404, ""),
        ("/missing", 404, ""),
        ("/below", 404, ""),
        ("/below/other", 404, ""),
        ("/pipe", 404, ""),
        ("/app/no/such/page", 200, "home"),
        ("/app", 302, ""),
    ],
)
def test_targets_of_paths(site: Http, path: str, status: int, text: str):
    answer = site.get(path)
    assert answer.status == status
    assert text in answer.body.decode()


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/deep", "./deep/"),
        ("/deep/er?x=1", "./er/?x=1"),
        ("/listed", "./listed/"),
        ("//deep", "./deep/"),
    ],
)
def test_a_directory_is_asked_for_with_a_slash(site: Http, path: str, location: str):
    answer = site.get(path)
    assert (answer.status, answer.header("location")) == (302, location)


def test_a_listing_names_what_is_there(site: Http):
    page = site.get("/listed/deep/").body.decode()
    assert 'href="./a%20b%26.html"' in page
    assert "a b&amp;.html" in page
    assert 'href="./er/"' in page


OUT = [
    "/../secret.txt",
    "/deep/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/%2e%2e%2fsecret.txt",
    "/..%2fsecret.txt",
    "/..%5csecret.txt",
    "/%252e%252e/secret.txt",
    "/%c0%ae%c0%ae/secret.txt",
    "/.%00./secret.txt",
    "/small.txt%00.html",
    "/outside.txt",
    "/etc/passwd",
    "/etc/",
    "//etc/passwd",
    "/proc/self/environ",
    "/listed/etc/",
]


@pytest.mark.parametrize("path", OUT)
def test_no_path_leaves_the_directory(site: Http, path: str):
    answer = site.get(path)
    assert answer.status in (400, 404)
    assert b"not to be served" not in answer.body
    assert b"root:" not in answer.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"])
def test_files_are_only_read(site: Http, method: str):
    answer = site.ask(method, "/small.txt")
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


def test_a_directory_that_is_replaced_is_served_anew(tmp_path: Path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.txt").write_text("old")
    paths = {"/": {"type": "static", "directory": "web"}}
    transport = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path, config=config.plain(transport))
    http = Http(router.address("web"))
    assert http.get("/a.txt").body == b"old"
    (tmp_path / "web").rename(tmp_path / "before")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.txt").write_text("new")

    def is_new(answer: Answer) -> bool:
        return answer.body == b"new"

    http.await_answer("/a.txt", is_new)
    router.stop()


def test_a_directory_that_is_not_there_yet(tmp_path: Path):
    listed = {"enable_directory_listing": True}
    paths = {
        "/": {"type": "static", "directory": "web"},
        "listed": {"type": "static", "directory": "web", "options": listed},
        "cgi": {"type": "cgi", "directory": "scripts", "processor": "/bin/sh"},
    }
    transport = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path, config=config.plain(transport))
    http = Http(router.address("web"))
    for path in ("/", "/a.txt", "/listed/", "/listed/a.txt", "/cgi/a.sh"):
        assert http.get(path).status == 404, path
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a.txt").write_text("there")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.sh").write_text("printf 'Content-Type: text/plain\\n\\nran'")
    for path, body in (("/a.txt", b"there"), ("/listed/a.txt", b"there"), ("/cgi/a.sh", b"ran")):
        http.await_answer(path, lambda answer, body=body: answer.body == body)
    router.stop()
    assert sum("there is no directory" in line.text for line in router.log) == 3


def test_texts_are_compressed_for_those_who_take_that(site: Http):
    plain = site.get("/packed/large.txt")
    packed = site.get("/packed/large.txt", {"Accept-Encoding": "br, gzip"})
    assert plain.body.decode() == gzip.decompress(packed.body).decode() == TEXT
    assert len(packed.body) < len(plain.body) / 3
    assert (plain.header("content-encoding"), packed.header("content-encoding")) == (None, "gzip")
    assert plain.header("vary") == packed.header("vary") == "accept-encoding"
    assert plain.header("etag") != packed.header("etag")
    tag = {"Accept-Encoding": "gzip", "If-None-Match": packed.header("etag")}
    assert site.get("/packed/large.txt", tag).status == 304
    head = site.ask("HEAD", "/packed/large.txt", {"Accept-Encoding": "gzip"})
    assert head.header("content-length") == str(len(packed.body))
    # A part is one of the file, a short file is not worth it, and who did not ask is not served it.
    part = site.get("/packed/large.txt", {"Accept-Encoding": "gzip", "Range": "bytes=0-3"})
    assert (part.status, part.body) == (206, b"line")
    for path in ("/packed/small.txt", "/packed/app.wasm", "/large.txt"):
        assert site.get(path, {"Accept-Encoding": "gzip"}).header("content-encoding") is None
