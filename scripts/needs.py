"""What the tests need beside the Rust toolchain, installed where it is missing.

Each function returns None, or the reason why its need cannot be met; a suite whose needs cannot
be met is skipped by that name and reason.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
VENV = TARGET / "venv"
PYTHON = VENV / "bin/python"
CONFORMANCE = ROOT / "conformance"


def run(*command: object, cwd: Path = ROOT) -> str | None:
    """Run a command quietly; return None, or the end of what it said when it failed."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    try:
        done = subprocess.run(
            words, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stdout.strip().splitlines()
    return f"{' '.join(words)}: {said[-1] if said else f'exit code {done.returncode}'}"


@functools.cache
def packages(*names: str) -> str | None:
    """Install Debian packages."""
    if not shutil.which("apt-get"):
        return f"there is no apt-get to install {' '.join(names)} with"
    rights = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    # Without fresh lists the packages may not be found; an old list may still do.
    run(*quiet, "update")
    return run(*quiet, "install", "--no-install-recommends", *names)


@functools.cache
def compiler() -> str | None:
    """A C compiler: the cryptography library is partly C and assembler."""
    return None if shutil.which("cc") else packages("gcc", "libc6-dev")


@functools.cache
def component(name: str) -> str | None:
    """A component of the Rust toolchain, such as rustfmt."""
    missing = run("cargo", name, "--version")
    if missing and shutil.which("rustup"):
        missing = run("rustup", "component", "add", {"fmt": "rustfmt"}.get(name, name))
    return missing


@functools.cache
def python() -> str | None:
    """An environment with exactly the packages of conformance/requirements.txt."""
    if sys.version_info < (3, 11):  # noqa: UP036 (the machine's own Python, whatever it is)
        return f"Python 3.11 or later is needed; this is {sys.version.split()[0]}"
    requirements = CONFORMANCE / "requirements.txt"
    wanted = digest(requirements) + sys.version
    stamp = VENV / "installed"
    if stamp.exists() and stamp.read_text() == wanted and PYTHON.exists():
        return None
    try:
        venv.create(VENV, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, OSError, ImportError):
        # Debian keeps what this takes in a package of its own.
        if reason := packages("python3-venv"):
            return reason
        # In a new process: this one has looked for the module already.
        if reason := run(sys.executable, "-m", "venv", "--clear", VENV):
            return reason
    pip = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    if reason := run(*pip, "-r", requirements):
        return reason
    stamp.write_text(wanted)
    return None


@functools.cache
def node() -> str | None:
    """Node.js with exactly the packages of conformance/js/package-lock.json."""
    found = shutil.which("node") and shutil.which("npm")
    if not found and (reason := packages("nodejs", "npm")):
        return reason
    folder = CONFORMANCE / "js"
    wanted = digest(folder / "package-lock.json")
    stamp = folder / "node_modules/installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    if reason := run("npm", "ci", "--no-audit", "--no-fund", cwd=folder):
        return reason
    stamp.write_text(wanted)
    return None


def digest(path: Path) -> str:
    """Return what changes when the file does."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
