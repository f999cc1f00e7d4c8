"""Runs the commands of `commands.txt` on RabbitMQ, and keeps what came of them.

    target/venv/bin/python conformance/mgmt/record_commands.py

starts the RabbitMQ of this machine, runs some 290 commands, which takes ten minutes, and writes
`commands.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig.http import Http  # noqa: E402
from rig.rabbitmq import SERVER  # noqa: E402

from mgmt import cases, commands  # noqa: E402
from mgmt.record import Managed, people  # noqa: E402

OUTCOMES = HERE / "commands.json"


def main() -> None:
    """Record all commands."""
    outcomes: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as directory:
        running = Managed(Path(directory))
        try:
            clear(cases.Api(Http(("127.0.0.1", running.management)), running.address))
            node = running.environment["RABBITMQ_NODENAME"]

            def run(
                program: str, words: tuple[str, ...], given: str
            ) -> subprocess.CompletedProcess:
                print(program, *words, flush=True)
                return subprocess.run(
                    [SERVER.parent / program, *words],
                    env=running.environment,
                    text=True,
                    input=given,
                    capture_output=True,
                    check=False,
                )

            broker = commands.Broker(running.address, running.management, node, run)
            broker.play(outcomes)
        finally:
            running.stop()
            OUTCOMES.write_text(json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")


def clear(api: cases.Api) -> None:
    """Delete all users but `guest`, all vhosts but `/`, and the policies."""
    people(api)
    for name in cases.USERS:
        if name != "guest":
            assert api.ask("DELETE", f"users/{name}").status == 204
    for policy in api.json("policies"):
        assert api.ask("DELETE", f"policies/%2F/{policy['name']}").status == 204
    for policy in api.json("operator-policies"):
        assert api.ask("DELETE", f"operator-policies/%2F/{policy['name']}").status == 204
    assert api.ask("DELETE", "vhosts/v2").status == 204


if __name__ == "__main__":
    main()
