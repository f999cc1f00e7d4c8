#!/usr/bin/env python3
"""Judges every package that a lock file names by `deny.toml`: licence, source, copies, advisories.

`deny.toml` is in the format of cargo-deny, which takes it too. This checks the part of it that is
used here without being compiled first, and without the network: the advisories are a list beside
this file, made from RustSec's database with `supply.py --update DIRECTORY`.

Python's own library is enough to run this.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DENY = ROOT / "deny.toml"
ADVISORIES = Path(__file__).resolve().parent / "advisories.tsv"
# After so long without a look at the database packages may have advisories that the copy lacks.
DAYS_MAX = 60
RENEWAL = """\
  git clone --depth 1 https://github.com/rustsec/advisory-db /tmp/advisory-db
  python3 scripts/supply.py --update /tmp/advisory-db"""
# The workspace, and what is tested beside it.
MANIFESTS = ["Cargo.toml", "conformance/rust_client/Cargo.toml"]


@dataclass(frozen=True)
class Advisory:
    """Versions of a package that something is wrong with: all but those that these match."""

    id: str
    package: str
    kind: str
    patched: tuple[str, ...]
    unaffected: tuple[str, ...]

    def concerns(self, version: str) -> bool:
        """Return whether this version is one of them."""
        fine = (*self.patched, *self.unaffected)
        return not any(matches(version, requirement) for requirement in fine)


def numbers(version: str) -> tuple:
    """Return what orders versions: a pre-release comes before its release."""
    version, _, before = version.split("+")[0].partition("-")
    parts = [int(part) for part in version.split(".")]
    parts += [0] * (3 - len(parts))
    names = [
        (0, int(name), "") if name.isdigit() else (1, 0, name)
        for name in before.split(".")
        if before
    ]
    return (*parts, not before, names)


def matches(version: str, requirement: str) -> bool:
    """Return whether a version is in a range as Cargo writes it: `>=1.2, <2`, `^0.3`, `~1.4`."""
    return all(matches_one(version, part.strip()) for part in requirement.split(","))


def matches_one(version: str, requirement: str) -> bool:
    """Return whether a version holds one comparison."""
    found = re.fullmatch(r"(>=|<=|>|<|=|\^|~)?\s*([0-9][^\s]*|\*)", requirement)
    if not found:
        raise ValueError(f"cannot read the range {requirement!r}")
    operator, bound = found[1] or "^", found[2]
    if bound == "*":
        return True
    given = [int(part) for part in re.split(r"[-+]", bound)[0].split(".") if part.isdigit()]
    have, low = numbers(version), numbers(bound.replace(".*", ""))
    if operator in ("^", "~", "=") and "-" not in bound and "-" in version.split("+")[0]:
        return False
    if operator == "=" and len(given) == 3:
        return have == low
    if operator in ("^", "~", "="):
        # The first number that may not change.
        fixed = next((at for at, part in enumerate(given) if part), len(given) - 1)
        if operator != "^":
            fixed = min(1, len(given) - 1) if operator == "~" else len(given) - 1
        high = [*given[:fixed], given[fixed] + 1]
        return low <= have < numbers(".".join(map(str, high)) + "-0")
    return {">=": have >= low, "<=": have <= low, ">": have > low, "<": have < low}[operator]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Return whether an SPDX expression can be met with these licences."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    place = 0

    def either() -> bool:
        nonlocal place
        met = both()
        while place < len(words) and words[place].upper() == "OR":
            place += 1
            met = both() or met
        return met

    def both() -> bool:
        nonlocal place
        met = one()
        while place < len(words) and words[place].upper() == "AND":
            place += 1
            met = one() and met
        return met

    def one() -> bool:
        nonlocal place
        word = words[place]
        place += 1
        if word == "(":
            met = either()
            place += 1
            return met
        if place < len(words) and words[place].upper() == "WITH":
            word = f"{word} WITH {words[place + 1]}"
            place += 2
        return word in allowed

    return either()


def read_advisories() -> tuple[str, str, list[Advisory]]:
    """Return the list, the day of its database, and the day of the last look at that."""
    first, *lines = ADVISORIES.read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        name, package, kind, patched, unaffected = line.split("\t")
        split = [
            tuple(part for part in ranges.split(";") if part) for ranges in (patched, unaffected)
        ]
        found.append(Advisory(name, package, kind, *split))
    of, looked = first.rsplit("as of ", 1)[1].split(", looked for on ")
    return of, looked, found


def update(database: Path) -> None:
    """Make the list anew of a copy of RustSec's database."""
    day = subprocess.run(
        ["git", "-C", str(database), "log", "-1", "--format=%cs"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    lines = []
    for file in sorted(database.glob("crates/*/RUSTSEC-*.md")):
        block = re.search(r"```toml\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)
        entry = tomllib.loads(block[1])
        advisory, versions = entry["advisory"], entry["versions"]
        if "withdrawn" in advisory:
            continue
        columns = [
            advisory["id"],
            advisory["package"],
            advisory.get("informational", "vulnerability"),
        ]
        columns += [";".join(versions.get(which, [])) for which in ("patched", "unaffected")]
        lines.append("\t".join(columns))
    looked = datetime.date.today().isoformat()
    heading = (
        "# Packages, and the versions that are fine; of RustSec's database (CC0-1.0) "
        f"as of {day}, looked for on {looked}"
    )
    ADVISORIES.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")


def packages(manifest: Path, targets: list[str]) -> list[dict]:
    """Return what Cargo knows of all packages that a manifest needs on these targets."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features"]
    command += ["--manifest-path", str(manifest)]
    for target in targets:
        command += ["--filter-platform", target]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(told.stdout)["packages"]


def judge(found: list[dict], rules: dict, advisories: list[Advisory]) -> list[str]:
    """Return what is wrong with these packages."""
    wrong = []
    allowed = set(rules["licenses"]["allow"])
    exceptions = rules["licenses"].get("exceptions", [])
    registries = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
    banned = {ban["crate"] for ban in rules["bans"].get("deny", [])}
    versions = defaultdict(set)
    known = defaultdict(list)
    for advisory in advisories:
        known[advisory.package].append(advisory)
    ignored = {entry["id"] for entry in rules["advisories"].get("ignore", [])}
    for package in found:
        name, version = package["name"], package["version"]
        named = f"{name} {version}"
        versions[name].add(version)
        if name in banned:
            wrong.append(f"{named} is not to be used")
        excepted = allowed.union(*(e["allow"] for e in exceptions if e["crate"] == name))
        licence = package["license"] or ""
        if package["source"] and not (licence and is_allowed(licence, excepted)):
            wrong.append(f"{named} has the licence {licence or '(none)'}, which is not allowed")
        # Packages without a source are the project's own.
        if package["source"] not in {None, *registries}:
            wrong.append(f"{named} is from {package['source']}, which is not allowed")
        for advisory in known[name] if package["source"] else []:
            if advisory.id not in ignored and advisory.concerns(version):
                fixed = " or ".join(advisory.patched) or "no version"
                wrong.append(f"{named}: {advisory.id} ({advisory.kind}); fixed in {fixed}")
    skipped = {entry["crate"] for entry in rules["bans"].get("skip", [])}
    for name, each in versions.items():
        kept = [version for version in each if not {name, f"{name}@{version}"} & skipped]
        if len(each) > 1 and len(kept) > 1:
            wrong.append(f"{name} is there in several versions: {', '.join(sorted(each))}")
    return wrong


def too_old(days: int) -> str | None:
    """Return the complaint if the database was looked for so long ago, with the commands."""
    if days <= DAYS_MAX:
        return None
    return f"the last look for advisories was over {DAYS_MAX} days ago; to look again:\n{RENEWAL}"


def main() -> int:
    """Judge every manifest; say what is wrong."""
    if sys.argv[1:2] == ["--update"] and len(sys.argv) == 3:
        update(Path(sys.argv[2]))
        return 0
    if sys.argv[1:]:
        print("expected nothing, or --update and a copy of RustSec's database", file=sys.stderr)
        return 2
    rules = tomllib.loads(DENY.read_text(encoding="utf-8"))
    day, looked, advisories = read_advisories()
    failed = 0
    for manifest in MANIFESTS:
        found = packages(ROOT / manifest, rules["graph"]["targets"])
        wrong = judge(found, rules, advisories)
        failed += bool(wrong)
        print(f"{manifest}: {len(found)} packages, {len(wrong)} complaints")
        for complaint in wrong:
            print(f"  {complaint}")
    days = (datetime.date.today() - datetime.date.fromisoformat(looked)).days
    print(f"{len(advisories)} advisories of {day}, looked for on {looked}")
    complaint = too_old(days)
    if complaint:
        print(complaint)
        failed += 1
    print(f"{len(MANIFESTS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
