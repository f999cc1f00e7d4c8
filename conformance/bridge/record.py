"""Sends the requests to Crossbar.io and keeps what it answers, for the tests to compare with.

    target/venv/bin/python conformance/bridge/record.py

installs Crossbar.io as `conformance/crossbar/record.py` does, starts a node of it on a free port
and writes `answers.json`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from crossbar import record  # noqa: E402
from rig.http import Http  # noqa: E402
from rig.puppet import Puppet  # noqa: E402

from bridge import cases  # noqa: E402

ANSWERS = HERE / "answers.json"


def main() -> None:
    """Record all requests."""
    program = os.environ.get("CROSSBAR") or record.install()
    with tempfile.TemporaryDirectory() as directory:
        port = record.free_port()
        node = start(Path(program), Path(directory), port)
        puppet = Puppet("asyncio", Path(directory) / "no-authority")
        try:
            cases.serve(puppet.session().open(cases.place(("127.0.0.1", port))))
            site = Http(("127.0.0.1", port))
            answers = {case.name: case.ask(site) for case in cases.cases()}
        finally:
            puppet.close()
            os.killpg(node.pid, signal.SIGTERM)
            node.wait()
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


def start(program: Path, directory: Path, port: int) -> subprocess.Popen:
    """Start a node in `directory`, and wait until all of its services are there."""
    (directory / "config.json").write_text(json.dumps(cases.node(port)))
    with (directory / "log").open("w") as log:
        node = subprocess.Popen(
            [program, "start", "--cbdir", directory],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + record.START_TIMEOUT_S
    while time.monotonic() < deadline and node.poll() is None:
        if "local node configuration ran successfully" in (directory / "log").read_text():
            return node
        time.sleep(0.2)
    sys.exit((directory / "log").read_text())


if __name__ == "__main__":
    main()
