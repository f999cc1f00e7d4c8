"""Programs with real clients that tell which values they receive, in all serializers at once."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

from rig.waiting import DEADLINE_S

HERE = Path(__file__).resolve().parents[1]
PROGRAMS = HERE / "strangers" / "receivers"
SERIALIZERS = ("json", "msgpack", "cbor")

COMMANDS = {
    "Autobahn|Python": lambda url: [sys.executable, PROGRAMS / "values.py", url],
    "Autobahn|JS": lambda url: ["node", PROGRAMS / "values.js", url, HERE / "js" / "node_modules"],
}


class Receivers:
    """One client library, with a session for each serializer."""

    def __init__(self, library: str, url: str):
        command = COMMANDS[library](url)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._lines: queue.Queue[list | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        ready = {self._next()[0] for _ in SERIALIZERS}
        assert ready == set(SERIALIZERS), ready

    def until(self, number: int) -> dict[str, dict[int, str]]:
        """Return the values that came with their numbers, until each session has that one."""
        came: dict[str, dict[int, str]] = {serializer: {} for serializer in SERIALIZERS}
        while any(number not in values for values in came.values()):
            serializer, what, *rest = self._next()
            assert what == "value", f"{serializer}: {what}"
            came[serializer][rest[0]] = rest[1]
        return came

    def close(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.wait()

    def _next(self) -> list:
        line = self._lines.get(timeout=DEADLINE_S)
        assert line is not None, "the receivers' program has ended"
        return line

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)
