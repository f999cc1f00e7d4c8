"""Clients that are there again after a stop: real ones, used as documented, all at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig.router import ROOT

from strangers.returning import amqp_clients, wamp_clients
from strangers.returning.place import Place
from strangers.returning.program import Run, programs
from strangers.returning.table import hold

PAGES = Path(__file__).parent / "pages"
AUTOBAHN = ROOT / "conformance/js/node_modules/autobahn-browser/autobahn.min.js"
# Recorded by strangers/returning/record.py.
RABBITMQ = json.loads((Path(__file__).parent / "returning/rabbitmq.json").read_text())

# The plays take minutes, and the first test waits for them.
pytestmark = pytest.mark.timeout(900)

Play = Callable[[Place, Run, Path], object]
PLAYS: dict[str, Play] = {
    "amqp": lambda place, run, _: amqp_clients.play(place, run),
    "wamp": wamp_clients.play,
    "tasks": lambda place, run, _: amqp_clients.lost_tasks(place, run),
    "confirmed": lambda place, run, _: amqp_clients.lost_tasks(place, run, CONFIRM="yes"),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Iterator[dict[str, Future]]:
    """Play all at once, each at a node of its own: clients wait for seconds between attempts."""
    with ThreadPoolExecutor() as pool, ExitStack() as running:

        def start(name: str) -> Future:
            directory = tmp_path_factory.mktemp(name)
            pages = directory / "pages"
            shutil.copytree(PAGES, pages)
            shutil.copy(AUTOBAHN, pages)
            place = Place(directory)
            running.callback(lambda: place.router.stop())
            run = running.enter_context(programs(directory))
            return pool.submit(PLAYS[name], place, run, directory)

        yield {name: start(name) for name in PLAYS}


def beside_rabbitmq(own: dict, judged: dict) -> dict:
    """Return a client's row: here, and to RabbitMQ."""
    return {**own, **{f"{way}, RabbitMQ {RABBITMQ['version']}": judged[way] for way in own}}


def test_clients_of_amqp_are_back_after_a_restart(played):
    outcomes, told = played["amqp"].result()
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


def test_a_celery_publisher_loses_no_more_tasks_over_a_stop_than_with_rabbitmq(played):
    lost = played["tasks"].result()
    assert len(lost) <= max(RABBITMQ["tasks lost in stops"]), lost


def test_a_celery_publisher_with_confirms_loses_no_task_over_a_stop(played):
    assert played["confirmed"].result() == set()


def test_clients_of_wamp_are_back_after_a_restart(played):
    outcomes, told = played["wamp"].result()
    assert not os.environ.get("BLESS") or "Autobahn|JS in Chromium" in outcomes, "no chromium"
    hold("clients of WAMP", list(outcomes["wampy"]), outcomes)
    hold("WAMP, dialled", list(told["nexus"]), told)
