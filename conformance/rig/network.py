"""Network namespaces on a bridge, as machines on one switch, whose lines can be cut."""

from __future__ import annotations

import itertools
import os
import subprocess
from functools import cache

# So that several runs at once have networks of their own, which begin far from each other.
_numbers = itertools.count(os.getpid() * 97)
# Names and addresses for so many.
NUMBERS = 25_000
TRIES = 50
# A free address: packets to it are lost.
NOBODY = "02:00:00:00:00:01"


def ip(*words: object, tool: str = "ip") -> None:
    """Have `ip`, or another tool of iproute2, do something."""
    command = [tool, *map(str, words)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=30)
    if done.returncode:
        raise OSError(f"`{' '.join(command)}`: {done.stderr.strip()}")


@cache
def obstacle() -> str:
    """Why there can be no such network; empty where it can be."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    try:
        Network(1).close()
    except FileNotFoundError:
        return "there is no `ip`; it is in the package iproute2"
    except OSError as e:
        return str(e)
    return ""


class Network:
    """So many namespaces; this process reaches them, and they each other."""

    def __init__(self, count: int):
        self.count = 0
        self._begin()
        try:
            ip("address", "add", f"{self.here}/24", "dev", self.name)
            ip("link", "set", self.name, "up")
            for index in range(count):
                self._add(index)
        except OSError:
            self.close()
            raise

    def _begin(self) -> None:
        """Take a free number: addresses are as different as names."""
        for attempt in range(TRIES):
            number = next(_numbers) % NUMBERS
            self.name = f"xt{number}"
            self.prefix = f"10.{100 + number // 250}.{number % 250}"
            self.here = f"{self.prefix}.254"
            try:
                return ip("link", "add", self.name, "type", "bridge")
            except OSError as e:
                if "File exists" not in str(e) or attempt + 1 == TRIES:
                    raise
        return None

    def _add(self, index: int) -> None:
        there, line = self.namespace(index), self._line(index)
        ip("netns", "add", there)
        self.count = index + 1
        ip("link", "add", line, "type", "veth", "peer", "name", "eth0", "netns", there)
        ip("link", "set", line, "master", self.name, "up")
        ip("-n", there, "address", "add", f"{self.address(index)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", there, "link", "set", device, "up")

    def namespace(self, index: int) -> str:
        """Return its name."""
        return f"{self.name}-{index}"

    def within(self, index: int) -> tuple[str, ...]:
        """Return the command that runs another one there."""
        return ("ip", "netns", "exec", self.namespace(index))

    def address(self, index: int) -> str:
        """Return where it is reached."""
        return f"{self.prefix}.{index + 1}"

    def unplug(self, index: int) -> None:
        """Take its line down."""
        ip("link", "set", self._line(index), "down")

    def plug(self, index: int) -> None:
        """Have its line up again."""
        ip("link", "set", self._line(index), "up")

    def silence(self, index: int) -> None:
        """Lose all that it sends and receives; its device does not notice."""
        ip("link", "set", "dev", self._line(index), "state", 0, tool="bridge")

    def silence_no_more(self, index: int) -> None:
        """Lose that no more."""
        ip("link", "set", "dev", self._line(index), "state", 3, tool="bridge")

    def lose(self, index: int, there: int | None) -> None:
        """Lose what it sends to another one, or here, and not what comes from there."""
        to = self.here if there is None else self.address(there)
        words = ("neigh", "replace", to, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        ip("-n", self.namespace(index), *words)

    def lose_none(self, index: int, there: int | None) -> None:
        """Lose that no more."""
        to = self.here if there is None else self.address(there)
        ip("-n", self.namespace(index), "neigh", "del", to, "dev", "eth0")

    def close(self) -> None:
        """Take all of it away."""
        for index in range(self.count):
            # A namespace lasts as long as a socket in it; its line need not.
            subprocess.run(["ip", "link", "delete", self._line(index)], capture_output=True)
            subprocess.run(["ip", "netns", "delete", self.namespace(index)], capture_output=True)
        subprocess.run(["ip", "link", "delete", self.name], capture_output=True)

    def _line(self, index: int) -> str:
        return f"{self.name}v{index}"
