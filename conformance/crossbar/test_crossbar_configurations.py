"""Configurations of Crossbar.io's kind: which load, what is said of them, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from rig.router import binary

from crossbar.configurations import CASES, Case

# 0 takes any port that is free.
ENVIRONMENT = {**os.environ, "PORT": "0", "TICKET": "s3cret"}


def check(*arguments: object, cwd) -> subprocess.CompletedProcess:
    """Run `crosstie check` to its end."""
    command = [str(binary()), "check", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, text=True, capture_output=True, timeout=60
    )


def write(directory, case: Case):
    """Make a node's directory of a configuration."""
    path = directory / ".crossbar/config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(case.configuration, indent=4))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_configuration(case, tmp_path):
    write(tmp_path, case)
    checked = check(cwd=tmp_path)
    assert checked.returncode == (0 if case.loads else 1), checked.stderr
    for words in case.says:
        assert words in checked.stderr
    if not case.says:
        assert checked.stderr == ""


def test_the_whole_tree_is_explained(tmp_path):
    for case in CASES:
        write(tmp_path / case.name, case)
    explained = check("--explain", tmp_path, "--format", "json", cwd=tmp_path)
    assert explained.returncode == 1, explained.stderr
    told = json.loads(explained.stdout)
    loaded = {file["path"].split("/")[-3] for file in told["files"] if file["loads"]}
    assert loaded == {case.name for case in CASES if case.loads}
    assert told["loaded"] == len(loaded)
    assert [reason["files"] for reason in told["reasons"]] == sorted(
        (reason["files"] for reason in told["reasons"]), reverse=True
    )
