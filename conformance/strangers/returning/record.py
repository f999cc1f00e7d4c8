"""Plays the clients of AMQP on RabbitMQ, and keeps which of them come back, for the tests.

cd conformance && ../target/venv/bin/python -m strangers.returning.record
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from strangers.returning.amqp_clients import lost_tasks, play
from strangers.returning.place import Judge
from strangers.returning.program import programs

ANSWERS = Path(__file__).with_name("rabbitmq.json")
# A loss is a matter of microseconds: the most of so many stops counts.
STOPS = 5


def main() -> None:
    """Record everything anew."""
    with tempfile.TemporaryDirectory() as directory, programs(Path(directory)) as run:
        judge = Judge(Path(directory))
        try:
            outcomes, told = play(judge, run)
            lost = [len(lost_tasks(judge, run)) for _ in range(STOPS)]
            answers = {
                "version": judge.version,
                "back": outcomes,
                "told": told,
                "tasks lost in stops": lost,
            }
        finally:
            judge.server.stop()
    ANSWERS.write_text(json.dumps(answers, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
