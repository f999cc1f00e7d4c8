"""The report: one page of results files, opened in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rig.router import ROOT, binary

SAMPLES = sorted((ROOT / "conformance/report/samples").glob("*.json"))

# Where a reader of the tests' output finds what the page looks like.
LOGS = ROOT / "target/test-logs"

WIDTH, HEIGHT = 1100, 4000


def crosstie(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Make the page of all samples and one file that was cut off."""
    directory = tmp_path_factory.mktemp("report")
    damaged = directory / "cut-off.json"
    text = SAMPLES[0].read_text()
    damaged.write_text(text[: len(text) // 2])
    done = crosstie("report", *SAMPLES, damaged, "-o", "report.html", cwd=directory)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "report.html\n"
    return directory / "report.html"


class Reader(HTMLParser):
    """Parts of a page that the tests inspect."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what is on the page and what it would load."""
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name == "href" and tag == "a" and value:
                self.links.append(value)
            elif name in ("src", "href", "srcset", "data", "poster") and tag != "a":
                self.loads.append(value or "")


# --- the page as text


def test_the_page_needs_nothing_else(page):
    html = page.read_text()
    reader = Reader(html)
    assert all(load.startswith("data:") for load in reader.loads), reader.loads
    assert "script" not in reader.tags
    assert "@import" not in html
    assert "url(" not in html
    assert {link.removeprefix("#") for link in reader.links} <= reader.ids


def test_every_chart_says_what_it_shows(page):
    charts = re.findall(r'<svg class="chart".*?</svg>', page.read_text(), re.DOTALL)
    assert len(charts) > 20
    for chart in charts:
        assert re.search(r'role="img"><title>[^<]+</title><desc>[^<]+</desc>', chart), chart[:300]


def test_every_bench_has_a_section(page):
    benches = {json.loads(sample.read_text())["bench"] for sample in SAMPLES}
    known = {"rpc", "handshake", "echo", "stream", "accept", "pubsub", "node", "footprint"}
    assert known <= benches
    assert benches <= Reader(page.read_text()).ids


def test_invalid_figures_say_why(page):
    html = page.read_text()
    rows = [row for sample in SAMPLES for row in json.loads(sample.read_text())["results"]]
    reasons = {row["why"] for row in rows if not row["valid"] and "round" not in row}
    assert reasons
    for why in reasons:
        assert why in html


# --- damaged files


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "line 1, column 1", "the file is empty"),
        ('{\n  "bench": "rpc",', "line 2, column 17", "ends too early"),
        ("{\n  bench: 1}", "line 2, column 3", "expected JSON"),
        ("[1, 2]", "line 1, column 2", "expected a string"),
        ("3", "line 1, column 1", "expected a results file"),
        ('{"bench": "rpc", "version": "1", "commit": ""}', "line 1", "missing field `machine`"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(tmp_path, text, place, said):
    (tmp_path / "bad.json").write_text(text)
    done = crosstie("report", SAMPLES[0], "bad.json", cwd=tmp_path)
    assert done.returncode == 1
    line = next(line for line in done.stderr.splitlines() if "bad.json" in line)
    assert place in line
    assert said in line
    html = (tmp_path / "report.html").read_text()
    assert "Not on this page" in html
    assert "bad.json" in html


def test_without_any_results_there_is_no_report(tmp_path):
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    done = crosstie("report", "bad.json", "absent.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "absent.json: No such file" in done.stderr
    assert "there is no report" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_of_two_equal_runs_the_newer_is_shown(tmp_path):
    sample = next(path for path in SAMPLES if path.stem == "footprint")
    frame = json.loads(sample.read_text())
    frame["machine"]["unix_time_s"] += 60
    (tmp_path / "newer.json").write_text(json.dumps(frame))
    done = crosstie("report", sample, "newer.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not shown: newer.json is newer" in (tmp_path / "report.html").read_text()


def test_an_unknown_bench_is_shown_plainly(tmp_path):
    frame = json.loads(SAMPLES[0].read_text())
    frame["bench"] = "weighing"
    metrics = {"stones_per_s": 12.5, "heaviest_bytes": 4096, "odd": 7}
    row = {"case": "one", "subject": "<b>scales</b>", "metrics": metrics, "valid": True, "why": ""}
    frame["results"] = [row]
    (tmp_path / "weighing.json").write_text(json.dumps(frame))
    done = crosstie("report", "weighing.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "report.html").read_text()
    assert 'id="weighing"' in html
    assert "12.5/s" in html
    assert "4,096 B" in html
    assert "<b>scales" not in html


# --- the page in a browser

# A browser is read from the disk before it does anything, which a busy one takes long for.
START_S = 300
in_a_browser = pytest.mark.timeout(START_S + 30)


@pytest.fixture
def browser(tmp_path):
    """Run a browser on the page, without a window."""
    if "browser" in os.environ.get("CROSSTIE_WITHOUT", "") or not shutil.which("chromium"):
        pytest.skip("there is no chromium")

    def run(page: Path, *arguments: str) -> str:
        # As root a browser refuses its own sandbox; this page has nothing to run in one.
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        # What it would look up by itself takes it ten times as long as the page.
        command += ["--no-first-run", "--disable-background-networking", "--disable-extensions"]
        command += ["--disable-component-update", "--disable-sync"]
        command += [f"--user-data-dir={tmp_path}", *arguments]
        done = subprocess.run([*command, page.as_uri()], text=True, capture_output=True, timeout=50)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@in_a_browser
def test_a_browser_shows_the_page(page, browser):
    dom = browser(page, "--dump-dom")
    assert "<h1>Crosstie, measured</h1>" in dom
    # What a browser does not take for a picture, it would have put elsewhere or dropped.
    assert dom.count('<svg class="chart"') == page.read_text().count('<svg class="chart"')


@in_a_browser
def test_a_screenshot_has_the_page_on_it(page, browser):
    LOGS.mkdir(parents=True, exist_ok=True)
    picture = LOGS / "report.png"
    picture.unlink(missing_ok=True)
    browser(page, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}")
    print(f"the page looks like {picture}")
    size, ink = look(picture)
    assert size == (WIDTH, HEIGHT)
    # Text and lines on paper: neither nothing nor everything.
    assert 0.01 < ink < 0.5


@in_a_browser
def test_the_page_can_be_printed(page, browser):
    LOGS.mkdir(parents=True, exist_ok=True)
    paper = LOGS / "report.pdf"
    paper.unlink(missing_ok=True)
    browser(page, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    octets = paper.read_bytes()
    assert octets.startswith(b"%PDF-")
    # Every bench begins a page of its own.
    assert len(re.findall(rb"/Type\s*/Page\b", octets)) > 8


def look(picture: Path) -> tuple[tuple[int, int], float]:
    """Return a PNG's size, and the share of it in which something changes from pixel to pixel."""
    octets = picture.read_bytes()
    assert octets.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed, size = 8, b"", (0, 0)
    while at < len(octets):
        length, kind = struct.unpack(">I4s", octets[at : at + 8])
        body = octets[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    # Rows are stored as differences: where nothing changes there are zeros.
    rows = zlib.decompress(packed)
    return size, 1 - rows.count(0) / len(rows)


# What is wrong with the page in a browser, written into its title: a browser without a window
# prints its document and nothing else.
LOOK = """<script>addEventListener("load", () => {
  const right = innerWidth + 0.5, out = [], small = [], tall = [];
  const name = (e) => e.tagName + "." + (e.getAttribute("class") || "") + " " +
    (e.textContent || "").trim().slice(0, 30);
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || e.closest("desc, title")) continue;
    if (box.right > right || box.left < -0.5) out.push(name(e) + " " + Math.round(box.right));
    const scroll = getComputedStyle(e).overflowX;
    if (["auto", "scroll"].includes(scroll) && e.scrollWidth > e.clientWidth) out.push(name(e));
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (text && !e.closest("script, style")) {
      const scale = e.ownerSVGElement ? e.getScreenCTM().a : 1;
      const size = parseFloat(getComputedStyle(e).fontSize) * scale;
      if (size < SIZE_MIN) small.push(name(e) + " " + size.toFixed(1));
    }
    if (e.matches("svg.chart")) {
      let kept = e;
      while (kept && getComputedStyle(kept).breakInside !== "avoid") kept = kept.parentElement;
      const height = kept ? kept.getBoundingClientRect().height : Infinity;
      if (height > HEIGHT_MAX) tall.push(name(e) + " " + Math.round(height));
    }
  }
  const charts = [...document.querySelectorAll("svg.chart")];
  const shown = charts.filter((e) => e.getBoundingClientRect().width).length;
  document.title = JSON.stringify({width: innerWidth, out, small, tall, shown});
});</script>"""


def looked_at(page: Path, browser, tmp_path: Path, width: int, **limits: float) -> dict:
    """Return what is wrong with the page at that width."""
    script = LOOK
    for name in ("SIZE_MIN", "HEIGHT_MAX"):
        script = script.replace(name, str(limits.get(name.lower(), "Infinity")))
    script = script.replace("size < Infinity", "false")
    html = page.read_text().replace("</body>", script + "</body>")
    if "height_max" in limits:
        # As on paper.
        html = html.replace("@media print", "@media all").replace("@media screen", "@media tty")
    # In a frame, because a browser's window is not as narrow as a telephone.
    (tmp_path / "inner.html").write_text(html)
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<iframe src="inner.html" style="border:0;width:{width}px;height:800px"'
        ' onload="setTimeout(() => document.title = this.contentDocument.title, 0)"></iframe>'
    )
    dom = browser(outer, "--dump-dom", "--allow-file-access-from-files", "--window-size=1200,900")
    found = json.loads(unescape(re.search("<title>(.*?)</title>", dom, re.DOTALL)[1]))
    assert found["width"] == width
    return found


@in_a_browser
@pytest.mark.parametrize("width", [390, 700])
def test_nothing_is_wider_than_the_screen(page, browser, tmp_path, width):
    found = looked_at(page, browser, tmp_path, width, size_min=9)
    assert found["out"] == []
    assert found["small"] == []
    assert found["shown"] == len(re.findall(r'<svg class="chart"', page.read_text()))


@in_a_browser
def test_paper_cuts_nothing(page, browser, tmp_path):
    """A4 less its margins, at 96 pixels to the inch."""
    found = looked_at(page, browser, tmp_path, 688, height_max=994)
    assert found["out"] == []
    assert found["tall"] == []


def test_goals_say_of_which_run_and_under_which_load(page):
    table = re.search(r'<table class="goals">.*?</table>', page.read_text(), re.DOTALL)[0]
    runs = re.findall(r"<tbody>(.*?)</tbody>", table, re.DOTALL)
    assert len(runs) > 8
    heads = [re.search(r'<tr class="group">(.*?)</tr>', run, re.DOTALL)[1] for run in runs]
    assert len({re.sub("<br>.*", "", head) for head in heads}) == len(heads)
    for head in heads:
        assert re.search(r"machine's load before \d+\.\d\d", unescape(head)), head
    assert any("cores busy" in head for head in heads)


# --- every bench on a schedule


def test_the_schedule_can_be_read(tmp_path):
    done = crosstie("bench", "all", "--list", "--full", "--peer", "crossbar", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    commands = done.stdout.splitlines()
    assert all(re.fullmatch(r"crosstie bench .+ --json results/\S+\.json", c) for c in commands)
    named = {command.split()[2] for command in commands}
    benches = {"rpc", "handshake", "echo", "stream", "accept", "pubsub", "node", "footprint"}
    assert named == benches | {"oslo", "amqp", "mqtt", "hostile", "join", "http"}
    # Each is a command that exists, with options that exist.
    for command in commands:
        asked = crosstie(*command.split()[1:], "--help", cwd=tmp_path)
        assert asked.returncode == 0, f"{command}: {asked.stderr}"
    assert not list(tmp_path.iterdir())


def test_a_schedule_goes_on_when_a_bench_fails_and_ends_with_the_report(tmp_path):
    # A folder in the place of a results file: the bench can measure, and not write.
    (tmp_path / "out/accept.json/in-the-way").mkdir(parents=True)
    done = crosstie("bench", "all", "--only", "accept,footprint", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "$ crosstie bench footprint " in done.stdout
    assert re.search(r"^accept .*failed: exit status: 2", done.stdout, re.MULTILINE), done.stdout
    assert "step 1 of" not in done.stderr, "a progress line is for a terminal"
    assert json.loads((tmp_path / "out/footprint.json").read_text())["bench"] == "footprint"
    assert 'id="footprint"' in (tmp_path / "out/report.html").read_text()


def test_a_step_that_does_not_exist_is_refused(tmp_path):
    done = crosstie("bench", "all", "--only", "footprints", cwd=tmp_path)
    assert done.returncode == 2
    assert "no such step; expected some of rpc" in done.stderr
