"""Variables, paths and directories of the machine: as services and containers have them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig.rawsocket import RawSocket

from strangers.service import check, node, rawsocket


@pytest.mark.parametrize(
    "path", ["$SOCKD/x.sock", "${SOCKD}/x.sock", "$SOCKD/$NAME.sock", "$WHOLE"]
)
def test_variables_in_a_sockets_path_are_replaced(start_node, tmp_path: Path, path: str):
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    variables = {"SOCKD": str(sockets), "NAME": "x", "WHOLE": f"{sockets}/x.sock"}
    start_node(node(rawsocket(path)), tmp_path, **variables)
    with RawSocket.unix(sockets / "x.sock") as peer:
        peer.shake_hands().join()


def test_a_variable_in_a_sockets_path_that_is_not_set_is_named(tmp_path: Path):
    code, said = check(tmp_path, node(rawsocket("$SOCKD/x.sock")))
    assert code == 1
    assert "the environment variable SOCKD is not set" in said


def test_check_measures_a_sockets_path(tmp_path: Path):
    name = "s" * (107 - len(str(tmp_path)) - 1)
    assert check(tmp_path, node(rawsocket(name)))[0] == 0
    code, said = check(tmp_path, node(rawsocket(f"{name}s")))
    assert (code, "at most 107 bytes" in said) == (1, True), said
    code, said = check(tmp_path, node(rawsocket("$DEEP/x.sock")), DEEP=f"/{'d' * 100}")
    assert (code, "at most 107 bytes" in said) == (1, True), said
