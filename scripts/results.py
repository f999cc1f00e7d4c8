"""Whether benches still write the same: the keys, cases, subjects and placements of results files.

    python3 scripts/results.py make DIRECTORY [NAME…]    # short runs of every bench, or of these
    python3 scripts/results.py compare BEFORE AFTER      # what is missing and what is new

CROSSTIE is the binary (target/debug/crosstie). Peers take no part, so that any machine can make
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SHORT = ("--seconds", "0.2", "--runs", "1")

RUNS = {
    "rpc": ("rpc", *SHORT),
    "rpc64": ("rpc", *SHORT, "--outstanding", "64"),
    "pubsub": ("pubsub", "--seconds", "0.5"),
    "pubsub-saturate": ("pubsub", "--saturate", *SHORT, "--clients", "50"),
    "pubsub-profiles": ("pubsub", "--profile", "1,3", *SHORT),
    "pubsub-max": ("pubsub", "--max", "--seconds", "0.1", "--runs", "1", "--clients", "50"),
    "handshake": ("handshake", *SHORT),
    "scaling": ("handshake", "--scaling", "1,2", "--scaling-connections", "400", "--runs", "1"),
    "echo": ("echo", *SHORT),
    "stream": ("stream", "--seconds", "0.1", "--runs", "1"),
    "accept": ("accept", "--connections", "500", "--batch", "250", "--delay", "10ms", "--floor"),
    "oslo": ("oslo", *SHORT, "--delays", "0ms,10ms", "--repeat", "10"),
    "amqp": ("amqp", *SHORT),
    "mqtt": ("mqtt", *SHORT, "--fan", "50", "--clients", "1000", "--settle", "0"),
    "node": ("node", "--native", "--seconds", "1", "--warm-up", "0.5", "--runs", "1"),
    "join": ("join", *SHORT),
    "http": ("http", *SHORT),
    "footprint": ("footprint", "--sessions", "50,100", "--starts", "2"),
    "hostile": (
        *("hostile", "--attack", "batch", "--attack", "deadletters", "--scale", "0.01"),
        *("--after", "0.5", "--limit", "3"),
    ),
}


def make(directory: Path, names: list[str]) -> None:
    """Run each bench once; what it prints stands beside its results file."""
    directory.mkdir(parents=True, exist_ok=True)
    binary = os.environ.get("CROSSTIE", "target/debug/crosstie")
    for name in names or RUNS:
        command = [binary, "bench", *RUNS[name], "--json", directory / f"{name}.json"]
        done = subprocess.run(command, text=True, capture_output=True, timeout=300)
        (directory / f"{name}.txt").write_text(done.stdout + done.stderr)
        print(name, done.returncode)


def keys(value: object, path: str = "") -> set[str]:
    """Every key of a JSON value, with those around it."""
    if isinstance(value, dict):
        inner = (keys(item, f"{path}.{name}") for name, item in value.items())
        return {f"{path}.{name}" for name in value}.union(*inner)
    if isinstance(value, list):
        return set().union(*(keys(item, f"{path}[]") for item in value))
    return set()


def shape(file: Path) -> dict[str, set[str]]:
    """The parts of the file that programs rely on."""
    frame = json.loads(file.read_text())
    found = {"frame": set(frame), "settings": keys(frame["settings"])}
    for row in frame["results"]:
        kind = "round" if "round" in row else "sum"
        place = f"{row['case']} · {row.get('placement')} · {row['subject']}"
        found.setdefault("rows", set()).add(f"{place} · {kind}")
        # Rows invalid by chance have no figures, and an attack has the results of its run.
        if row["valid"]:
            metrics = {key for key in keys(row["metrics"]) if "refused." not in key}
            found.setdefault(kind, set()).update(metrics)
    return found


def compare(before: Path, after: Path) -> bool:
    """Print what differs, file by file."""
    same = True
    for file in sorted(after.glob("*.json")):
        old, new = shape(before / file.name), shape(file)
        for part in sorted(old.keys() | new.keys()):
            missing = sorted(old.get(part, set()) - new.get(part, set()))
            added = sorted(new.get(part, set()) - old.get(part, set()))
            for sign, names in (("-", missing), ("+", added)):
                if names:
                    same = False
                    print(f"{file.stem} {part} {sign} {', '.join(names)}")
    return same


def main(arguments: list[str]) -> int:
    match arguments:
        case ["make", directory, *names]:
            make(Path(directory), names)
            return 0
        case ["compare", before, after]:
            return 0 if compare(Path(before), Path(after)) else 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
