"""The files of a release, made of small static programs and of what the tested program prints."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rig.router import ROOT, binary

sys.path.insert(0, str(ROOT / "packaging"))
import release
from contents import Printed

TIME = 1_700_000_000
REVISION = "0" * 40


@dataclass(repr=False)
class Made:
    """A release, and what it was made of."""

    files: dict[str, bytes]
    programs: dict[str, Path]
    printed: Printed

    def one(self, end: str, package: str = "crosstie") -> bytes:
        """Return the file of a package whose name ends so."""
        names = [name for name in self.files if name.endswith(end)]
        other = "crosstie-lab", "crosstie_lab"
        [found] = [name for name in names if name.startswith(other) == (package == "crosstie-lab")]
        return self.files[found]


def make(folder: Path) -> Made:
    """Make a release of small programs and of what the tested ones print."""
    programs = {name: static_program(folder, name) for name in release.PROGRAMS}
    tested = {name: binary().parent / name for name in release.PROGRAMS}
    printed = release.printed(tested)
    return Made(release.release(programs, printed, REVISION, TIME), programs, printed)


def static_program(folder: Path, name: str) -> Path:
    """Compile a program that needs no loader, as a release's."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(f'#include <stdio.h>\nint main(void) {{ puts("{name}"); return 0; }}\n')
    subprocess.run(["cc", "-static-pie", "-s", "-o", program, source], check=True)
    return program
