"""Operations of every client for a script: methods with AMQP's own names and arguments."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

# How long an answer or a delivery may take before the transcript says that it never came.
PATIENCE_S = 20.0


class ClosedError(Exception):
    """The broker closed the channel or the connection."""

    def __init__(self, scope: str, code: int, text: str, *method: int):
        super().__init__(scope, code, text, *method)
        self.scope = scope
        self.code = code
        self.text = text
        # Class and method, where the client tells them.
        self.method = method


class NeverCameError(Exception):
    """An awaited event did not arrive."""


@dataclass
class Event:
    """Events that a broker sends: `deliver`, `return`, `ack`, `nack`, `cancel`, `blocked`."""

    kind: str
    arguments: dict = field(default_factory=dict)
    properties: dict | None = None
    body: bytes = b""

    def told(self) -> tuple:
        """Return it as a line of a transcript."""
        line = (self.kind, self.arguments)
        return line if self.properties is None else (*line, self.properties, self.body)


class Driver(ABC):
    """One connection. Such messages are kept in `events`, by channel, until they are taken."""

    # Methods that this client cannot say.
    cannot: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.events: dict[int, list[Event]] = defaultdict(list)

    @abstractmethod
    def open_channel(self, number: int) -> None:
        """Open a channel."""

    @abstractmethod
    def call(self, channel: int, method: str, **arguments: object) -> dict:
        """Say a method and return the arguments of the reply, if there is one.

        A message that was got comes as `{"event": Event}`.
        """

    @abstractmethod
    def publish(
        self,
        channel: int,
        exchange: str,
        routing_key: str,
        body: bytes,
        properties: dict,
        **more: bool,
    ) -> None:
        """Publish a message."""

    @abstractmethod
    def drain(self, seconds: float) -> None:
        """Handle what comes, at least one thing if there is any within this time."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection in good order."""

    @abstractmethod
    def drop(self) -> None:
        """Cut the connection without a word."""

    def in_order(self, events: list[Event]) -> list[Event]:
        """Return events in the order in which the broker sent them."""
        return events

    def await_true(self, condition: Callable[[], bool]) -> None:
        """Handle what comes until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise NeverCameError
            self.drain(left)
