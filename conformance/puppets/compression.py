"""permessage-deflate, offered where the test says so."""

from autobahn.websocket.compress import (
    PerMessageDeflateOffer,
    PerMessageDeflateResponse,
    PerMessageDeflateResponseAccept,
)


def compression(place: dict) -> dict:
    """Return the protocol options for it."""
    if not place.get("deflate"):
        return {}

    def accept(response: object) -> object:
        if isinstance(response, PerMessageDeflateResponse):
            return PerMessageDeflateResponseAccept(response)
        return None

    return {
        "perMessageCompressionOffers": [PerMessageDeflateOffer()],
        "perMessageCompressionAccept": accept,
    }
