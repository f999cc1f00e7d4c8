"""Every reading request as RabbitMQ 3.10.8 answers it: status, keys, types, texts of refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgmt import cases, different

ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())


@pytest.fixture(scope="module")
def answers(api) -> dict[str, dict]:
    """Return what Crosstie answers to all cases."""
    connection = cases.prepare(api)
    found = cases.names(api)
    outcomes = {case.name: cases.outcome(api, case, found) for case in cases.cases()}
    connection.close()
    return outcomes


def test_the_answers_are_those_of_rabbitmq(answers):
    assert answers.keys() == ANSWERS.keys()
    unlisted: dict[str, list[str]] = {}
    used = set()
    for name, recorded in ANSWERS.items():
        for key, text in different.differences(name, recorded, answers[name]):
            if (why := different.reason(name, key)) is None:
                unlisted.setdefault(name, []).append(text)
            used.add(why)
    assert unlisted == {}
    # The list has nothing that is not so any more.
    assert different.REASONS.keys() - used == set()
