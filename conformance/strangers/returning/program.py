"""A client's program as a process: what it says, line by line."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path


class Program:
    """A client's program, which says what happens to it."""

    def __init__(self, name: str, command: list[object], log: Path, **environment: str):
        self.name = name
        self.lines: list[str] = []
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def says(self, text: str, since: int = 0) -> bool:
        """Whether it has said a line that begins so, from that line on."""
        return any(line.startswith(text) for line in self.lines[since:])

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
        self.lines.append("away: its program has ended")
