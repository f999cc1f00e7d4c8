#!/usr/bin/env python3
"""Makes a release in `dist/`: static programs, packages, an image, crates, bills of materials.

    packaging/release.py [--profile NAME] [--dist DIRECTORY] [--architecture NAME ...]

Each file depends on the sources and the compiler alone: the time in archives is the commit's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import chart
import contents
import crate_files
import image
from archives import Entry, gzipped, tar
from contents import ROOT, Printed
from deb import deb
from grammar import grammar
from rpm import name as rpm_name
from rpm import rpm
from sbom import bill
from wheel import wheel

# The architecture of the machine, whose programs say what is in packages.
ARCHITECTURE = "x86_64"
# Each with its number in ELF. cargo-zigbuild brings a compiler for the C parts of foreign ones.
MACHINES = {"x86_64": 62, "aarch64": 183}
PROGRAMS = ("crosstie", "crosstie-lab")
# The segment that names a program's loader; a static program has none.
PT_INTERP = 3


def main() -> int:
    """Build the programs and all that contains them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="release", help="profile of cargo")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="directory of the release")
    parser.add_argument(
        "--architecture",
        choices=MACHINES,
        action="append",
        help=f"another architecture beside {ARCHITECTURE}; may be given repeatedly",
    )
    arguments = parser.parse_args()
    others = [each for each in arguments.architecture or [] if each != ARCHITECTURE]
    if missing := needs(others):
        print(f"release: {missing}", file=sys.stderr)
        return 1
    programs = built(arguments.profile, ARCHITECTURE)
    foreign = {each: built(arguments.profile, each) for each in others}
    shutil.rmtree(arguments.dist, ignore_errors=True)
    arguments.dist.mkdir(parents=True)
    revision, time = commit()
    for name, data in release(programs, printed(programs), revision, time, foreign).items():
        (arguments.dist / name).write_bytes(data)
        print(f"{len(data):>12}  {name}")
    return 0


def target(architecture: str) -> str:
    """Return Rust's name for static programs of an architecture."""
    return f"{architecture}-unknown-linux-musl"


def needs(others: list[str]) -> str | None:
    """Return what is missing, and how to install it."""
    installed = _said("rustup", "target", "list", "--installed").split()
    for each in map(target, [ARCHITECTURE, *others]):
        if each not in installed:
            return f"Rust has no target {each}: rustup target add {each}"
    if others and not shutil.which("cargo-zigbuild"):
        return "there is no cargo-zigbuild: pip install cargo-zigbuild ziglang"
    for tool, package in (("musl-gcc", "musl-tools"), ("rpmbuild", "rpm"), ("zstd", "zstd")):
        if not shutil.which(tool):
            return f"there is no {tool}: apt-get install {package}"
    return None


def built(profile: str, architecture: str) -> dict[str, Path]:
    """Compile the programs of an architecture; return where they are.

    Each is compiled by itself: a package that both have would get the features of both.
    """
    options = ["--locked", "--profile", profile, "--target", target(architecture)]
    is_foreign = architecture != ARCHITECTURE
    arguments = [word for each in linked() for word in ("-C", f"link-arg={each}")]
    for name in PROGRAMS:
        package = [*options, "--package", name, "--bin", name]
        command = ["cargo", "rustc", *package, "--", *arguments]
        if is_foreign:
            # It brings a linker of its own, which knows none of these arguments.
            command = ["cargo-zigbuild", "zigbuild", *package]
        subprocess.run(command, cwd=ROOT, check=True)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = folder / target(architecture) / profile
    programs = {name: folder / name for name in PROGRAMS}
    for program in programs.values():
        data = program.read_bytes()
        if PT_INTERP in segments(data):
            raise SystemExit(f"release: {program} is not static")
        if machine(data) != MACHINES[architecture]:
            raise SystemExit(f"release: {program} is of ELF machine {machine(data)}")
    return programs


