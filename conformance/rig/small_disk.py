"""A disk that is soon full: a file system in memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

MIB = 1 << 20


class Disk:
    """A directory on a disk of its own."""

    def __init__(self, place: Path, size: int):
        """Mount it."""
        place.mkdir()
        self.place, self.ballast = place, place / "ballast"
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
        if mounted.returncode:
            pytest.skip(f"mount: {mounted.stderr.strip()}")

    def free(self) -> int:
        """Return the bytes that are free."""
        found = os.statvfs(self.place)
        return found.f_bavail * found.f_frsize

    def leave_free(self, size: int) -> None:
        """Fill the disk up to so many bytes."""
        with self.ballast.open("ab", buffering=0) as file:
            while (over := self.free() - size) > 0:
                try:
                    file.write(bytes(min(over, MIB)))
                except OSError:
                    return

    def empty(self) -> None:
        """Give the space back."""
        self.ballast.unlink()

    def unmount(self) -> None:
        """Take it away."""
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)
