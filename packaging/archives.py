"""Archives that depend on their contents alone: equal contents are equal bytes."""

from __future__ import annotations

import datetime
import gzip
import io
import lzma
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Entry:
    """A file or, without data, a directory of an installed system."""

    path: str
    data: bytes | None
    mode: int = 0o644
    owner: int = 0
    # Whether an operator changes the file, so that an upgrade keeps it.
    is_configuration: bool = False


def directory(path: str, mode: int = 0o755, owner: int = 0) -> Entry:
    """Return a directory."""
    return Entry(path, None, mode, owner)


def with_parents(entries: list[Entry]) -> list[Entry]:
    """Return entries in the order of an archive: each behind the directory that holds it."""
    known = {entry.path: entry for entry in entries}
    for entry in entries:
        for parent in PurePosixPath(entry.path).parents:
            if str(parent) != "/":
                known.setdefault(str(parent), directory(str(parent)))
    return [known[path] for path in sorted(known)]


def tar(entries: list[Entry], time: int, beginning: str = "./") -> bytes:
    """Return an uncompressed archive; names of files begin with `beginning`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in with_parents(entries):
            member = tarfile.TarInfo(beginning + entry.path.lstrip("/"))
            member.mode, member.mtime = entry.mode, time
            member.uid = member.gid = entry.owner
            member.uname = member.gname = "" if entry.owner else "root"
            if entry.data is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(entry.data)
                archive.addfile(member, io.BytesIO(entry.data))
    return out.getvalue()


def gzipped(data: bytes) -> bytes:
    """Return compressed data, without a name and a time."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def xz(data: bytes) -> bytes:
    """Return data compressed as Debian's tools read it."""
    return lzma.compress(data, preset=9)


def zstd(data: bytes) -> bytes:
    """Return data compressed as engines of containers read it, a fifth smaller than by gzip."""
    command = ["zstd", "-19", "--quiet", "--single-thread", "--stdout"]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def zipped(entries: list[Entry], time: int) -> bytes:
    """Return an archive of files in the order given, without directories."""
    out = io.BytesIO()
    date = datetime.datetime.fromtimestamp(time, datetime.UTC).timetuple()[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            member = zipfile.ZipInfo(entry.path, date)
            member.external_attr = (0o100000 | entry.mode) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            # The system that made it: Unix, wherever this runs.
            member.create_system = 3
            archive.writestr(member, entry.data or b"")
    return out.getvalue()


def ar(members: list[tuple[str, bytes]], time: int) -> bytes:
    """Return an archive in the form of ar(5)."""
    out = bytearray(b"!<arch>\n")
    for name, data in members:
        out += f"{name:<16}{time:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    return bytes(out)
