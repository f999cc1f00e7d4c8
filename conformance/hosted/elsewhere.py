"""A component for the other event loop."""

from autobahn.asyncio.component import ApplicationSession


class Elsewhere(ApplicationSession):
    """Never loaded."""
