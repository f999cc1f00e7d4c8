"""AMQP scenarios, each played by several clients on RabbitMQ and on Crosstie.

RabbitMQ's behaviour is the reference. If Crosstie differs by intention, the scenario has its
transcript (`crosstie`) and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rig.amqp_drivers import DRIVERS
from rig.amqp_script import Script

MODULES = (
    "topology",
    "plugins",
    "queues",
    "consuming",
    "publishing",
    "transactions",
    "lengths",
    "priorities",
    "dead_letters",
    "policies",
    "access",
    "edges",
)
SCENARIOS: dict[str, Scenario] = {}


@dataclass
class Scenario:
    """A scenario and who plays it."""

    name: str
    play: Callable[[Script], None]
    drivers: tuple[str, ...]
    # Crosstie's transcript in place of RabbitMQ's, and the reason.
    crosstie: list[str] | None = None
    because: str = ""


def scenario(
    *drivers: str, crosstie: list[str] | None = None, because: str = "", without: tuple = ()
) -> Callable:
    """Make a function a scenario of these clients, or of all."""
    assert (crosstie is None) == (not because)

    def add(function: Callable[[Script], None]) -> Callable[[Script], None]:
        players = tuple(driver for driver in drivers or DRIVERS if driver not in without)
        name = function.__name__
        assert name not in SCENARIOS, name
        SCENARIOS[name] = Scenario(name, function, players, crosstie, because)
        return function

    return add


def everything() -> list[tuple[Scenario, str]]:
    """Return every scenario with every client that plays it."""
    for module in MODULES:
        import_module(f"scenarios.{module}")
    return [(each, driver) for each in SCENARIOS.values() for driver in each.drivers]
