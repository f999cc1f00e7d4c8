"""HTTP/2, judged by h2spec, case by case (RFC 9113, RFC 7541)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rig import config
from rig.router import ROOT, Router

sys.path.insert(0, str(ROOT / "scripts"))
import needs

# An answer of HTTP/1.1 is what a client gets that does not say it speaks HTTP/2: the port has both.
EXPECTED = {("http2/3.5", "Sends invalid connection preface")}
# Some cases send on when we have closed, and see either our last words or the end of the
# connection, by who is first. What fails is asked again: once it must pass.
TRIES = 10


def judge(port: int, reports: Path, *sections: str) -> dict[tuple[str, str], bool]:
    """Return every case, and whether it passed."""
    report = reports / "report.xml"
    command = [needs.H2SPEC, "-h", "127.0.0.1", "-p", str(port), "-o", "5", "-j", report]
    subprocess.run([*command, *sections], stdout=subprocess.DEVNULL, check=False)
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = (case.attrib["package"], case.attrib["classname"])
        found[name] = case.find("failure") is None and case.find("error") is None
    return found


@pytest.mark.timeout(600)
def test_every_case_passes(tmp_path: Path):
    paths = {"/": {"type": "json", "value": {"a": 1}}}
    transport = {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}
    router = Router(tmp_path, config=config.plain(transport))
    port = router.address("web")[1]
    cases = judge(port, tmp_path)
    assert len(cases) > 120
    failed = {name for name, passed in cases.items() if not passed}
    for _ in range(TRIES):
        again = {}
        for section in sorted({package for package, _ in failed - EXPECTED}):
            again |= judge(port, tmp_path, section)
        failed -= {name for name, passed in again.items() if passed}
    assert failed == EXPECTED
    router.stop()
