"""Behaviour of the procedures that a test registers."""

from __future__ import annotations

from collections.abc import Callable

import txaio
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import CallResult


def procedure(
    behave: dict, details_of: Callable[[object], dict], hold: Callable[[object, dict], object]
) -> Callable:
    """Return the procedure that does what `behave` says.

    `hold` notes an invocation that a later command answers, and returns its future.
    """
    kind = behave["do"]

    def invoked(*args: object, details: object, **kwargs: object) -> object:
        if kind == "echo":
            return CallResult(*args, **kwargs)
        if kind == "constant":
            return behave["value"]
        if kind == "describe":
            return details_of(details)
        if kind == "raise":
            raise ApplicationError(behave["uri"], *behave["args"], **behave["kwargs"])
        if kind == "progress":
            send = details.progress
            for number in range(behave["count"]) if send else []:
                send(number, number=number)
            return "done"
        assert kind == "hold", kind
        return hold(details, {"args": list(args), "kwargs": kwargs})

    return invoked


def held() -> object:
    """Return the future of an invocation that is answered later."""
    return txaio.create_future()
