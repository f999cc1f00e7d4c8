"""`python -m crosstie …` is the `crosstie` program of the same environment."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def program() -> str | None:
    """Return the program that was installed with this package, else one on PATH."""
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for folder in beside:
        if os.access(folder / "crosstie", os.X_OK):
            return str(folder / "crosstie")
    return shutil.which("crosstie")


def main() -> None:
    """Become the program."""
    found = program()
    if found is None:
        sys.exit(f"crosstie: no program 'crosstie' beside {sys.executable}, nor on PATH")
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
