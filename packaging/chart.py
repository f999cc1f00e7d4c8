"""The chart of Helm, with the version of a release.

packaging/chart.py HELM      # writes packaging/chart.golden.yaml, what Helm makes of the chart
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from archives import Entry, gzipped, tar

CHART = Path(__file__).resolve().parent / "chart"
GOLDEN = CHART.with_name("chart.golden.yaml")
# Of what is rendered: a password is otherwise generated.
OPTIONS = ("--set", "auth.password=secret", "--set", "serviceMonitor.enabled=true")


def files(version: str) -> list[Entry]:
    """Return the chart's files."""
    entries = []
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            text = path.read_text()
            if path.name == "Chart.yaml":
                text = text.replace("ersion: 0.0.0\n", f"ersion: {version}\n")
            entries.append(Entry(f"/crosstie/{path.relative_to(CHART)}", text.encode()))
    return entries


def packed(version: str, time: int) -> bytes:
    """Return the archive that `helm install` reads."""
    return gzipped(tar(files(version), time, beginning=""))


def digest() -> str:
    """Return what changes when a file of the chart does."""
    whole = b"".join(entry.path.encode() + (entry.data or b"") for entry in files("1.2.3"))
    return hashlib.sha256(whole).hexdigest()


def rendered(helm: str) -> str:
    """Return what Helm makes of the chart."""
    with tempfile.TemporaryDirectory() as folder:
        for entry in files("1.2.3"):
            path = Path(folder) / entry.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data or b"")
        chart = f"{folder}/crosstie"
        subprocess.run([helm, "lint", "--quiet", chart], check=True, stdout=subprocess.DEVNULL)
        command = [helm, "template", "broker", chart, "--kube-version", "1.33.0", *OPTIONS]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout


if __name__ == "__main__":
    [_, program] = sys.argv
    GOLDEN.write_text(f"# The chart's digest: {digest()}\n{rendered(program)}")
