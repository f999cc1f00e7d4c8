"""From a component's definition to a function that makes its sessions.

Inputs: a `class` or `function` definition. Output: `Loaded`. A failed import raises `LoadError`
with the name, the fault, and the path of Python.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autobahn.twisted.wamp import Session
from autobahn.wamp.auth import create_authenticator
from autobahn.wamp.component import Component as AutobahnComponent
from autobahn.wamp.protocol import ApplicationSession

from crosstie.container.explaining import NOT_ASYNCIO, explain, is_installed

# Events of a session; a function component has callbacks for some of them.
EVENTS = ("connect", "join", "ready", "leave", "disconnect")


class LoadError(Exception):
    """A component that cannot be had, as `error`, a URI of Crossbar.io's, and a text."""

    def __init__(self, error: str, text: str):
        super().__init__(text)
        self.error = error


@dataclass
class Loaded:
    """The definition of a component."""

    make_session: Callable
    # Listeners to the session's events.
    listeners: list[tuple[str, Callable]] = field(default_factory=list)
    # Run once joined; the component leaves when it is done.
    main: Callable | None = None


def load(definition: dict) -> Loaded:
    """Load what a definition names."""
    kind = definition.get("type")
    if kind == "class":
        return load_class(definition)
    if kind == "function":
        return load_function(definition)
    raise LoadError(
        "crossbar.error.invalid_configuration",
        f"a component's type is 'class' or 'function', not {kind!r}",
    )


def load_class(definition: dict) -> Loaded:
    """Load a session class, a function that makes sessions, or a `Component` of Autobahn's."""
    name = definition.get("classname")
    found = resolve(name)
    if isinstance(found, AutobahnComponent):
        listeners = [(event, forward(found, event)) for event in EVENTS]
        return Loaded(found.session_factory, listeners, found._entry)
    if isinstance(found, type) and issubclass(found, ApplicationSession):
        if any(base.__module__.startswith("autobahn.asyncio") for base in found.__mro__):
            raise LoadError(
                "crossbar.error.class_import_failed",
                f"'{name}' is a session for asyncio; {NOT_ASYNCIO}",
            )
        return Loaded(found)
    if callable(found) and not isinstance(found, type):
        return Loaded(found)
    raise LoadError(
        "crossbar.error.class_import_failed",
        f"'{name}' is {found!r}; a component is a class derived from"
        " autobahn.twisted.wamp.ApplicationSession, a function that makes such sessions, or an"
        " autobahn.twisted.component.Component",
    )


def forward(component: AutobahnComponent, event: str) -> Callable:
    """Return a listener that tells the component's own listeners."""
    return lambda *details, **more: component.fire(event, *details, **more)


def load_function(definition: dict) -> Loaded:
    """Load the callbacks of a component that has no class."""
    callbacks = definition.get("callbacks") or {}
    for event in callbacks:
        if event not in EVENTS:
            raise LoadError(
                "crossbar.error.invalid_configuration",
                f"no callback '{event}' of a function component; there are {', '.join(EVENTS)}",
            )
    listeners = [(event, resolve(name)) for event, name in callbacks.items()]
    authentication = definition.get("auth") or {}

    def make_session(config):
        session = Session(config)
        for method, details in authentication.items():
            session.add_authenticator(create_authenticator(method, **details))
        return session

    return Loaded(make_session, listeners)


def resolve(name: object) -> object:
    """Import what `module.Name` or `module:name.of.attribute` says."""
    if not isinstance(name, str) or not ("." in name or ":" in name):
        raise LoadError(
            "crossbar.error.invalid_configuration",
            f"a component is named as 'module.Name' or 'module:name', not {name!r}",
        )
    module, _, attributes = name.partition(":") if ":" in name else name.rpartition(".")
    importlib.invalidate_caches()
    try:
        found = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (Exception, SystemExit) as error:
        raise LoadError("crossbar.error.class_import_failed", explain(name, error)) from error
    return found


class Modules:
    """Knows which modules components brought along, to import them anew."""

    def __init__(self):
        self._before = set(sys.modules)

    def forget(self) -> list[str]:
        """Forget the modules of components, so that their next import reads the files again."""
        new = [name for name in sys.modules if name not in self._before]
        own = [name for name in new if self._is_own(name)]
        for name in own:
            del sys.modules[name]
        return own

    def _is_own(self, name: str) -> bool:
        file = getattr(sys.modules[name], "__file__", None)
        return file is not None and not is_installed(Path(file))
