"""`scripts/suites.py` has every black-box test once, by the folder that it is in."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import suite_times
import suites
import test as runner
from rig.links import EVERY, sample
from rig.router import ROOT
from suite_times import Times


def test_every_test_belongs_to_one_suite():
    folders = [ROOT / folder for suite in suites.suites() for folder in suite.tests]
    found = sorted((ROOT / "conformance").rglob("test_*.py"))
    assert found
    for file in found:
        owners = [folder for folder in folders if folder in file.parents]
        assert len(owners) == 1, f"{file.relative_to(ROOT)} is in the folders {owners} of suites"


def test_every_folder_of_a_suite_is_there():
    for suite in suites.suites():
        for folder in suite.tests:
            assert (ROOT / folder).is_dir(), f"{suite.name}: {folder}"


def test_the_recorded_times_fit_into_the_budget():
    recorded = suite_times.read()
    known = suites.suites()
    unrecorded = {suite.name for suite in known if suite.tests or suite.compiles} - set(recorded)
    assert unrecorded == {"crossbar-links"}, "record them: make test RECORD=1"
    assert set(recorded) <= {suite.name for suite in known}
    chosen = [suite for suite in known if suite.name in recorded]
    foreseen_s = runner.foreseen_s(chosen, recorded)
    assert foreseen_s <= runner.BUDGET_MIN * 60, f"{foreseen_s:.0f} s are foreseen"


def test_suites_that_have_grown_are_named():
    recorded = {name: Times(60, 30) for name in "abcdef"}
    took = {name: Times(100, 60) for name in "abcde"} | {"f": Times(100, 200), "new": Times(1, 1)}
    (line,) = suite_times.grown(took, recorded)
    assert line.startswith("f has grown: 200 s of the processor, 60 s expected")
    assert suite_times.grown({"f": took["f"]}, recorded) == []


def test_times_are_read_as_they_are_written(tmp_path):
    file = tmp_path / "times.tsv"
    times = {"b": Times(2, 1), "a": Times(10, 20)}
    suite_times.write(times, file)
    assert suite_times.read(file) == times
    assert file.read_text().splitlines()[1].startswith("a\t")


def test_sampled_links_have_every_pair():
    """Every client on every transport, every serializer on every kind, and so on."""
    chosen = sample(EVERY)
    parts = ("client", "kind", "over", "serializer")
    for first in parts:
        for second in parts:
            pairs = {(getattr(link, first), getattr(link, second)) for link in EVERY}
            assert pairs == {(getattr(link, first), getattr(link, second)) for link in chosen}
    assert len(chosen) < len(EVERY) / 2
