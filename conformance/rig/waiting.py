"""Waiting for a condition. Nothing here decides a test by how long something took."""

import time
from collections.abc import Callable

# Far beyond what anything takes on a loaded machine: it only ends a run that is stuck.
DEADLINE_S = 90.0


def await_true(what: str, condition: Callable[[], bool], patience_s: float = DEADLINE_S) -> None:
    """Ask again and again until `condition` holds; for what nothing announces, such as a metric."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.01)
