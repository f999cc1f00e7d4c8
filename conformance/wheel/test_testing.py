"""`crosstie.testing`: the examples of its page run, and the router is gone at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from book.blocks import blocks_of
from rig.router import ROOT, binary
from rig.waiting import DEADLINE_S

PAGE = "docs/tasks/testing.md"


def files(directory: Path, *names: str) -> None:
    """Write these files of the page."""
    blocks = {block.reason: block.text for block in blocks_of(PAGE) if block.marker == "file"}
    for name in names:
        (directory / name).write_text(blocks[name])


def python(directory: Path, *words: str) -> subprocess.CompletedProcess:
    """Run Python with the package of the tree and the program under test."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CROSSTIE": str(binary())}
    return subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * DEADLINE_S,
    )


def pytest_of(directory: Path, *words: str) -> subprocess.CompletedProcess:
    """Run pytest with the plugin, which an installed package registers by itself."""
    options = ["-p", "crosstie.testing.plugin", "-p", "no:cacheprovider", "--rootdir", "."]
    return python(directory, "-m", "pytest", "-q", *options, *words)


def test_the_tests_of_the_page_pass(tmp_path):
    files(tmp_path, "test_queue.py", "test_call.py")
    ran = pytest_of(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_another_configuration(tmp_path):
    files(tmp_path, "conftest.py", "test_call.py")
    test = tmp_path / "test_call.py"
    test.write_text(test.read_text().replace('realm="realm1"', 'realm="shop"'))
    ran = pytest_of(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_without_pytest(tmp_path):
    files(tmp_path, "alone.py")
    ran = python(tmp_path, "alone.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("ws://127.0.0.1:")
    assert "amqp://guest:guest@127.0.0.1:" in ran.stdout


def test_a_router_that_does_not_start_says_why(tmp_path):
    text = """
from crosstie.testing import StartError, Router, config
wrong = config()
wrong["workers"][0]["realms"][0]["colour"] = "red"
try:
    with Router(wrong):
        print("started")
except StartError as error:
    print(error)
"""
    ran = python(tmp_path, "-c", text)
    assert ran.returncode == 0, ran.stderr
    assert "colour" in ran.stdout
    assert "started\n" not in ran.stdout


def test_it_stops_crashes_and_starts_again(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTIE", str(binary()))
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    from crosstie.testing import Router

    router = Router(directory=tmp_path)
    for end in (router.stop, router.kill, router.stop):
        router.start()
        try:
            with urllib.request.urlopen(f"{router.http_url}/live", timeout=DEADLINE_S) as page:
                assert page.read() == b"ok\n"
            assert router.rawsocket_url.startswith("rs://127.0.0.1:")
        finally:
            end()
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(f"{router.http_url}/live", timeout=DEADLINE_S)
    assert router.stop() == 0


def test_its_directory_stays_for_the_next_start(monkeypatch):
    monkeypatch.setenv("CROSSTIE", str(binary()))
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    from crosstie.testing import Router, StartError

    with Router() as router:
        with pytest.raises(StartError, match="runs already"):
            router.start()
        (router.directory / "kept").touch()
        router.stop()
        router.start()
        assert (router.directory / "kept").exists()
        subprocess.run(
            [str(binary()), "stop", "--cbdir", str(router.directory)],
            check=True,
            timeout=DEADLINE_S,
        )
        router.start()
        assert (router.directory / "kept").exists()
    assert not router.directory.exists()
