"""The arguments of the host's procedures, checked before a procedure sees them.

Faults are reported to the caller: `wamp.error.invalid_argument`, with the argument's name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import get_type_hints

from autobahn.wamp.exception import ApplicationError

NAMES = {
    str: "a string",
    bool: "a boolean",
    dict: "an object",
    list: "a list",
    int: "an integer",
    float: "a number",
    bytes: "octets",
    type(None): "null",
}


def checked(function: Callable) -> Callable:
    """Return the function behind a check of its arguments by its signature."""
    signature = inspect.signature(function)
    kinds = get_type_hints(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            # Python names the argument: "missing a required argument: 'component_id'".
            raise refused(f"{error}; the arguments are {described(signature)}") from error
        for name, value in bound.arguments.items():
            if not isinstance(value, kinds[name]):
                given = NAMES.get(type(value), type(value).__name__)
                raise refused(f"'{name}' is {NAMES[kinds[name]]}, not {given}")
        return function(*args, **kwargs)

    return call


def described(signature: inspect.Signature) -> str:
    """Return the names of the arguments; those in brackets may be left out."""
    names = [
        name if each.default is each.empty else f"[{name}]"
        for name, each in signature.parameters.items()
    ]
    return ", ".join(names) or "none"


def refused(text: str) -> ApplicationError:
    """Return the error."""
    return ApplicationError(ApplicationError.INVALID_ARGUMENT, text)
