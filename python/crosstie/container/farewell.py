"""Messages that a session may send after GOODBYE: nothing.

Autobahn goes on sending what a component asks for until the router's answer is there, and a router
takes that for a violation of the protocol. WAMP, section "Session Closing".

A router that aborts a session has had the last word: Autobahn's sessions expect that only before
they have joined.
"""

from __future__ import annotations

from autobahn.wamp.exception import TransportLost
from autobahn.wamp.message import Abort, Error, EventReceived, Goodbye, Hello, Yield

# No one reads these after the session has left; a request raises an error.
ANSWERS = (Yield, Error, EventReceived)


class Farewell:
    """Watches what one connection's session sends."""

    __slots__ = ("_is_said",)

    def __init__(self):
        self._is_said = False

    def allows(self, message) -> bool:
        """Whether the message may be sent; TransportLost for a request that may not."""
        kind = type(message)
        if kind is Goodbye:
            self._is_said = True
        elif self._is_said:
            if kind in ANSWERS:
                return False
            if kind is not Hello:
                raise TransportLost()
            # Joined again, on the same connection.
            self._is_said = False
        return True

    def heard(self, message, session):
        """Return what the session takes for a message of the router's."""
        if type(message) is not Abort or not session.is_attached():
            return message
        # A goodbye with a reason, which wants no answer.
        self._is_said = True
        session._goodbye_sent = True
        return Goodbye(message.reason, message.message)
