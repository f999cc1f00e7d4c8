"""`scripts/suites.py` has every black-box test once, by the folder that it is in."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import suites
from rig.router import ROOT


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
