"""The tables of the book: which clients come back after which end. `BLESS=1` writes them anew."""

from __future__ import annotations

import os

from rig.router import ROOT

BOOK = ROOT / "docs/coming-back.md"


def cell(value: bool | str) -> str:
    """Return what stands in the table."""
    return {True: "yes", False: "no"}.get(value, value)


def hold(name: str, ways: list[str], outcomes: dict[str, dict[str, bool | str]]) -> None:
    """Compare the clients that were played with the book's, or write all of them there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    rows = {}
    for client, outcome in sorted(outcomes.items(), key=lambda item: item[0].lower()):
        escaped = client.replace("|", "\\|")
        rows[escaped] = f"| {escaped} | {' | '.join(cell(outcome[way]) for way in ways)} |"
    head = [f"| client | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
    before, _, rest = BOOK.read_text().partition(begin)
    written, _, after = rest.partition(end)
    if os.environ.get("BLESS"):
        table = "\n".join([*head, *rows.values()]) + "\n"
        BOOK.write_text(f"{before}{begin}{table}{end}{after}")
        return
    lines = written.splitlines()
    held = [line for line in lines[2:] if line.startswith(tuple(f"| {row} | " for row in rows))]
    found = "\n".join([*lines[:2], *held])
    table = "\n".join([*head, *rows.values()])
    assert found == table, f"docs/coming-back.md has\n{found}\nand it is\n{table}"
