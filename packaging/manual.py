"""Manual pages in the macros of man(7), from the grammar of a program."""

from __future__ import annotations

import datetime

from archives import Entry, gzipped
from grammar import Command, Parameter


def pages(program: str, root: Command, version: str, time: int) -> list[Entry]:
    """Return a page of the program, and one of each of its first commands."""
    made = {program: page(program, root, root.about, version, time)}
    for command in root.commands:
        made[f"{program}-{command.path[0]}"] = page(
            program, command, [summary_of(root, command)], version, time
        )
    return [
        Entry(f"/usr/share/man/man1/{name}.1.gz", gzipped(text.encode()))
        for name, text in made.items()
    ]


def summary_of(root: Command, command: Command) -> str:
    """Return the line of a command in the list of the commands above it."""
    return dict(root.summaries())[command.path[-1]]


def page(program: str, command: Command, summary: list[str], version: str, time: int) -> str:
    """Return the page of a command and of all below it."""
    name = "-".join((program, *command.path))
    date = datetime.datetime.fromtimestamp(time, datetime.UTC).date()
    lines = [
        f'.TH {roff(name.upper())} 1 "{date}" "Crosstie {roff(version)}" "Crosstie"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(lowered(summary[0]))}",
        ".SH SYNOPSIS",
        ".nf",
        *(usage(program, command, line) for line in command.usage),
        ".fi",
        ".SH DESCRIPTION",
        *described(command.about),
    ]
    for title, listed in command.groups.items():
        lines.append(f".SH {roff(title.upper())}")
        for below, text in listed:
            shown = f"\\fB{roff(name)}\\-{roff(below)}\\fR(1)" if not command.path else bold(below)
            lines += [".TP", shown, roff(text)]
    lines += parameters("ARGUMENTS", command.arguments) + parameters("OPTIONS", command.options)
    for below in command.commands if command.path else []:
        for each in below.all():
            lines += [f".SH {roff(' '.join((program, *each.path)).upper())}"]
            lines += [".nf", *(usage(program, each, line) for line in each.usage), ".fi", ".PP"]
            lines += described(each.about)
            lines += entries([*each.arguments, *each.options])
    if command.path:
        lines += [".SH SEE ALSO", f"\\fB{roff(program)}\\fR(1)"]
    else:
        lines += [
            ".SH EXIT STATUS",
            *[".TP", "0", "The command is done."],
            *[".TP", "1", "The node or router refuses, or a check fails."],
            *[".TP", "2", "An argument is wrong, or no node or router can be reached."],
        ]
    return "\n".join(lines) + "\n"


def usage(program: str, command: Command, line: str) -> str:
    """Return a line of the synopsis, with the name of the installed program."""
    words = line.split()
    return roff(" ".join((program, *words[1:])))


def described(paragraphs: list[str]) -> list[str]:
    """Return paragraphs."""
    return [line for text in paragraphs for line in (".PP", roff(text))]


def parameters(title: str, listed: list[Parameter]) -> list[str]:
    """Return a section of options or arguments."""
    return [f".SH {title}", *entries(listed)] if listed else []


def entries(listed: list[Parameter]) -> list[str]:
    """Return options or arguments with their texts."""
    lines = []
    for each in listed:
        lines += [".TP", bold(each.form)]
        for index, text in enumerate(each.text):
            lines += [*([".IP"] if index else []), roff(text)]
    return lines


def bold(text: str) -> str:
    """Return text in bold."""
    return f"\\fB{roff(text)}\\fR"


def lowered(text: str) -> str:
    """Return a sentence in the form of a name's description."""
    first = text.split()[0]
    return text if first.isupper() and len(first) > 1 else text[:1].lower() + text[1:].rstrip(".")


def roff(text: str) -> str:
    """Return text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    text = "".join(each if ord(each) < 128 else f"\\[u{ord(each):04X}]" for each in text)
    # A line that begins with a dot is a request.
    return f"\\&{text}" if text.startswith(".") else text
