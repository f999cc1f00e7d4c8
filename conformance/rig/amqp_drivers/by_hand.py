"""The client by hand: it shows every byte's meaning, types of table fields too."""

from __future__ import annotations

from typing_extensions import override

from rig.amqp_drivers.base import PATIENCE_S, ClosedError, Driver, Event, NeverCameError
from rig.amqp_peer import Peer
from rig.amqp_wire import BY_NAME, Method

UNASKED = {
    "basic.deliver": "deliver",
    "basic.return": "return",
    "basic.ack": "ack",
    "basic.nack": "nack",
    "basic.cancel": "cancel",
    "connection.blocked": "blocked",
    "connection.unblocked": "unblocked",
}
# Answers whose names are not the question's with `-ok`.
ANSWERS = {"basic.get": {"basic.get-ok", "basic.get-empty"}}


class ByHand(Driver):
    """A connection over a plain socket."""

    def __init__(self, address: tuple[str, int], user: str, password: str, vhost: str):
        super().__init__()
        self.peer = Peer.tcp(address)
        self.peer.socket.settimeout(PATIENCE_S)
        self.closed: dict[int, ClosedError] = {}
        self.answers: list[tuple[int, Method]] = []
        # A refusal is read by `_take` like any other close.
        self.peer.start(user, password)
        self._await_answer(0, {"connection.tune"})
        self.peer.call("connection.tune-ok", 0, channel_max=2047, frame_max=131072)
        self.peer.call("connection.open", 0, vhost=vhost)
        self._await_answer(0, {"connection.open-ok"})

    @override
    def open_channel(self, number: int) -> None:
        self.closed.pop(number, None)
        self.call(number, "channel.open")

    @override
    def call(self, channel: int, method: str, **arguments: object) -> dict:
        self.peer.call(method, channel, **arguments)
        answers = ANSWERS.get(method, {f"{method}-ok"})
        if arguments.get("nowait") or not answers & set(BY_NAME):
            return {}
        reply = self._await_answer(channel, answers)
        if reply.properties is not None:
            return {"event": Event("got", reply.arguments, reply.properties, reply.body)}
        return {} if reply.name == "basic.get-empty" else reply.arguments

    @override
    def publish(self, channel, exchange, routing_key, body, properties, **more) -> None:
        self.peer.publish(exchange, routing_key, body, properties, channel, **more)

    @override
    def drain(self, seconds: float) -> None:
        self.peer.socket.settimeout(seconds)
        try:
            self._take()
        except TimeoutError:
            raise NeverCameError from None
        finally:
            self.peer.socket.settimeout(PATIENCE_S)

    @override
    def close(self) -> None:
        self.peer.leave()

    @override
    def drop(self) -> None:
        self.peer.close()

    def _await_answer(self, channel: int, names: set[str]) -> Method:
        while True:
            for at, (number, method) in enumerate(self.answers):
                if number == channel and method.name in names:
                    del self.answers[at]
                    return method
            self.drain(PATIENCE_S)

    def _take(self) -> None:
        """Handle one method; a close is answered, and raised where the script is."""
        number, method = self.peer.receive_method()
        if method.name in ("channel.close", "connection.close"):
            self.peer.call(f"{method.name}-ok", number)
            scope = method.name.partition(".")[0]
            raise ClosedError(scope, *method.arguments.values())
        if kind := UNASKED.get(method.name):
            event = Event(kind, method.arguments, method.properties, method.body)
            self.events[number].append(event)
        else:
            self.answers.append((number, method))
