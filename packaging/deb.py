"""A package in Debian's format (deb(5)), without Debian's tools."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from archives import Entry, ar, tar, with_parents, xz

MAINTAINER = "The Crosstie project <packages@crosstie.invalid>"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(eq=False)
class Package:
    """What a package is, beside its files."""

    name: str
    version: str
    architecture: str
    summary: str
    description: list[str]
    depends: list[str] = field(default_factory=list)
    recommends: list[str] = field(default_factory=list)
    # What rpm's scriptlets need, and these by their section.
    requires: list[str] = field(default_factory=list)
    scriptlets: dict[str, str] = field(default_factory=dict)
    # Scripts of the maintainer, by name.
    scripts: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file's name by Debian's rule."""
        return f"{self.name}_{self.version}-1_{ARCHITECTURES[self.architecture]}.deb"


def control(package: Package, entries: list[Entry]) -> str:
    """Return the file `control`."""
    kib = sum(-(-len(entry.data or b"") // 1024) or 1 for entry in with_parents(entries))
    fields = {
        "Package": package.name,
        "Version": f"{package.version}-1",
        "Architecture": ARCHITECTURES[package.architecture],
        "Maintainer": MAINTAINER,
        "Installed-Size": str(kib),
        "Depends": ", ".join(package.depends),
        "Recommends": ", ".join(package.recommends),
        "Section": "net",
        "Priority": "optional",
        "Description": "\n ".join([package.summary, *package.description]),
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def deb(package: Package, entries: list[Entry], time: int) -> bytes:
    """Return the package's file."""
    files = [entry for entry in with_parents(entries) if entry.data is not None]
    sums = [f"{hashlib.md5(each.data).hexdigest()}  {each.path.lstrip('/')}\n" for each in files]
    kept = [f"{entry.path}\n" for entry in files if entry.is_configuration]
    about = [
        Entry("/control", control(package, entries).encode()),
        Entry("/md5sums", "".join(sums).encode()),
    ]
    if kept:
        about.append(Entry("/conffiles", "".join(kept).encode()))
    about += [Entry(f"/{name}", text.encode(), 0o755) for name, text in package.scripts.items()]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", xz(tar(about, time))),
        ("data.tar.xz", xz(tar(entries, time))),
    ]
    return ar(members, time)
