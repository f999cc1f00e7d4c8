"""Ends workers in every way on Crossbar.io and keeps what its node does.

    target/venv/bin/python conformance/crossbar/record_worker_ends.py [PART OF A NAME …]

starts a node of Crossbar.io for each case of `worker_ends.py`, two at a time, and writes
`worker_ends.json`: for each case the node's exit code, or null where the node goes on. With
arguments, the cases whose names have one of them in it alone anew.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from crossbar.record import install  # noqa: E402
from crossbar.worker_ends import CASES, ENDS_0, KILLED, ROUTER, Case  # noqa: E402

ANSWERS = HERE / "worker_ends.json"
READY = "local node configuration ran successfully"
START_TIMEOUT_S = 120.0
# A node that is to end does so within a second or two.
GOES_ON_AFTER_S = 8.0


def main() -> None:
    """Record all cases, or those named."""
    parts = sys.argv[1:]
    answers = json.loads(ANSWERS.read_text()) if parts else {}
    cases = [case for case in CASES if not parts or any(part in case.name for part in parts)]
    program = install()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(2) as pool:
        taken = server.getsockname()[1]
        for case, code in zip(
            cases, pool.map(lambda case: play(program, case, taken), cases), strict=True
        ):
            answers[case.name] = code
            print(f"{case.name}: {'goes on' if code is None else f'exit code {code}'}", flush=True)
    ordered = {case.name: answers[case.name] for case in CASES if case.name in answers}
    ANSWERS.write_text(json.dumps(ordered, indent=1) + "\n")


def play(program: Path, case: Case, taken: int) -> int | None:
    """Start a node, have its worker end, and return the node's exit code, if it ends."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "config.json").write_text(json.dumps(case.configuration(taken)))
        case.write(directory)
        log = directory / "log"
        with log.open("w") as sink:
            command = [program, "start", "--cbdir", directory]
            node = subprocess.Popen(command, stdout=sink, stderr=sink, start_new_session=True)
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while node.poll() is None and READY not in log.read_text():
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
            if case.kind == ROUTER and case.end in (ENDS_0, KILLED):
                number = signal.SIGTERM if case.end == ENDS_0 else signal.SIGKILL
                os.kill(worker_of(node.pid), number)
            (directory / "go").touch()
            try:
                code = node.wait(GOES_ON_AFTER_S)
            except subprocess.TimeoutExpired:
                code = None
            return code
        finally:
            if node.poll() is None:
                os.killpg(node.pid, signal.SIGKILL)
                node.wait()


def worker_of(pid: int) -> int:
    """Return the only child of a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(children) == 1, children
    return int(children[0])


if __name__ == "__main__":
    main()
