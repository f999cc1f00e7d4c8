"""Sessions that act out a scenario on any router, and a transcript of all that they hear.

Values that a router chooses freely get names: `A` for a session's id, `A.authid` for what
it was called, `r1` and `s1` for registrations and subscriptions in the order of their appearance,
and `*` for publications.
"""

from __future__ import annotations

import itertools
import json

from rig.rawsocket import RawSocket
from rig.session import EVENT, INVOCATION, PUBLISH, REGISTERED, SUBSCRIBE, SUBSCRIBED, UNREGISTERED

PUBLISHED = 17


class Stage:
    """One scenario on one router."""

    def __init__(self, address: tuple[str, int]):
        self.address = address
        self.transcript: list[str] = []
        self.actors: list[Actor] = []
        # By what is named: its labels.
        self._labels: dict[tuple[str, int], str] = {}
        self._counts = {"r": itertools.count(1), "s": itertools.count(1)}

    def join(self, name: str, features: dict[str, list[str]] | None = None) -> Actor:
        """Open a session; `features` are what it announces by role."""
        announced = features or {}
        roles = {
            role: {"features": dict.fromkeys(announced.get(role, []), True)}
            for role in ("publisher", "subscriber", "caller", "callee")
        }
        actor = Actor(self, name)
        actor.peer.join(roles=roles, authid=name)
        self.actors.append(actor)
        return actor

    def close(self) -> None:
        """End all sessions."""
        for actor in self.actors:
            actor.peer.close()

    def note(self, actor: Actor, message: list) -> None:
        """Write down what an actor heard."""
        message = self._named(message)
        self.transcript.append(f"{actor.name} {json.dumps(message, sort_keys=True)}")

    def label(self, kind: str, number: int) -> str:
        """Return the label of a registration or subscription."""
        known = self._labels.get((kind, number))
        if known is None:
            known = f"{kind}{next(self._counts[kind])}"
            self._labels[kind, number] = known
        return known

    def _named(self, message: list) -> list:
        message = self.named(message)
        kind = message[0]
        if kind == REGISTERED:
            message[2] = self.label("r", message[2])
        elif kind == SUBSCRIBED:
            message[2] = self.label("s", message[2])
        elif kind == PUBLISHED:
            message[2] = "*"
        elif kind == EVENT:
            message[1:3] = [self.label("s", message[1]), "*"]
        elif kind == INVOCATION:
            message[1:3] = ["*", self.label("r", message[2])]
        elif kind == UNREGISTERED and len(message) > 2:
            message[2]["registration"] = self.label("r", message[2]["registration"])
        return message

    def named(self, value: object) -> object:
        """Return it with sessions' names for their ids and authids."""
        if isinstance(value, dict):
            return {key: self.named(inside) for key, inside in value.items()}
        if isinstance(value, list):
            return [self.named(inside) for inside in value]
        for actor in self.actors:
            if value == actor.peer.id:
                return actor.name
            if isinstance(value, str):
                value = value.replace(str(actor.peer.id), actor.name)
                value = value.replace(actor.peer.authid, f"{actor.name}.authid")
        return value


class Actor:
    """One session of a scenario."""

    def __init__(self, stage: Stage, name: str):
        self.stage = stage
        self.name = name
        self.peer = RawSocket.tcp(stage.address).shake_hands()

    def ask(self, kind: int, *rest: object) -> list:
        """Send a request; write down and return what comes next."""
        self.peer.ask(kind, *rest)
        return self.hear()

    def send(self, kind: int, *rest: object) -> None:
        """Send a request without waiting for an answer."""
        self.peer.ask(kind, *rest)

    def say(self, *message: object) -> None:
        """Send what is no request."""
        self.peer.say(*message)

    def hear(self) -> list:
        """Write down and return the next message."""
        message = self.peer.hear_any()
        self.stage.note(self, message)
        return message

    def settle(self) -> None:
        """Write down everything that came so far: up to an event of one's own."""
        topic = f"com.settle.n{self.peer.id}"
        self.peer.ask(SUBSCRIBE, {}, topic)
        subscription = None
        while True:
            message = self.peer.hear_any()
            if message[0] == SUBSCRIBED and subscription is None:
                subscription = message[2]
                self.peer.ask(PUBLISH, {"exclude_me": False}, topic)
            elif message[0] == EVENT and message[1] == subscription:
                return
            else:
                self.stage.note(self, message)
