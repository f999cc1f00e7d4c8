"""pika, in its asynchronous form, since the blocking one hides confirms."""

from __future__ import annotations

import contextlib
from datetime import datetime

import pika
from pika.exceptions import (
    ChannelWrongStateError,
    ConnectionClosedByBroker,
    ConnectionWrongStateError,
    ProbableAuthenticationError,
    StreamLostError,
)
from typing_extensions import override

from rig.amqp_drivers.base import PATIENCE_S, ClosedError, Driver, Event, NeverCameError

NAMES = (
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
# AMQP's name of an argument, then pika's.
ARGUMENTS = {
    "type": "exchange_type",
    "tag": "consumer_tag",
    "size": "prefetch_size",
    "count": "prefetch_count",
    "is_global": "global_qos",
    "no_ack": "auto_ack",
    "delivery": "delivery_tag",
}


class Pika(Driver):
    """A connection of pika whose loop runs only while the script waits."""

    # It takes back what it was told to bind only as a whole, and has no such method.
    cannot = frozenset({"basic.recover-async"})

    def __init__(self, address: tuple[str, int], user: str, password: str, vhost: str):
        super().__init__()
        host, port = address
        self.channels: dict[int, pika.channel.Channel] = {}
        self.errors: list[ClosedError] = []
        self.is_open = False
        self.connection = pika.SelectConnection(
            pika.ConnectionParameters(
                host,
                port,
                vhost,
                pika.PlainCredentials(user, password),
                connection_attempts=1,
                socket_timeout=PATIENCE_S,
            ),
            on_open_callback=self._opened,
            on_open_error_callback=self._not_opened,
            on_close_callback=self._closed,
        )
        self.connection.add_on_connection_blocked_callback(
            lambda _, frame: self._keep(0, "blocked", reason=frame.method.reason)
        )
        self.connection.add_on_connection_unblocked_callback(lambda *_: self._keep(0, "unblocked"))
        self.connection.ioloop.activate_poller()
        self.await_true(lambda: self.is_open)

    @override
    def open_channel(self, number: int) -> None:
        opened: list = []
        channel = self.connection.channel(number, on_open_callback=opened.append)
        self.channels[number] = channel
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_return_callback(
            lambda _, method, properties, body: self._content(
                number, "return", method, properties, body
            )
        )
        channel.add_on_cancel_callback(
            lambda frame: self._keep(number, "cancel", tag=frame.method.consumer_tag)
        )
        self.await_true(lambda: bool(opened))

    @override
    def call(self, channel: int, method: str, **arguments) -> dict:
        used = self.channels[channel]
        named = {ARGUMENTS.get(name, name): value for name, value in arguments.items()}
        name = method.replace(".", "_")
        if method in ("basic.ack", "basic.nack", "basic.reject"):
            with self._may_be_closed():
                getattr(used, name)(**named)
            self._flush()
            return {}
        if method == "basic.cancel" and arguments["tag"] not in used.consumer_tags:
            # It says nothing to the broker then.
            return {"tag": arguments["tag"]}
        with self._may_be_closed():
            return self._ask(channel, method, name, named, arguments)

    def _ask(self, channel: int, method: str, name: str, named: dict, arguments: dict) -> dict:
        """Say a method that is answered."""
        used = self.channels[channel]
        answered: list = []
        if method == "basic.consume":
            tag = used.basic_consume(
                on_message_callback=lambda _, method, properties, body: self._content(
                    channel, "deliver", method, properties, body
                ),
                callback=answered.append,
                **named,
            )
            self.await_true(lambda: bool(answered))
            return {"tag": tag}
        if method == "basic.get":
            return self._get(used, channel, **named)
        if method == "confirm.select":
            used.confirm_delivery(
                ack_nack_callback=lambda frame: self._keep(
                    channel,
                    frame.method.NAME.partition(".")[2].lower(),
                    delivery=frame.method.delivery_tag,
                    multiple=frame.method.multiple,
                ),
                callback=answered.append,
            )
        elif method == "channel.close":
            used.close()
            self.await_true(lambda: used.is_closed)
            return {}
        elif method == "channel.flow":
            used.flow(callback=answered.append, **named)
        elif arguments.pop("nowait", False):
            named.pop("nowait")
            getattr(used, name)(callback=None, **named)
            return {}
        elif method.startswith("tx."):
            getattr(used, name)(callback=answered.append)
        else:
            getattr(used, name)(callback=answered.append, **named)
        self.await_true(lambda: bool(answered))
        return reply(answered[0])

    @override
    def publish(self, channel, exchange, routing_key, body, properties, **more) -> None:
        with self._may_be_closed():
            self.channels[channel].basic_publish(
                exchange, routing_key, body, pika.BasicProperties(**properties), **more
            )
        self._flush()

    @override
    def drain(self, seconds: float) -> None:
        # One turn of its loop, as its blocking form does it.
        loop = self.connection.ioloop
        timer = loop.call_later(seconds, lambda: None)
        loop.poll()
        loop.process_timeouts()
        loop.remove_timeout(timer)
        if self.errors:
            raise self.errors.pop(0)

    @override
    def close(self) -> None:
        if self.connection.is_open:
            self.connection.close()
            with contextlib.suppress(ClosedError):
                self.await_true(lambda: self.connection.is_closed)

    @override
    def drop(self) -> None:
        # As if the line had been cut.
        self.connection._terminate_stream(StreamLostError("dropped"))
        with contextlib.suppress(ClosedError):
            self.await_true(lambda: self.connection.is_closed)

    def _flush(self) -> None:
        """Send what it has only put aside so far."""
        while not self.connection.is_closed and self.connection._transport.get_write_buffer_size():
            self.drain(PATIENCE_S)

    @contextlib.contextmanager
    def _may_be_closed(self):
        """Tell what the broker closed the channel for, if it has done so meanwhile."""
        try:
            yield
        except (ChannelWrongStateError, ConnectionWrongStateError):
            if not self.errors:
                raise
            raise self.errors.pop(0) from None

    def _get(self, used, channel: int, **named) -> dict:
        answered: list = []

        def got(_, method, properties, body) -> None:
            arguments = {
                "delivery": method.delivery_tag,
                "redelivered": method.redelivered,
                "exchange": method.exchange,
                "routing_key": method.routing_key,
                "messages": method.message_count,
            }
            answered.append({"event": Event("got", arguments, plain(properties), body)})

        def empty(_) -> None:
            answered.append({})

        used.add_callback(empty, [pika.spec.Basic.GetEmpty], one_shot=True)
        used.basic_get(callback=got, **named)
        self.await_true(lambda: bool(answered))
        return answered[0]

    def _content(self, channel: int, kind: str, method, properties, body: bytes) -> None:
        if kind == "return":
            arguments = {"code": method.reply_code, "text": method.reply_text}
        else:
            arguments = {
                "tag": method.consumer_tag,
                "delivery": method.delivery_tag,
                "redelivered": method.redelivered,
            }
        arguments |= {"exchange": method.exchange, "routing_key": method.routing_key}
        self.events[channel].append(Event(kind, arguments, plain(properties), body))

    def _keep(self, channel: int, kind: str, **arguments: object) -> None:
        self.events[channel].append(Event(kind, arguments))

    def _opened(self, _) -> None:
        self.is_open = True

    def _not_opened(self, connection, error) -> None:
        if isinstance(error, ProbableAuthenticationError) and error.args:
            error = error.args[0] if isinstance(error.args[0], Exception) else error
        self._closed(connection, error)

    def _closed(self, connection, error) -> None:
        if isinstance(error, ConnectionClosedByBroker):
            told = ClosedError("connection", error.reply_code, error.reply_text)
        else:
            told = ClosedError("connection", 0, str(error))
        self.errors.append(told)

    def _channel_closed(self, _, error) -> None:
        if isinstance(error, pika.exceptions.ChannelClosedByBroker):
            self.errors.append(ClosedError("channel", error.reply_code, error.reply_text))


def reply(answer) -> dict:
    """Return the arguments of a reply by AMQP's names."""
    method = getattr(answer, "method", answer)
    if isinstance(method, bool):
        return {"active": method}
    match getattr(method, "NAME", ""):
        case "Queue.DeclareOk":
            return {
                "queue": method.queue,
                "messages": method.message_count,
                "consumers": method.consumer_count,
            }
        case "Queue.DeleteOk" | "Queue.PurgeOk":
            return {"messages": method.message_count}
        case "Basic.CancelOk":
            return {"tag": method.consumer_tag}
    return {}


def plain(properties: pika.BasicProperties) -> dict:
    """Return the properties that are there."""
    found = {name: getattr(properties, name) for name in NAMES}
    kept = {name: value for name, value in found.items() if value is not None}
    if isinstance(kept.get("timestamp"), datetime):
        kept["timestamp"] = int(kept["timestamp"].timestamp())
    return kept


__all__ = ["NeverCameError", "Pika"]
