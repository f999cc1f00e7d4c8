"""A package in rpm's format, made by `rpmbuild` from files that are there."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from archives import Entry, with_parents
from deb import Package


def rpm(package: Package, entries: list[Entry], time: int) -> bytes:
    """Return the package's file. Equal contents are equal bytes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for entry in with_parents(entries):
            path = place / "files" / entry.path.lstrip("/")
            if entry.data is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.write_bytes(entry.data)
            os.utime(path, (time, time))
        specification = place / "package.spec"
        specification.write_text(spec(package, entries, place / "files"))
        settings = {
            "_topdir": place,
            "_rpmdir": place / "made",
            "_rpmfilename": "package.rpm",
            "_buildhost": "localhost",
            "_build_id_links": "none",
            "_binary_payload": "w19.zstdio",
            "__os_install_post": "%{nil}",
            "debug_package": "%{nil}",
            "use_source_date_epoch_as_buildtime": 1,
            "clamp_mtime_to_source_date_epoch": 1,
        }
        command = ["rpmbuild", "-bb", "--target", f"{package.architecture}-linux"]
        for name, value in settings.items():
            command += ["--define", f"{name} {value}"]
        done = subprocess.run(
            [*command, str(specification)],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(time), "HOME": folder},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            raise SystemExit(f"release: rpmbuild ended with {done.returncode}:\n{done.stdout}")
        return (place / "made/package.rpm").read_bytes()


def name(package: Package) -> str:
    """Return the file's name by rpm's rule."""
    return f"{package.name}-{package.version}-1.{package.architecture}.rpm"


def spec(package: Package, entries: list[Entry], files: Path) -> str:
    """Return the description that `rpmbuild` reads."""
    lines = [
        f"Name: {package.name}",
        f"Version: {package.version}",
        "Release: 1",
        f"Summary: {package.summary}",
        "License: Apache-2.0",
        # A static program needs no library.
        "AutoReqProv: no",
        *(f"Requires(pre): {each}" for each in package.requires),
        "%description",
        *package.description,
        "%install",
        "mkdir -p %{buildroot}",
        f"cp -a {files}/. %{{buildroot}}/",
    ]
    for section, text in package.scriptlets.items():
        lines += [f"%{section}", text.strip()]
    lines.append("%files")
    lines += [listed(entry) for entry in entries]
    return "\n".join(lines) + "\n"


def listed(entry: Entry) -> str:
    """Return a line of the list of files."""
    kind = "%dir " if entry.data is None else ""
    if entry.is_configuration:
        kind = "%config(noreplace) "
    if entry.path.startswith("/usr/share/doc/"):
        kind = "%doc "
    return f"%attr({entry.mode:04o}, root, root) {kind}{entry.path}"
