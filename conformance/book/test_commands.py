"""The reference of commands is what the program says of itself."""

from __future__ import annotations

import sys

from rig.router import ROOT, binary

sys.path.insert(0, str(ROOT / "scripts"))
import commands_pages


def test_the_pages_are_those_of_the_program():
    made = commands_pages.pages(binary())
    for name, text in made.items():
        kept = (ROOT / "docs" / name).read_text()
        assert kept == text, f"docs/{name}: write it anew with scripts/commands_pages.py"
    there = {f"commands/{file.name}" for file in (ROOT / "docs/commands").iterdir()}
    assert there == set(made) - {"commands.md"}


def test_entries_are_taken_apart():
    text = """About it

Usage: crosstie x [OPTIONS]

Options:
  -l, --level <LEVEL>  How much
                       is logged [default: info]
      --form <FORM>
          The form

          Possible values:
          - one: The *first*
          - two

          [default: one]
  -h, --help           Print help
"""
    told = commands_pages.parsed(("x",), text)
    assert told.about == ["About it"]
    assert told.sections["Options"] == [
        ("-l, --level <LEVEL>", "How much is logged. Default: `info`."),
        ("--form <FORM>", "The form. Default: `one`.\n  - `one`: The \\*first\\*\n  - `two`"),
        ("-h, --help", "Print help."),
    ]
