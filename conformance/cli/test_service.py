"""`crosstie service`: the unit as systemd reads and rates it, and what an installation writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from rig.router import binary
from rig.waiting import DEADLINE_S

PROGRAM = ("--program", "/usr/bin/crosstie")
UNIT = "etc/systemd/system/crosstie.service"
USER = "etc/sysusers.d/crosstie.conf"
CONFIG = "etc/crosstie/config.json"
# Of systemd, times ten.
EXPOSURE_MAX = 20


def service(*arguments: object, code: int = 0) -> str:
    """Run the command; return its output, or its error."""
    command = [str(binary()), "service", *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=DEADLINE_S)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


def analyzed(*arguments: object) -> str:
    """Have systemd judge a unit; return all that it says."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    command = ["systemd-analyze", *map(str, arguments)]
    environment = {**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"}
    done = subprocess.run(
        command, text=True, capture_output=True, timeout=DEADLINE_S, env=environment
    )
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def written(directory: Path) -> Path:
    """Write the unit, for a program that is there."""
    unit = directory / "crosstie.service"
    unit.write_text(service("print", "--program", "/bin/true"))
    return unit


def test_systemd_reads_the_unit(tmp_path):
    # It accepts a key that it does not know, but says so.
    assert analyzed("verify", written(tmp_path)) == ""


def test_systemd_rates_the_exposure_low(tmp_path):
    threshold = f"--threshold={EXPOSURE_MAX}"
    rated = analyzed("security", "--offline=true", threshold, "--no-pager", written(tmp_path))
    assert "Overall exposure level for crosstie.service" in rated


def test_an_installation_writes_what_it_prints(tmp_path):
    said = service("install", "--root", tmp_path, *PROGRAM)
    assert said.splitlines()[:3] == [f"{tmp_path}/{each}" for each in (UNIT, USER, CONFIG)]
    assert (tmp_path / UNIT).read_text() == service("print", *PROGRAM)
    assert (tmp_path / USER).read_text() == 'u crosstie - "Crosstie" /var/lib/crosstie\n'
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3, files
    checked = [str(binary()), "check", "--config", str(tmp_path / CONFIG)]
    assert subprocess.run(checked, capture_output=True, timeout=DEADLINE_S).returncode == 0


def test_an_installation_keeps_what_an_operator_changed(tmp_path):
    service("install", "--root", tmp_path, *PROGRAM)
    changed = json.loads((tmp_path / CONFIG).read_text())
    changed["controller"] = {"id": "mine"}
    (tmp_path / CONFIG).write_text(json.dumps(changed))
    # The same again changes nothing.
    service("install", "--root", tmp_path, *PROGRAM)
    (tmp_path / UNIT).write_text("[Service]\n")
    refused = service("install", "--root", tmp_path, *PROGRAM, code=2)
    assert f"{tmp_path}/{UNIT} exists and differs; --force overwrites it" in refused
    assert (tmp_path / UNIT).read_text() == "[Service]\n"
    service("install", "--root", tmp_path, *PROGRAM, "--force")
    assert (tmp_path / UNIT).read_text() == service("print", *PROGRAM)
    assert json.loads((tmp_path / CONFIG).read_text()) == changed


def test_an_installation_that_is_refused_writes_nothing(tmp_path):
    where = ("--root", tmp_path, "--program", "/home/me/crosstie")
    refused = service("install", *where, code=2)
    assert "--program '/home/me/crosstie': the unit hides /home" in refused
    (tmp_path / "etc").write_text("a file")
    refused = service("install", "--root", tmp_path, *PROGRAM, code=2)
    assert f"{tmp_path}/{UNIT}" in refused
    assert [path.name for path in tmp_path.rglob("*")] == ["etc"]


def test_a_unit_of_a_node_directory_has_its_paths():
    unit = service("print", *PROGRAM, "--cbdir", "/srv/node/.crossbar", "--user", "node")
    assert "\nExecStart=/usr/bin/crosstie start --cbdir /srv/node/.crossbar\n" in unit
    assert "\nExecReload=/usr/bin/crosstie reload --cbdir /srv/node/.crossbar\n" in unit
    assert "\nUser=node\nGroup=node\nReadWritePaths=/srv/node/.crossbar\n" in unit
