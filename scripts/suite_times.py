"""The recorded times of the suites, and the suites that take longer since.

A run prints what has grown; `conformance/scripts/test_suites.py` holds that the recorded times fit
into the budget of `make test`. A change that makes a suite longer records anew in the same commit.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_suffix(".tsv")
HEAD = "suite\twall_s\tprocessor_s"
# A suite has grown if it took so many times more than others did, and so many seconds.
FACTOR = 1.5
SECONDS = 20


@dataclass(frozen=True)
class Times:
    """Seconds of a suite: from its begin to its end, and of the processor."""

    wall_s: float
    processor_s: float


def read(file: Path = FILE) -> dict[str, Times]:
    """Return the recorded times by the names of suites."""
    head, *rows = file.read_text(encoding="utf-8").splitlines()
    assert head == HEAD, f"{file}: expected the columns {HEAD!r}, found {head!r}"
    fields = (row.split("\t") for row in rows)
    return {name: Times(float(wall), float(processor)) for name, wall, processor in fields}


def write(times: dict[str, Times], file: Path = FILE) -> None:
    """Record times."""
    rows = (f"{name}\t{each.wall_s:.0f}\t{each.processor_s:.0f}" for name, each in times.items())
    file.write_text("\n".join([HEAD, *sorted(rows)]) + "\n", encoding="utf-8")


def grown(took: dict[str, Times], recorded: dict[str, Times]) -> list[str]:
    """Say which suites took more of the processor than recorded, by the measure of the others.

    Another machine is faster or slower at all of them: the median of the ratios is its speed.
    """
    known = {name: each for name, each in took.items() if name in recorded}
    ratios = [
        each.processor_s / recorded[name].processor_s
        for name, each in known.items()
        if recorded[name].processor_s
    ]
    if len(ratios) < 5:
        return []
    speed = statistics.median(ratios)
    return [
        f"{name} has grown: {each.processor_s:.0f} s of the processor, "
        f"{recorded[name].processor_s * speed:.0f} s expected by scripts/{FILE.name}"
        for name, each in sorted(known.items())
        if each.processor_s > FACTOR * speed * recorded[name].processor_s
        and each.processor_s > speed * recorded[name].processor_s + SECONDS
    ]
