"""A whole node in a directory: its configuration, its log, its end, and remaining processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig import config
from rig.container import HOSTED, Controller
from rig.router import ROOT, binary
from rig.waiting import DEADLINE_S, await_true

STANDARD = re.compile(r"\S+ \[(\w+) +(\d+)\] ?(.*)")


def management(directory: Path) -> Controller:
    """Join the management realm of the node in a directory."""
    known = json.loads((directory / "node.pid").read_text())
    path = re.search(r"unix:/*(/[^:]*)", known["management"])
    assert path, known
    return Controller.unix(Path(path[1])).sit_down("crossbar")


@dataclass
class Said:
    """One line of the node's log; lines of other forms are RAW."""

    role: str
    pid: int
    text: str


class Node:
    """One running `crosstie start` in a directory of its own."""

    def __init__(
        self,
        directory: Path,
        configuration: dict | None = None,
        *arguments: str,
        environment: dict[str, str] | None = None,
    ):
        self.directory = directory
        if configuration is not None:
            (directory / "config.json").write_text(json.dumps(configuration, indent=1))
        self.log: list[Said] = []
        self._news = threading.Condition()
        self._ended = False
        # The interpreter of the tests is the one that components find.
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        variables = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT / "python")}
        self.process = subprocess.Popen(
            [str(binary()), "start", "--cbdir", str(directory), *arguments],
            env={**variables, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._children: set[int] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def says(self, pattern: str, role: str = "", since: int = 0) -> Said:
        """Return the first line from number `since` on that matches, once it is there."""
        return self.awaits(
            lambda line: line.role.startswith(role) and re.search(pattern, line.text),
            since,
            pattern,
        )

    def awaits(self, wanted: Callable[[Said], object], since: int = 0, what: str = "") -> Said:
        """Return the first line from number `since` on that is `wanted`, once it is there."""
        with self._news:

            def found():
                return next((line for line in self.log[since:] if wanted(line)), None)

            # A worker's Python takes its time on a loaded machine.
            self._news.wait_for(lambda: found() or self._ended, 3 * DEADLINE_S)
            line = found()
        self._remember_children()
        assert line, f"never said: {what}\n{self.text()}"
        return line

    def text(self) -> str:
        """Return the end of the log."""
        return "\n".join(f"  [{each.role} {each.pid}] {each.text}" for each in self.log[-80:])

    def management(self) -> Controller:
        """Join the management realm."""
        return management(self.directory)

    def join(self, path: str = "node.sock", realm: str = "realm1") -> Controller:
        """Join a realm over a Unix socket in the node's directory."""
        return Controller.unix(self.directory / path).sit_down(realm)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """End it as an operator would; return the exit code."""
        self._remember_children()
        self.process.send_signal(number)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait for the end, after which no process may be left; return the exit code."""
        code = self.process.wait(3 * DEADLINE_S)
        self.nobody_is_left()
        return code

    def kill(self) -> None:
        """End it without asking; its children end with it all the same."""
        self._remember_children()
        self.process.kill()
        self.process.wait()
        self.nobody_is_left()

    def close(self) -> None:
        """End it if it still runs; hold it to a clean log."""
        if self.process.poll() is None:
            self.stop()
        panics = [line.text for line in self.log if "panicked" in line.text]
        assert not panics, panics

    def nobody_is_left(self) -> None:
        """Wait until no process that was seen below it runs any more."""
        await_true("all children have ended", lambda: not any(map(is_alive, self._children)))

    def _remember_children(self) -> None:
        self._children |= descendants(self.process.pid)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            text = raw.decode(errors="replace").rstrip("\n")
            found = STANDARD.fullmatch(text)
            line = Said(found[1], int(found[2]), found[3]) if found else Said("RAW", 0, text)
            with self._news:
                self.log.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


def descendants(pid: int) -> set[int]:
    """Return the processes below one, its children's children too."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked about does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def component(name: str, **more: object) -> dict:
    """Return a class component of `hosted/parts.py`, joined to `realm1` over `node.sock`."""
    return {
        "type": "class",
        "classname": f"parts.{name}",
        "realm": "realm1",
        "transport": {
            "type": "rawsocket",
            "endpoint": {"type": "unix", "path": "node.sock"},
            "serializer": "msgpack",
        },
        **more,
    }


def container(*components: dict, options: dict | None = None, **more: object) -> dict:
    """Return a container worker that finds the tests' components."""
    return {
        "type": "container",
        "options": {"pythonpath": [str(HOSTED)], **(options or {})},
        "components": list(components),
        **more,
    }


def node(*workers: dict, shutdown: str = "shutdown_on_shutdown_requested", **more: object) -> dict:
    """Return a node with one router at `node.sock`, and these workers."""
    realm = {"name": "realm1", "roles": [config.role("anonymous"), config.role("red")]}
    router = {
        "type": "router",
        "realms": [realm],
        "transports": [config.universal("unix", config.unix("node.sock"))],
        **more,
    }
    return {
        "version": 2,
        "controller": {"options": {"shutdown": [shutdown]}},
        "workers": [router, *workers],
    }
