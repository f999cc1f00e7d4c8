"""Which components are started when: those that refer to others, once these are ready.

Inputs: `start`, and what becomes of components. Output: their `Component.start`.
"""

from __future__ import annotations

import txaio

from crosstie.container.component import Component

PREFIX = "component:"


class Order:
    """The components that wait, and what they wait for."""

    log = txaio.make_logger()

    def __init__(self):
        # Those that have been ready and have not ended since.
        self._ready: set[str] = set()
        self._waiting: dict[str, tuple[Component, set[str]]] = {}

    def start(self, component: Component) -> None:
        """Start a component, now or later."""
        missing = set(references(component.definition)) - self._ready
        if not missing:
            component.start()
            return
        self.log.info(
            "Component '{name}' waits for {others} to be ready",
            name=component.name,
            others=named(missing),
        )
        self._waiting[component.name] = (component, missing)
        component.await_others()

    def handle_ready(self, component: Component) -> None:
        """Start those that have waited for this one alone."""
        self._ready.add(component.name)
        for name, (waiting, missing) in list(self._waiting.items()):
            missing.discard(component.name)
            if not missing:
                del self._waiting[name]
                waiting.start()

    def handle_ended(self, component: Component) -> None:
        """Tell of those that go on waiting, for another start of it."""
        self._ready.discard(component.name)
        self._waiting.pop(component.name, None)
        waiting = [
            name for name, (_, missing) in self._waiting.items() if component.name in missing
        ]
        if waiting:
            self.log.warn(
                "Component '{name}' has ended: {waiting} waits for it",
                name=component.name,
                waiting=named(waiting),
            )


def references(definition: dict) -> list[str]:
    """Return the ids of the components that a definition refers to."""
    given = definition.get("references", [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ValueError("'references' is a list of strings")
    for each in given:
        if not each.startswith(PREFIX) or each == PREFIX:
            raise ValueError(f"an item of 'references' is '{PREFIX}ID', not '{each}'")
    return [each.removeprefix(PREFIX) for each in given]


def named(names) -> str:
    """Return names as a log line has them."""
    return ", ".join(f"'{name}'" for name in sorted(names))
