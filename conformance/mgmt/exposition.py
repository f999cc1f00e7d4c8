"""The text format of Prometheus, read strictly."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
SUFFIXES = ("_bucket", "_sum", "_count")

Samples = dict[str, list[tuple[dict[str, str], float]]]


def parsed(text: str) -> Samples:
    """Return the samples by name; all of a family stand together, below its type."""
    samples: Samples = {}
    kinds: dict[str, str] = {}
    family = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in kinds, f"{family} comes twice"
            kinds[family] = kind
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family
        else:
            name, labels, value = sample(line)
            base = name
            if kinds[family] == "histogram":
                (base,) = {name.removesuffix(suffix) for suffix in SUFFIXES} - {name}
            assert base == family, f"{name} stands among {family}"
            assert kinds[family] != "counter" or name.endswith("_total"), name
            samples.setdefault(name, []).append((labels, value))
    return samples


def sample(line: str) -> tuple[str, dict[str, str], float]:
    """Return the name, the labels and the value of a line."""
    name = NAME.match(line)
    assert name, line
    rest = line[name.end() :]
    labels = {}
    if rest.startswith("{"):
        end = rest.rindex("}")
        inside, rest = rest[1:end], rest[end + 1 :]
        while inside:
            found = LABEL.match(inside)
            assert found, line
            value = re.sub(r'\\["\\n]', lambda escape: UNESCAPED[escape[0]], found[2])
            labels[found[1]] = value
            inside = inside[found.end() :]
    assert rest.startswith(" "), line
    return name[0], labels, float(rest[1:])
