"""Prometheus scrapes a node, and answers what the Grafana boards ask it."""

from __future__ import annotations

import pytest
from rig import prometheus as rig
from rig.waiting import await_true

from mgmt import boards, cases

pytestmark = rig.needed


@pytest.fixture
def prometheus(stage, tmp_path):
    """Start a Prometheus that scrapes the node each second."""
    with rig.scraping("rabbitmq", stage.router.address("prometheus"), tmp_path) as running:
        yield running


def test_every_expression_of_the_boards_has_an_answer(stage, api, prometheus):
    connection = cases.prepare(api)
    cluster = api.json("overview")["cluster_name"]
    expressions = boards.expressions(cluster)

    def unanswered() -> list[str]:
        connection.process_data_events(0.1)
        return [expression for expression in expressions if not prometheus.answer(expression)]

    await_true("every expression has an answer", lambda: unanswered() == [])
    (up,) = prometheus.answer('up{job="rabbitmq"}')
    assert up["value"][1] == "1"
    connection.close()
