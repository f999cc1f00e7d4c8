"""A container host on its own: a process that a test plays the controller of."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from rig import session as wamp
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, RESULT
from rig.waiting import DEADLINE_S

ROOT = Path(__file__).resolve().parents[2]
HOSTED = ROOT / "conformance/hosted"
WORKER = "worker9"


class RefusedError(Exception):
    """An ERROR, with the URI and the text it came with."""

    def __init__(self, uri: str, arguments: list):
        super().__init__(f"{uri} {arguments}")
        self.uri = uri
        self.text = str(arguments[0]) if arguments else ""


class Controller(RawSocket):
    """A session by hand that calls, and keeps the events that come meanwhile."""

    events: list[tuple[str, list]]
    topics: dict[int, str]

    def sit_down(self, realm: str) -> Controller:
        """Join."""
        self.events, self.topics = [], {}
        self.shake_hands("msgpack").join(realm)
        return self

    def listen(self, topic: str, **options: object) -> None:
        """Subscribe; what comes is in `events`."""
        self.topics[self.subscribe(topic, **options)] = topic

    def call(self, procedure: str, *args: object, **kwargs: object):
        """Call; return the first result."""
        request = self.ask(CALL, {}, procedure, list(args), kwargs)
        while True:
            message = self._next()
            if message[0] == RESULT and message[1] == request:
                return message[3][0] if len(message) > 3 and message[3] else None
            if message[0] == ERROR and message[2] == request:
                raise RefusedError(message[4], message[5] if len(message) > 5 else [])
            raise AssertionError(f"unexpected: {message}")

    def await_event(self, topic: str, wanted=lambda *args: True) -> list:
        """Return the arguments of the next event of a topic that is `wanted`."""
        while True:
            for at, (name, args) in enumerate(self.events):
                if name == topic and wanted(*args):
                    del self.events[at]
                    return args
            self._keep(wamp.DECODE["msgpack"](self.receive_octets()))

    def _next(self) -> list:
        while True:
            message = wamp.DECODE["msgpack"](self.receive_octets())
            if message[0] != EVENT:
                return message
            self._keep(message)

    def _keep(self, message: list) -> None:
        assert message[0] == EVENT, message
        topic = message[3].get("topic", self.topics[message[1]])
        self.events.append((topic, message[4] if len(message) > 4 else []))


@dataclass
class Said:
    """A line of the host's log."""

    level: int
    text: str


class Container:
    """A running host, and the session in which it is told what to do."""

    def __init__(
        self,
        directory: Path,
        socket: Path,
        *arguments: str,
        environment: dict[str, str] | None = None,
        python: str = sys.executable,
    ):
        self.directory = directory
        self.log: list[Said] = []
        self.controller = Controller.unix(socket).sit_down("crossbar")
        self.controller.listen(f"crossbar.worker.{WORKER}.", match="prefix")
        self.node = Controller.unix(socket).sit_down("realm1")
        self._news = threading.Condition()
        self._ended = False
        command = [python, "-u", "-m", "crosstie.container", "--worker", WORKER]
        command += ["--management", f"unix:{socket}", "--directory", str(directory)]
        command += ["--pythonpath", str(HOSTED), *arguments]
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env={**inherited, "PYTHONPATH": str(ROOT / "python"), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def ready(self) -> dict:
        """Wait until the host says that it is ready; return what it says of itself."""
        return self.event("on_worker_ready")

    def event(self, name: str, component: str | None = None) -> dict:
        """Return the next event of this name, of one component if one is named."""
        args = self.controller.await_event(
            f"crossbar.worker.{WORKER}.{name}",
            lambda details: component is None or details["id"] == component,
        )
        return args[0]

    def call(self, procedure: str, *args: object, **kwargs: object):
        """Call one of the host's procedures."""
        return self.controller.call(f"crossbar.worker.{WORKER}.{procedure}", *args, **kwargs)

    def start(self, definition: dict, name: str = "component1") -> dict:
        """Start a component."""
        return self.call("start_component", name, definition)

    def run(self, definition: dict, name: str = "component1") -> None:
        """Start a component and wait until it is ready."""
        self.start(definition, name)
        self.event("on_component_ready", name)

    def says(self, pattern: str, since: int = 0) -> Said:
        """Return the first line of the log that matches, once it is there."""
        with self._news:

            def found():
                return next(
                    (line for line in self.log[since:] if re.search(pattern, line.text)), None
                )

            self._news.wait_for(lambda: found() or self._ended, DEADLINE_S)
            line = found()
        rest = "\n".join(f"  <{each.level}>{each.text}" for each in self.log[-60:])
        assert line, f"never said: {pattern}\n{rest}"
        return line

    def terminate(self) -> int:
        """Send SIGTERM, as a controller does; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait for the end."""
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        """End everything, whatever its state."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.controller.close()
        self.node.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            text = raw.decode(errors="replace").rstrip("\n")
            found = re.match(r"<(\d)>(.*)", text)
            line = Said(int(found[1]), found[2]) if found else Said(-1, text)
            with self._news:
                self.log.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
