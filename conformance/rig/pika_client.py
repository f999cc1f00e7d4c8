"""A client of pika's at an address, for nodes with users of their own."""

from __future__ import annotations

import pika
from pika.exceptions import ConnectionClosedByBroker


def connect(address: tuple[str, int], user: str = "guest", password: str = "", vhost: str = "/"):
    """Return a connection of pika's."""
    credentials = pika.PlainCredentials(user, password or user)
    parameters = pika.ConnectionParameters(*address, vhost, credentials)
    return pika.BlockingConnection(parameters)


def closed_by_broker(connection: pika.BlockingConnection) -> tuple[int, str]:
    """Return how the broker closes a connection."""
    try:
        while True:
            connection.process_data_events(5)
    except ConnectionClosedByBroker as closed:
        return closed.reply_code, closed.reply_text
