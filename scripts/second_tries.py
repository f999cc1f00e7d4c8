"""Tests that failed once and passed at the second try, each with the date of the first time.

A run lists them here by itself. A listed test is not tried again: it passes at once, or it fails.
Remove its line in the commit that mends it.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).with_suffix(".tsv")
HEAD = "test\tdate"
# Second tries in one run, over all suites.
MAX = 3


def read(file: Path = FILE) -> dict[str, str]:
    """Return the dates by test."""
    head, *rows = file.read_text(encoding="utf-8").splitlines()
    assert head == HEAD, f"{file}: expected the columns {HEAD!r}, found {head!r}"
    return dict(row.split("\t") for row in rows)


def add(tests: Iterable[str], file: Path = FILE) -> None:
    """List tests under today's date; a test that is listed keeps its own."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    listed = dict.fromkeys(tests, today) | read(file)
    rows = (f"{test}\t{date}" for test, date in listed.items())
    file.write_text("\n".join([HEAD, *sorted(rows)]) + "\n", encoding="utf-8")


class Allowance:
    """The second tries that are left in a run."""

    def __init__(self, listed: dict[str, str]):
        self._listed = listed
        self._left = MAX
        self._lock = threading.Lock()

    def refusal(self, tests: list[str]) -> str:
        """Take a second try for each test; return why they get none, or an empty string."""
        listed = [f"{test} since {self._listed[test]}" for test in tests if test in self._listed]
        if listed:
            return f"no second try, listed in {FILE.name}: {', '.join(listed)}"
        with self._lock:
            if len(tests) > self._left:
                return f"no second try: {len(tests)} tests failed, {self._left} tries are left"
            self._left -= len(tests)
        return ""
