"""A Celery worker: a process as its users start it, on one broker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from celery_tasks import SETTINGS
from record import await_true

FOLDER = Path(__file__).parent
COMMAND = (sys.executable, "-m", "celery", "-A", "celery_tasks", "worker")
QUIET = ("--without-gossip", "--without-mingle", "--loglevel", "INFO")


class Worker:
    """One running worker; `with` ends it without asking, since some hold tasks for ever."""

    def __init__(self, log: Path, queues: list[str], *arguments: str, **settings: object) -> None:
        self.log = log
        self.kept = log.open("wb")
        chosen = ["--queues", ",".join(queues), "--hostname", f"{log.stem}@%h"]
        self.process = subprocess.Popen(
            [*COMMAND, *QUIET, *chosen, *arguments],
            cwd=FOLDER,
            env={**os.environ, SETTINGS: json.dumps(settings), "PYTHONPATH": str(FOLDER)},
            stdin=subprocess.DEVNULL,
            stdout=self.kept,
            stderr=subprocess.STDOUT,
            # A group of its own, so that its children end with it.
            start_new_session=True,
        )

    def __enter__(self) -> Worker:
        """Wait until it takes tasks."""
        try:
            await_true(f"the worker is ready; see {self.log}", self._is_ready)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it and its children with -9."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.kept.close()

    def _is_ready(self) -> bool:
        said = self.log.read_text(errors="replace")
        assert self.process.poll() is None, f"the worker ended; it said:\n{said[-4000:]}"
        return " ready." in said
