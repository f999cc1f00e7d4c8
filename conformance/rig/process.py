"""A program of the tests' own: its lines are read as they come, and it ends with its test."""

from __future__ import annotations

import json
import signal
import subprocess
import threading

from rig.waiting import DEADLINE_S, await_true


class Process:
    """A program whose lines are read as they come, and kept."""

    def __init__(self, *command: object) -> None:
        self.process = subprocess.Popen(
            list(map(str, command)),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.errors: list[str] = []
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()

    def line(self) -> str:
        """Return the next line of standard output."""
        line = self.process.stdout.readline()
        assert line, "".join(self.errors)
        return line.rstrip("\n")

    def said(self, *texts: str) -> None:
        """Wait until it has complained of that, in this order."""

        def has_said() -> bool:
            everything = "".join(self.errors)
            ends = [everything.rfind(text) for text in texts]
            return -1 not in ends and ends == sorted(ends)

        await_true(f"it says {texts}", has_said)

    def ask(self, **request: object) -> dict:
        """Have a client of the real library do something."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what was still said."""
        self.process.send_signal(signal.SIGINT)
        rest = self.process.stdout.read()
        return self.process.wait(DEADLINE_S), rest

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def _read_errors(self) -> None:
        self.errors.extend(self.process.stderr)
