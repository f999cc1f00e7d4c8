"""A terminal with a network of its own, in which the commands of a page run one after the other."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

from rig.router import ROOT, binary
from rig.waiting import await_true

# Commands that run until they are interrupted, and the line by which each says that it serves.
SERVING = {
    "start": "Ready; to stop:",
    "register": "registered",
    "subscribe": "subscribed to",
    "oslo rpc-server": "",
    "testee": "",
    "link": "",
    "roundtrip callee": "",
}
VARYING = [
    (r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b", "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"),
    (r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", "[A-Z][a-z]{2}"),
    (r"─+", "─+"),
    (r" {2,}", " +"),
    (r"/[a-z][\w./-]*", r"/[^\s:]*"),
    (r"\d+", r"\d+"),
    ("…", "[^\n]*"),
]
TOKENS = re.compile("|".join(f"({varies})" for varies, _ in VARYING))


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that the page shows."""
    text = text.replace("\\\n", " ")
    if not text.startswith("$ "):
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        return [(line, "") for line in lines]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [
        (command, shown.strip("\n")) for command, _, shown in (p.partition("\n") for p in parts)
    ]


def without_remark(command: str) -> str:
    """Return a command without the remark behind it."""
    return re.sub(r"\s+#\s.*$", "", command)


def is_shown(shown: str, output: str) -> bool:
    """Whether an output is the one that a page shows, but for numbers, dates and spaces.

    `…` is the rest of a line, and alone on a line any lines.
    """
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
            continue
        at = 0
        for token in TOKENS.finditer(line):
            pattern += re.escape(line[at : token.start()]) + VARYING[token.lastindex - 1][1]
            at = token.end()
        pattern += re.escape(line[at:].rstrip()) + r"[ ]*\n"
    return re.fullmatch(pattern, output.strip("\n") + "\n") is not None


class Shell:
    """A shell in a directory, and what it has started."""

    def __init__(self, directory: Path):
        self.directory = directory
        self._logs: list[Path] = []
        self._errors = directory / ".errors"
        # Commands that ask for a password read it from here.
        (directory / ".input").write_text("s3cret\n" * 2)
        (directory / ".curlrc").write_text("silent\nshow-error\n")
        (directory / ".bin").mkdir()
        (directory / ".bin/crosstie").symlink_to(binary())
        lab = binary().with_name("crosstie-lab")
        if lab.exists():
            (directory / ".bin/crosstie-lab").symlink_to(lab)
        tools = f"{ROOT}/target/nats-server:{ROOT}/target/venv/bin"
        path = f"{directory}/.bin:{tools}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "HOME": str(directory)}
        environment.pop("XDG_RUNTIME_DIR", None)
        network = (
            ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        )
        self._process = subprocess.Popen(
            [*network, shutil.which("bash"), "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            text=True,
            start_new_session=True,
        )
        self.run("ip link set lo up")
        # The page's `make` builds for minutes: its rules are read, and their commands printed.
        self.run(f'make() {{ command make --dry-run --silent -C "{ROOT}" "$@" >/dev/null; }}')

    def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it printed."""
        code, output, errors = self._run(command)
        return code, "\n".join(filter(None, (output, errors)))

    def _run(self, command: str) -> tuple[int, str, str]:
        mark = uuid.uuid4().hex
        line = f"{{ {command}\n}} <{self.directory}/.input 2>{self._errors}\n"
        self._process.stdin.write(f"{line}code=$?; echo; echo {mark} $code\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.startswith(mark):
                output = "".join(lines).strip("\n")
                return int(line.split()[1]), output, self._errors.read_text().strip("\n")
            lines.append(line)
        raise AssertionError(f"{command} ended the shell: {''.join(lines)}")

    def follow(self, command: str, shown: str) -> None:
        """Do what a page says, and hold it to the output that the page shows."""
        command = without_remark(command)
        names = (
            kind
            for kind in SERVING
            if re.search(rf"(?:^|[ ;/])crosstie(?:-new)? {kind}\b", command)
        )
        kind = next(names, None)
        if kind is None or " --help" in command or "timeout " in command:
            code, output, errors = self._run(command)
            told = f"{command}: exit code {code}\n{output}\n{errors}\nexpected:\n{shown}"
            # An exit code other than 0 is meant if the page shows the error.
            assert code == 0 or (shown and is_shown(shown, errors)), told
            assert not shown or is_shown(shown, output) or is_shown(shown, errors), told
            return
        log = self.directory / f".log{len(self._logs)}"
        self._logs.append(log)
        self.run(f"{command.rstrip('& ')} >{log} 2>&1 &")
        await_true(
            f"{command} serves",
            lambda: log.exists() and SERVING[kind] in log.read_text() and log.stat().st_size > 0,
        )
        if shown:
            await_true(f"{command} prints {shown}", lambda: is_shown(shown, printed(log)))

    def close(self) -> None:
        """End everything that the page has started."""
        # The first process of a pid namespace is a child of the job, which does not hear signals.
        ended = "for job in $(jobs -p); do kill $job $(pgrep --parent $job) 2>/dev/null; done; wait"
        self._process.stdin.write(f"{ended}\n")
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def told(self) -> str:
        """Return what the started commands printed."""
        return "\n".join(f"--- {log.name}\n{log.read_text()}" for log in self._logs if log.exists())


def printed(log: Path) -> str:
    """Return what a client printed, without the remarks of its own."""
    lines = log.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("crosstie: "))
