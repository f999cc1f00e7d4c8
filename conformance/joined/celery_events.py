"""Events of Celery's own workers: events, by its dispatcher.

    python celery_events.py URL TYPE…      publishes an event of each type

It runs in the environment of the frameworks, without the rig.
"""

from __future__ import annotations

import sys

from celery import Celery


def main() -> None:
    """Publish what the command line says."""
    url, *types = sys.argv[1:]
    app = Celery("joined", broker=url)
    with app.events.default_dispatcher() as dispatcher:
        for number, kind in enumerate(types):
            dispatcher.send(kind, uuid=f"uuid-{number}", retry=True)


if __name__ == "__main__":
    main()
