"""A client's program as a process: what it says, line by line."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rig.waiting import await_true

# Far beyond what a client takes to start on a loaded machine; a client that gives up says so.
PATIENCE_S = 120

# Runs the program of a client: its name, its command, and variables.
Run = Callable[..., "Program"]


class Program:
    """A client's program, which says what happens to it."""

    def __init__(self, name: str, command: list[object], log: Path, **environment: str):
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.environment = {**os.environ, **environment}
        self.start()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self.lines: list[str] = []
        # The number of lines printed before the client's peer was ended.
        self.mark = 0
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self.environment,
                start_new_session=True,
            )
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()

    def await_there(self) -> None:
        """Wait until it says so."""
        said = lambda: self.says("there") or self.is_away()  # noqa: E731
        await_true(f"{self.name} is there", said, PATIENCE_S)
        assert self.says("there"), f"{self.name}: {self.log.read_text()[-2000:]}"

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def says(self, text: str, since: int = 0) -> bool:
        """Whether it has said a line that begins so, from that line on."""
        return any(line.startswith(text) for line in self.lines[since:])

    def is_away(self) -> bool:
        """Whether it has said, after its peer's end, that it does not come back."""
        return self.says("away", self.mark)

    def told_of_the_end(self) -> str | None:
        """Return what a client without a reconnect of its own told the application."""
        ended = [line for line in self.lines[self.mark :] if line.startswith("ended: ")]
        return ended[0].removeprefix("ended: ") if ended else None

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()

    @staticmethod
    def _read(process: subprocess.Popen, lines: list[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
        lines.append("away: its program has ended")


@contextmanager
def programs(directory: Path) -> Iterator[Run]:
    """Give what runs clients' programs, which end at the end."""
    running: list[Program] = []

    def run(name: str, *command: object, **environment: str) -> Program:
        file = "".join(letter if letter.isalnum() else "." for letter in name)
        running.append(Program(name, list(command), directory / f"{file}.log", **environment))
        return running[-1]

    try:
        yield run
    finally:
        for program in running:
            program.end()


def mark(all_of_them: list[Program]) -> None:
    """Start again what stays away, and note what each had said before the next end."""
    away = [program for program in all_of_them if program.is_away()]
    for program in all_of_them:
        program.mark = len(program.lines)
    for program in away:
        program.end()
        program.start()
    for program in away:
        program.await_there()
        program.mark = program.lines.index("there") + 1
