"""The examples with Celery and oslo.messaging, run as their pages say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.browser import Browser
from rig.node import Node
from rig.ports import free_ports
from rig.router import ROOT
from rig.session import CALL, ERROR, EVENT, RESULT
from rig.waiting import await_true
from rig.websocket import WebSocket

from joined.conftest import FRAMEWORKS, OSLO

EXAMPLES = ("celery_tasks", "oslo_service", "page_service_tasks")


class Example:
    """A copy of an example whose node runs, beside copies of the others, on ports of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.directory, self.folder = folder / name, folder
        self.amqp, self.web = free_ports(2)
        left = shutil.ignore_patterns("key.*", "*.sock", "node.*", "*.store", "__pycache__")
        for each in EXAMPLES:
            shutil.copytree(ROOT / "examples" / each, folder / each, ignore=left)
        for file in (*folder.rglob("*.py"), *folder.rglob("*.json")):
            text = file.read_text().replace("5672", str(self.amqp))
            file.write_text(text.replace("8080", str(self.web)))
        block = re.search(r"```sh\n(.*?)```", (self.directory / "README.md").read_text(), re.DOTALL)
        lines = [line.partition("#")[0].strip() for line in block[1].splitlines()]
        install, start, *self.commands = lines
        assert install.startswith("pip install ")
        assert start == "crosstie start"
        self.node = Node(self.directory / ".crossbar")
        self.programs: list[subprocess.Popen] = []

    def _popen(self, command: str, output: object) -> subprocess.Popen:
        python = OSLO if "oslo" in f"{self.directory.name} {command}" else FRAMEWORKS
        if not python.exists():
            pytest.skip(f"{python} is not there")
        program, *arguments = shlex.split(command)
        started = subprocess.Popen(
            [python.parent / program, *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            # A group of its own, so that its children end with it.
            start_new_session=True,
        )
        self.programs.append(started)
        return started

    def start(self, command: str, ready: str) -> subprocess.Popen:
        """Start a program, and wait until it writes that it is ready."""
        log = self.folder / f"{len(self.programs)}.log"
        with log.open("w") as output:
            started = self._popen(command, output)

        def is_ready() -> bool:
            assert started.poll() is None, log.read_text()
            return ready in log.read_text()

        await_true(f"{command} is ready; see {log}", is_ready)
        return started

    def output(self, command: str) -> str:
        """Run a program to its end; return the last line that it writes."""
        ran = self._popen(command, subprocess.PIPE)
        output, _ = ran.communicate(timeout=120)
        assert ran.returncode == 0, output
        return output.splitlines()[-1]

    def close(self) -> None:
        """End everything."""
        for program in self.programs:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        self.node.close()


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Callable[[str], Example]]:
    """Start the node of an example."""
    started: list[Example] = []

    def start(name: str) -> Example:
        started.append(Example(name, tmp_path / "examples"))
        started[-1].node.says("Ready")
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_a_celery_application(example) -> None:
    shop = example("celery_tasks")
    work, order = shop.commands
    shop.start(work, " ready.")
    assert shop.output(order) == "2 of tea"


def test_a_service_of_oslo(example) -> None:
    shop = example("oslo_service")
    serve, client = shop.commands
    shop.start(serve, "serves")
    assert [shop.output(client) for _ in range(5)] == ["8", "6", "4", "2", "0"]
    with pytest.raises(AssertionError, match="ValueError: there are 0 of tea"):
        shop.output(client)


def test_a_page_a_service_and_tasks(example) -> None:
    shop = example("page_service_tasks")
    serve, work, order = shop.commands
    for joint in ("stock", "tasks"):
        shop.node.says(f"Joint '{joint}' is there")
    service = shop.start(serve, "serves")
    shop.start(work, " ready.")
    with WebSocket.tcp(("127.0.0.1", shop.web)).open("json") as page:
        page.join()
        page.subscribe("com.example.tasks.", match="prefix")
        page.ask(CALL, {}, "com.example.stock.take", [], {"item": "tea", "number": 3})
        assert page.hear(RESULT)[3] == [7]
        page.ask(CALL, {}, "wamp.session.list")
        assert page.hear(ERROR)[4] == "wamp.error.not_authorized"
        assert shop.output(order) == "2 of tea"
        types: list[str] = []
        while "task-succeeded" not in types:
            message = page.hear(EVENT)
            told = message[4][0] if message[4] else [message[5]]
            types += [each["type"] for each in told]
        assert types == ["task-received", "task-started", "task-succeeded"]
        service.terminate()
        service.wait()
        page.ask(CALL, {}, "com.example.stock.count", [], {"item": "tea"})
        assert page.hear(ERROR)[4] == "wamp.error.timeout"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_a_page_a_service_and_tasks_in_a_browser(example, tmp_path) -> None:
    shop = example("page_service_tasks")
    serve, work, order = shop.commands
    shop.start(serve, "serves")
    shop.start(work, " ready.")
    (tmp_path / "browser").mkdir()
    browser = Browser(tmp_path / "browser")
    try:
        browser.open(f"http://127.0.0.1:{shop.web}/")
        stock = "document.getElementById('stock').textContent"
        browser.await_page("the page shows the stock", f"{stock} === '10'")
        browser.evaluate("document.getElementById('take').click()")
        browser.await_page("the page shows the rest", f"{stock} === '9'")
        shop.output(order)
        first = "document.querySelector('#tasks li')?.textContent"
        done = """task-succeeded: '2 of tea'"""
        browser.await_page("the page shows the task", f"{first} === {done!r}")
        assert not browser.faults
    finally:
        browser.close()
