"""An authenticator that is a function: a component that answers for its router.

`create` of the configuration is called with `config` and, in the place of Crossbar.io's controller,
None. Its result is called with realm, authid and details for each client; both may be coroutines,
or return Deferreds.
"""

from __future__ import annotations

from collections.abc import Callable

import txaio
from autobahn.twisted.wamp import ApplicationSession

from crosstie.container.loading import resolve

# Made once, as in Crossbar.io: a session that was lost is followed by another.
_made: dict[str, Callable] = {}


class FunctionAuthenticator(ApplicationSession):
    """Registers what `create` makes, in a realm where only the router calls it."""

    def __init__(self, config):
        super().__init__(config)
        extra = config.extra
        self._procedure = extra["procedure"]
        self._given = extra["config"]
        self._name = extra["create"]
        self._create = resolve(self._name)

    async def onJoin(self, details):
        """Make it, and take calls."""
        authenticate = _made.get(self._procedure)
        if authenticate is None:
            authenticate = await txaio.as_future(self._create, self._given, None)
            if not callable(authenticate):
                raise TypeError(f"'{self._name}' returned {authenticate!r}, which cannot be called")
            _made[self._procedure] = authenticate
        await self.register(authenticate, self._procedure)
