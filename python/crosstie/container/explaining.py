"""Why something could not be imported: the exception, where it happened, the path looked in.

Without Autobahn, which an import for others does not need.
"""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
import traceback
from pathlib import Path

NOT_ASYNCIO = (
    "what is made for asyncio does not run here: components run on Twisted, derived from"
    " autobahn.twisted.wamp.ApplicationSession"
)


def explain(name: str, error: BaseException) -> str:
    """Return why an import failed: the exception, where it happened, the path looked in."""
    text = f"cannot load '{name}': {type(error).__name__}: {error}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    # An exception of a library is explained by the line of the component that uses it.
    own = [frame for frame in frames if not is_installed(Path(frame.filename))]
    if frames:
        last = (own or frames)[-1]
        text += f" (in {last.filename}, line {last.lineno})"
    if any("asyncio" in Path(frame.filename).parts for frame in frames):
        text += f"; {NOT_ASYNCIO}"
    if isinstance(error, (ImportError, AttributeError)):
        text += f"; looked in {':'.join(path or '.' for path in sys.path)}"
    return text


@functools.cache
def installed() -> list[Path]:
    """Return the folders of what is installed rather than a component's own."""
    folders = {*site.getsitepackages(), site.getusersitepackages()}
    folders |= {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib")}
    return [Path(folder).resolve() for folder in folders]


def is_installed(file: Path) -> bool:
    """Whether a file belongs to what is installed."""
    path = file.resolve()
    return any(path.is_relative_to(folder) for folder in installed())
