"""The page of errors has the texts and URIs that the code has."""

from __future__ import annotations

import re
from functools import cache

import pytest
from rig.router import ROOT

ROW = re.compile(r"^\| (?!text|URI|code|status|---)(.+?) \|", re.MULTILINE)
TEXT = re.compile(r"``\s?(.+?)\s?``|`([^`]+)`")
# RabbitMQ's names of close codes are of the specification's table.
PART_LENGTH_MIN = 4


@cache
def sources() -> str:
    """Return the sources, with the texts that go over several lines in one."""
    files = [file for file in (ROOT / "crates").rglob("*.rs") if "/tests/" not in str(file)]
    whole = "\n".join(file.read_text() for file in sorted(files))
    whole = re.sub(r"\\\n\s*", "", whole).replace('\\"', '"').replace("{{", "{")
    return re.sub(r"concat!\(|\s+", " ", whole)


def texts() -> list[str]:
    """Return the texts of the first column."""
    page = (ROOT / "docs/errors.md").read_text()
    cells = ROW.findall(page)
    return [one or two for cell in cells for one, two in TEXT.findall(cell)]


@pytest.mark.parametrize("text", texts())
def test_a_text_is_in_the_code(text):
    for part in re.split(r"…|\d+", text):
        part = part.strip(" :(.,'")
        if len(part) >= PART_LENGTH_MIN:
            assert part in sources(), f"{text}: no source has {part!r}"


def test_texts_are_found():
    assert len(texts()) > 60
