"""Scripts: what they are told, what they may answer, and that none outlives its request."""

from __future__ import annotations

import http.client
import json
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.http import Http, read, request
from rig.node import is_alive
from rig.waiting import await_true
from web.site import Site, start

HOST = "Host: localhost"

SCRIPTS = {
    "told": """
        import json, os, sys
        body = sys.stdin.read(int(os.environ.get("CONTENT_LENGTH") or 0))
        print("Content-Type: application/json")
        print()
        here = os.getcwd()
        print(json.dumps({"told": dict(os.environ), "body": body, "here": here, "argv": sys.argv}))
    """,
    "raw": """
        import sys
        from urllib.parse import unquote_to_bytes
        import os
        sys.stdout.buffer.write(unquote_to_bytes(os.environ["QUERY_STRING"]))
    """,
    "echo": """
        import sys, shutil
        print("Content-Type: application/octet-stream\\n", flush=True)
        shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)
    """,
    "fails": """
        import sys
        sys.exit("what a pity")
    """,
    "hangs": """
        import os, subprocess, time
        child = subprocess.Popen(["sleep", "1000"])
        name = f"{os.environ['QUERY_STRING']}/{os.getpid()}"
        with open(name + ".part", "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        os.rename(name + ".part", name)
        if os.environ.get("HTTP_X_BEGIN"):
            print("Content-Type: text/plain\\n\\nbegun", flush=True)
        time.sleep(1000)
    """,
    "endless": """
        print("Content-Type: text/plain\\n")
        while True:
            print("x" * 10_000)
    """,
}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Site]:
    """A node with a directory of scripts."""
    directory = tmp_path_factory.mktemp("scripts")
    scripts = directory / "cgi"
    (scripts / "deep").mkdir(parents=True)
    for name, text in SCRIPTS.items():
        lines = [line.removeprefix("        ") for line in text.splitlines()]
        (scripts / f"{name}.py").write_text("\n".join(lines))
    (scripts / "deep" / "plain.sh").write_text(
        "printf 'Status: 201 Created\\r\\nContent-Type: text/plain\\r\\n\\r\\n%s' \"$PATH_INFO\"\n"
    )
    (directory / "secret.py").write_text((scripts / "told.py").read_text())
    (scripts / "outside.py").symlink_to("../secret.py")
    (scripts / "up").symlink_to("..")
    python = {"type": "cgi", "directory": "cgi", "processor": sys.executable}
    paths = {
        "cgi": python,
        "shell": {"type": "cgi", "directory": "cgi", "processor": "sh"},
        "hasty": {**python, "timeout": 1},
        "few": {**python, "processes_max": 2},
        "brief": {**python, "run_timeout": 1},
        "none": {**python, "processor": "no-such-processor"},
        "value": {"type": "json", "value": 1},
    }
    node = start(directory, paths)
    yield node
    node.close()


@pytest.fixture
def site(node: Site) -> Http:
    """The node's listener."""
    return Http(node.web)


def test_variables_of_a_script(site: Http, node: Site):
    answer = site.post(
        "/cgi/told.py/more/a%20b?q=1&r=%2F",
        "body",
        {
            "Host": "localhost:1234",
            "Content-Type": "text/x",
            "X-One": "1",
            "Proxy": "http://attacker.example/",
            "Authorization": "Basic eDp5",
            "X_Two": "2",
            "Cookie": "a=1",
        },
    )
    assert answer.status == 200
    assert answer.header("content-type") == "application/json"
    said = json.loads(answer.body)
    told = said["told"]
    expected = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "1234",
        "REQUEST_METHOD": "POST",
        "QUERY_STRING": "q=1&r=%2F",
        "SCRIPT_NAME": "/cgi/told.py",
        "PATH_INFO": "/more/a b",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": "4",
        "CONTENT_TYPE": "text/x",
        "HTTP_X_ONE": "1",
        "HTTP_COOKIE": "a=1",
        "HTTP_HOST": "localhost:1234",
    }
    assert {name: told.get(name) for name in expected} == expected
    for name in ("HTTP_PROXY", "HTTP_AUTHORIZATION", "HTTP_X_TWO", "HTTPS", "HTTP_CONTENT_TYPE"):
        assert name not in told
    scripts = (node.directory / "cgi").resolve()
    assert said["body"] == "body"
    assert said["here"] == str(scripts)
    assert said["argv"] == [str(scripts / "told.py")]


def test_a_script_of_the_shells(site: Http):
    answer = site.get("/shell/deep/plain.sh/x")
    assert (answer.status, answer.body) == (201, b"/x")
    assert answer.header("content-type") == "text/plain"


def test_bodies_of_any_size(site: Http):
    body = bytes(range(256)) * 20_000
    assert site.post("/cgi/echo.py", body).body == body
    assert site.post("/cgi/echo.py", b"").body == b""
    chunked = request("POST", "/cgi/echo.py", [HOST, "Transfer-Encoding: chunked"], b"0\r\n\r\n")
    assert site.raw(chunked, "POST").status == 411


@pytest.mark.parametrize(
    "path",
    [
        "/cgi",
        "/cgi/",
        "/cgi/no.py",
        "/cgi/deep",
        "/cgi/deep/",
        "/cgi/outside.py",
        "/cgi/up/secret.py",
        "/cgi/up/cgi/told.py",
        "/cgi/" + "a" * 300,
    ],
)
def test_no_script_is_there(site: Http, path: str):
    assert site.get(path).status == 404


@pytest.mark.parametrize("path", ["/cgi/../secret.py", "/cgi/%2e%2e/secret.py", "/cgi/a%00.py"])
def test_paths_lead_nowhere_else(site: Http, path: str):
    assert site.get(path).status == 400


