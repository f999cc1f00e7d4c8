"""Every scenario, by every client, on RabbitMQ and on Crosstie: the transcripts are the same."""

from __future__ import annotations

import pytest
import scenarios
from rig.amqp_script import expected, play
from rig.broker import Broker
from rig.rabbitmq import RabbitMq
from scenarios import Scenario


@pytest.mark.parametrize(
    ("scenario", "driver"),
    scenarios.everything(),
    ids=lambda each: each.name if isinstance(each, Scenario) else each,
)
def test_scenario(
    scenario: Scenario, driver: str, rabbitmq: RabbitMq, crosstie_broker: Broker
) -> None:
    right = play(scenario.play, rabbitmq, driver, scenario.name)
    # A transcript that RabbitMQ cannot finish is no reference.
    assert not [line for line in right if "never came" in line], right
    observed = play(scenario.play, crosstie_broker, driver, scenario.name)
    assert observed == expected(right, observed, scenario.crosstie)
