"""Python beside a router: WSGI applications, Twisted resources, and folders of packages."""

from __future__ import annotations

import http.client
import json
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.http import Http, read, request
from rig.node import Node, is_alive
from rig.waiting import DEADLINE_S, await_true
from web.site import Site, configuration, start

HOST = "Host: localhost"
HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE / "programs")]


def wsgi(name: str, **more: object) -> dict:
    """Return a service of an application of `programs.py`."""
    return {"type": "wsgi", "module": "programs.programs", "object": name, **more}


def resource(name: str, **more: object) -> dict:
    """Return a service of a resource of `programs.py`."""
    return {"type": "resource", "classname": f"programs.programs.{name}", **more}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Site]:
    """A node with programs."""
    paths = {
        "/": wsgi("validated"),
        "app": wsgi("application", minthreads=1, maxthreads=2),
        "deep": {"type": "path", "paths": {"er": wsgi("validated")}},
        "tree": resource("Tree", extra={"a": [1, None]}),
        "bare": resource("Tree"),
        "hasty": wsgi("application", timeout=2, maxthreads=1),
        "short": wsgi("application", body_bytes_max=1000),
        "dying": wsgi("application"),
        "package": {"type": "static", "package": "programs", "resource": "pages"},
        "value": {"type": "json", "value": 1},
    }
    node = start(tmp_path_factory.mktemp("programs"), paths, pythonpath=PATHS)
    serving(node, 8)
    yield node
    node.close()


def serving(node: Node, count: int) -> None:
    """Wait until so many programs are served: each takes its time on a loaded machine."""

    def all_are() -> bool:
        return len([line for line in node.log if "is served" in line.text]) >= count

    await_true("all programs are served", all_are, 3 * DEADLINE_S)


@pytest.fixture
def site(node: Site) -> Http:
    """The node's listener."""
    return Http(node.web)


def test_environment_of_an_application(site: Http):
    answer = site.post(
        "/deep/er/more/a%20b?q=1&r=%2F",
        "body",
        {
            "Host": "localhost:1234",
            "Content-Type": "text/x",
            "X-One": "1",
            "X_One": "2",
            "X-Crosstie-Base": "/attacker",
            "X-Crosstie-Client": "10.1.2.3 4",
            "X-Crosstie-Server": "https 443",
        },
    )
    assert answer.status == 200
    said = json.loads(answer.body)
    told = said["told"]
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "/deep/er",
        "PATH_INFO": "/more/a b",
        "QUERY_STRING": "q=1&r=%2F",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "1234",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "text/x",
        "CONTENT_LENGTH": "4",
        "HTTP_HOST": "localhost:1234",
        "HTTP_X_ONE": "1",
        "wsgi.url_scheme": "http",
        "wsgi.multithread": True,
    }
    assert {name: told.get(name) for name in expected} == expected
    assert not [name for name in told if "CROSSTIE" in name]
    assert said["body"] == "body"


@pytest.mark.parametrize(
    ("path", "script", "info"),
    [
        ("/", "", "/"),
        ("/x/y", "", "/x/y"),
        ("/deep/er", "/deep/er", ""),
        ("/deep/er/", "/deep/er", "/"),
    ],
)
def test_path_of_an_application(site: Http, path: str, script: str, info: str):
    told = json.loads(site.get(path).body)["told"]
    assert (told["SCRIPT_NAME"], told["PATH_INFO"]) == (script, info)


def test_bodies(site: Http):
    body = bytes(range(256)) * 20_000
    assert site.post("/app/echo", body).body == body
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    chunked = request("POST", "/app/echo", [HOST, "Transfer-Encoding: chunked"], chunks)
    assert site.raw(chunked, "POST").body == b"hello world"
    assert site.post("/short/echo", bytes(1000)).status == 200
    assert site.post("/short/echo", bytes(1001)).status == 413
    long = b"%x\r\n%b\r\n0\r\n\r\n" % (5000, bytes(5000))
    chunked = request("POST", "/short/echo", [HOST, "Transfer-Encoding: chunked"], long)
    assert site.raw(chunked, "POST").status >= 400


def test_an_answer_passes_as_it_comes(site: Http):
    with site.connect() as connection:
        connection.sendall(request("GET", "/app/parts", [HOST]))
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.read(5) == b"first"
        assert site.get("/app/release").status == 200
        assert response.read() == b"last"


def test_applications_that_fail(site: Http, node: Site):
    assert site.get("/app/raises").status == 500
    node.says("what a pity", role="WSGI")
    injected = site.get("/app/injects")
    assert injected.header("set-cookie") is None
    # On a busy machine the connection may end before the head was sent.
    with pytest.raises((http.client.IncompleteRead, http.client.RemoteDisconnected)):
        site.get("/app/half")
    assert site.get("/app").status == 200


def test_output_of_programs(site: Http, node: Site):
    assert site.get("/app/prints").status == 200
    node.says("said by a program", role="WSGI")
    node.says("complained by a program", role="WSGI")


