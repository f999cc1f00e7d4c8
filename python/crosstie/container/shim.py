"""The modules of Crossbar.io that components are known to use, where it is not installed.

Inside the container only: `crossbar.common.processinfo` (`ProcessInfo`), `crossbar._util` (`hl` and
its kin), and `crossbar.bridge.rest` with its components. Any other name raises ImportError and says
so, for nothing here is a router.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
import types

from crosstie.container.processinfo import ProcessInfo

THERE_IS = (
    "crossbar.common.processinfo.ProcessInfo; crossbar._util: class_name, hl, hlid, hltype, hlval;"
    " crossbar.bridge.rest: MessageForwarder, RESTCallee"
)


def install() -> bool:
    """Make the names importable unless a real `crossbar` is; return whether they now are."""
    if importlib.util.find_spec("crossbar") is not None:
        return False
    sys.meta_path.append(Finder())
    return True


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules, and answers for all others of that package."""

    def find_spec(self, fullname, path, target=None):
        """Return what loads a module of the package."""
        if fullname.partition(".")[0] != "crossbar":
            return None
        if fullname not in CONTENTS:
            raise ImportError(absent(fullname), name=fullname)
        is_package = any(name.startswith(f"{fullname}.") for name in CONTENTS)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec):
        """Make an empty module that explains itself."""
        return Module(spec.name, "Stands in for Crossbar.io, for the few names components import.")

    def exec_module(self, module):
        """Fill it."""
        vars(module).update(CONTENTS[module.__name__]())


class Module(types.ModuleType):
    """A module whose missing names say what there is."""

    def __getattr__(self, name):
        """Explain that the name is not here."""
        full = f"{self.__name__}.{name}"
        if name.startswith("__") or full in CONTENTS:
            raise AttributeError(full)
        raise ImportError(absent(full), name=full)


def absent(name: str) -> str:
    """Return why a name cannot be imported."""
    return (
        f"no '{name}': Crossbar.io is not installed for {sys.executable}, and in its place a"
        f" component here finds only {THERE_IS}"
    )


def hl(text, bold=False, color="yellow") -> str:
    """Return the text: a log has no colours."""
    return str(text)


def hlid(oid) -> str:
    """Return the identifier as text."""
    return str(oid)


def hlval(val, color="white") -> str:
    """Return the value as text."""
    return str(val)


def hltype(obj, render=True) -> str:
    """Return the full name of a class, a function or a method, in angle brackets."""
    if not render:
        return ""
    if inspect.isclass(obj) or inspect.isfunction(obj) or inspect.ismethod(obj):
        return f"<{obj.__module__}.{obj.__qualname__}>"
    return "<unknown>"


def class_name(obj) -> str:
    """Return the module and name of a class, or of an object's."""
    kind = obj if inspect.isclass(obj) else type(obj)
    return f"{kind.__module__}.{kind.__name__}"


def utilities() -> dict:
    """Return what `crossbar._util` has."""
    return {each.__name__: each for each in (class_name, hl, hlid, hltype, hlval)}


def rest() -> dict:
    """Return the components that make HTTP requests; with an HTTP client, which few need."""
    from crosstie.container.rest import MessageForwarder, RESTCallee

    return {each.__name__: each for each in (MessageForwarder, RESTCallee)}


CONTENTS = {
    "crossbar": dict,
    "crossbar.common": dict,
    "crossbar.common.processinfo": lambda: {"ProcessInfo": ProcessInfo},
    "crossbar._util": utilities,
    "crossbar.bridge": dict,
    "crossbar.bridge.rest": rest,
    "crossbar.bridge.rest.callee": rest,
    "crossbar.bridge.rest.subscriber": rest,
}
