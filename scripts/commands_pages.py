#!/usr/bin/env python3
"""Writes the reference of commands from the program's own `--help`.

    scripts/commands_pages.py [CROSSTIE]      # writes docs/commands.md and docs/commands/

`conformance/book/test_commands.py` holds the pages against the program.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Commands

<!-- written by scripts/commands_pages.py from the program's --help -->

`crosstie COMMAND --help` prints what these pages say. Exit codes:

| code | meaning |
|---|---|
| 0 | The command is done. |
| 1 | The node or router refuses, a check fails, or a node cannot start. |
| 2 | An argument is wrong, or no node or router can be reached. |

A router that rejects the session, for a wrong ticket or an unknown realm, counts as one that
refuses. These pages show the commands in use: [management](management.md),
[several nodes](fabric.md#a-cluster-in-three-commands), [replicated vhosts](replicated-vhosts.md),
[conformance](conformance.md), [the instruments](laboratory/instruments.md).
"""
# The pages of each group of commands, by the commands that each has.
PAGES = {
    "A node": {"node": None},
    "A running node": {"amqp": {"amqp"}, "running": None},
    "Clients": {"clients": None},
    "The laboratory": {"bench": {"bench"}, "laboratory": None},
}
TITLES = {
    "node": "Commands: a node",
    "amqp": "Commands: amqp",
    "running": "Commands: a running node",
    "clients": "Commands: clients",
    "bench": "Commands: bench",
    "laboratory": "Commands: the laboratory",
}


@dataclass
class Help:
    """The parts of one command's `--help`."""

    path: tuple[str, ...]
    about: list[str]
    usage: str
    # The title of each section, and its entries: the form and the text.
    sections: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    # Options of the command above, which are described there.
    inherited: set[tuple[str, str]] = field(default_factory=set)


def asked(program: Path, path: tuple[str, ...]) -> str:
    """Return the text of `--help`."""
    # The width of a terminal decides where lines break, and the form of the list.
    environment = {**os.environ, "COLUMNS": "100"}
    command = [str(program), *path, "--help"]
    done = subprocess.run(command, text=True, capture_output=True, check=True, env=environment)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def paragraphs(lines: list[str]) -> list[str]:
    """Return paragraphs without the line breaks of the terminal."""
    blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
    found = []
    for block in blocks:
        items = re.split(r"\n(?=- )", block)
        found += [" ".join(item.split()) for item in items if item.strip()]
    return found


def escaped(text: str) -> str:
    """Return text that Markdown prints as it is; what stands in backticks is left alone."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([<>*|])", r"\\\1", parts[index])
    return "`".join(parts)


ENTRY = re.compile(r"^ {2,6}(?P<form>(?:-|<|\[|[a-z])\S*(?: \S+)*)(?: {2,}(?P<text>\S.*))?$")


def entries(lines: list[str]) -> list[tuple[str, str]]:
    """Return the entries of a section: each form with its text."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        entry = ENTRY.match(line)
        if entry and (not found or len(line) - len(line.lstrip()) <= 6):
            found.append((entry["form"], [entry["text"] or ""]))
        elif found:
            found[-1][1].append(line)
    return [(form, described(paragraphs(text))) for form, text in found]


def described(text: list[str]) -> str:
    """Return the text of an entry, with its values as a list below it."""
    words, values = [], []
    for paragraph in text:
        if paragraph.startswith("- "):
            value, colon, about = paragraph[2:].partition(": ")
            values.append(f"\n  - `{value}`{colon}{escaped(about)}")
        elif paragraph != "Possible values:":
            words += re.split(r" (?=\[(?:default|possible values): )", paragraph)
    told = []
    for each in words:
        if found := re.fullmatch(r"\[(default|possible values): (.+?)\]", each):
            named = ", ".join(f"`{value}`" for value in found[2].split(", "))
            told.append(f"{'Default' if found[1] == 'default' else 'Values'}: {named}.")
        elif each:
            told.append(escaped(each) if each[-1] in ".:!?" else f"{escaped(each)}.")
    return " ".join(told) + "".join(values)


def parsed(path: tuple[str, ...], text: str) -> Help:
    """Take the text of `--help` apart."""
    about, rest = text.split("\nUsage: ", 1)
    usage, *lines = rest.splitlines()
    told = Help(path, [escaped(each) for each in paragraphs(about.splitlines())], usage)
    title, collected = "", []
    for line in [*lines, "End:"]:
        heading = re.match(r"^(\S.*):$", line)
        if not heading:
            collected.append(line)
            continue
        if title:
            told.sections[title] = entries(collected)
        title, collected = heading[1], []
    return told


def tree(program: Path, path: tuple[str, ...], above: Help | None = None) -> list[Help]:
    """Return a command and those below it."""
    told = parsed(path, asked(program, path))
    if above:
        told.inherited = set(above.sections.get("Options", []))
    below = [form for form, _ in told.sections.get("Commands", []) if form != "help"]
    return [told, *(help for name in below for help in tree(program, (*path, name), told))]


def shown(told: Help) -> str:
    """Return the section of a command."""
    name = " ".join(("crosstie", *told.path))
    text = f"\n{'#' * (1 + min(len(told.path), 2))} {name}\n\n"
    text += "".join(f"{paragraph}\n\n" for paragraph in told.about)
    text += f"Usage: `{told.usage}`\n"
    unsaid = {"help", "-h, --help", "-V, --version"}
    for title, listed in told.sections.items():
        kept = [
            (form, words)
            for form, words in listed
            if form not in unsaid and (form, words) not in told.inherited
        ]
        if kept and title != "Commands":
            listed = (f"- `{form}`: {words}" if words else f"- `{form}`" for form, words in kept)
            text += f"\n{title}:\n\n" + "".join(f"{line}\n" for line in listed)
    options = told.sections.get("Options", [])
    if any(form not in unsaid and (form, words) in told.inherited for form, words in options):
        above = " ".join(("crosstie", *told.path[:-1]))
        text += f"\nThe options of `{above}` apply, too.\n"
    return text


def groups(program: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the groups of commands, each command with its sentence."""
    found = {}
    top = asked(program, ())
    for title, lines in re.findall(r"^(\S.*):\n((?:  .+\n)+)", top, re.MULTILINE):
        if title != "Options":
            found[title] = re.findall(r"^  ([\w-]+) +(\S.*)$", lines, re.MULTILINE)
    return found


def pages(program: Path) -> dict[str, str]:
    """Return every page by its path below docs/."""
    index, written = HEAD, {}
    for title, commands in groups(program).items():
        index += f"\n## {title}\n\n| command | |\n|---|---|\n"
        rest = {name for names in PAGES[title].values() if names for name in names}
        for page, only in PAGES[title].items():
            about = "The program's `--help`. [Commands](../commands.md) has the index."
            written[page] = f"# {TITLES[page]}\n\n{about}\n"
            for name, about in commands:
                if (name in only) if only else (name not in rest):
                    written[page] += "".join(shown(told) for told in tree(program, (name,)))
                    link = f"[`crosstie {name}`](commands/{page}.md#crosstie-{name})"
                    index += f"| {link} | {escaped(about)} |\n"
    made = {f"commands/{page}.md": text for page, text in written.items()}
    return {"commands.md": index, **made}


def main() -> None:
    """Write the pages."""
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/debug/crosstie"
    for name, text in pages(program).items():
        file = ROOT / "docs" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
