"""A file in which tasks write what they did, whichever process they run in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Far beyond what anything takes on a loaded machine: it only ends a run that is stuck.
PATIENCE_S = 120.0


def note(path: str, words: str) -> None:
    """Append a line; a line this short is appended whole."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{words}\n")


@dataclass
class Record:
    """Return the records so far."""

    path: Path

    @property
    def lines(self) -> list[str]:
        """Return it, the oldest line first."""
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    def await_lines(self, count: int) -> list[str]:
        """Return all lines once there are as many."""
        await_true(f"{count} lines of {self.path}", lambda: len(self.lines) >= count)
        return self.lines


def await_true(what: str, condition: Callable[[], bool]) -> None:
    """Ask again and again until `condition` holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.02)
