"""The files of a release: checksums, equal bytes, contents of archives, the list of packages."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import release
from packages.made import REVISION, TIME
from rig.router import ROOT

# The release is made in the first test.


def test_every_file_has_its_checksum(made):
    files = dict(made.files)
    sums = dict(line.split("  ")[::-1] for line in files.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_equal_contents_are_equal_files(made):
    again = release.release(made.programs, made.printed, REVISION, TIME)
    assert {name for name in again if again[name] != made.files[name]} == set()


def test_a_static_program_is_told_from_one_with_a_loader(made):
    static = [release.segments(path.read_bytes()) for path in made.programs.values()]
    assert all(release.PT_INTERP not in types for types in static)
    assert release.PT_INTERP in release.segments(Path(sys.executable).resolve().read_bytes())


def test_a_foreign_architecture_has_files_of_its_own(made, tmp_path):
    programs = made.programs
    assert {release.machine(path.read_bytes()) for path in programs.values()} == {
        release.MACHINES[release.ARCHITECTURE]
    }
    files = release.of_architecture("aarch64", programs, made.printed, REVISION, TIME)
    assert not set(files) & set(made.files)
    number = release.version()
    deb = tmp_path / f"crosstie_{number}-1_arm64.deb"
    deb.write_bytes(files[deb.name])
    said = subprocess.run(["dpkg-deb", "-f", deb, "Architecture"], capture_output=True, check=True)
    assert said.stdout == b"arm64\n"
    rpm = tmp_path / f"crosstie-{number}-1.aarch64.rpm"
    rpm.write_bytes(files[rpm.name])
    query = ["rpm", "-qp", "--nosignature", "--queryformat", "%{ARCH}", rpm]
    assert subprocess.run(query, capture_output=True, check=True).stdout == b"aarch64"
    image = files[f"crosstie-{number}-aarch64-linux-image.tar"]
    with tarfile.open(fileobj=io.BytesIO(image)) as archive:
        index = json.load(archive.extractfile("index.json"))
    assert index["manifests"][0]["platform"] == {"architecture": "arm64", "os": "linux"}
    wheels = [name for name in files if name.endswith(".whl")]
    assert len(wheels) == 2
    assert all("manylinux_2_17_aarch64" in name for name in wheels)
    assert f"crosstie-{number}-aarch64-linux.tar.gz" in files


def test_the_archive_has_both_programs_with_manuals_and_completions(made):
    with tarfile.open(fileobj=io.BytesIO(made.one("linux.tar.gz"))) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive}
    assert members["bin/crosstie"].mode == members["bin/crosstie-lab"].mode == 0o755
    assert {
        "LICENSE",
        "share/man/man1/crosstie.1.gz",
        "share/man/man1/crosstie-lab-bench.1.gz",
    } <= set(members)
    assert "share/bash-completion/completions/crosstie-lab" in members


def test_a_bill_names_every_package_that_is_linked(made):
    bill = json.loads(made.one(".cdx.json"))
    names = {component["name"] for component in bill["components"]}
    assert {"tokio", "rustls", "ring", "tikv-jemallocator"} <= names
    assert not {"proptest", "rcgen"} & names
    references = {each["ref"] for each in bill["dependencies"]}
    for each in bill["dependencies"]:
        assert set(each["dependsOn"]) <= references
    for component in bill["components"]:
        assert "licenses" in component, component


def test_pip_installs_the_wheels(made, tmp_path):
    wheels = [tmp_path / name for name in made.files if name.endswith(".whl")]
    for wheel in wheels:
        wheel.write_bytes(made.files[wheel.name])
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options]
    subprocess.run([*command, "--target", tmp_path / "installed", *wheels], check=True)
    for name, program in made.programs.items():
        installed = tmp_path / "installed/bin" / name
        assert installed.read_bytes() == program.read_bytes()
        assert installed.stat().st_mode & 0o111
    sources = {
        path.relative_to(ROOT / "python") for path in (ROOT / "python/crosstie").rglob("*.py")
    }
    assert all((tmp_path / "installed" / source).exists() for source in sources)


def test_wheels_are_for_both_c_libraries(made):
    [name] = [name for name in made.files if name.startswith("crosstie-") and name.endswith(".whl")]
    platforms = name.removesuffix(".whl").split("-")[-1].split(".")
    assert {each.rsplit("_", 2)[0] for each in platforms} >= {"manylinux_2_17", "musllinux_1_1"}
