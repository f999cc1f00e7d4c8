"""Rascal, which makes a vhost over the management API before it connects."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rig.http import Http
from rig.router import Router

SCRIPT = Path(__file__).parent / "js/rascal.js"
GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


def test_it_makes_its_vhost(router: Router):
    management = router.address("management")
    places = [":".join(map(str, place)) for place in (router.address("amqp"), management)]
    # The second time the vhost exists.
    for _ in range(2):
        done = subprocess.run(
            ["node", SCRIPT, *places], text=True, capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
    assert Http(management).get("/api/vhosts/made", GUEST).status == 200
