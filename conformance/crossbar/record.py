"""Plays the scenarios on Crossbar.io and keeps what it answers, for the tests to compare with.

    target/venv/bin/python conformance/crossbar/record.py [SCENARIO …]

installs Crossbar.io as `requirements.txt` pins it, into an environment of its own (100 packages,
400 MB, two minutes: too much for every test run), starts a node of it on a free port and writes
`answers.json`; with arguments, those scenarios alone anew.
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
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig import config  # noqa: E402

from crossbar.scenarios import SCENARIOS, realm  # noqa: E402
from crossbar.stage import Stage  # noqa: E402

ANSWERS = HERE / "answers.json"
ENVIRONMENT = HERE.parents[1] / "target/crossbar/venv"
START_TIMEOUT_S = 120


def main() -> None:
    """Record all scenarios, or those named."""
    chosen = sys.argv[1:]
    answers = json.loads(ANSWERS.read_text()) if chosen else {}
    program = install()
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        node = start(program, Path(directory), port)
        try:
            for scenario in SCENARIOS:
                if chosen and scenario.__name__ not in chosen:
                    continue
                stage = Stage(("127.0.0.1", port))
                scenario(stage)
                stage.close()
                answers[scenario.__name__] = stage.transcript
                print(f"{scenario.__name__}: {len(stage.transcript)} messages")
        finally:
            os.killpg(node.pid, signal.SIGTERM)
            node.wait()
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


def install() -> Path:
    """Return the program, installed where it is missing."""
    requirements = (HERE / "requirements.txt").read_text()
    stamp = ENVIRONMENT / "installed"
    if not stamp.exists() or stamp.read_text() != requirements:
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        pip = [ENVIRONMENT / "bin/python", "-m", "pip", "install", "-q", "--no-deps"]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        stamp.write_text(requirements)
    return ENVIRONMENT / "bin/crossbar"


def start(program: Path, directory: Path, port: int) -> subprocess.Popen:
    """Start a node in `directory`, and wait until it listens."""
    transport = {
        "type": "rawsocket",
        "endpoint": config.tcp(port=port),
        "auth": config.static("anonymous"),
    }
    (directory / "config.json").write_text(json.dumps(config.node([realm()], [transport])))
    with (directory / "log").open("w") as log:
        node = subprocess.Popen(
            [program, "start", "--cbdir", directory],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and node.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return node
        except OSError:
            time.sleep(0.2)
    sys.exit((directory / "log").read_text())


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    main()
