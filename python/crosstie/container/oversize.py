"""Treatment of a message that is longer than the router accepts: it is not sent, and that is said.

An answer to a call is replaced by a short one, because a caller waits for it. Autobahn's own
attempt at that carries the whole result again.
"""

from __future__ import annotations

import txaio
from autobahn.exception import PayloadExceededError
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.message import Error, Invocation, Yield

log = txaio.make_logger()


def replacement(message, length: int, most: int, peer: str) -> Error:
    """Return what is sent instead; PayloadExceededError where there is nothing of that kind."""
    kind = type(message).__name__.upper()
    text = f"a message of {length} bytes ({kind}), where {most} may be sent"
    log.warn("Not sent to {peer}: {text}", peer=peer, text=text)
    is_result = type(message) is Yield and not message.progress
    is_error = (
        type(message) is Error
        and message.request_type == Invocation.MESSAGE_TYPE
        # Else a bound that not even the short one keeps would never be done with.
        and message.error != ApplicationError.PAYLOAD_SIZE_EXCEEDED
    )
    if not is_result and not is_error:
        # Raised where the component publishes, calls or tells of its progress.
        raise PayloadExceededError(text)
    return Error(
        Invocation.MESSAGE_TYPE,
        message.request,
        ApplicationError.PAYLOAD_SIZE_EXCEEDED,
        args=[f"the procedure's answer is {text}"],
    )
