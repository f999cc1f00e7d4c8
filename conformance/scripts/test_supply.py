"""The rules of `scripts/supply.py` for packages: ranges of versions, licences, and rules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import supply


@pytest.mark.parametrize(
    ("requirement", "inside", "outside"),
    [
        (">=1.2.3", "1.2.3 1.10.0 2.0.0", "1.2.2 1.2.3-rc.1"),
        (">= 0.5, < 0.9", "0.5.0 0.8.99", "0.4.9 0.9.0"),
        ("< 0.3", "0.2.9 0.3.0-alpha", "0.3.0 1.0.0"),
        ("<=1.0.1", "1.0.1 0.9.0", "1.0.2"),
        (">1.0.1", "1.0.2", "1.0.1"),
        ("^1.2", "1.2.0 1.9.9", "1.1.9 2.0.0 2.0.0-beta"),
        ("^0.3.4", "0.3.4 0.3.9", "0.3.3 0.4.0"),
        ("0.0.3", "0.0.3", "0.0.4"),
        ("~1.4.2", "1.4.2 1.4.9", "1.5.0 1.4.1"),
        ("=1.2.3", "1.2.3 1.2.3+build", "1.2.4"),
        ("=1.2", "1.2.0 1.2.9", "1.3.0"),
        ("*", "0.0.1 9.9.9", ""),
        (">=1.0.0-rc.2", "1.0.0 1.0.0-rc.10", "1.0.0-rc.1"),
    ],
)
def test_ranges(requirement, inside, outside):
    for version in inside.split():
        assert supply.matches(version, requirement), version
    for version in outside.split():
        assert not supply.matches(version, requirement), version


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("MIT OR GPL-3.0", True),
        ("MIT/Apache-2.0", False),
        ("MIT AND ISC", True),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR Apache-2.0) AND ISC", True),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", False),
    ],
)
def test_licences(expression, expected):
    allowed = {"MIT", "ISC"} - ({"MIT"} if "/" in expression else set())
    assert supply.is_allowed(expression, allowed) == expected


RULES = {
    "licenses": {"allow": ["MIT"], "exceptions": [{"crate": "odd", "allow": ["NCSA"]}]},
    "sources": {"allow-registry": ["here"]},
    "bans": {"deny": [{"crate": "banned"}], "skip": [{"crate": "twice@1.0.0"}]},
    "advisories": {"ignore": [{"id": "RUSTSEC-2"}]},
}
ADVISORIES = [
    supply.Advisory("RUSTSEC-1", "holed", "vulnerability", (">=1.2.0",), ("<0.5.0",)),
    supply.Advisory("RUSTSEC-2", "ignored", "unsound", (), ()),
]


def package(name, version="1.0.0", licence="MIT", source="registry+here"):
    return {"name": name, "version": version, "license": licence, "source": source}


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ([package("good")], None),
        ([package("ours", licence=None, source=None)], None),
        ([package("odd", licence="MIT AND NCSA")], None),
        ([package("other", licence="MIT AND NCSA")], "licence MIT AND NCSA"),
        ([package("none", licence=None)], "licence (none)"),
        ([package("far", source="git+there")], "from git+there"),
        ([package("banned")], "not to be used"),
        ([package("holed", "1.1.0")], "RUSTSEC-1 (vulnerability); fixed in >=1.2.0"),
        ([package("holed", "1.2.0")], None),
        ([package("holed", "0.4.9")], None),
        ([package("ignored")], None),
        ([package("two"), package("two", "2.0.0")], "two is there in several versions"),
        ([package("twice"), package("twice", "2.0.0")], None),
    ],
)
def test_packages(found, complaint):
    wrong = supply.judge(found, RULES, ADVISORIES)
    assert len(wrong) == (complaint is not None), wrong
    assert complaint is None or complaint in wrong[0]


def test_the_list_is_read():
    day, looked, advisories = supply.read_advisories()
    assert len(day) == len(looked) == len("2026-01-01")
    assert day <= looked
    assert len(advisories) > 1000
    # Every range in it can be read.
    for advisory in advisories:
        advisory.concerns("1.0.0")


@pytest.mark.parametrize(("days", "fails"), [(0, False), (60, False), (61, True), (400, True)])
def test_advisories_that_were_long_not_looked_for_fail(days, fails):
    complaint = supply.too_old(days)
    assert bool(complaint) == fails
    if complaint:
        assert "supply.py --update" in complaint
