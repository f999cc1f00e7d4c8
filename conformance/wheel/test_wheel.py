"""The wheel: built from the tree, installed where nothing else is, used as a user would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from rig.node import Node
from rig.ports import free_ports
from rig.router import ROOT

pytestmark = pytest.mark.timeout(900)

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
# The wheel of the unoptimised program, which the test builds because its crates are compiled, has
# 20.4 million bytes, more than one that users install.
OCTETS_MAX = 20 << 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the server's wheel."""
    return build(ROOT / "python", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory) -> Path:
    """Build the wheel of the instruments."""
    return build(ROOT / "instruments/lab", tmp_path_factory.mktemp("laboratory"))


def build(project: Path, folder: Path) -> Path:
    """Build a wheel from compiled crates; how fast the program is does not matter here."""
    options = "--profile dev --features unified --compression-level 9"
    environment = {"CARGO_TARGET_DIR": str(TARGET), "MATURIN_PEP517_ARGS": options}
    pip("wheel", "--no-deps", "--wheel-dir", folder, project, **environment)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory) -> Path:
    """Install it in an environment of its own; return where its programs are."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    pip("install", "--quiet", wheel, python=folder / "bin/python")
    return folder / "bin"


def pip(*arguments: object, python: object = sys.executable, **environment: str) -> None:
    """Run pip, without anything of the tests' own environment."""
    words = [str(word) for word in (python, "-m", "pip", *arguments)]
    done = subprocess.run(
        [*words, "--disable-pip-version-check"],
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_contents(wheel):
    assert wheel.stat().st_size <= OCTETS_MAX
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        said = Parser().parsestr(opened.read(metadata).decode())
    assert any(name.endswith("/scripts/crosstie") for name in names)
    assert "crosstie/container/__main__.py" in names
    assert "crosstie/web/__main__.py" in names
    needed = [each for each in said.get_all("Requires-Dist") if "extra ==" not in each]
    assert len(needed) == 1
    assert needed[0].startswith("autobahn[twisted]")


@pytest.mark.parametrize("form", ["crosstie", "module"])
def test_the_program(scripts, form):
    command = {
        "crosstie": [scripts / "crosstie"],
        "module": [scripts / "python", "-m", "crosstie"],
    }
    done = subprocess.run(
        [*command[form], "version"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "0." in done.stdout


def test_the_shim_stays_in_the_container(scripts):
    done = subprocess.run(
        [scripts / "python", "-c", "import crosstie, crosstie.container, crossbar"],
        capture_output=True,
        text=True,
    )
    assert "No module named 'crossbar'" in done.stderr


def test_a_node_of_it(scripts, tmp_path, monkeypatch):
    directory = tmp_path / "rpc_roundtrip"
    left = shutil.ignore_patterns("key.*", "*.sock", "node.*")
    shutil.copytree(ROOT / "examples/rpc_roundtrip", directory, ignore=left)
    file = directory / ".crossbar/config.json"
    (port,) = free_ports(1)
    file.write_text(file.read_text().replace("9000", str(port)))
    monkeypatch.setenv("CROSSTIE", str(scripts / "crosstie"))
    node = Node(directory / ".crossbar", None, environment={"PYTHONPATH": ""})
    for title in ("WAMP-UDS-RawSocket-MessagePack", "WAMP-TCP-WebSocket-JSON"):
        node.says(rf"\[{title}\] - average round-trip time", "Container")
    assert node.stop() == 0


def test_the_server_names_the_package_of_its_instruments(scripts):
    done = subprocess.run(
        [scripts / "crosstie", "bench", "rpc"], env={"PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "package crosstie-lab" in done.stderr


def test_the_instruments(laboratory, wheel, tmp_path):
    """They are a wheel of their own, which needs no other package; both together are as one."""
    with zipfile.ZipFile(laboratory) as opened:
        names = opened.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        said = Parser().parsestr(opened.read(metadata).decode())
    assert any(name.endswith("/scripts/crosstie-lab") for name in names)
    assert not said.get_all("Requires-Dist")
    venv.create(tmp_path, with_pip=True)
    python, scripts = tmp_path / "bin/python", tmp_path / "bin"
    pip("install", "--quiet", "--no-deps", wheel, laboratory, python=python)
    for command in ("crosstie", "crosstie-lab"):
        line = [scripts / command, "conformance", "--list"]
        done = subprocess.run(line, env={"PATH": ""}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "basic/" in done.stdout