def linked() -> list[str]:
    """Return the linker's arguments: the toolchain's own linker, which makes programs smaller."""
    told = _said("rustc", "--version", "--verbose")
    [host] = [line.split()[1] for line in told.splitlines() if line.startswith("host: ")]
    place = Path(_said("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / host / "bin/gcc-ld"
    if not (place / "ld.lld").exists():
        raise SystemExit(f"release: Rust's toolchain has no linker in {place}")
    # One copy of equal functions, and packed relocations, which musl reads since 1.2.4.
    return [f"-B{place}", "-fuse-ld=lld", "-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"]


def machine(program: bytes) -> int:
    """Return the number of a program's architecture (ELF, little endian)."""
    return struct.unpack_from("<H", program, 18)[0]


def segments(program: bytes) -> list[int]:
    """Return the types of a program's segments (ELF, 64 bits, little endian)."""
    [start] = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return [struct.unpack_from("<I", program, start + at * size)[0] for at in range(count)]


def printed(programs: dict[str, Path]) -> Printed:
    """Return what programs that run here print for their packages."""
    unit = _said(programs["crosstie"], "service", "print", "--program", "/usr/bin/crosstie")
    configuration = (ROOT / "crates/config/src/embedded.json").read_text()
    commands = {name: grammar(name, program) for name, program in programs.items()}
    return Printed(unit, configuration, commands)


def commit() -> tuple[str, int]:
    """Return the commit and its time."""
    revision, time = _said("git", "log", "-1", "--format=%H %ct").split()
    return revision, int(time)


def version() -> str:
    """Return the version of every package."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def release(
    programs: dict[str, Path],
    said: Printed,
    revision: str,
    time: int,
    foreign: dict[str, dict[str, Path]] | None = None,
) -> dict[str, bytes]:
    """Return every file of a release, by name; with programs of other architectures, theirs too."""
    number = version()
    files = {
        f"crosstie-{number}-chart.tgz": chart.packed(number, time),
        "compose.yaml": (ROOT / "packaging/compose.yaml").read_bytes(),
        **crate_files.packed(),
    }
    for architecture, each in {ARCHITECTURE: programs, **(foreign or {})}.items():
        files.update(of_architecture(architecture, each, said, revision, time))
    arguments = ["--locked", "--format-version", "1", "--filter-platform", target(ARCHITECTURE)]
    metadata = json.loads(_said("cargo", "metadata", *arguments))
    for each in PROGRAMS:
        files[f"{each}-{number}.cdx.json"] = bill(each, metadata, ROOT / "Cargo.lock", time)
    sums = [f"{hashlib.sha256(files[each]).hexdigest()}  {each}\n" for each in sorted(files)]
    files["SHA256SUMS"] = "".join(sums).encode()
    return files


def of_architecture(
    architecture: str, programs: dict[str, Path], said: Printed, revision: str, time: int
) -> dict[str, bytes]:
    """Return the files of a release that have programs of an architecture, by name."""
    number = version()
    data = {name: path.read_bytes() for name, path in programs.items()}
    server, laboratory = contents.packages(number, architecture)
    contained = {
        server: contents.server(data["crosstie"], said, number, time),
        laboratory: contents.laboratory(data["crosstie-lab"], said, number, time),
    }
    name = f"crosstie-{number}-{architecture}-linux"
    plain = [Entry(f"/{name}/LICENSE", (ROOT / "LICENSE").read_bytes())]
    for each in PROGRAMS:
        plain.append(Entry(f"/{name}/bin/{each}", data[each], 0o755))
        for entry in contents.shell(each, said, number, time):
            plain.append(replace(entry, path=entry.path.replace("/usr", f"/{name}", 1)))
    files = {
        f"{name}.tar.gz": gzipped(tar(plain, time, beginning="")),
        f"{name}-image.tar": image.layout(
            contents.image_files(data["crosstie"]),
            architecture,
            contents.image_settings(),
            contents.image_labels(number, revision),
            time,
        ),
    }
    for package, entries in contained.items():
        files[package.file] = deb(package, entries, time)
        files[rpm_name(package)] = rpm(package, contents.without_debian(entries), time)
    for folder, each in (("python", "crosstie"), ("instruments/lab", "crosstie-lab")):
        made = wheel(ROOT / folder, data[each], number, architecture, time)
        files[made.path] = made.data or b""
    return files


def _said(*command: object) -> str:
    return subprocess.run(
        list(map(str, command)), cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
