#!/usr/bin/env python3
"""Packs the crates of the Rust client as crates.io takes them, in the order of their publication.

    packaging/crate_files.py [--list]

Nothing is uploaded, and no registry is asked: `cargo publish` does that, in the same order.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from contents import ROOT


def main() -> int:
    """Print the crates in their order, or pack them and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print only the order")
    if parser.parse_args().list:
        print(*published(), sep="\n")
        return 0
    for name, data in packed().items():
        print(f"{len(data):>12}  {name}")
    return 0


def published() -> list[str]:
    """Return the crates that are published, each after those that it needs."""
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    packages = json.loads(said)["packages"]
    # An empty list of registries is `publish = false`.
    needs = {
        package["name"]: {
            each["name"]
            for each in package["dependencies"]
            if each.get("path") and each["kind"] != "dev"
        }
        for package in packages
        if package["publish"] != []
    }
    order: list[str] = []
    while len(order) < len(needs):
        ready = sorted(n for n, needed in needs.items() if needed <= {*order} and n not in order)
        if not ready:
            missing = {name: sorted(needed - {*needs}) for name, needed in needs.items()}
            raise SystemExit(f"crates: these need crates that are not published: {missing}")
        order += ready
    return order


def packed() -> dict[str, bytes]:
    """Return each crate's file, by name, in the order in which they are published."""
    order = published()
    crates = [word for name in order for word in ("--package", name)]
    options = ["--locked", "--offline", "--no-verify", "--allow-dirty", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        # Together: a crate alone would look for its parts of the same version in the registry.
        command = ["cargo", "package", *options, "--target-dir", folder, *crates]
        subprocess.run(command, cwd=ROOT, check=True)
        made = {path.name: path.read_bytes() for path in Path(folder, "package").glob("*.crate")}
    return {file: made[file] for name in order for file in sorted(made) if _is_of(file, name)}


def _is_of(file: str, name: str) -> bool:
    """Whether a file is a crate's: its version follows the name."""
    return file.startswith(f"{name}-") and file[len(name) + 1].isdigit()


if __name__ == "__main__":
    sys.exit(main())