def test_an_application_that_hangs(site: Http):
    assert site.get("/hasty/hangs").status == 504
    assert site.get("/value").status == 200
    assert site.get("/app").status == 200


def test_an_application_that_dies_is_started_again(site: Http, node: Site):
    pid = site.get("/dying").header("x-pid")
    since = len(node.log)
    assert site.get("/dying/dies").status == 502
    node.says("programs.application: ended with exit code 3", since=since)
    site.await_answer("/dying", lambda answer: answer.status == 200)
    assert site.get("/dying").header("x-pid") != pid


def test_a_resource(site: Http):
    said = json.loads(site.get("/tree", {"Host": "localhost:1234"}).body)
    assert said["extra"] == {"a": [1, None]}
    assert said["client"] == "127.0.0.1"
    assert said["host"] == ["localhost", 1234]
    assert said["secure"] is False
    assert said["prepath"] == ["tree"]
    assert not [name for name in said["told"] if "crosstie" in name.lower()]
    assert json.loads(site.get("/bare/").body)["extra"] == {}
    assert site.get("/tree/leaf/a%20b/c").body == b"a b|c"
    assert site.post("/tree/leaf", "body").body == b"body"
    assert site.get("/tree/later").body == b"now then"
    assert site.get("/tree/no").status == 404
    assert site.ask("DELETE", "/tree").status == 501


def test_files_of_a_package(site: Http):
    assert site.get("/package/").body == b"<p>of a package\n"
    assert site.get("/package/deep/x.txt").body == b"deep\n"
    assert site.get("/package/../programs.py").status == 400


BROKEN = {
    "no module": (wsgi("x", module="no_such_module"), "No module named 'no_such_module'"),
    "no object": (wsgi("no_such_object"), "no attribute 'no_such_object'"),
    "no application": (wsgi("NOT_CALLABLE"), "is 42, and no WSGI application"),
    "no class": (resource("NoSuchClass"), "no attribute 'NoSuchClass'"),
    "a class that fails": (resource("fails"), "raised ValueError: what a pity"),
    "no resource": (resource("Exception"), "no resource of Twisted's|no attribute"),
}


def test_programs_that_cannot_be_loaded(tmp_path: Path):
    paths = {name.replace(" ", "-"): service for name, (service, _) in BROKEN.items()}
    node = start(tmp_path, paths, pythonpath=PATHS)
    try:
        site = Http(node.web)
        for path, (_, text) in zip(paths, BROKEN.values(), strict=True):
            node.says(text)
            assert site.get(f"/{path}").status == 502
    finally:
        node.close()


PACKAGES = {
    "no package": ({"package": "no_such_package", "resource": "x"}, "no package 'no_such_package'"),
    "no folder": ({"package": "programs", "resource": "no"}, "has no folder 'no'"),
    "outside": ({"package": "programs", "resource": ".."}, "has no folder '..'"),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_packages_that_cannot_be_served(tmp_path: Path, name: str):
    service, text = PACKAGES[name]
    node = Node(tmp_path, configuration({"x": {"type": "static", **service}}, pythonpath=PATHS))
    node.says(text)
    assert node.exit_code() != 0


@pytest.mark.parametrize("is_killed", [False, True])
def test_programs_end_with_their_node(tmp_path: Path, is_killed: bool):
    paths = {"app": wsgi("application"), "slow": resource("Slow")}
    node = start(tmp_path, paths, pythonpath=PATHS)
    serving(node, 1)
    site = Http(node.web)
    pid = int(site.get("/app").header("x-pid") or 0)
    assert is_alive(pid)
    # Also one that does nothing but hang.
    with site.connect() as connection:
        connection.sendall(request("GET", "/app/hangs", [HOST]))
        end(node, is_killed)
    await_true("it has ended", lambda: not is_alive(pid))
    node.close()


def end(node: Node, is_killed: bool) -> None:
    """End a node in one way or the other; it must leave no process."""
    if is_killed:
        node.kill()
    else:
        assert node.stop() == 0


def test_a_hanging_application_holds_its_own_places(tmp_path: Path):
    paths = {
        "few": wsgi("application", requests_max=2, maxthreads=1),
        "value": {"type": "json", "value": 1},
    }
    node = start(tmp_path, paths, pythonpath=PATHS)
    serving(node, 1)
    site = Http(node.web)
    asked = [site.connect() for _ in range(10)]
    try:
        site.get("/few")
        for connection in asked:
            connection.sendall(request("GET", "/few/hangs", [HOST, "Connection: close"]))
        await_true("the others are told", lambda: len(readable(asked)) == 6)
        for connection in readable(asked):
            assert read(connection).status == 503
        assert site.get("/value").status == 200
    finally:
        for connection in asked:
            connection.close()
        node.close()


def readable(connections) -> list:
    """Return those that were answered."""
    return select.select(connections, [], [], 0)[0]
