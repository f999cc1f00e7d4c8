"""The table of the book: which clients come back after which end. `BLESS=1` writes it anew."""

from __future__ import annotations

import os

from rig.router import ROOT

BOOK = ROOT / "docs/coming-back.md"


def hold(name: str, ways: list[str], outcomes: dict[str, dict[str, bool]]) -> None:
    """Compare a table with the book's, or write it there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    rows = []
    for client, outcome in sorted(outcomes.items(), key=lambda item: item[0].lower()):
        cells = ["yes" if outcome[way] else "no" for way in ways]
        escaped = client.replace("|", "\\|")
        rows.append(f"| {escaped} | {' | '.join(cells)} |")
    head = [f"| client | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
    table = "\n".join([*head, *rows]) + "\n"
    before, _, rest = BOOK.read_text().partition(begin)
    written, _, after = rest.partition(end)
    if os.environ.get("BLESS"):
        BOOK.write_text(f"{before}{begin}{table}{end}{after}")
    else:
        assert written == table, f"docs/coming-back.md has\n{written}\nand it is\n{table}"
