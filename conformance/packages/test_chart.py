"""The chart and the compose file: rendered as recorded, and in step with the image."""

from __future__ import annotations

import io
import re
import shutil
import tarfile

import chart
import contents
import release
from rig.router import ROOT

# The release is made in the first test.


def test_the_rendered_chart_is_the_charts():
    """Without Helm, the digest tells a chart that was changed after it was rendered."""
    recorded = chart.GOLDEN.read_text()
    head, _, body = recorded.partition("\n")
    told = "render it again: packaging/chart.py HELM"
    assert head == f"# The chart's digest: {chart.digest()}", told
    if helm := shutil.which("helm"):
        assert chart.rendered(helm) == body, told


def test_the_archive_has_the_releases_version(made):
    with tarfile.open(fileobj=io.BytesIO(made.one("chart.tgz"))) as archive:
        about = archive.extractfile("crosstie/Chart.yaml").read().decode()
    assert re.findall(r"^(?:v|appV)ersion: (\S+)$", about, re.MULTILINE) == [release.version()] * 2


def test_the_chart_runs_the_image():
    rendered = chart.GOLDEN.read_text()
    settings = contents.image_settings()
    for variable in settings["Env"]:
        name = variable.split("=")[0]
        assert name == "PATH" or f"name: {name}\n" in rendered, name
    for port in settings["ExposedPorts"]:
        assert f"containerPort: {port.removesuffix('/tcp')}," in rendered
    assert f"mountPath: {contents.HOME}}}" in rendered
    assert "runAsUser: 65532" in rendered
    [program] = settings["Entrypoint"]
    assert f"command: [{program}, drain, --cbdir, {contents.HOME}, " in rendered


def test_the_charts_configuration_is_the_images():
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    image = lines((ROOT / "packaging/image.yaml").read_text())
    values = (ROOT / "packaging/chart/values.yaml").read_text()
    config = values.split("config: |\n", 1)[1].split("\n\n", 1)[0]
    assert [line[2:] for line in config.splitlines()] == image


def test_the_compose_file_runs_the_image():
    text = (ROOT / "packaging/compose.yaml").read_text()
    for variable in contents.image_settings()["Env"]:
        name = variable.split("=")[0]
        assert name == "PATH" or f"{name}:" in text, name
    assert f"data:{contents.HOME}\n" in text
    assert "read_only: true" in text
