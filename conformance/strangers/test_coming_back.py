"""Clients that are there again after a stop: real ones, used as documented, all at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.router import ROOT

from strangers.returning import amqp_clients, wamp_clients
from strangers.returning.place import Place
from strangers.returning.program import Run, programs
from strangers.returning.table import hold

PAGES = Path(__file__).parent / "pages"
AUTOBAHN = ROOT / "conformance/js/node_modules/autobahn-browser/autobahn.min.js"
# What strangers/returning/record.py has recorded.
RABBITMQ = json.loads((Path(__file__).parent / "returning/rabbitmq.json").read_text())

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    """A node that can be ended and started again."""
    pages = tmp_path / "pages"
    shutil.copytree(PAGES, pages)
    shutil.copy(AUTOBAHN, pages)
    place = Place(tmp_path)
    yield place
    place.router.stop()


@pytest.fixture
def run(tmp_path) -> Iterator[Run]:
    """Run clients' programs, which end with the test."""
    with programs(tmp_path) as run:
        yield run


def beside_rabbitmq(own: dict, judged: dict) -> dict:
    """Return a client's row: here, and to RabbitMQ."""
    return {**own, **{f"{way}, RabbitMQ {RABBITMQ['version']}": judged[way] for way in own}}


def test_clients_of_amqp_are_back_after_a_restart(place, run):
    outcomes, told = amqp_clients.play(place, run)
    if os.environ.get("BLESS"):
        assert outcomes.keys() == RABBITMQ["back"].keys(), "not every client is installed"
    for name, outcome in outcomes.items():
        judged = RABBITMQ["back"][name]
        fewer = [way for way, is_back in judged.items() if is_back and not outcome[way]]
        assert not fewer, f"{name} comes back to RabbitMQ, and not here, after {fewer}"
    for about, found in (("back", outcomes), ("told", told)):
        table = {name: beside_rabbitmq(own, RABBITMQ[about][name]) for name, own in found.items()}
        ways = list(next(iter(table.values())))
        hold({"back": "clients of AMQP", "told": "AMQP, dialled"}[about], ways, table)


def test_a_celery_publisher_loses_no_more_tasks_over_a_stop_than_with_rabbitmq(place, run):
    lost = amqp_clients.lost_tasks(place, run)
    assert len(lost) <= max(RABBITMQ["tasks lost in stops"]), lost


def test_a_celery_publisher_with_confirms_loses_no_task_over_a_stop(place, run):
    assert amqp_clients.lost_tasks(place, run, CONFIRM="yes") == set()


def test_clients_of_wamp_are_back_after_a_restart(place, run, tmp_path):
    outcomes, told = wamp_clients.play(place, run, tmp_path)
    assert not os.environ.get("BLESS") or "Autobahn|JS in Chromium" in outcomes, "no chromium"
    hold("clients of WAMP", list(outcomes["wampy"]), outcomes)
    hold("WAMP, dialled", list(told["nexus"]), told)
