"""A real router process: started on free ports, watched through its log, stopped by a signal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

from rig.waiting import DEADLINE_S, await_true

ROOT = Path(__file__).resolve().parents[2]


def binary() -> Path:
    """Return the `crosstie` to test: `$CROSSTIE`, else the workspace's debug build.

    `crosstie-lab` is in the same folder.
    """
    return Path(os.environ.get("CROSSTIE", ROOT / "target/debug/crosstie"))


@dataclass
class Line:
    """One line of the router's log."""

    level: str
    text: str
    fields: dict[str, object] = field(default_factory=dict)
    time: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it tells that a peer broke a rule."""
        return self.level == "WARN" and "peer" in self.fields


def fresh(request: urllib.request.Request) -> tuple[Message, str]:
    """Return the headers and the body of a page as it is now.

    A page that is costly to render may be kept from an earlier request; it has an Age then, and
    is asked for again until it was rendered for this one.
    """
    answers: list[tuple[Message, str]] = []

    def is_new() -> bool:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
            answers.append((response.headers, response.read().decode()))
            return response.headers["Age"] is None

    await_true(f"{request.selector} is rendered anew", is_new)
    return answers[-1]


class Router:
    """One running `crosstie start`.

    The router chooses its own free ports (`"port": 0`) and tells them in its log, so that no
    test run can take another's. It logs JSON, which is the form with fields to check.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        config: dict | None = None,
        preexec: Callable[[], None] | None = None,
        program: Path | None = None,
        within: tuple[str, ...] = (),
    ):
        """Start it, or another build of it; `within` is the program that runs it, if not here."""
        self.directory = directory
        self.program = program or binary()
        command = [*within, str(self.program), "start", "--logformat", "json", *arguments]
        if config is not None:
            file = directory / "config.json"
            file.write_text(json.dumps(config, indent=1))
            command += ["--config", str(file)]
        self.log: list[Line] = []
        self._news = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            preexec_fn=preexec,
        )
        threading.Thread(target=self._read_log, daemon=True).start()
        try:
            self.await_log(lambda line: line.text.startswith("Ready"))
        except BaseException:
            self.kill()
            raise

    def urls(self, transport: str) -> list[str]:
        """Return where clients reach the transport with this id."""
        for line in self.log:
            if f"transport '{transport}' started at" in line.text:
                return re.findall(r"\w+(?:\+unix)?://\S+", line.text)
        raise LookupError(f"the log does not say where transport {transport} listens")

    def address(self, transport: str) -> tuple[str, int]:
        """Return host and port of a TCP transport."""
        found = re.search(r"://([\d.]+):(\d+)", self.urls(transport)[0])
        assert found, self.urls(transport)
        return found[1], int(found[2])

    def await_log(self, wanted: Callable[[Line], bool], since: int = 0) -> Line:
        """Return the first line from number `since` on that is `wanted`, once it is there."""
        with self._news:
            at = since

            def found() -> bool:
                nonlocal at
                while at < len(self.log):
                    if wanted(self.log[at]):
                        return True
                    at += 1
                return self._ended

            in_time = self._news.wait_for(found, DEADLINE_S)
            if in_time and at < len(self.log):
                return self.log[at]
            rest = "\n".join(
                f"  {line.level} {line.text} {line.fields}" for line in self.log[since:]
            )
            raise AssertionError(f"the line never came; the log from line {since} on:\n{rest}")

    def await_fault(self, since: int, text: str = "") -> Line:
        """Return the warning about a peer's fault that came after line `since`."""
        return self.await_log(
            lambda line: line.is_fault and text.lower() in f"{line.text} {line.fields}".lower(),
            since,
        )

    def count_faults(self) -> int:
        """Return how many peers' faults the log has told so far."""
        return sum(line.is_fault for line in self.log)

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, added up over all of its samples that have these labels."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        sample = re.compile(rf"crosstie_{name}(?:\{{(.*)\}})? (\S+)")
        found = [sample.fullmatch(line) for line in self.page("/metrics").splitlines()]
        values = [
            float(match[2])
            for match in found
            if match and wanted <= set((match[1] or "").split(","))
        ]
        assert values, f"there is no metric crosstie_{name} with {labels}"
        return sum(values)

    def page(self, path: str, transport: str = "tcp") -> str:
        """Return the body of an HTTP page of a transport, as it is now."""
        host, port = self.address(transport)
        return fresh(urllib.request.Request(f"http://{host}:{port}{path}"))[1]

    def health(self, transport: str = "tcp") -> tuple[int, str]:
        """Return whether the node is ready, as 200 or 503, and what it says of that."""
        host, port = self.address(transport)
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=DEADLINE_S) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def told(self) -> str:
        """Return its log and what it counts of other nodes, for who reads of a failed test."""
        lines = [f"  {line.level} {line.text} {line.fields or ''}" for line in self.log]
        if self.process.poll() is None:
            counted = re.compile(r"(?m)^crosstie_fabric_\w+_total\{.*cause=.* [1-9]\d*$")
            with contextlib.suppress(OSError, AssertionError, LookupError):
                lines += [f"  {sample}" for sample in counted.findall(self.page("/metrics"))]
        return "\n".join([f"{self.directory.name} said:", *lines])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the process to end by itself and return its exit code."""
        return self.process.wait(DEADLINE_S)

    def stop(self) -> None:
        """End it as an operator would, and hold it to a clean exit."""
        if self.process.poll() is None:
            self.signal(signal.SIGINT)
            try:
                code = self.exit_code()
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        else:
            code = self.process.returncode
        panics = [line.text for line in self.log if "panicked" in line.text]
        assert not panics, panics
        assert code == 0, f"the router ended with {code}"

    def kill(self) -> None:
        """End it without asking."""
        self.process.kill()
        self.process.wait()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            try:
                entry = json.loads(raw)
                fields = dict(entry["fields"])
                text = str(fields.pop("message", ""))
                line = Line(entry["level"], text, fields, entry["timestamp"])
            except (ValueError, KeyError):
                # A panic, or a complaint from before the log was set up.
                line = Line("RAW", raw.decode(errors="replace").rstrip())
            with self._news:
                self.log.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
