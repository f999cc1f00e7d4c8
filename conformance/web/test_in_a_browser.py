"""A real browser: a page of this node with autobahn-js in it, over WebSocket and long-poll."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import CALL, INVOCATION, PUBLISH, RESULT, YIELD

PAGES = Path(__file__).parent / "pages"
AUTOBAHN = ROOT / "conformance/js/node_modules/autobahn-browser/autobahn.min.js"
WAYS = ["websocket", "longpoll"]

# A browser needs seconds to start on a loaded machine.
PATIENCE_S = 120


@pytest.fixture(scope="module")
def router(tmp_path_factory) -> Iterator[Router]:
    """A site with a page, and another one of another origin, which has the page alone."""
    directory = tmp_path_factory.mktemp("browser")
    pages = directory / "pages"
    shutil.copytree(PAGES, pages)
    shutil.copy(AUTOBAHN, pages)
    files = {"/": {"type": "static", "directory": "pages"}}
    ticket = {"type": "static", "principals": {"joe": {"ticket": "hunter2", "role": "anonymous"}}}
    login = {"auth": {"ticket": ticket, "cookie": {}}, "cookie": {"http_strict": True}}
    wamp = {
        "ws": {"type": "websocket"},
        "lp": {"type": "longpoll"},
        "login": {"type": "websocket", **login},
    }
    running = Router(
        directory,
        config=config.plain(
            {"type": "web", "id": "site", "endpoint": config.tcp(), "paths": {**files, **wamp}},
            {"type": "web", "id": "elsewhere", "endpoint": config.tcp(), "paths": files},
            config.universal("tcp", config.tcp()),
        ),
    )
    yield running
    running.stop()


@pytest.fixture
def browse(tmp_path) -> Iterator[Callable[[str], None]]:
    """Open a page in a browser without a window, which ends with the test."""
    if "browser" in os.environ.get("CROSSTIE_WITHOUT", "") or not shutil.which("chromium"):
        pytest.skip("there is no chromium")
    if not AUTOBAHN.exists():
        pytest.skip("there is no autobahn-browser")
    running: list[subprocess.Popen] = []

    def browse(url: str) -> None:
        # As root a browser refuses its own sandbox; this page has nothing to run in one.
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--no-first-run", "--disable-background-networking", "--disable-extensions"]
        command += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
        # It ends with the test: without a port it would end as soon as the page is loaded.
        command += ["--remote-debugging-port=0", f"--user-data-dir={tmp_path}/profile", url]
        said = (tmp_path / "browser.log").open("w")
        running.append(subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True))

    yield browse
    for process in running:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Page:
    """The other side of a page: it is called by it, and calls it."""

    def __init__(self, router: Router, name: str):
        self.own = f"com.page.{name}"
        self.session = RawSocket.tcp(router.address("tcp")).shake_hands()
        self.session.socket.settimeout(PATIENCE_S)
        self.session.join()
        self.registrations = {
            name: self.session.register(f"{self.own}.{name}")
            for name in ("twice", "ready", "heard", "closed")
        }

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def is_called(self, name: str, answer: Callable[..., object] = lambda *_: None) -> list:
        """Wait for the page to call; return its arguments."""
        invocation = self.session.hear(INVOCATION)
        assert invocation[2] == self.registrations[name], (name, invocation)
        arguments = invocation[4]
        self.session.say(YIELD, invocation[1], {}, [answer(*arguments)])
        return arguments

    def is_ready(self, by: str) -> None:
        """Wait for the page to be there."""
        assert self.is_called("twice", lambda number: 2 * number) == [21]
        assert self.is_called("ready") == [by, 42]

    def tell(self, topic: str, *args: object) -> None:
        """Publish to the page."""
        self.session.ask(PUBLISH, {}, f"{self.own}.{topic}", list(args))

    def add(self, left: int, right: int) -> int:
        """Call the page."""
        self.session.ask(CALL, {}, f"{self.own}.add", [left, right])
        return self.session.hear(RESULT)[3][0]


def url(router: Router, by: str, name: str, site: str = "site") -> str:
    """Return where the page is, and what it is to do."""
    host, port = router.address("site")
    query = urlencode({"by": by, "at": f"http://{host}:{port}", "name": name})
    host, port = router.address(site)
    return f"http://{host}:{port}/?{query}"


@pytest.mark.parametrize("by", WAYS)
def test_a_page_lives(router, browse, by):
    with Page(router, by) as page:
        browse(url(router, by, by))
        page.is_ready(by)
        for number in range(20):
            page.tell("news", number, "é")
            assert page.is_called("heard") == [number, "é"]
            assert page.add(number, 1) == number + 1
        page.tell("leave")
        assert page.is_called("closed") == ["closed", "wamp.close.normal"]


def test_a_page_of_another_site_lives(router, browse):
    """Its browser asks first whether it may (CORS)."""
    with Page(router, "elsewhere") as page:
        browse(url(router, "longpoll", "elsewhere", site="elsewhere"))
        page.is_ready("longpoll")
        assert page.add(1, 2) == 3


@pytest.mark.parametrize("by", WAYS)
def test_a_page_is_told_of_its_end(router, browse, by):
    with Page(router, f"killed.{by}") as page:
        browse(url(router, by, f"killed.{by}"))
        page.is_ready(by)
        page.session.ask(CALL, {}, "wamp.session.kill_all", [], {})
        assert page.session.hear(RESULT)
        _, text = page.is_called("closed")
        assert "killed" in text


def test_a_page_is_known_again(router, browse):
    with Page(router, "login") as page:
        host, port = router.address("site")
        browse(f"http://{host}:{port}/login.html?name=login")
        assert page.is_called("ready") == [
            ["joe", "ticket", "static"],
            ["joe", "ticket", "cookie"],
            # No script of the page can read it.
            "",
        ]
