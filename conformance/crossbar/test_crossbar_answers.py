"""Crosstie answers as Crossbar.io does, message for message, or there is a reason why not.

`crossbar/answers.json` holds what Crossbar.io 26.10.1 said to each scenario (`crossbar/record.py`
plays them anew); where Crosstie is meant to differ, `crossbar/different.json` holds its answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rig import config
from rig.router import Router

from crossbar.scenarios import DIFFERENT, SCENARIOS, realm
from crossbar.stage import Stage

HERE = Path(__file__).resolve().parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
OURS = json.loads((HERE / "different.json").read_text())


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A router with the options that make it read and tell what Crossbar.io does."""
    as_there = realm()
    as_there["options"] = {"empty_eligible": "everybody"}
    as_there["roles"][0]["permissions"][0]["disclose"] = {"callee": True}
    configuration = config.node([as_there], [config.universal("tcp", config.tcp())])
    router = Router(tmp_path_factory.mktemp("as_crossbar"), config=configuration)
    yield router.address("tcp")
    router.stop()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_as_crossbar(address, scenario):
    name = scenario.__name__
    stage = Stage(address)
    try:
        scenario(stage)
    finally:
        stage.close()
    expected = OURS[name] if name in DIFFERENT else ANSWERS[name]
    assert stage.transcript == expected, DIFFERENT.get(name, "as Crossbar.io")


def test_known_differences_are_real():
    assert set(OURS) == set(DIFFERENT)
    assert set(ANSWERS) == {scenario.__name__ for scenario in SCENARIOS}
    assert [name for name in DIFFERENT if OURS[name] == ANSWERS[name]] == []
