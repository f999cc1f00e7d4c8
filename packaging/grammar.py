"""The grammar of a program's command line, read from its `--help`.

`scripts/commands_pages.py` has the form of `--help`; this keeps the words as they are, for manuals
and completions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from commands_pages import ENTRY, asked, paragraphs

# The group and the commands in the `--help` of `crosstie` that `crosstie-lab` answers.
LABORATORY = ("The laboratory", "oslo", "roundtrip")
# Sections whose entries are no commands.
OTHERS = ("Options", "Arguments")
LISTED = re.compile(r"\[(default|possible values): ([^\]]+)\]")


@dataclass
class Parameter:
    """An option or an argument."""

    form: str
    text: list[str]
    # Words that the program accepts; empty if it accepts others.
    words: list[str] = field(default_factory=list)

    @property
    def flags(self) -> list[str]:
        """The option's names; none of an argument."""
        return re.findall(r"(?<![\w<|-])--?[\w-]+", self.form.split("<")[0])

    @property
    def value(self) -> str:
        """The name of the value; empty for a switch."""
        found = re.search(r"[<\[]([^>\]]+)[>\]]", self.form)
        return found[1] if found else ""

    @property
    def summary(self) -> str:
        """The first sentence."""
        return self.text[0] if self.text else ""


@dataclass
class Command:
    """A command, and the commands below it."""

    path: tuple[str, ...]
    about: list[str]
    usage: list[str]
    options: list[Parameter] = field(default_factory=list)
    arguments: list[Parameter] = field(default_factory=list)
    # Groups of commands by their title, each command with its line.
    groups: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)

    def all(self) -> Iterator[Command]:
        """Return this command and all below it."""
        yield self
        for command in self.commands:
            yield from command.all()

    def summaries(self) -> list[tuple[str, str]]:
        """Return the names and lines of the commands below."""
        return [each for listed in self.groups.values() for each in listed]


def grammar(name: str, program: Path) -> Command:
    """Return a program's command line, without the commands that another program answers."""
    return read(program, (), is_foreign=name == "crosstie")


def read(program: Path, path: tuple[str, ...], *, is_foreign: bool) -> Command:
    """Return the command of a path. `is_foreign` says whether it lists the laboratory's."""
    command = parsed(path, asked(program, path))
    hidden = LABORATORY if is_foreign else ()
    groups = {
        title: [each for each in listed if each[0] not in ("help", *hidden)]
        for title, listed in command.groups.items()
        if title not in hidden
    }
    command.groups = {title: listed for title, listed in groups.items() if listed}
    command.commands = [
        read(program, (*path, name), is_foreign=False) for name, _ in command.summaries()
    ]
    return command


def parsed(path: tuple[str, ...], text: str) -> Command:
    """Take the text of `--help` apart."""
    about, rest = text.split("\nUsage: ", 1)
    usage, _, rest = rest.partition("\n\n")
    command = Command(
        path, paragraphs(about.splitlines()), [line.strip() for line in usage.splitlines()]
    )
    title, collected = "", []
    for line in [*rest.splitlines(), "End:"]:
        heading = re.match(r"^(\S.*):$", line)
        if not heading:
            collected.append(line)
            continue
        if title in OTHERS:
            parameters = [parameter(form, lines) for form, lines in entries(collected)]
            if title == "Options":
                command.options += parameters
            else:
                command.arguments += parameters
        elif title:
            named = [(form, " ".join(paragraphs(lines))) for form, lines in entries(collected)]
            command.groups[title] = named
        title, collected = heading[1], []
    return command


def entries(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return the entries of a section: each form with the lines of its text."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        entry = ENTRY.match(line)
        if entry and (not found or len(line) - len(line.lstrip()) <= 6):
            found.append((entry["form"], [entry["text"] or ""]))
        elif found and (not line or line.startswith(" ")):
            found[-1][1].append(line)
    return found


def parameter(form: str, lines: list[str]) -> Parameter:
    """Return an option or an argument, with the words that it accepts."""
    text = [each for each in paragraphs(lines) if each != "Possible values:"]
    words = [each[2:].partition(":")[0] for each in text if each.startswith("- ")]
    for kind, listed in LISTED.findall(" ".join(text)):
        if kind == "possible values":
            words += listed.split(", ")
    return Parameter(form, text, words)