ANSWERS = {
    "plain": ("Content-Type: a/b\n\nbody", 200, b"body"),
    "status": ("Status: 404 No\nContent-Type: a/b\n\nno", 404, b"no"),
    "location": ("Location: http://x.example/\n\n", 302, b""),
    "short": ("Content-Type: a/b\nContent-Length: 2\n\nlonger", 200, b"lo"),
    "own framing": (
        "Content-Type: a/b\nConnection: close\nTransfer-Encoding: chunked\n\nbody",
        200,
        b"body",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(site: Http, name: str):
    text, status, body = ANSWERS[name]
    answer = site.get(f"/cgi/raw.py?{escaped(text)}")
    assert (answer.status, answer.body) == (status, body)


REFUSED = {
    "nothing": "",
    "no header": "body without a header",
    "a whole answer": "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\nbody",
    "empty header": "\n\nbody",
    "no field that has to be": "X-A: b\n\nbody",
    "a bare return": "Content-Type: a/b\nX-A: 1\rSet-Cookie: stolen=1\n\n",
    "null": "Content-Type: a/b\nX-A: \0\n\n",
    "folded": "Content-Type: a/b\n Set-Cookie: stolen=1\n\n",
    "two lengths": "Content-Type: a/b\nContent-Length: 1\nContent-Length: 2\n\nab",
    "two states": "Status: 200\nStatus: 404\n\n",
    "not final": "Status: 100 Continue\n\n",
    "many fields": "X-A: b\n" * 200 + "Content-Type: a/b\n\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_answers(site: Http, name: str):
    answer = site.get(f"/cgi/raw.py?{escaped(REFUSED[name])}")
    assert answer.status == 502
    assert answer.header("set-cookie") is None


def test_scripts_that_fail(site: Http, node: Site):
    assert site.get("/cgi/fails.py").status == 502
    node.says("what a pity", role="CGI")
    assert site.get("/none/told.py").status == 502
    node.says("no-such-processor")


def test_a_script_that_hangs_is_ended_with_what_it_started(site: Http, tmp_path: Path):
    assert site.get(f"/hasty/hangs.py?{tmp_path}").status == 504
    gone(tmp_path, 1)


def test_a_script_that_stops_in_its_answer(site: Http, tmp_path: Path):
    with pytest.raises(http.client.IncompleteRead) as broken:
        site.get(f"/hasty/hangs.py?{tmp_path}", {"X-Begin": "1"})
    assert b"begun" in broken.value.partial
    gone(tmp_path, 1)


@pytest.mark.parametrize("begin", [False, True])
def test_a_client_that_goes_takes_its_script_along(site: Http, tmp_path: Path, begin: bool):
    with site.connect() as connection:
        lines = [HOST, "X-Begin: 1"] if begin else [HOST]
        connection.sendall(request("GET", f"/cgi/hangs.py?{tmp_path}", lines))
        await_true("it runs", lambda: len(running(tmp_path)) == 2)
    gone(tmp_path, 1)


def test_an_answer_without_end_has_one(site: Http):
    with pytest.raises(http.client.IncompleteRead):
        site.get("/brief/endless.py")
    assert site.get("/value").status == 200


def test_a_thousand_requests_at_a_script_that_hangs(site: Http, tmp_path: Path):
    """In turns of fifty, of whom two run and two wait."""
    asking = request("GET", f"/few/hangs.py?{tmp_path}", [HOST, "Connection: close"])
    for _ in range(20):
        asked = [site.connect() for _ in range(50)]
        try:
            for connection in asked:
                connection.sendall(asking)
            # One more if a request of the last turn, whose client has left, still has a place.
            await_true("others are told", lambda asked=asked: len(readable(asked)) >= 46)
            for connection in readable(asked):
                assert read(connection).status == 503
            assert site.get("/value").status == 200
            assert site.get("/cgi/told.py").status == 200
            assert len(list(tmp_path.iterdir())) <= 4
        finally:
            for connection in asked:
                connection.close()
        await_true("all have ended", lambda: not any(map(is_alive, running(tmp_path))))
        for file in tmp_path.iterdir():
            file.unlink()


def test_a_killed_nodes_scripts_end(tmp_path: Path):
    scripts = tmp_path / "cgi"
    scripts.mkdir()
    pids = tmp_path / "pids"
    pids.mkdir()
    text = "echo $$ > $QUERY_STRING/part; mv $QUERY_STRING/part $QUERY_STRING/pid; sleep 1000\n"
    (scripts / "hangs.sh").write_text(text)
    paths = {"cgi": {"type": "cgi", "directory": "cgi", "processor": "sh"}}
    node = start(tmp_path, paths)
    try:
        with Http(node.web).connect() as connection:
            connection.sendall(request("GET", f"/cgi/hangs.sh?{pids}", [HOST]))
            await_true("it runs", lambda: len(running(pids)) == 1)
            node.kill()
        gone(pids, 1)
    finally:
        node.close()


def escaped(text: str) -> str:
    """Return a text as a query that says each byte."""
    return "".join(f"%{byte:02x}" for byte in text.encode())


def running(directory: Path) -> list[int]:
    """Return the processes that scripts have noted there."""
    files = [file for file in directory.iterdir() if not file.name.endswith("part")]
    return [int(pid) for file in files for pid in file.read_text().split()]


def gone(directory: Path, scripts: int) -> None:
    """Wait until so many scripts have begun, and all have ended."""
    await_true("it has begun", lambda: len(list(directory.iterdir())) >= scripts)
    await_true("all have ended", lambda: not any(map(is_alive, running(directory))))


def readable(connections) -> list:
    """Return those that were answered."""
    return select.select(connections, [], [], 0)[0]
