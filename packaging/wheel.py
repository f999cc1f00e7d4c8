"""A wheel with a program, and the Python package beside it, in the form of PEP 427."""

from __future__ import annotations

import base64
import hashlib
import tomllib
from pathlib import Path

from archives import Entry, zipped

# A static program runs on glibc's systems and on musl's: one wheel has the names of both.
PLATFORMS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


def wheel(project: Path, program: bytes, version: str, architecture: str, time: int) -> Entry:
    """Return a project's wheel. The project is a directory with a pyproject.toml for maturin."""
    read = tomllib.loads((project / "pyproject.toml").read_text())
    about, name = read["project"], read["project"]["name"]
    distribution = f"{name.replace('-', '_')}-{version}"
    tag = f"py3-none-{PLATFORMS.format(architecture)}"
    files = [Entry(f"{distribution}.data/scripts/{name}", program, 0o755)]
    for package in read["tool"]["maturin"].get("python-packages", []):
        for path in sorted((project / package).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                files.append(Entry(str(path.relative_to(project)), path.read_bytes()))
    facts = f"{distribution}.dist-info"
    tags = [f"Tag: py3-none-{each}\n" for each in tag.removeprefix("py3-none-").split(".")]
    head = "Wheel-Version: 1.0\nGenerator: packaging/wheel.py\nRoot-Is-Purelib: false\n"
    files.append(Entry(f"{facts}/METADATA", metadata(project, about, version).encode()))
    files.append(Entry(f"{facts}/WHEEL", "".join([head, *tags]).encode()))
    record = f"{facts}/RECORD"
    files.append(Entry(record, recorded(files, record).encode()))
    return Entry(f"{distribution}-{tag}.whl", zipped(files, time))


def recorded(files: list[Entry], record: str) -> str:
    """Return the list of files with their digests; it has none of itself."""
    lines = []
    for entry in files:
        data = entry.data or b""
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{entry.path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{record},,\n"])


def metadata(project: Path, about: dict, version: str) -> str:
    """Return the fields of a package's index."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {about['name']}",
        f"Version: {version}",
        f"Summary: {about['description']}",
        f"License-Expression: {about['license']}",
        f"Requires-Python: {about['requires-python']}",
        *(f"Requires-Dist: {each}" for each in about.get("dependencies", [])),
    ]
    for extra, needed in about.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {each} ; extra == "{extra}"' for each in needed]
    lines += ["Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (project / about["readme"]).read_text()
