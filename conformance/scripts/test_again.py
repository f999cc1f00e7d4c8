"""`scripts/test.py` runs what failed a second time and says so; what fails twice has failed."""

from __future__ import annotations

import sys

import pytest
from rig.router import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import second_tries
import test as runner
from suites import Suite

ALWAYS = "def test_always():\n    raise AssertionError('a - b')\n"
ONCE = """
import pathlib
import pytest

@pytest.mark.parametrize("number", ["1 - 2"])
def test_once(number):
    seen = pathlib.Path(__file__).with_suffix(".seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first

@pytest.fixture
def broken():
    seen = pathlib.Path(__file__).with_suffix(".broken")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first

def test_with(broken):
    pass

def test_never():
    pass
"""
MANY = """
import pytest

@pytest.mark.parametrize("n", range(9))
def test_many(n):
    assert False
"""


@pytest.mark.parametrize(
    ("text", "counts", "unsteady"),
    [
        (ONCE, (3, 0), ["test_once[1 - 2]", "test_with"]),
        (ONCE + ALWAYS, (1, 3), []),
        (MANY, (0, 9), []),
        ("raise SystemError", (0, 1), []),
    ],
)
def test_failed_tests_are_run_again(tmp_path, monkeypatch, text, counts, unsteady):
    (tmp_path / "test_it.py").write_text(text)
    monkeypatch.setattr(runner, "LOGS", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "test_it.py"]
    suite = Suite("build-less", "a suite", [command], folder=tmp_path, tests=["."])
    run = runner.Run([suite], is_whole=False)
    (outcome,) = run.all()
    assert (outcome.passed, outcome.failed) == counts
    assert sorted(outcome.unsteady) == [f"test_it.py::{name}" for name in unsteady]


def test_a_listed_test_has_no_second_try(tmp_path):
    file = tmp_path / "second_tries.tsv"
    file.write_text("test\tdate\na.py::x\t2026-01-02\n")
    second_tries.add(["a.py::x", "a.py::y [1 - 2]"], file)
    listed = second_tries.read(file)
    assert listed["a.py::x"] == "2026-01-02"
    assert list(listed) == ["a.py::x", "a.py::y [1 - 2]"]
    allowance = second_tries.Allowance(listed)
    refusal = "no second try, listed in second_tries.tsv: a.py::x since 2026-01-02"
    assert allowance.refusal(["b.py::z", "a.py::x"]) == refusal


def test_a_run_has_three_second_tries():
    allowance = second_tries.Allowance({})
    assert not allowance.refusal(["one", "two"])
    assert allowance.refusal(["three", "four"]) == "no second try: 2 tests failed, 1 tries are left"
    assert not allowance.refusal(["three"])
    assert allowance.refusal(["five"])


def test_a_suite_that_is_left_out_installs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "LOGS", tmp_path)
    asked = []

    def need() -> None:
        asked.append("need")

    whole = [[sys.executable, "-c", "pass"]]
    suite = Suite("build-less", "a suite", [], [need], leaves_out="all of it", whole=whole)
    assert [each.passed for each in runner.Run([suite], is_whole=False).all()] == [1]
    assert asked == []
    assert [each.passed for each in runner.Run([suite], is_whole=True).all()] == [1]
    assert asked


def test_a_suite_that_cannot_write_its_log_fails_and_holds_up_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "LOGS", tmp_path)
    (tmp_path / "first.log").mkdir()
    command = [sys.executable, "-c", "pass"]
    first = Suite("first", "a suite", [command], is_alone=True)
    second = Suite("second", "a suite", [command], is_alone=True)
    outcomes = runner.Run([first, second], is_whole=False).all()
    counts = {each.name: (each.passed, each.failed) for each in outcomes}
    assert counts == {"first": (0, 1), "second": (1, 0)}
    assert "could not be run" in outcomes[0].reason
