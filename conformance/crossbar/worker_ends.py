"""Ways in which a worker ends, as configurations that Crossbar.io and Crosstie both start.

A worker that is to end while the node runs waits for the file `go` in the node's directory.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from rig import config

COMPONENTS = """
import os
import signal
from pathlib import Path

from autobahn.twisted.wamp import ApplicationSession
from twisted.internet.task import LoopingCall


class Waits(ApplicationSession):
    def onJoin(self, details):
        LoopingCall(self.look).start(0.05)

    def look(self):
        if Path(self.config.extra["cbdir"], "go").exists():
            self.act()

    def act(self):
        pass


class Leaves(Waits):
    def act(self):
        if self.is_attached():
            self.leave()


class EndsWith0(Waits):
    def act(self):
        os._exit(0)


class EndsWith1(Waits):
    def act(self):
        os._exit(1)


class Killed(Waits):
    def act(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Raises(ApplicationSession):
    def onJoin(self, details):
        raise RuntimeError("cannot do it")


class Refused(ApplicationSession):
    def onConnect(self):
        self.join("no.such.realm", ["ticket"], "nobody")
"""

DEFAULT = "the default"
REQUESTED = "shutdown_on_shutdown_requested"
WITH_ERROR = "shutdown_on_worker_exit_with_error"
LAST = "shutdown_on_last_worker_exit"
TRIGGERS = (DEFAULT, REQUESTED, WITH_ERROR, LAST)

GUEST = "guest"
CONTAINER = "container"
LAST_STOPPED = "container, `shutdown-on-last-component-stopped`"
ANY_FAILED = "container, `shutdown-on-any-component-failed`"
EMBEDDED = "component of a router"
ROUTER = "router"

ENDS_0 = "ends with 0"
ENDS_1 = "ends with 1"
LEAVES = "its component leaves"
CANNOT_LOAD = "cannot load"
CANNOT_CONNECT = "cannot connect"
REFUSED = "is refused by the realm"
RAISES = "raises in `onJoin`"
KILLED = "is killed"


@dataclass(frozen=True)
class Case:
    """One way in which one kind of worker ends, and the triggers that the node has."""

    kind: str
    end: str
    trigger: str

    @property
    def name(self) -> str:
        """Return what the case is called in the file of answers."""
        return f"{self.kind} | {self.end} | {self.trigger}"

    @property
    def is_at_start(self) -> bool:
        """Whether it ends while the node starts."""
        return self.end in (CANNOT_LOAD, CANNOT_CONNECT, RAISES, REFUSED)

    def write(self, directory: Path) -> None:
        """Make the components' module."""
        (directory / "ending.py").write_text(COMPONENTS)

    def configuration(self, taken: int) -> dict:
        """Return the node's configuration; `taken` is a port in use."""
        controller = {}
        if self.trigger != DEFAULT:
            controller = {"options": {"shutdown": [self.trigger]}}
        return {"version": 2, "controller": controller, "workers": self.workers(taken)}

    def workers(self, taken: int) -> list[dict]:
        """Return the node's workers."""
        if self.kind == GUEST:
            return [router(), guest(self.end)]
        if self.kind == EMBEDDED:
            return [router(components=[embedded(self.end)])]
        if self.kind == ROUTER:
            return [router(transports=[transport(self.end, taken)])]
        options = {
            LAST_STOPPED: {"shutdown": "shutdown-on-last-component-stopped"},
            ANY_FAILED: {"shutdown": "shutdown-on-any-component-failed"},
        }.get(self.kind, {})
        return [router(), container(self.end, options)]


ENDS = {
    GUEST: (ENDS_0, ENDS_1, CANNOT_LOAD, KILLED),
    CONTAINER: (ENDS_0, ENDS_1, LEAVES, CANNOT_LOAD, CANNOT_CONNECT, REFUSED, RAISES, KILLED),
    LAST_STOPPED: (LEAVES, CANNOT_LOAD, CANNOT_CONNECT, REFUSED, RAISES),
    ANY_FAILED: (LEAVES, CANNOT_LOAD, CANNOT_CONNECT, REFUSED, RAISES),
    EMBEDDED: (LEAVES, CANNOT_LOAD, RAISES),
    ROUTER: (ENDS_0, CANNOT_LOAD, CANNOT_CONNECT, KILLED),
}
CASES = [
    Case(kind, end, trigger)
    for (kind, ends), trigger in itertools.product(ENDS.items(), TRIGGERS)
    for end in ends
]

CLASSES = {
    ENDS_0: "EndsWith0",
    ENDS_1: "EndsWith1",
    LEAVES: "Leaves",
    CANNOT_LOAD: "NotThere",
    CANNOT_CONNECT: "Waits",
    REFUSED: "Refused",
    RAISES: "Raises",
    KILLED: "Killed",
}


def router(**more: object) -> dict:
    """Return a router worker that listens at `node.sock`."""
    rawsocket = {"type": "rawsocket", "endpoint": config.unix("node.sock")}
    realm = {"name": "realm1", "roles": [config.role("anonymous")]}
    return {
        "type": "router",
        "options": {"pythonpath": ["."]},
        "realms": [realm],
        "transports": [{**rawsocket, "auth": config.static("anonymous")}],
        **more,
    }


def guest(end: str) -> dict:
    """Return a guest that ends so."""
    last = {ENDS_0: "exit 0", ENDS_1: "exit 1", KILLED: "kill -9 $$"}
    script = f"until [ -e go ]; do sleep 0.05; done; {last.get(end)}"
    executable = "./no-such-program" if end == CANNOT_LOAD else "sh"
    return {"type": "guest", "executable": executable, "arguments": ["-c", script]}


def container(end: str, options: dict) -> dict:
    """Return a container whose one component ends so."""
    path = "nobody.sock" if end == CANNOT_CONNECT else "node.sock"
    component = {
        "type": "class",
        "classname": f"ending.{CLASSES[end]}",
        "realm": "realm1",
        "transport": {"type": "rawsocket", "serializer": "msgpack", "endpoint": config.unix(path)},
    }
    return {
        "type": "container",
        "options": {"pythonpath": ["."], **options},
        "components": [component],
    }


def embedded(end: str) -> dict:
    """Return a component of a router that ends so."""
    return {"type": "class", "classname": f"ending.{CLASSES[end]}", "realm": "realm1"}


def transport(end: str, taken: int) -> dict:
    """Return the transport of a router that ends so."""
    endpoint = config.unix("node.sock")
    if end == CANNOT_LOAD:
        files = {"key": "no-such.key", "certificate": "no-such.pem"}
        endpoint = config.tcp(port=0, tls=files)
    elif end == CANNOT_CONNECT:
        endpoint = config.tcp(port=taken)
    return {"type": "rawsocket", "endpoint": endpoint, "auth": config.static("anonymous")}
