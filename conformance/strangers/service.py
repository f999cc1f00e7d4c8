"""Nodes and commands as services and shells have them: in environments of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rig import config
from rig.router import binary


def crosstie(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a command to its end, in an environment with these variables and no others."""
    variables = {"PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(
        [str(binary()), *map(str, arguments)],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def check(tmp_path: Path, configuration: dict, **environment: str) -> tuple[int, str]:
    """Check a configuration; return the exit code and what is said of problems."""
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    checked = crosstie("check", "--cbdir", tmp_path, cwd=tmp_path, **environment)
    return checked.returncode, checked.stderr


def rawsocket(path: str) -> dict:
    """Return a RawSocket transport at a Unix socket."""
    return {"type": "rawsocket", "endpoint": config.unix(path)}


def node(*transports: dict) -> dict:
    """Return a node that ends when it is told to."""
    shutdown = {"options": {"shutdown": ["shutdown_on_shutdown_requested"]}}
    return config.plain(*transports, controller=shutdown)
