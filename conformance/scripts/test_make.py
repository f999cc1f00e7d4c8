"""`make run` and `make test`, as far as the compiler: what is missing, and what is in the way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rig.router import ROOT, Router, binary

NEEDS = ROOT / "scripts/needs.sh"


def program(folder: Path, name: str, says: str) -> None:
    """Make a program that says one thing."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bare(tmp_path) -> Path:
    """Return a folder to search for programs, with no more than what a shell script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cut", "id"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def needs(what: str, bare: Path):
    """Look for what is needed with these programs alone."""
    command = [str(bare / "sh"), str(NEEDS), what]
    return subprocess.run(command, env={"PATH": str(bare)}, text=True, capture_output=True)


def test_missing_packages_are_named_with_the_command_that_installs_them(bare):
    program(bare, "apt-get", "")
    done = needs("run", bare)
    assert done.returncode == 1
    assert "missing: Rust 1.95 or later (found: none)" in done.stderr
    assert "https://sh.rustup.rs" in done.stderr
    assert "missing: a C compiler (looked for: cc)" in done.stderr
    assert "apt-get install gcc libc6-dev" in done.stderr
    assert "Python" not in done.stderr
    done = needs("test", bare)
    assert done.returncode == 1
    assert "missing: Python 3.11 or later (python3 is: not there)" in done.stderr


@pytest.mark.parametrize(
    ("rust", "python", "missing"),
    [
        ("1.95.0", "3.11", []),
        ("1.100.0-nightly", "3.13", []),
        ("2.0.0", "4.0", []),
        ("1.94.9", "3.11", ["Rust"]),
        ("1.95.0", "3.9", ["Python"]),
        ("0.99.0", "2.7", ["Rust", "Python"]),
    ],
)
def test_versions_are_compared_as_numbers(bare, rust, python, missing):
    program(bare, "cargo", f"cargo {rust} (abc 2026-01-01)")
    program(bare, "python3", python)
    program(bare, "rustup", "")
    done = needs("test", bare)
    assert done.returncode == bool(missing)
    assert [line.split()[1] for line in done.stderr.splitlines() if "missing:" in line] == missing
    if "Rust" in missing:
        assert "rustup update stable" in done.stderr


def test_make_run_says_that_a_node_runs_here(tmp_path):
    """Before it compiles anything, which this `cargo` could not."""
    for each in ("Makefile", "scripts"):
        (tmp_path / each).symlink_to(ROOT / each)
    program(tmp_path / "bin", "cargo", "cargo 1.95.0")
    quick = tmp_path / "target/quick"
    quick.mkdir(parents=True)
    (quick / "crosstie").symlink_to(binary())
    make = ["make", "run", f"CARGO={tmp_path}/bin/cargo", "CARGO_TARGET_DIR=target"]
    router = Router(tmp_path, "--listen", "127.0.0.1:0")
    done = subprocess.run(make, cwd=tmp_path, text=True, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert "A node runs here already:" in done.stdout
    assert f"process: {router.process.pid}" in done.stdout
    assert "'target/quick/crosstie stop' ends it" in done.stdout
    assert "build" not in done.stdout
    router.stop()
