"""AMQP clients that do what a script says: by hand, py-amqp, pika, and amqprs (Rust)."""

from __future__ import annotations

from collections.abc import Callable

from rig.amqp_drivers.base import Driver


def open_driver(
    name: str, address: tuple[str, int], user: str, password: str, vhost: str
) -> Driver:
    """Connect with the client of this name."""
    return DRIVERS[name]()(address, user, password, vhost)


def _by_hand() -> type[Driver]:
    from rig.amqp_drivers.by_hand import ByHand

    return ByHand


def _py_amqp() -> type[Driver]:
    from rig.amqp_drivers.py_amqp import PyAmqp

    return PyAmqp


def _pika() -> type[Driver]:
    from rig.amqp_drivers.with_pika import Pika

    return Pika


def _rust() -> type[Driver]:
    from rig.amqp_drivers.rust import Rust

    return Rust


# Each is imported when it is first needed: a run of one of them does not need the others.
DRIVERS: dict[str, Callable[[], type[Driver]]] = {
    "by-hand": _by_hand,
    "py-amqp": _py_amqp,
    "pika": _pika,
    "rust": _rust,
}
