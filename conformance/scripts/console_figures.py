"""Measure the console: its bytes, its first paint, what it costs the node while it is looked at.

    cd conformance; ../target/venv/bin/python scripts/console_figures.py --program PATH

The part `many` opens a hundred consoles beside the witnesses of `crosstie-lab`, which makes eight
kinds of operations and reports the longest wait of each. They repeat the calls of four pages from
a process of their own, as often as those pages do.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import multiprocessing
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from depth_figures import Report, processor_s, resident_bytes
from management_figures import WITNESS_GOALS, Node, Witness, declare
from rig import config
from rig.broker import Broker, Crosstie, configuration
from rig.browser import Browser
from rig.http import Http
from rig.router import Router
from rig.session import CALL, HELLO, RESULT, ROLES, WELCOME
from rig.websocket import WebSocket

QUEUES = 10_000
CONSOLES = 100
WORKER = "crossbar.worker.worker1"
# A page reads once a second, and a list of 10,000 rows every five seconds.
SECOND_S, LIST_S = 1, 5


def monitored(path: str) -> tuple[str, list]:
    """Return the call that reads a path of the management API."""
    return f"{WORKER}.get_amqp_monitoring", [path]


def longest(path: str, sort: str) -> tuple[str, list]:
    """Return the call for the first rows by a figure."""
    return monitored(f"{path}?page=1&page_size=10&sort={sort}&sort_reverse=true")


FIGURES = ("crossbar.get_figures", [])
# The calls of each page, and the time from one reading to the next.
PAGES = {
    "overview": ([("crossbar.get_status", []), FIGURES, monitored("overview")], SECOND_S),
    "live": (
        [
            FIGURES,
            ("crossbar.get_histograms", []),
            ("crossbar.get_histograms", ["call_duration", 0, 20]),
            monitored("overview"),
        ],
        SECOND_S,
    ),
    "queues": (
        [monitored("queues?page=1&page_size=100&name=&use_regex=false&sort=name")],
        LIST_S,
    ),
    "trouble": (
        [
            FIGURES,
            (f"{WORKER}.get_amqp_alarms", []),
            ("crossbar.get_certificates", [0, 10]),
            (f"{WORKER}.get_amqp_unroutable", [10]),
            longest("queues", "messages_ready"),
            longest("connections", "send_pend"),
            longest("connections", "recv_oct_details.rate"),
            (f"{WORKER}.get_router_session_counters", [None, 0, 50_000]),
        ],
        LIST_S,
    ),
}


class Watched(Node):
    """A node of any build with a console that needs no login."""

    def __init__(self, directory: Path, program: Path):
        made = configuration({"store": str(directory / "amqp.store")})
        made["workers"][0]["transports"][1]["pages"] = ["health"]
        auth = {"anonymous": {"type": "static", "role": "administrator"}}
        made["console"] = {"endpoint": config.tcp(), "auth": auth}
        self.router = Router(directory, config=made, program=program)
        self.group = self.router.process.pid
        line = self.router.await_log(lambda line: line.text.startswith("Console started"))
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line.text)
        assert found, line
        self.console = ("127.0.0.1", int(found[1]))
        Broker.__init__(self, "crosstie", *self.router.address("amqp"))


@contextlib.contextmanager
def started(options) -> Iterator[Watched]:
    """Start a node in a directory that is removed again."""
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="console-") as directory:
        node = Watched(Path(directory), options.program)
        try:
            yield node
        finally:
            Crosstie.stop(node)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser without a window."""
    with tempfile.TemporaryDirectory(prefix="console-", ignore_cleanup_errors=True) as directory:
        browser = Browser(Path(directory))
        try:
            yield browser
        finally:
            browser.close()


def octets(options, report: Report) -> None:
    """Read each file as a browser does."""
    with started(options) as node:
        http, wanted, seen = Http(node.console), [""], {}
        while wanted:
            name = wanted.pop()
            body = http.get(f"/{name}", {"Accept-Encoding": "gzip"}).body
            seen[name] = len(body)
            named = re.findall(r"""["']\./([\w.]+)["']""", gzip.decompress(body).decode())
            wanted += [each for each in set(named) if each not in seen and each not in wanted]
    figures = {"files": len(seen), "bytes in gzip": sum(seen.values())}
    report.table("Bytes", {"Crosstie": figures}, {"bytes in gzip": "≤ 65,536"})


def paint(options, report: Report) -> None:
    """Open the console again and again, with and without the browser's cache."""
    columns = {}
    painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    read = "document.querySelector('.tiles .value') && performance.now()"
    with started(options) as node, browsing() as browser:
        for title, is_cold in (("without a cache", True), ("with a cache", False)):
            browser.ask("Network.setCacheDisabled", cacheDisabled=is_cold)
            paints, reads = [], []
            # The first of a browser starts its own processes.
            for number in range(options.rounds + 1):
                browser.open("about:blank")
                browser.open(f"http://127.0.0.1:{node.console[1]}/")
                browser.await_page("the page is painted", f"({painted}) > 0")
                script = f"""new Promise((done) => {{
                    const look = () => {{
                        const at = {read};
                        if (at) done(at);
                        else requestAnimationFrame(look);
                    }};
                    look();
                }})"""
                at = browser.evaluate(script)
                if number > 0:
                    paints.append(browser.evaluate(painted))
                    reads.append(at)
            columns[title] = {
                "first paint, median ms": statistics.median(paints),
                "first paint, worst ms": max(paints),
                "figures shown, median ms": statistics.median(reads),
            }
    goals = {"first paint, median ms": "< 100", "first paint, worst ms": "< 100"}
    report.table("First paint on loopback", columns, goals)


