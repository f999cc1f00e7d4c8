"""The blocks of code on a page, each with its language and its marker.

A block that cannot run has a marker on the line before it, which readers do not see:
`<!-- not run: REASON -->`. With `<!-- parsed: REASON -->` the options of its commands are judged.
`<!-- file: PATH -->` makes a block that file, for the commands behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rig.router import ROOT

FENCE = re.compile(
    r"(?:^[ ]*<!-- (?P<marker>not run|parsed|file): (?P<reason>.+?) -->\n)?"
    r"^[ ]*```(?P<language>\w*)\n(?P<text>.*?)^[ ]*```$",
    re.MULTILINE | re.DOTALL,
)
# Blocks of these languages are examples.
SHELL = ("sh", "console")
CONFIGURATION = ("json", "yaml")
OTHERS = ("python", "nginx", "haproxy", "ini", "js", "rust", "toml")
# What no program reads: pictures, grammars, excerpts of output.
DISPLAYS = ("text", "")


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: str
    line: int
    language: str
    text: str
    marker: str | None
    reason: str | None

    def __str__(self) -> str:
        """Return where the block is."""
        return f"{self.page}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, in their order."""
    text = (ROOT / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        parts = match.groupdict()
        marker, reason = parts["marker"], parts["reason"]
        found.append(Block(page, line, parts["language"], parts["text"], marker, reason))
    return found


def pages() -> list[str]:
    """Return every page with examples."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return ["README.md", *(str(page.relative_to(ROOT)) for page in found)]


def all_blocks() -> list[Block]:
    """Return every block of every page."""
    return [block for page in pages() for block in blocks_of(page)]
