"""A node that is upgraded: its processes, one after another, and the programs that follow."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

from rig.node import is_alive
from rig.router import Router, binary
from rig.waiting import DEADLINE_S, await_true

SUCCESSOR = Path(__file__).with_name("successor.py")


class Upgrades:
    """A node in a directory, whichever process serves at present."""

    def __init__(self, router: Router):
        """Take a started node, which has a directory."""
        self.router = router
        self.directory = router.directory
        self._begun: list[subprocess.Popen[str]] = []

    @property
    def pid(self) -> int:
        """The process that the node's directory names; 0 if there is none."""
        file = self.directory / "node.pid"
        # A process that takes the directory empties the file before it writes.
        text = file.read_text() if file.exists() else ""
        return json.loads(text)["pid"] if text else 0

    def await_other(self, former: int) -> None:
        """Wait until another process than that has the directory."""
        await_true("another process has the node", lambda: self.pid not in (0, former))

    def begin(self, program: Path | None = None, *options: str) -> subprocess.Popen[str]:
        """Begin an upgrade to a program, or to the same one."""
        verb = [str(binary()), "upgrade", "--cbdir", str(self.directory), *options]
        process = subprocess.Popen(
            [*verb, str(program or binary())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._begun.append(process)
        return process

    def upgrade(self, program: Path | None = None, *options: str, code: int = 0) -> str:
        """Run an upgrade to its end; return what it said."""
        return self.ended(self.begin(program, *options), code)

    def upgrade_at(self, *words: object, code: int = 0) -> str:
        """Upgrade a node that is found in another way than by a directory."""
        command = [str(binary()), "upgrade", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def ended(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Wait for a command; return what it said."""
        said, _ = process.communicate(timeout=4 * DEADLINE_S)
        assert process.returncode == code, said
        return said

    def run(self, verb: str, *options: str, code: int = 0) -> str:
        """Run another command about the node; return what it said."""
        command = [str(binary()), verb, "--cbdir", str(self.directory), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def script(self, *lines: str, name: str = "new-program") -> Path:
        """Write a program of these lines of shell."""
        path = self.directory / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def failing(self, step: str, way: str) -> Path:
        """Write a program that fails at a step."""
        return self.script(f'exec "{sys.executable}" "{SUCCESSOR}" {step} {way}')

    def waiting(self) -> tuple[Path, Path]:
        """Write a program that becomes the real one when a file is there; return both."""
        go = self.directory / "go"
        wait = f'while [ ! -e "{go}" ]; do sleep 0.05; done'
        return self.script(wait, f'exec "{binary()}" "$@"'), go

    def log(self, text: str, since: int = 0) -> None:
        """Wait for a line of either process."""
        self.router.await_log(lambda line: text in line.text, since)

    def successor(self) -> int:
        """Wait for a successor to start; return its id."""
        began = self.router.await_log(lambda line: line.text.startswith("Upgrading: process"))
        return int(began.text.split()[2])

    def await_end(self, pid: int) -> None:
        """Wait until a process has ended."""
        await_true(f"process {pid} has ended", lambda: not is_alive(pid))

    def kill_former(self) -> None:
        """Kill the node's first process."""
        self.router.kill()

    def stop(self) -> None:
        """End the node in order, whichever process it is; fail if it had to be killed."""
        try:
            self.run("stop")
            self.router.process.wait(DEADLINE_S)
        finally:
            self.close()
        panics = [line.text for line in self.router.log if "panicked" in line.text]
        assert not panics, panics

    def close(self) -> None:
        """Kill what is left."""
        for process in self._begun:
            if process.poll() is None:
                process.kill()
                process.communicate()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.router.process.wait()

    def processes(self) -> list[int]:
        """Return the running processes whose command line names the directory."""
        wanted, found = str(self.directory).encode(), []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if wanted in path.read_bytes() and is_alive(int(path.parent.name)):
                    found.append(int(path.parent.name))
        return found