def watched(options, report: Report) -> None:
    """Look at each page beside many queues, in a browser; then close it."""
    count = options.counted(QUEUES)
    shares = {}
    with started(options) as node:
        declare(node, "watched", count)

        def share(name: str) -> None:
            time.sleep(LIST_S)
            before = processor_s(node.group)
            time.sleep(options.seconds)
            shares[f"{name}, % of a core"] = (
                100 * (processor_s(node.group) - before) / options.seconds
            )

        share("never opened")
        with browsing() as browser:
            browser.open(f"http://127.0.0.1:{node.console[1]}/")
            browser.await_page("the console is open", "Boolean(document.querySelector('.tiles'))")
            for page in PAGES:
                browser.evaluate(f"location.hash = '#/{page}'")
                share(page)
        share("closed")
    goals = dict.fromkeys(shares, "≤ 1")
    report.table(f"Processor time beside {count:,} queues", {"Crosstie": shares}, goals)


class Page:
    """A session that repeats the calls of a page, each set at once as the page does."""

    def __init__(self, address: tuple[str, int], calls: list[tuple[str, list]], every_s: float):
        self.calls, self.every_s = calls, every_s
        self.requests = itertools.count(1)
        self.peer = WebSocket.tcp(address).open()
        self.peer.say(HELLO, "crossbar", {"roles": ROLES, "authmethods": ["anonymous"]})
        assert self.peer.hear_any()[0] == WELCOME

    def read(self) -> float:
        """Make the calls; return how long their answers took."""
        begun = time.monotonic()
        for procedure, arguments in self.calls:
            self.peer.say(CALL, next(self.requests), {}, procedure, arguments)
        for _ in self.calls:
            answer = self.peer.receive_octets()
            assert answer.startswith(f"[{RESULT},".encode()), answer[:200]
        return time.monotonic() - begun


def consoles(address, count: int, ready, over, found) -> None:
    """Run so many consoles until it is over; note how long each reading took."""
    kinds = list(PAGES.values())
    pages = [Page(address, *kinds[number % len(kinds)]) for number in range(count)]
    took: list[float] = []

    def look(number: int, page: Page) -> None:
        over.wait(page.every_s * number / count)
        while not over.is_set():
            seconds = page.read()
            took.append(seconds)
            # As a page rests: at least three times as long as the answers took.
            over.wait(max(page.every_s - seconds, 3 * seconds))

    looking = [threading.Thread(target=look, args=each) for each in enumerate(pages)]
    for thread in looking:
        thread.start()
    ready.set()
    for thread in looking:
        thread.join()
    found.put(took)


def many(options, report: Report) -> None:
    """Look with many consoles at once beside the witnesses."""
    count, queues = options.consoles, options.counted(QUEUES)
    ready, over = multiprocessing.Event(), multiprocessing.Event()
    found: multiprocessing.Queue = multiprocessing.Queue()
    with started(options) as node:
        declare(node, "watched", queues)
        # The figures of the first answers are kept for the next ones, for all consoles together.
        for calls, _ in PAGES.values():
            Page(node.console, calls, 1).read()
        before_bytes = resident_bytes(node.group)
        work = multiprocessing.Process(
            target=consoles, args=(node.console, count, ready, over, found)
        )
        work.start()
        ready.wait()
        witness = Witness(options.lab, node)
        before_s = processor_s(node.group)
        time.sleep(options.seconds)
        share = (processor_s(node.group) - before_s) / options.seconds
        grown = resident_bytes(node.group) - before_bytes
        waits = witness.end()
        over.set()
        took = found.get()
        work.join()
    figures = {
        "consoles": count,
        "readings": len(took),
        "reading, median ms": statistics.median(took) * 1e3,
        "reading, worst ms": max(took) * 1e3,
        "node, % of a core": 100 * share,
        "KiB for each console": grown / count / 1024,
        **waits,
    }
    goals = {"KiB for each console": "≤ 64", **WITNESS_GOALS}
    report.table(f"{count} consoles beside {queues:,} queues", {"Crosstie": figures}, goals)


PARTS: dict[str, Callable[[argparse.Namespace, Report], None]] = {
    "octets": octets,
    "paint": paint,
    "watched": watched,
    "many": many,
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the build to measure")
    parser.add_argument("--lab", type=Path, help="crosstie-lab [default: beside the program]")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of queues")
    parser.add_argument("--consoles", type=int, default=CONSOLES, help="of the part `many`")
    parser.add_argument("--rounds", type=int, default=20, help="openings of each kind")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on the disk")
    options = parser.parse_args()
    options.program = options.program.resolve()
    options.lab = (options.lab or options.program.parent / "crosstie-lab").resolve()
    options.counted = lambda count: max(int(count * options.scale), 100)
    report = Report()
    for part in options.part or PARTS:
        begun = time.monotonic()
        PARTS[part](options, report)
        print(f"({part}: {time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
