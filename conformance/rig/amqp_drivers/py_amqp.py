"""py-amqp, which oslo.messaging and Celery use through kombu."""

from __future__ import annotations

import contextlib

import amqp
from amqp.exceptions import AMQPError, ConnectionError, RecoverableConnectionError
from typing_extensions import override

from rig.amqp_drivers.base import ClosedError, Driver, Event, NeverCameError

RENAMED = {"headers": "application_headers"}


class PyAmqp(Driver):
    """A connection of py-amqp."""

    def __init__(self, address: tuple[str, int], user: str, password: str, vhost: str):
        super().__init__()
        self.connection = amqp.Connection(
            host="{}:{}".format(*address),
            userid=user,
            password=password,
            virtual_host=vhost,
            on_blocked=lambda reason: self._keep(0, "blocked", reason=reason),
            on_unblocked=lambda: self._keep(0, "unblocked"),
        )
        self.channels: dict[int, amqp.Channel] = {}
        with told():
            self.connection.connect()

    @override
    def open_channel(self, number: int) -> None:
        # One that the broker has closed it opens again by itself.
        if number in self.channels and self.channels[number].is_open:
            return
        with told():
            channel = amqp.Channel(self.connection, number, auto_decode=False)
            channel.open()
        self.channels[number] = channel
        channel.events["basic_ack"].add(
            lambda tag, multiple: self._keep(number, "ack", delivery=tag, multiple=bool(multiple))
        )
        channel.events["basic_nack"].add(
            lambda tag, multiple, *_: self._keep(
                number, "nack", delivery=tag, multiple=bool(multiple)
            )
        )
        channel.events["basic_return"].add(
            lambda error, exchange, routing_key, message: self.events[number].append(
                Event(
                    "return",
                    {
                        "code": error.reply_code,
                        "text": error.reply_text,
                        "exchange": exchange,
                        "routing_key": routing_key,
                    },
                    properties(message),
                    octets(message),
                )
            )
        )

    @override
    def call(self, channel: int, method: str, **arguments) -> dict:
        used = self.channels[channel]
        with told():
            do = getattr(self, "_" + method.replace(".", "_"), None)
            if do:
                return do(channel, used, **arguments) or {}
            getattr(used, method.replace(".", "_"))(**arguments)
            return {}

    @override
    def publish(self, channel, exchange, routing_key, body, properties, **more) -> None:
        named = {RENAMED.get(name, name): value for name, value in properties.items()}
        with told():
            self.channels[channel].basic_publish(
                amqp.Message(body, **named), exchange, routing_key, **more
            )

    @override
    def drain(self, seconds: float) -> None:
        try:
            with told():
                self.connection.drain_events(timeout=seconds)
        except TimeoutError:
            raise NeverCameError from None

    @override
    def close(self) -> None:
        with told():
            self.connection.close()

    @override
    def drop(self) -> None:
        self.connection.transport.close()

    def _keep(self, channel: int, kind: str, **arguments: object) -> None:
        self.events[channel].append(Event(kind, arguments))

    def _channel_close(self, _, channel):
        channel.close()

    def _channel_flow(self, _, channel, active):
        return {"active": channel.flow(active)}

    def _exchange_declare(self, _, channel, exchange, type="", **more):
        if not more.get("internal"):
            channel.exchange_declare(exchange, type, **unlike_its_own(more))
            return
        # It knows nothing of internal ones, but takes any method.
        flags = ("passive", "durable", "auto_delete", "internal", "nowait")
        bits = tuple(more.get(flag, False) for flag in flags)
        arguments = (0, exchange, type, *bits, more.get("arguments", {}))
        channel.send_method((40, 10), "BssbbbbbF", arguments, wait=(40, 11))

    def _queue_declare(self, _, channel, nowait=False, **more):
        reply = channel.queue_declare(nowait=nowait, **unlike_its_own(more))
        return reply and {
            "queue": reply.queue,
            "messages": reply.message_count,
            "consumers": reply.consumer_count,
        }

    def _queue_purge(self, _, channel, queue):
        return {"messages": channel.queue_purge(queue)}

    def _queue_delete(self, _, channel, queue, **more):
        return {"messages": channel.queue_delete(queue, **more)}

    def _basic_qos(self, _, channel, size=0, count=0, is_global=False):
        channel.basic_qos(size, count, is_global)

    def _basic_consume(self, number, channel, queue, tag="", **more):
        def deliver(message) -> None:
            told = message.delivery_info
            self.events[number].append(
                Event(
                    "deliver",
                    {
                        "tag": told["consumer_tag"],
                        "delivery": told["delivery_tag"],
                        "redelivered": bool(told["redelivered"]),
                        "exchange": told["exchange"],
                        "routing_key": told["routing_key"],
                    },
                    properties(message),
                    octets(message),
                )
            )

        reply = channel.basic_consume(
            queue,
            tag,
            callback=deliver,
            on_cancel=lambda tag: self._keep(number, "cancel", tag=tag),
            **more,
        )
        return {"tag": reply if isinstance(reply, str) else tag}

    def _basic_cancel(self, _, channel, tag):
        channel.basic_cancel(tag)
        return {"tag": tag}

    def _basic_get(self, _, channel, queue, no_ack=False):
        message = channel.basic_get(queue, no_ack)
        if message is None:
            return None
        told = message.delivery_info
        arguments = {
            "delivery": told["delivery_tag"],
            "redelivered": bool(told["redelivered"]),
            "exchange": told["exchange"],
            "routing_key": told["routing_key"],
            "messages": told["message_count"],
        }
        return {"event": Event("got", arguments, properties(message), octets(message))}

    def _basic_ack(self, _, channel, delivery=0, multiple=False):
        channel.basic_ack(delivery, multiple)

    def _basic_reject(self, _, channel, delivery=0, requeue=False):
        channel.basic_reject(delivery, requeue)

    def _basic_nack(self, _, channel, delivery=0, multiple=False, requeue=False):
        # It has no basic.nack of its own.
        channel.send_method((60, 120), "Lbb", (delivery, multiple, requeue))

    def _basic_recover(self, _, channel, requeue=False):
        channel.basic_recover(requeue)

    def _confirm_select(self, _, channel):
        channel.confirm_select()


def unlike_its_own(arguments: dict) -> dict:
    """Return what AMQP says where nothing is said: its own default of auto_delete is true."""
    return {"auto_delete": False, **arguments}


def properties(message: amqp.Message) -> dict:
    """Return a message's properties by AMQP's names."""
    names = {other: name for name, other in RENAMED.items()}
    return {names.get(name, name): value for name, value in message.properties.items()}


def octets(message: amqp.Message) -> bytes:
    """Return a message's body."""
    body = message.body
    return body.encode() if isinstance(body, str) else bytes(body)


@contextlib.contextmanager
def told():
    """Turn its errors into ours."""
    try:
        yield
    except RecoverableConnectionError as error:
        if not error.reply_code:
            raise
        raise ClosedError("connection", error.reply_code, error.reply_text) from error
    except AMQPError as error:
        is_hard = isinstance(error, ConnectionError)
        scope = "connection" if is_hard else "channel"
        raise ClosedError(scope, error.reply_code, error.reply_text) from error
