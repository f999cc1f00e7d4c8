"""Runs a command beside a node on its embedded default, in a network of their own.

    unshare --net -- PYTHON alone.py DIRECTORY VHOSTS COMMAND…

So the ports are those that tools have by default: 5672, 15672. `VHOSTS` are names with commas.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.http import Http
from rig.network import obstacle
from rig.router import Router

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
needs_network = pytest.mark.skipif(bool(obstacle()), reason=obstacle())


def run(directory: Path, vhosts: str, *command: str | Path) -> str:
    """Run a command so; return what it prints. It must succeed."""
    words = ["unshare", "--net", "--", sys.executable, Path(__file__), directory, vhosts]
    done = subprocess.run(
        [*words, *command], text=True, capture_output=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    return done.stdout


def main() -> None:
    """Run the command, and exit as it does."""
    directory, vhosts, *command = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    router = Router(Path(directory))
    try:
        for vhost in filter(None, vhosts.split(",")):
            path = f"/api/vhosts/{quote(vhost, safe='')}"
            assert Http(router.address("management")).ask("PUT", path, GUEST).status == 201
        done = subprocess.run(command, cwd=directory, timeout=500, check=False)
    finally:
        router.stop()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
