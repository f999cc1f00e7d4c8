"""One build of each package for the programs and for all tests (`crates/features`)."""

from __future__ import annotations

import subprocess

from rig.router import ROOT

# What is compiled: for a wheel, for the black-box suites, and for the tests of all crates.
PROGRAM = ["-p", "crosstie", "--features", "crosstie/unified"]
LABORATORY = ["-p", "crosstie-lab", "--features", "crosstie-lab/unified"]
WAYS = {
    "crosstie": [*PROGRAM, "-e", "normal,build"],
    "crosstie-lab": [*LABORATORY, "-e", "normal,build"],
    "both programs": [*PROGRAM, *LABORATORY, "-e", "normal,build"],
    "all tests": ["--workspace", *PROGRAM[2:], *LABORATORY[2:], "-e", "all"],
}


def features(way: list[str]) -> dict[str, str]:
    """Return the features of each package."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}|", *way]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = (line.split("|") for line in said.splitlines() if "|" in line)
    return {package: of_it for package, of_it, _ in rows}


def test_each_package_has_the_same_features_in_every_way_of_compiling():
    found = {name: features(way) for name, way in WAYS.items()}
    everywhere = found["all tests"]
    for name, packages in found.items():
        others = {
            package: f"{of_it or 'none'}, and in all tests {everywhere[package] or 'none'}"
            for package, of_it in packages.items()
            if everywhere[package] != of_it
        }
        assert not others, f"{name}: crates/features/Cargo.toml lacks features of {others}"
