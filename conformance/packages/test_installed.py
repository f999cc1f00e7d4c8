"""The packages, installed by dpkg and rpm into roots with a shell and stand-ins of tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import deb
import pytest
import release
import rpm
from archives import Entry
from contents import MAKE_USER
from packages.made import TIME
from rig.waiting import DEADLINE_S

# The release is made in the first test.
CONFIG = "etc/crosstie/config.json"
ADD_USERS = ("adduser", "useradd", "groupadd")
# Writes what it is asked for, and adds a user.
ADD_USER = """#!/bin/sh
echo "${0##*/} $*" >>/added
case "$0" in
*groupadd) ;;
*) echo crosstie:x:999:999::/var/lib/crosstie:/sbin/nologin >>/etc/passwd ;;
esac
"""


def run(*command: object) -> str:
    """Run a command as root, of this machine or of a namespace; return all that it says."""
    rights = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    done = subprocess.run(
        [*rights, *map(str, command)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=4 * DEADLINE_S,
        env={**os.environ, "PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"},
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


@pytest.fixture
def root(tmp_path) -> Path:
    """Return a root with what the scripts of packages call."""
    place = tmp_path / "root"
    for folder in ("bin", "dev", "usr/bin", "usr/sbin", "etc", "tmp", "var/lib/dpkg/info"):
        (place / folder).mkdir(parents=True)
    for folder in ("var/lib/dpkg/updates", "var/lib/dpkg/triggers"):
        (place / folder).mkdir()
    (place / "var/lib/dpkg/status").touch()
    (place / "etc/passwd").touch()
    (place / "etc/group").touch()
    (place / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\n")
    for name, target in (("sh", "bin/sh"), ("getent", "usr/bin/getent")):
        program = Path(shutil.which(name) or "").resolve()
        shutil.copy2(program, place / target)
        listed = subprocess.run(["ldd", program], text=True, capture_output=True, check=True)
        for library in re.findall(r"/\S+", listed.stdout):
            (place / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, place / library.lstrip("/"))
    for name in ADD_USERS:
        tool = place / "usr/sbin" / name
        tool.write_text(ADD_USER)
        tool.chmod(0o755)
    return place


def dpkg(root: Path, *arguments: object) -> str:
    """Run dpkg for a root that lacks the packages which ours depends on."""
    return run("dpkg", f"--root={root}", "--force-depends", "--force-confold", *arguments)


def written(folder: Path, name: str, data: bytes) -> Path:
    """Write a package's file."""
    path = folder / name
    path.write_bytes(data)
    return path


def test_dpkg_installs_upgrades_removes_and_purges(made, root, tmp_path):
    package = written(tmp_path, "crosstie.deb", made.one(".deb"))
    dpkg(root, "--install", package)
    installed = root / "usr/bin/crosstie"
    assert installed.read_bytes() == made.programs["crosstie"].read_bytes()
    assert installed.stat().st_mode & 0o777 == 0o755
    [added] = (root / "added").read_text().splitlines()
    assert added.startswith("adduser --quiet --system --group ")
    unit = (root / "usr/lib/systemd/system/crosstie.service").read_text()
    assert "\nExecStart=/usr/bin/crosstie start " in unit
    assert dpkg(root, "--verify", "crosstie") == ""

    # An operator's configuration outlives an upgrade, and the user is there already.
    (root / CONFIG).write_text("{}")
    message = root / "var/lib/crosstie/message"
    message.parent.mkdir(parents=True)
    message.touch()
    dpkg(root, "--install", written(tmp_path, "later.deb", later()))
    assert (root / CONFIG).read_text() == "{}"
    assert len((root / "added").read_text().splitlines()) == 1

    dpkg(root, "--remove", "crosstie")
    assert not installed.exists()
    assert (root / CONFIG).exists()
    dpkg(root, "--purge", "crosstie")
    assert not (root / CONFIG).exists()
    assert message.exists()


def later() -> bytes:
    """Return a package of the next version, with another configuration."""
    description = deb.Package("crosstie", "99", release.ARCHITECTURE, "later", ["later"])
    description.scripts["postinst"] = MAKE_USER
    return deb.deb(
        description,
        [
            Entry("/usr/bin/crosstie", b"later", 0o755),
            Entry(f"/{CONFIG}", b'{"version": 2}', is_configuration=True),
        ],
        TIME,
    )


def test_a_package_of_debian_depends_on_no_library(made, tmp_path):
    package = written(tmp_path, "crosstie.deb", made.one(".deb"))
    fields = run("dpkg-deb", "--field", package)
    assert "Package: crosstie\n" in fields
    assert "Depends: adduser\n" in fields
    assert f"Version: {release.version()}-1\n" in fields


def test_lintian_finds_no_errors(made, tmp_path):
    for name in ("crosstie", "crosstie-lab"):
        package = written(tmp_path, f"{name}.deb", made.one(".deb", name))
        told = run("lintian", "--allow-root", "--fail-on", "error", package)
        assert not re.search(r"^E:", told, re.MULTILINE), told


def test_rpm_installs_verifies_and_erases(made, root, tmp_path):
    package = written(tmp_path, "crosstie.rpm", made.one(".rpm"))
    # The machine's own settings may name a database of another kind.
    tool = ("rpm", "--root", root, "--define", "_db_backend sqlite")
    run(*tool, "--initdb")
    run(*tool, "--install", "--nodeps", package)
    added = (root / "added").read_text().splitlines()
    assert [line.split()[0] for line in added] == ["groupadd", "useradd"]
    assert "--system" in added[1]
    assert (root / "usr/bin/crosstie").read_bytes() == made.programs["crosstie"].read_bytes()
    assert (root / "usr/share/zsh/site-functions/_crosstie").exists()
    assert run(*tool, "--verify", "--nodeps", "crosstie") == ""
    assert run(*tool, "--query", "--configfiles", "crosstie") == f"/{CONFIG}\n"
    required = run(*tool, "--query", "--requires", "crosstie").splitlines()
    assert not [each for each in required if each.startswith("lib")], required
    (root / CONFIG).write_text("{}")
    run(*tool, "--erase", "crosstie")
    assert not (root / "usr/bin/crosstie").exists()
    assert (root / f"{CONFIG}.rpmsave").read_text() == "{}"


def test_rpm_names_the_file_by_its_rule(made):
    names = {name for name in made.files if name.endswith(".rpm")}
    version = release.version()
    assert names == {
        f"{name}-{version}-1.{release.ARCHITECTURE}.rpm" for name in ("crosstie", "crosstie-lab")
    }
    assert rpm.name(deb.Package("a", "1", "x86_64", "", [])) == "a-1-1.x86_64.rpm"
